"""Forecast of the verdict if the same thing failed once more: the detectors themselves are asked, on a copy
of the state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tui_agent.core import events
from tui_agent.core.recovery.folding import apply
from tui_agent.core.recovery.note import compose

if TYPE_CHECKING:
    from tui_agent.core.recovery.engine import RecoveryState


class Forecast(NamedTuple):
    """The verdict, and whether the model is sent a note beside the error."""

    verdict: events.VerdictRecord
    noted: bool


def if_it_fails_again(recovery: RecoveryState, failure: events.Failure, key: str) -> Forecast:
    """Give the verdict on one more iteration in which only this call runs and fails so.

    A call that would not run is judged as refused.
    """
    tool = failure.tool
    number = (recovery.last.number if recovery.last is not None else 0) + 1
    call: dict[str, Any] = {"call_id": "", "tool": tool, "input": failure.input, "key": key}
    permit = recovery.permit(tool, key)
    result: events.ToolResult
    if permit.allowed:
        result = events.ToolFailed(**call, content=failure.message, failure=failure)
    else:
        result = events.ToolRefused(
            **call, refusal=permit.refusal or "blocked", reason=permit.reason, content=permit.reason
        )
    for event in (
        events.IterationStarted(iteration=number),
        events.ReplyFinished(calls=(events.ToolCall(id="", name=tool, arguments="", key=key),)),
        result,
        events.IterationFinished(iteration=number),
    ):
        recovery = apply(recovery, event)
    return Forecast(recovery.strongest(), compose(recovery).text is not None)
