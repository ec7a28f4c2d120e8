"""Commands in the background, through the production loop: read, stopped, news of their end, gone with the session."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.scripted import ScriptedOperator
from tests.runtime.session_harness import assert_coherent, replayed, start_session
from tests.tools.box import processes_with, wait_until
from tui_agent.core import events
from tui_agent.runtime.operator import ApprovalReply


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"calls": [{"tool": tool, "args": arguments}]}


def begin(command: str, **arguments: Any) -> dict[str, Any]:
    return call("bash", command=command, background=True, **arguments)


@pytest.fixture
def marker() -> str:
    return f"marker-{uuid.uuid4().hex}"


async def test_a_command_runs_on_and_its_output_comes_in_pieces(tmp_path: Path) -> None:
    turns = [
        begin("echo one; touch began; while [ ! -e go ]; do sleep 0.05; done; echo two; exit 3"),
        call("bash", command="while [ ! -e began ]; do sleep 0.01; done"),
        call("bash_output", id="b1"),
        call("write_file", path="go", content=""),
        call("bash_output", id="b1", wait=30),
        "done",
    ]
    live = await start_session(tmp_path, turns)
    await live.run()
    await live.until(lambda state: not state.background.running)
    started, _, first, _, second = live.of(events.ToolSucceeded)
    assert "Started in the background as b1" in started.content
    assert "has been running for" in first.content
    lines = [line for piece in (started, first, second) for line in piece.content.splitlines()]
    assert (lines.count("one"), lines.count("two")) == (1, 1), "each is read once"
    assert second.content.endswith("two")
    (ended,) = live.of(events.BackgroundEnded)
    assert (ended.how, ended.code) == ("exited", 3)
    messages = [message for group in live.state.history.groups for message in group.messages]
    roles = [(message["role"], "b1" in str(message["content"])) for message in messages]
    assert roles.index(("tool", True)) < roles.index(("user", True)), "the end is told after the start"
    assert Path(ended.output_file).read_text() == "one\ntwo\n"
    await live.close()
    assert replayed(live.session) == live.state


async def test_output_that_the_disk_does_not_take_is_said_to_be_lost(tmp_path: Path) -> None:
    """To the model where it reads it, and to the operator."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    turns = [begin("yes 0123456789 | head -c 900000"), "waiting", call("bash_output", id="b1"), "done"]
    live = await start_session(tmp_path, turns)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, before[1]))
    try:
        await live.run("begin")
        await live.until(lambda state: not state.background.running)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    await live.run("read")
    (ended,), (notice,) = live.of(events.BackgroundEnded), live.of(events.Notice)
    assert Path(ended.output_file).stat().st_size == 500_000
    assert "not kept: File too large" in notice.text
    assert "not kept: File too large" in live.of(events.ToolSucceeded)[-1].content
    await live.close()


async def test_the_model_is_told_of_an_end_that_it_did_not_ask_about(tmp_path: Path) -> None:
    turns = [begin("while [ ! -e go ]; do sleep 0.05; done"), "waiting", "I see"]
    live = await start_session(tmp_path, turns)
    await live.run("begin")
    assert list(live.state.background.running) == ["b1"]
    (tmp_path / "workspace/go").touch()
    await live.until(lambda state: not state.background.running)
    await live.run("go on")
    sent = live.sent()
    assert_coherent(sent)
    assert any(
        "The background command b1" in str(m["content"]) and "exit code 0" in m["content"] for m in sent
    )
    await live.close()


async def test_stopping_ends_all_that_a_command_started_and_an_id_that_is_not_there_is_named(
    tmp_path: Path, marker: str
) -> None:
    turns = [
        begin(f"setsid sleep 600 {marker} & exec -a {marker} sleep 600"),
        call("bash_stop", id="b1"),
        call("bash_stop", id="b1"),
        call("bash_output", id="b9"),
        "done",
        "done",
    ]
    live = await start_session(tmp_path, turns)
    await live.run()
    assert not processes_with(marker)
    _, stopped, again = live.of(events.ToolSucceeded)
    assert "was stopped after" in stopped.content
    assert "It had ended already" in again.content
    (failed,) = live.of(events.ToolFailed)
    assert "There is no background command 'b9'. Started so far: b1." in failed.failure.message
    assert not any("background command b1" in str(m["content"]) for m in live.sent() if m["role"] == "user")
    await live.close()


