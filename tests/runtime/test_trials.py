"""Failures after a change of the workspace, through the production loop, with real tools and real checkpoints."""

from __future__ import annotations

import shutil
from collections import deque
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.scripted import ScriptedOperator
from tests.runtime.session_harness import LiveSession, replayed, start_session
from tui_agent.core import events
from tui_agent.core.recovery.attempts import AttemptLedger
from tui_agent.runtime.operator import EscalationReply
from tui_agent.store.shadow_git import ShadowGit

FILES = {
    "tax.py": "def tax(net):\n    return net * 0.19\n",
    "prices.py": "from tax import tax\nassert tax(10.05) == 1.91, tax(10.05)\n",
}
TEST = ("bash", {"command": "python3 -B prices.py"})


def turn(*calls: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    return {"calls": [{"tool": tool, "args": arguments} for tool, arguments in calls]}


def comment(number: int) -> tuple[str, dict[str, Any]]:
    """An edit that has no effect on the test."""
    return ("write_file", {"path": "notes.py", "content": f"# {number}\n"})


def by_command(number: int) -> tuple[str, dict[str, Any]]:
    """The same by a program of which nothing is known: only a look at the workspace shows it."""
    return ("bash", {"command": f"./change {number}"})


FIX = (
    "edit_file",
    {"path": "tax.py", "old": "return net * 0.19", "new": "return round(net * 0.19, 2)"},
)


async def run(folder: Path, turns: list[Any], *answers: EscalationReply, present: bool = True) -> LiveSession:
    workspace = folder / "workspace"
    workspace.mkdir()
    change = workspace / "change"
    change.write_text('#!/bin/sh\nprintf "# $1\\n" > notes.py\n')
    change.chmod(0o755)
    operator = ScriptedOperator(present=present, answers=deque(answers))
    # A text straight after a failure is rejected once.
    live = await start_session(
        folder, [*turns, "done", "done"], operator=operator, files=FILES, max_iterations=100
    )
    await live.run()
    state = live.state
    await live.close()
    assert replayed(live.session).recovery == state.recovery
    return live


@pytest.mark.parametrize("edit", [comment, by_command])
async def test_an_edit_test_loop_of_twelve_edits_is_never_refused_and_alone_never_ended(
    tmp_path: Path, edit: Any
) -> None:
    turns = [turn(TEST), *(step for number in range(12) for step in (turn(edit(number)), turn(TEST)))]
    live = await run(tmp_path, turns, present=False)
    assert live.of(events.ToolRefused) == []
    assert live.state.run.outcome is events.Outcome.ANSWERED
    assert len(live.of(events.ToolFailed)) == 13
    levels = {str(verdict.level) for verdict in live.of(events.VerdictReached)}
    assert levels <= {"continue", "guide", "pivot"}


async def test_with_an_operator_it_asks_at_the_sixth_trial_and_names_the_files(tmp_path: Path) -> None:
    turns = [
        turn(TEST),
        *(step for number in range(8) for step in (turn(comment(number)), turn(TEST))),
        "done",
    ]
    live = await run(tmp_path, turns, EscalationReply("answer", "use round()"))
    (asked,) = live.operator.raised
    assert (asked.source, asked.rule) == ("trials", "trials.ask")
    assert "Six changes" in asked.question
    assert "prices.py:2" in asked.question
    assert "notes.py" in asked.question
    assert live.of(events.ToolRefused) == []


async def test_a_blocked_test_runs_again_after_the_answer_and_the_fix(tmp_path: Path) -> None:
    """Three times the same without a change: asked; refused while nothing has changed; run once it has."""
    turns = [turn(TEST)] * 3 + [turn(TEST), turn(FIX), turn(TEST)]
    live = await run(tmp_path, turns, EscalationReply("answer", "use round()"))
    (asked,) = live.operator.raised
    assert asked.source == "attempts"
    (refused,) = live.of(events.ToolRefused)
    assert (refused.refusal, "use round()" in refused.content) == ("blocked", True)
    assert "AssertionError" in refused.content
    assert "go on without" not in refused.content
    assert live.of(events.ToolSucceeded)[-1].tool == "bash"
    assert live.state.recovery.of(AttemptLedger).entries == {}


async def test_edits_between_failures_ask_nothing_and_the_fix_is_tested(tmp_path: Path) -> None:
    turns = [
        turn(TEST),
        turn(comment(1)),
        turn(TEST),
        turn(comment(2)),
        turn(TEST),
        turn(FIX),
        turn(TEST),
        "ok",
    ]
    live = await run(tmp_path, turns)
    assert (live.operator.raised, live.of(events.ToolRefused)) == ([], [])
    assert live.of(events.ToolSucceeded)[-1].tool == "bash"


async def test_the_fix_and_the_test_in_one_reply_run_in_their_order(tmp_path: Path) -> None:
    turns = [turn(TEST)] * 3 + [turn(FIX, TEST)]
    live = await run(tmp_path, turns, EscalationReply("answer", "use round()"))
    assert live.of(events.ToolRefused) == []
    assert live.state.recovery.of(AttemptLedger).entries == {}


async def test_what_the_operator_changes_by_hand_ends_the_block(tmp_path: Path) -> None:
    class ByHand(ScriptedOperator):
        async def answer(self, raised: events.EscalationRaised) -> EscalationReply:
            (tmp_path / "workspace" / "tax.py").write_text("def tax(net):\n    return round(net * 0.19, 2)\n")
            return EscalationReply("answer", "I have changed it.")

    live = await start_session(
        tmp_path, [turn(TEST)] * 4 + ["done", "done"], operator=ByHand(), files=FILES, max_iterations=20
    )
    await live.run()
    await live.close()
    assert live.of(events.ToolRefused) == []
    assert live.of(events.ToolSucceeded)[-1].tool == "bash"


async def test_what_a_failing_call_writes_itself_is_no_change(tmp_path: Path) -> None:
    noisy = ("bash", {"command": "date +%N > report.txt; python3 prices.py > out.log; exit 3"})
    live = await run(tmp_path, [turn(noisy)] * 4, EscalationReply("skip"))
    assert [raised.source for raised in live.operator.raised] == ["attempts"]
    assert [refused.refusal for refused in live.of(events.ToolRefused)] == ["blocked"]


async def test_a_program_that_changes_files_before_the_test_in_one_reply_makes_a_trial(
    tmp_path: Path,
) -> None:
    turns = [
        turn(TEST),
        turn(by_command(1), TEST),
        turn(by_command(2), TEST),
        turn(by_command(3), TEST),
        "done",
    ]
    live = await run(tmp_path, turns)
    assert live.operator.raised == []
    assert live.state.recovery.of(AttemptLedger).newest_first()[0].trials == 3


async def test_without_checkpoints_a_command_that_may_write_counts_as_a_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ShadowGit, "installed", staticmethod(lambda: False))
    turns = [step for number in range(5) for step in (turn(TEST), turn(by_command(number)))]
    live = await run(tmp_path, [*turns, turn(TEST)])
    assert (live.operator.raised, live.of(events.ToolRefused)) == ([], [])


async def test_a_slow_look_at_the_workspace_holds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui_agent.session.checkpointer.LOOK_PATIENCE", 0.0)
    live = await run(tmp_path, [turn(TEST)] * 3 + [turn(FIX), turn(TEST)], EscalationReply("skip"))
    assert live.of(events.ToolRefused) == []
    assert live.state.run.outcome is events.Outcome.ANSWERED


@pytest.fixture(autouse=True)
def git_is_there() -> None:
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
