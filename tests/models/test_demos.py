"""Every demo, played through the production loop with the real tools in a real workspace."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.runtime.scripted import ScriptedOperator
from tui_agent.config.sections import RecoverySettings
from tui_agent.config.settings import Settings
from tui_agent.core.events import (
    Compacted,
    EscalationAnswered,
    EscalationRaised,
    Event,
    FailureKind,
    FaultKind,
    Level,
    ModelFaulted,
    Outcome,
    ReplyFinished,
    RunFinished,
    ToolFailed,
    ToolStarted,
    ToolSucceeded,
    VerdictReached,
    WindowCut,
)
from tui_agent.core.fold import fold
from tui_agent.core.recovery.attempts import AttemptLedger
from tui_agent.core.recovery.cognition import CognitiveState
from tui_agent.core.recovery.ring import ErrorRing
from tui_agent.models.scenario import materialise
from tui_agent.models.scenario_file import load_scenario, scenario_names
from tui_agent.models.scripted import ScriptedModel
from tui_agent.runtime.operator import ApprovalReply, EscalationReply
from tui_agent.session.opening import open_session
from tui_agent.session.session import Session

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

LONGEST = 60.0
"""Seconds; a hanging demo ends the test."""


@dataclass
class Show:
    """A demo that was played to its end."""

    end: RunFinished
    events: list[Event]
    ring: list[int]
    """Filled slots after each event that changed them."""
    attempts: int
    """The most failures that any call had."""
    confidence: list[float]
    workspace: Path
    operator: ScriptedOperator

    def of(self, kind: type[Event]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


async def play(
    name: str,
    folder: Path,
    answers: Iterable[EscalationReply] = (),
    approvals: Iterable[ApprovalReply] = (),
    **settings: Any,
) -> Show:
    scenario = load_scenario(name)
    workspace = folder / "workspace"
    materialise(scenario, workspace)
    operator = ScriptedOperator(answers=deque(answers), approvals=deque(approvals))
    chosen = {"policy": scenario.policy, "approve": scenario.approve, **settings}
    configured = Settings(
        model=f"scripted:{name}",
        workspace=workspace,
        state_dir=folder / "state",
        recovery=RecoverySettings(backoff_base=0),
        **chosen,
    )
    session = await open_session(configured, operator, ScriptedModel(scenario, pace=0))
    events: list[Event] = []
    ring, confidence, most = [0], [0.3], 0

    def watch(event: Event, state: Any) -> None:
        nonlocal most
        events.append(event)
        filled = sum(slot is not None for slot in state.recovery.of(ErrorRing).slots)
        if filled != ring[-1]:
            ring.append(filled)
        if state.recovery.of(CognitiveState).confidence != confidence[-1]:
            confidence.append(state.recovery.of(CognitiveState).confidence)
        most = max([most, *(entry.count for entry in state.recovery.of(AttemptLedger).entries.values())])

    session.subscribe(watch)
    try:
        end = await _played(session, scenario.task)
    finally:
        await session.close()
    return Show(end, events, ring, most, confidence, workspace, operator)


async def _played(session: Session, task: str) -> RunFinished:
    await session.submit(task)
    end = await asyncio.wait_for(session.wait(), LONGEST)
    assert end is not None
    return end


async def is_green(workspace: Path) -> bool:
    process = await asyncio.create_subprocess_exec(
        "python3",
        "-m",
        "unittest",
        cwd=workspace,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    return await asyncio.wait_for(process.wait(), LONGEST) == 0


EDITED = EscalationReply("edit", input={"command": "python3 -m unittest -v"})
GREEN_ANSWERS = {
    "an answer that names the module": (
        EscalationReply("answer", "the module is called pricing"),
        "the module is",
    ),
    "any other answer": (
        EscalationReply("answer", "Look before you write.\nReally."),
        "Look before you write.",
    ),
    "an answer in other letters": (EscalationReply("answer", "看看 shop 里面 [/red]"), "看看 shop"),
    "retry once": (EscalationReply("retry"), "one more try"),
    "retry with a hint": (EscalationReply("retry", "but read the package first"), "one more try"),
    "skip": (EscalationReply("skip"), "leave that command alone"),
    "edited arguments": (EDITED, "You changed the command"),
    "go on without an answer": (EscalationReply("continue", by="policy"), "I stop guessing"),
}


MOST_DIFFERENT = {"an answer that names the module", "skip", "edited arguments", "go on without an answer"}
"""Answers by which the demo goes another way each; the others are played by the slow tests."""


def assert_shows_everything(show: Show) -> None:
    """All that recovery has is seen in the demo."""
    assert max(show.ring) == 3
    assert show.ring[show.ring.index(3) + 1] == 0, "a success clears the ring"
    assert show.attempts == 3
    (raised,) = show.of(EscalationRaised)
    assert (raised.source, raised.tool) == ("attempts", "bash")
    low = show.confidence.index(min(show.confidence))
    assert show.confidence[low] < 0.3 < max(show.confidence[:low])
    assert show.confidence[-1] >= 0.5
    kinds = {event.failure.kind for event in show.of(ToolFailed)}
    assert {FailureKind.INVALID_TOOL_CALL, FailureKind.TOOL_EXECUTION} <= kinds
    (faulted,) = show.of(ModelFaulted)
    assert (faulted.fault.kind, faulted.fault.status, faulted.action) == (
        FaultKind.RATE_LIMIT,
        429,
        "retry",
    )
    assert {event.level for event in show.of(VerdictReached)} >= {Level.GUIDE, Level.ESCALATE}


@pytest.mark.parametrize(
    ("reply", "reaction"),
    [
        pytest.param(*row, id=name, marks=() if name in MOST_DIFFERENT else pytest.mark.slow)
        for name, row in GREEN_ANSWERS.items()
    ],
)
async def test_the_recovery_demo_reacts_to_the_answer_and_ends_green(
    reply: EscalationReply, reaction: str, tmp_path: Path
) -> None:
    show = await play("recovery", tmp_path, [reply])
    assert len(show.operator.raised) == 1
    answered = next(place for place, event in enumerate(show.events) if isinstance(event, EscalationAnswered))
    reactions = [
        event.text
        for event in show.events[answered:]
        if isinstance(event, ReplyFinished) and event.by == "model"
    ]
    assert reaction in reactions[0]
    assert show.end.outcome is Outcome.ANSWERED
    assert show.end.answer.startswith("Both tests pass.")
    assert fold(show.events).metrics.unrecovered == 0
    assert await is_green(show.workspace)
    assert not (show.workspace / "prices.py").exists()
    assert not (show.workspace / "shop/price.py").exists()
    expected = load_scenario("recovery").files["tests/test_cart.py"]
    assert (show.workspace / "tests/test_cart.py").read_text() == expected
    if reply is not EDITED:  # by which one more command fails
        assert_shows_everything(show)


@pytest.mark.parametrize(("choice", "outcome"), [("partial", Outcome.PARTIAL), ("stop", Outcome.ESCALATED)])
async def test_the_recovery_demo_can_be_ended_at_the_card(
    choice: Any, outcome: Outcome, tmp_path: Path
) -> None:
    show = await play("recovery", tmp_path, [EscalationReply(choice)])
    assert show.end.outcome is outcome
    assert "bash" in show.end.answer


async def test_the_recovery_demo_claims_no_green_tests_where_nothing_was_allowed(tmp_path: Path) -> None:
    show = await play("recovery", tmp_path, approve="ask")
    assert show.operator.asked, "writes and commands ask"
    assert not show.end.answer.startswith("Both tests pass.")
    assert not await is_green(show.workspace)


async def test_the_breaker_demo_fills_the_ring_and_stops_with_a_partial_answer(tmp_path: Path) -> None:
    show = await play("breaker", tmp_path)
    assert show.ring == [0, 1, 2, 0, 1, 2, 3, 4, 5]
    assert (show.end.outcome, show.end.detector) == (Outcome.STOPPED, "ring")
    assert "5 identical consecutive errors" in show.end.reason
    assert "cannot reach staging.internal" in show.end.answer


async def test_the_breaker_demo_under_the_default_policy_asks_before_it_stops(tmp_path: Path) -> None:
    show = await play("breaker", tmp_path, [EscalationReply("retry")] * 4, policy="combined")
    assert show.operator.raised
    assert show.end.outcome in {Outcome.STOPPED, Outcome.ANSWERED}


async def test_the_parallel_demo_shows_backoff_and_a_batch_that_fails_in_part(tmp_path: Path) -> None:
    show = await play("parallel", tmp_path)
    assert show.end.outcome is Outcome.ANSWERED
    assert "9.80" in show.end.answer
    assert "| west-coast | 9.80 |" in (show.workspace / "report.md").read_text()
    kinds = [event.fault.kind.value for event in show.of(ModelFaulted)]
    assert kinds == ["rate_limit", "server", "server", "stream_cut", "overloaded"]
    assert {event.action for event in show.of(ModelFaulted)} == {"retry"}
    assert not show.operator.raised
    started = [
        type(event).__name__ for event in show.events if isinstance(event, ToolStarted | ToolSucceeded)
    ]
    assert ["ToolStarted"] * 3 in [started[at : at + 3] for at in range(len(started))], "reads run together"
    assert len(show.of(ToolFailed)) == 1


YES, NO = ApprovalReply("once"), ApprovalReply("deny", "build/ is mine")
EDIT = ApprovalReply("once", input={"path": "VERSION", "content": "3.0.0-rc1\n"})
RELEASES = {
    "yes to all": ("2.0.0", [YES, YES, YES], "2.0.0", ["package-2.0.0.txt"], "2.0.0"),
    "another version": (
        "Let us call it 1.10.0, please",
        [YES, YES, YES],
        "1.10.0",
        ["package-1.10.0.txt"],
        "1.10.0",
    ),
    "no version": ("you decide", [YES, YES, YES], "2.0.0", ["package-2.0.0.txt"], "2.0.0"),
    "no deleting": ("2.0.0", [YES, YES, NO, YES], "2.0.0", ["old-package.txt", "package-2.0.0.txt"], "2.0.0"),
    "no building": ("2.0.0", [YES, YES, NO, NO], "2.0.0", ["old-package.txt"], "2.0.0"),
    "no writing": ("2.0.0", [NO, NO, YES], "1.2.0", ["package-1.2.0.txt"], "Unreleased"),
    "another file content": ("2.0.0", [EDIT, YES, YES], "3.0.0-rc1", ["package-3.0.0-rc1.txt"], "2.0.0"),
}


@pytest.mark.parametrize(
    ("said", "approvals", "version", "built", "heading"), RELEASES.values(), ids=RELEASES
)
async def test_the_approvals_demo_does_what_it_was_allowed_and_nothing_else(
    said: str, approvals: list[ApprovalReply], version: str, built: list[str], heading: str, tmp_path: Path
) -> None:
    show = await play("approvals", tmp_path, [EscalationReply("answer", said)], approvals)
    assert show.end.outcome is Outcome.ANSWERED
    assert not show.operator.approvals, "every card was shown"
    assert (show.workspace / "VERSION").read_text().strip() == version
    assert sorted(path.name for path in (show.workspace / "build").iterdir()) == built
    assert f"## {heading}\n" in (show.workspace / "CHANGELOG.md").read_text()
    package = [name for name in built if name.startswith("package")]
    assert show.end.answer.startswith("No package was built." if not package else "The release is prepared")
    assert all(name in show.end.answer for name in package)
    assert all(asked.preview for asked in show.operator.asked)


async def test_the_compaction_demo_summarises_and_its_report_is_right(tmp_path: Path) -> None:
    show = await play("compaction", tmp_path)
    assert show.end.outcome is Outcome.ANSWERED
    assert not show.of(WindowCut)
    assert len(show.of(Compacted)) >= 1
    check = show.of(ToolSucceeded)[-2]
    assert "the report is right: 8 days" in check.content
    summary = show.of(Compacted)[-1].summary
    assert "day-4: 8" in summary


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["forge", "gigi", "funnelcanary", "hpd", "combined"])
@pytest.mark.parametrize("name", scenario_names())
async def test_every_demo_comes_to_an_end_under_every_policy(name: str, policy: str, tmp_path: Path) -> None:
    show = await play(name, tmp_path, [EscalationReply("retry")] * 20, policy=policy)
    assert show.end.outcome is not Outcome.ERROR
    assert show.end.answer


async def test_a_message_after_the_end_is_answered_and_starts_no_work(tmp_path: Path) -> None:
    scenario = load_scenario("parallel")
    workspace = tmp_path / "workspace"
    materialise(scenario, workspace)
    settings = Settings(
        model="scripted:parallel",
        workspace=workspace,
        state_dir=tmp_path / "state",
        approve="all",
        recovery=RecoverySettings(backoff_base=0),
    )
    session = await open_session(settings, ScriptedOperator(), ScriptedModel(scenario, pace=0))
    await _played(session, scenario.task)
    for _ in range(2):
        again = await _played(session, "and now write me a poem")
        assert again.outcome is Outcome.ANSWERED
        assert "--model NAME" in again.answer
    await session.close()
