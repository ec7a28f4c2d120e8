"""What a command left for programs outside to run, with somebody to ask: away until the answer, then as said."""

from __future__ import annotations

import asyncio
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.runtime.scripted import ScriptedOperator
from tests.runtime.session_harness import LiveSession, replayed, start_session
from tests.runtime.test_sandbox import DONE, bash, needs_one
from tui_agent.core import events
from tui_agent.core.events import ApprovalAsked
from tui_agent.runtime.operator import ApprovalReply

HOOK = "#!/bin/sh\n# harmless\ntouch MARKER\n"
LEAVES = f"printf '{HOOK}' > .envrc; chmod 750 .envrc; echo done"


@dataclass
class Looking(ScriptedOperator):
    """Notes what stands in the workspace while it is asked, and does something in it."""

    folder: Path = Path()
    reply: ApprovalReply | None = None
    does: str = ""
    there: list[str] = field(default_factory=list)
    is_asked: asyncio.Event = field(default_factory=asyncio.Event)

    async def approve(self, asked: ApprovalAsked) -> ApprovalReply:
        self.asked.append(asked)
        self.there += sorted(path.name for path in self.folder.iterdir() if path.name != ".git")
        if self.does:
            (self.folder / ".envrc").write_text(self.does)
        self.is_asked.set()
        if self.reply is None:
            await asyncio.Event().wait()
            raise AssertionError
        return self.reply


async def held(
    folder: Path, operator: Looking, command: str = LEAVES, present: bool = True
) -> tuple[LiveSession, Path]:
    operator.folder, operator.present = folder / "workspace", present
    live = await start_session(folder, bash(command), operator=operator, sandbox="auto")
    return live, operator.folder


def said(live: LiveSession) -> str:
    return " ".join(notice.text for notice in live.of(events.Notice) if notice.origin == "sandbox")


async def test_what_is_kept_stands_byte_for_byte_counts_as_a_change_and_is_asked_about_once(
    tmp_path: Path,
) -> None:
    operator = Looking(reply=ApprovalReply("once"))
    live, workspace = await held(tmp_path, operator)
    await live.run()
    needs_one(live.state.run.sandbox)
    await live.close()
    (asked,) = operator.asked
    (file,) = asked.held
    assert (file.path, file.number, file.line) == (".envrc", 3, "touch MARKER")
    assert "direnv" in file.why
    assert file.text == HOOK
    assert operator.there == []
    kept = workspace / ".envrc"
    assert kept.read_text() == HOOK
    assert stat.S_IMODE(kept.stat().st_mode) == 0o750
    (result,) = live.of(events.ToolSucceeded)
    assert "kept what programs outside will run: '.envrc'" in result.content
    assert "undid" not in result.content
    assert said(live) == ""
    assert ".envrc" in {path for saved in live.of(events.CheckpointSaved) for path in saved.files}
    assert replayed(live.session).approvals == ()
    answers = [event for event in live.events if isinstance(event, events.ApprovalAnswered)]
    assert [(one.id, one.decision) for one in answers] == [(asked.id, "once")]
    # No rule is left behind.
    assert live.state.session.rules == frozenset()


@pytest.mark.parametrize(
    "reply", [ApprovalReply("deny", "not here"), ApprovalReply("deny", "nobody is here", by="policy")]
)
async def test_what_is_not_kept_stays_away_and_the_model_is_told_why(
    tmp_path: Path, reply: ApprovalReply
) -> None:
    live, workspace = await held(tmp_path, Looking(reply=reply))
    await live.run()
    needs_one(live.state.run.sandbox)
    await live.close()
    (result,) = live.of(events.ToolSucceeded)
    assert not (workspace / ".envrc").exists()
    assert "The sandbox undid" in result.content
    assert f"did not keep it; do not write it again. The reason: {reply.reason}" in result.content
    assert "write_file" not in result.content
    assert ".envrc" in said(live)


async def test_alone_nothing_is_asked(tmp_path: Path) -> None:
    operator = Looking(reply=ApprovalReply("once"))
    live, workspace = await held(tmp_path, operator, present=False)
    await live.run()
    needs_one(live.state.run.sandbox)
    await live.close()
    assert operator.asked == []
    assert not (workspace / ".envrc").exists()
    assert "write it with write_file" in live.of(events.ToolSucceeded)[0].content