async def test_it_is_asked_for_like_any_command_and_no_more_than_eight_run(
    tmp_path: Path, marker: str
) -> None:
    operator = ScriptedOperator()
    operator.approvals.extend([ApprovalReply("deny", "no"), *[ApprovalReply("once")] * 9])
    turns = [*[begin(f"sleep 600 # {marker}")] * 10, "done", "done"]
    live = await start_session(tmp_path, turns, approve="ask", operator=operator)
    await live.run()
    assert "in the background" in operator.asked[0].preview
    assert len(live.state.background.running) == 8
    (failed,) = live.of(events.ToolFailed)
    assert "8 commands run in the background already" in failed.failure.message
    await live.session.background.stop("b3", "operator")
    assert len(live.state.background.running) == 7
    await live.close()
    assert not processes_with(marker)


async def test_an_interrupted_run_keeps_them_and_a_closed_session_ends_them(
    tmp_path: Path, marker: str
) -> None:
    turns = [begin(f"exec -a {marker} sleep 600"), call("bash", command="sleep 600"), "done"]
    live = await start_session(tmp_path, turns)
    await live.session.submit("go")
    await live.until(lambda state: any(c.tool == "bash" and c.started for c in state.conversation.calls[-1:])
                     and state.background.running)  # fmt: skip
    await live.session.stop()
    assert processes_with(marker)
    await live.close()
    assert not processes_with(marker)
    assert live.of(events.BackgroundEnded)[0].how == "session_closed"
    again = await start_session(tmp_path, [turns[0], turns[1], "fine"], resume=live.session.folder)
    assert not again.state.background.running
    await again.close()


@pytest.mark.process
async def test_a_program_that_is_killed_takes_them_along_and_a_resumed_session_says_so(
    tmp_path: Path, marker: str
) -> None:
    script = f"""
import asyncio, pathlib
from tests.runtime.session_harness import start_session
async def main():
    live = await start_session(pathlib.Path({str(tmp_path)!r}), [
        {{"calls": [{{"tool": "bash", "args": {{"command": "exec -a {marker} sleep 600", "background": True}}}}]}},
        "on",
    ])
    await live.run()
    await live.session.recorder.barrier()
    print(live.session.folder, flush=True)
    await asyncio.sleep(600)
asyncio.run(main())
"""
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, stdout=asyncio.subprocess.PIPE, cwd=Path(__file__).parents[2]
    )
    assert child.stdout is not None
    folder = Path((await asyncio.wait_for(child.stdout.readline(), 60)).decode().strip())
    assert processes_with(marker)
    os.kill(child.pid, signal.SIGKILL)
    await child.wait()
    assert await wait_until(lambda: not processes_with(marker))
    live = await start_session(tmp_path, ["first", "I start it again"], resume=folder)
    assert not live.state.background.running
    await live.run("go on")
    assert any("b1" in str(m["content"]) and "ended with the session's process" in str(m["content"])
               for m in live.sent())  # fmt: skip
    await live.close()


async def test_secrets_are_masked_across_reads_and_a_flood_stays_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEMO_API_KEY", "s3cr3t-0123456789abcdef")
    turns = [
        begin("sh leaky.sh"),
        call("bash_output", id="b1"),
        call("bash_output", id="b1", wait=60),
        call("bash", command="sleep 1"),
        call("bash_output", id="b1"),
        "done",
    ]
    script = "printf 'key s3cr3t-012345'; sleep 0.6; printf '6789abcdef end'; sleep 0.2; seq 100000 >&2"
    live = await start_session(tmp_path, turns, files={"leaky.sh": script})
    await live.run()
    read = "".join(event.content for event in live.of(events.ToolSucceeded))
    assert "s3cr3t" not in read
    assert "0123456789" not in read
    (ended,) = live.of(events.BackgroundEnded)
    whole = Path(ended.output_file).read_text()
    assert "s3cr3t" not in whole
    assert whole.endswith("100000\n")
    assert "characters before this are only in" in read
    assert len(read) < 100_000
    await live.close()
