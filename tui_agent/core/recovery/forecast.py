"""Forecast of the verdict if the same thing failed once more: the detectors themselves are asked, on a copy
of the state.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tui_agent.core import events
from tui_agent.core.recovery.folding import apply

if TYPE_CHECKING:
    from tui_agent.core.recovery.engine import RecoveryState


def if_it_fails_again(
    recovery: RecoveryState, tool: str, arguments: Mapping[str, Any], key: str, message: str
) -> events.VerdictRecord:
    """Give the verdict on one more iteration in which only this call runs and fails with this message.

    A call that would not run is judged as refused.
    """
    number = (recovery.last.number if recovery.last is not None else 0) + 1
    call: dict[str, Any] = {"call_id": "", "tool": tool, "input": dict(arguments), "key": key}
    permit = recovery.permit(tool, key)
    result: events.ToolResult
    if permit.allowed:
        failure = events.Failure(kind=events.FailureKind.TOOL_EXECUTION, message=message, tool=tool)
        result = events.ToolFailed(**call, content=message, failure=failure)
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
    return recovery.strongest()