@pytest.mark.parametrize("reply", ["once", "deny"])
async def test_several_files_of_one_command_are_one_question_for_all_of_them(
    tmp_path: Path, reply: str
) -> None:
    operator = Looking(reply=ApprovalReply("once") if reply == "once" else ApprovalReply("deny"))
    command = f"{LEAVES}; mkdir .vscode; echo '{{}}' > .vscode/tasks.json; echo x=1 > .pdbrc; exit 3"
    live, workspace = await held(tmp_path, operator, command)
    await live.run()
    needs_one(live.state.run.sandbox)
    await live.close()
    (asked,) = operator.asked
    names = sorted(file.path for file in asked.held)
    assert names == [".envrc", ".pdbrc", ".vscode/tasks.json"]
    assert [(workspace / name).exists() for name in names] == [reply == "once"] * 3
    (failed,) = live.of(events.ToolFailed)
    assert failed.exit_code == 3
    assert ("kept what programs outside will run" in failed.content) is (reply == "once")


@pytest.mark.parametrize("killed_instead", [False, True], ids=["interrupted", "killed"])
async def test_a_question_that_is_broken_off_leaves_it_taken_back_also_for_who_resumes(
    tmp_path: Path,
    killed_instead: bool,
) -> None:
    operator = Looking(reply=None)
    live, workspace = await held(tmp_path, operator)
    running = asyncio.ensure_future(live.run())
    done, _ = await asyncio.wait(
        [running, asyncio.ensure_future(operator.is_asked.wait())], return_when=asyncio.FIRST_COMPLETED
    )
    if running in done:
        needs_one(live.state.run.sandbox)
    (waiting,) = live.state.approvals
    assert waiting.held
    # So the journal is found after a kill.
    await live.session.recorder.barrier()
    assert replayed(live.session).approvals == (waiting,)
    journal = live.session.folder / "events.jsonl"
    killed = journal.read_bytes()
    await live.session.interrupt()
    await running
    await live.close()
    assert not (workspace / ".envrc").exists()
    assert ".envrc" in said(live)
    assert live.state.approvals == ()
    assert live.of(events.ApprovalAnswered) == []
    if killed_instead:
        journal.write_bytes(killed)
    again = await start_session(
        tmp_path, [DONE], operator=ScriptedOperator(), resume=live.session.folder, sandbox="auto"
    )
    assert again.state.approvals == ()
    await again.run()
    await again.close()
    assert not (workspace / ".envrc").exists()
    assert again.operator.asked == []


async def test_what_stands_there_by_the_time_of_the_answer_is_left_alone(tmp_path: Path) -> None:
    live, workspace = await held(tmp_path, Looking(reply=ApprovalReply("once"), does="the operator's"))
    await live.run()
    needs_one(live.state.run.sandbox)
    await live.close()
    assert (workspace / ".envrc").read_text() == "the operator's"
    (result,) = live.of(events.ToolSucceeded)
    assert "kept '.envrc', but it could not be put back: something else stands there by now" in result.content


@pytest.mark.parametrize(
    "command",
    [
        "echo x > real; ln -s real .envrc",
        "head -c 2000000 /dev/zero | tr '\\\\0' x > .envrc",
        "yes | head -c 150000 > .envrc",
        "printf '\\\\0\\\\1' > .envrc",
        "printf '\\\\377' > .envrc",
        "git init -q; git config core.fsmonitor evil",
        "echo > .agent-tui.toml",
    ],
    ids=[
        "link",
        "huge",
        "too long to be read",
        "no text",
        "no UTF-8",
        "a part of git's settings",
        "our rules",
    ],
)
async def test_what_cannot_be_shown_whole_or_may_change_later_is_taken_back_unasked(
    tmp_path: Path, command: str
) -> None:
    operator = Looking(reply=ApprovalReply("once"))
    live, workspace = await held(tmp_path, operator, command.replace("\\\\", "\\"))
    await live.run()
    needs_one(live.state.run.sandbox)
    await live.close()
    assert operator.asked == []
    assert not os.path.lexists(workspace / ".envrc")
    assert "The sandbox undid" in live.of(events.ToolSucceeded)[0].content
