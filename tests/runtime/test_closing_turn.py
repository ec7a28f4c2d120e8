"""The closing turn through the production loop, with real tools: once, before recovery ends a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.runtime.scripted import ScriptedOperator
from tests.runtime.session_harness import LiveSession, replayed, start_session
from tui_agent.core import events
from tui_agent.headless import EXIT_CODES, HeadlessOperator


def turn(*calls: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    return {"calls": [{"tool": tool, "args": arguments} for tool, arguments in calls]}


MISSING = [
    turn(("bash", {"command": f"cat missing-{number % 4} 2>/dev/null || exit 7"})) for number in range(12)
]
"""They fail alike, and four are different."""
ENDS = {"fresh_starts": 0}
KEEP = ("write_file", {"path": "result.md", "content": "what there is\n"})
SAY = ("finish", {"answer": "The files are not there; result.md says what there is."})


async def run(folder: Path, turns: list[Any], **settings: Any) -> LiveSession:
    operator = HeadlessOperator(approve_mode=events.Approval.ALL)
    live = await start_session(folder, turns, operator=operator, **settings)
    await live.run()
    state = live.state
    await live.close()
    assert replayed(live.session).run == state.run
    return live


async def test_ten_identical_failures_end_a_run_alone_after_one_closing_turn(tmp_path: Path) -> None:
    turns = [*MISSING[:10], turn(KEEP, SAY), "one more", "and one more"]
    live = await run(tmp_path, turns, recovery=ENDS)
    (opened,) = live.of(events.ClosingTurnOpened)
    (finished,) = live.of(events.RunFinished)
    assert (opened.ended_by, opened.rule) == ("ring.stop", "closing.turn")
    assert (finished.outcome, finished.rule) == (events.Outcome.STOPPED, "ring.stop")
    assert EXIT_CODES[finished.outcome] == 4
    assert (tmp_path / "workspace" / "result.md").read_text() == "what there is\n"
    assert "result.md says what there is" in finished.answer
    note = live.sent(10)[-1]["content"]
    assert "This run ends after your next reply" in note
    assert "operator" not in note
    assert len(live.of(events.IterationStarted)) == 11


async def test_one_call_that_fails_alike_is_withheld_and_the_run_ends_after_its_closing_turn(
    tmp_path: Path,
) -> None:
    live = await run(tmp_path, [MISSING[0]] * 20, recovery=ENDS)
    (finished,) = live.of(events.RunFinished)
    assert finished.outcome is events.Outcome.STOPPED
    assert len(live.of(events.ToolFailed)) == 3, "the others were refused"
    assert len(live.of(events.ClosingTurnOpened)) == 1
    assert live.of(events.EscalationRaised) == []


async def test_the_last_iteration_is_followed_by_the_closing_turn_and_no_other(tmp_path: Path) -> None:
    look = [turn(("list_dir", {"path": "."})), turn(KEEP), turn(("read_file", {"path": "result.md"}))]
    live = await run(tmp_path, [*look[:2], "I wrote result.md.", *look], max_iterations=2)
    (finished,) = live.of(events.RunFinished)
    assert (finished.outcome, finished.rule) == (events.Outcome.PARTIAL, "limit.iterations")
    assert "I wrote result.md." in finished.answer
    assert len(live.of(events.IterationStarted)) == 3


@pytest.mark.parametrize(
    "settings",
    [{"policy": "hpd"}, {"recovery": {**ENDS, "closing_turn": False}}],
    ids=["a preset", "switched off"],
)
async def test_there_is_none_under_a_preset_or_where_it_is_switched_off(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    live = await run(tmp_path, MISSING, **settings)
    assert live.of(events.ClosingTurnOpened) == []
    assert live.state.run.outcome is events.Outcome.STOPPED


async def test_different_failures_in_a_row_end_no_run_alone(tmp_path: Path) -> None:
    fail = [turn(("bash", {"command": f"echo word{'x' * number}; exit {number + 3}"})) for number in range(8)]
    live = await run(tmp_path, [*fail, *["I could not do it."] * 4])
    assert live.state.run.outcome is events.Outcome.ANSWERED
    assert "streak.guide" in {
        one.rule for verdict in live.of(events.VerdictReached) for one in verdict.verdicts
    }
    assert live.of(events.ClosingTurnOpened) == []


async def test_an_interruption_is_no_reason_for_a_closing_turn(tmp_path: Path) -> None:
    live = await start_session(
        tmp_path, [MISSING[0]] * 3 + ["x"], operator=ScriptedOperator(), files={"a": "b"}
    )
    await live.session.submit("go")
    await live.until(lambda state: state.run.iteration >= 2)
    await live.session.stop("enough")
    await live.close()
    assert live.of(events.ClosingTurnOpened) == []
    assert live.state.run.outcome is events.Outcome.INTERRUPTED
