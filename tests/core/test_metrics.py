"""Counts of a run: what failed, in any way, and what of it was recovered."""

from __future__ import annotations

import pytest

from tui_agent.core.events import (
    Event,
    Failure,
    FailureKind,
    Fault,
    FaultKind,
    IterationFinished,
    ModelFaulted,
    Outcome,
    ReplyFinished,
    ReplyRejected,
    RunFinished,
    RunStarted,
    ToolFailed,
    ToolSucceeded,
)
from tui_agent.core.projections.metrics import Metrics

FAILURE = Failure(kind=FailureKind.TOOL_EXECUTION, message="boom", tool="bash", input={})
TOOL_FAILED = ToolFailed(call_id="c", tool="bash", input={}, content="boom", failure=FAILURE)
TOOL_WENT = ToolSucceeded(call_id="c", tool="bash", input={}, content="fine")
REJECTED = ReplyRejected(failure=Failure(kind=FailureKind.NO_TOOL_CALL, message="no call"))
FAULTED = ModelFaulted(fault=Fault(kind=FaultKind.TIMEOUT, message="silence"), action="retry")
REPLIED = ReplyFinished(text="t")
ENDED = IterationFinished(iteration=1)
ANSWERED = RunFinished(outcome=Outcome.ANSWERED)


def command(words: str) -> ToolSucceeded:
    return ToolSucceeded(call_id="c", tool="bash", input={"command": words}, content="fine")


def failed(words: str) -> ToolFailed:
    failure = Failure(kind=FailureKind.TOOL_EXECUTION, message="exit code 2: boom", tool="bash")
    return ToolFailed(call_id="c", tool="bash", input={"command": words}, content="boom", failure=failure)


COUNTS: list[tuple[str, list[Event], int, int, int, int]] = [
    ("the same call succeeds", [TOOL_FAILED, TOOL_WENT], 1, 1, 1, 0),
    ("twice the same, then it succeeds", [TOOL_FAILED, TOOL_FAILED, TOOL_WENT], 2, 2, 2, 0),
    ("an answer alone recovers nothing", [TOOL_FAILED, TOOL_FAILED, ANSWERED], 2, 2, 0, 0),
    ("model faults, then a reply", [FAULTED, FAULTED, REPLIED, ENDED], 0, 2, 2, 0),
    ("a rejected reply, then a proper one", [REJECTED, ENDED, REPLIED, ENDED], 0, 1, 1, 0),
    ("a rejected reply, then another", [REPLIED, REJECTED, ENDED, REPLIED, REJECTED, ENDED], 0, 2, 0, 0),
    ("another call for the same target", [failed("pytest -q"), command("pytest tests")], 1, 1, 0, 1),
    ("another call for another target", [failed("pytest -q"), command("ls")], 1, 1, 0, 0),
    ("behind a cd and an assignment", [failed("cd a && X=1 make"), command("make all")], 1, 1, 0, 1),
]


@pytest.mark.parametrize(
    ("events", "errors", "failures", "same", "round_"),
    [row[1:] for row in COUNTS],
    ids=[row[0] for row in COUNTS],
)
def test_every_failure_counts_once_and_so_does_its_recovery(
    events: list[Event], errors: int, failures: int, same: int, round_: int
) -> None:
    metrics = Metrics()
    for event in events:
        metrics = metrics.apply(event)
        assert metrics.recoveries + metrics.unrecovered == metrics.failures
    assert (metrics.tool_errors, metrics.failures) == (errors, failures)
    assert (metrics.recovered_same_call, metrics.recovered_worked_round) == (same, round_)


def test_the_known_costs_stay_the_floor_when_a_reply_has_no_price() -> None:
    metrics = Metrics()
    for cost in (0.25, None, 0.5):
        metrics = metrics.apply(ReplyFinished(text="t", cost=cost))
    assert (metrics.usage.cost, metrics.usage.unpriced) == (0.75, 1)
    assert Metrics().apply(ReplyFinished(text="t")).usage.cost is None


def test_a_new_run_counts_anew() -> None:
    metrics = Metrics().apply(TOOL_FAILED).apply(RunStarted(run=2, task="t", policy="combined", model="m"))
    assert (metrics.failures, metrics.recoveries) == (0, 0)
