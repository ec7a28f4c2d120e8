"""Counts of a run: what failed, in any way, and what of it was made good."""

from __future__ import annotations

import pytest

from tui_agent import events as e
from tui_agent.folds.metrics import Metrics

FAILURE = e.Failure(kind=e.FailureKind.TOOL_EXECUTION, message="boom", tool="bash", input={})
TOOL_FAILED = e.ToolFailed(call_id="c", tool="bash", input={}, content="boom", failure=FAILURE)
TOOL_WENT = e.ToolSucceeded(call_id="c", tool="bash", input={}, content="fine")
REJECTED = e.ReplyRejected(failure=e.Failure(kind=e.FailureKind.NO_TOOL_CALL, message="no call"))
FAULTED = e.ModelFaulted(fault=e.Fault(kind=e.FaultKind.TIMEOUT, message="silence"), action="retry")
REPLIED = e.ReplyFinished(text="t")
ANSWERED = e.RunFinished(outcome=e.Outcome.ANSWERED)
GAVE_UP = e.RunFinished(outcome=e.Outcome.PARTIAL)


@pytest.mark.parametrize(
    ("events", "errors", "failures", "recoveries"),
    [
        ([TOOL_FAILED, TOOL_WENT], 1, 1, 1),
        ([TOOL_FAILED, TOOL_FAILED, GAVE_UP], 2, 2, 0),
        ([FAULTED, FAULTED, REPLIED], 0, 2, 2),
        ([REJECTED, REPLIED, ANSWERED], 0, 1, 1),
        ([TOOL_FAILED, REJECTED, FAULTED, REPLIED, ANSWERED], 1, 3, 3),
        ([TOOL_FAILED, FAULTED, REPLIED, GAVE_UP], 1, 2, 1),
    ],
)
def test_every_kind_of_failure_counts_and_no_more_recover_than_there_were(
    events: list[e.Event], errors: int, failures: int, recoveries: int
) -> None:
    metrics = Metrics()
    for event in events:
        metrics = metrics.apply(event)
        assert metrics.recoveries + sum(metrics.unrecovered.values()) == metrics.failures
    assert (metrics.tool_errors, metrics.failures, metrics.recoveries) == (errors, failures, recoveries)


def test_a_new_run_counts_anew() -> None:
    metrics = Metrics().apply(TOOL_FAILED).apply(e.RunStarted(run=2, task="t", policy="combined", model="m"))
    assert (metrics.failures, metrics.recoveries) == (0, 0)
