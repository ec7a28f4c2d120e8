"""Each detector through the production loop: it does what it alone can do, and does not when it is disconnected."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.scripted import ScriptedOperator
from tests.runtime.session_harness import LiveSession, start_session
from tui_agent.core import events
from tui_agent.core.recovery.attempts import AttemptLedger
from tui_agent.core.recovery.policy import PRESETS
from tui_agent.core.recovery.ring import ErrorRing
from tui_agent.core.recovery.streak import ErrorStreak
from tui_agent.runtime.operator import EscalationReply

Turns = list[Any]


def turn(*calls: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    return {"calls": [{"tool": tool, "args": arguments} for tool, arguments in calls]}


async def run_agent(
    folder: Path, monkeypatch: pytest.MonkeyPatch, turns: Turns, policy: dict[str, Any]
) -> LiveSession:
    """A whole run under `combined` with these parameters changed, nobody present, and none to go on alone."""
    shaped = PRESETS["combined"].model_copy(update={"backoff_base": 0.0, "closing_turn": False, **policy})
    monkeypatch.setattr("tui_agent.session.session.preset", lambda _, **__: shaped)
    operator = ScriptedOperator(present=False, answers=deque([EscalationReply("partial", by="policy")]))
    live = await start_session(folder, turns, operator=operator, max_iterations=9, on_escalation="partial")
    await live.run()
    await live.close()
    return live


MISSING = turn(("read_file", {"path": "nowhere.txt"}))
LOOK = turn(("list_dir", {}))
ALONE: dict[str, Any] = {
    "attempts": "off",
    "streak": "off",
    "cognition": "off",
    "ring": False,
    "stuck": False,
}
BLIND = [turn(("read_file", {"path": "no"}), ("list_dir", {"path": "no"}))] * 9

ENDINGS: list[tuple[str, Turns, dict[str, Any], Any, events.Outcome]] = [
    ("ring", [MISSING] * 9, ALONE | {"ring": True}, False, events.Outcome.STOPPED),
    ("attempts", [MISSING] * 3 + [LOOK, "x"], {}, "off", events.Outcome.PARTIAL),
    (
        "streak",
        [turn(("read_file", {"path": f"no{n}"})) for n in range(9)],
        {},
        "off",
        events.Outcome.PARTIAL,
    ),
    ("cognition", BLIND, ALONE | {"cognition": "act"}, "off", events.Outcome.PARTIAL),
    ("stuck", [LOOK] * 9, {}, False, events.Outcome.STOPPED),
]


@pytest.mark.parametrize(
    ("detector", "turns", "policy", "off", "outcome"), ENDINGS, ids=[row[0] for row in ENDINGS]
)
async def test_a_detector_ends_the_run_that_it_alone_can_end(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    detector: str,
    turns: Turns,
    policy: dict[str, Any],
    off: Any,
    outcome: events.Outcome,
) -> None:
    (connected,) = (await run_agent(tmp_path, monkeypatch, turns, policy)).of(events.RunFinished)
    assert (connected.outcome, connected.detector) == (outcome, detector)
    (disconnected,) = (await run_agent(tmp_path, monkeypatch, turns, policy | {detector: off})).of(
        events.RunFinished
    )
    assert disconnected.detector != detector


FAILING_TOOL = [turn(("list_dir", {}), ("read_file", {"path": f"no{n}"})) for n in range(7)]


@pytest.mark.parametrize(("connected", "refused"), [(True, 1), (False, 0)])
async def test_a_tool_that_keeps_failing_is_left_out_by_its_breaker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, connected: bool, refused: int
) -> None:
    policy = {"breaker": connected, "stuck": False}
    live = await run_agent(tmp_path, monkeypatch, [*FAILING_TOOL[:6], "ok", "ok"], policy)
    assert [event.refusal for event in live.of(events.ToolRefused)] == ["breaker"] * refused
    offered = {tool["function"]["name"] for tool in list(live.model.requests)[5].tools}
    assert ("read_file" not in offered) is connected


@pytest.mark.parametrize(
    ("faults", "outcome"), [("retry", events.Outcome.ANSWERED), ("terminal", events.Outcome.MODEL_FAILED)]
)
async def test_a_passing_model_fault_ends_the_run_only_where_faults_are_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, faults: str, outcome: events.Outcome
) -> None:
    busy = {"fault": {"kind": "rate_limit", "status": 429, "message": "busy"}}
    live = await run_agent(tmp_path, monkeypatch, [busy, "fine"], {"model_faults": faults})
    (finished,) = live.of(events.RunFinished)
    assert finished.outcome is outcome


async def test_errors_of_form_have_a_ladder_of_their_own_beside_the_streak(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = await run_agent(tmp_path, monkeypatch, [turn(("fly", {}))] * 9, {})
    (finished,) = live.of(events.RunFinished)
    assert (finished.outcome, finished.detector) == (events.Outcome.PARTIAL, "form")
    assert live.state.recovery.of(ErrorStreak).count == 0
    assert live.state.recovery.of(ErrorRing).filled == 0


@pytest.mark.parametrize("policy", ["forge", "gigi", "funnelcanary", "hpd", "combined"])
async def test_a_success_whose_text_speaks_of_a_failure_is_a_success(tmp_path: Path, policy: str) -> None:
    texts = [f"The command failed with exit code {code}" for code in range(1, 7)]
    turns = [
        turn(("bash", {"command": f"echo '{text}'; echo 'Traceback (most recent call last):'"}))
        for text in texts
    ]
    live = await start_session(tmp_path, [*turns, turn(("finish", {"answer": "done"}))], policy=policy)
    finished = await live.run()
    recovery = live.state.recovery
    assert (finished.outcome, live.state.metrics.failures) == (events.Outcome.ANSWERED, 0)
    assert (
        recovery.of(ErrorRing).filled,
        recovery.of(ErrorStreak).count,
        dict(recovery.of(AttemptLedger).entries),
    ) == (0, 0, {})
    assert len(live.of(events.ToolSucceeded)) == len(texts) + 1
    await live.close()
