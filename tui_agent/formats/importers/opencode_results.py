"""How a call of OpenCode ended, by what its versions record of it in the same words."""

from __future__ import annotations

from dataclasses import replace

from tui_agent.core.events import FailureKind
from tui_agent.formats.importers.reading import Record
from tui_agent.formats.importers.results import exited, judged
from tui_agent.formats.importers.transcript import Call, Result
from tui_agent.formats.importers.values import count_at

_REJECTED = ("The user rejected permission", "The user has specified a rule which prevents")
_ABORTED = ("Tool execution aborted", "Tool execution was interrupted")


def result_of_output(call: Call, text: str, metadata: Record) -> Result:
    """How a call has ended that is a success to OpenCode. `metadata`: of a command it has the exit code."""
    if call.name == "invalid":
        return Result("failed", text, message=text, kind=FailureKind.UNKNOWN_TOOL)
    if "exit" not in metadata:
        return judged(call, text, None, None)
    code = count_at(metadata, "exit")
    if code is None:  # ended by a signal
        return Result("failed", text, message=text, unknown_effect=True)
    return exited(call, text, None, code)


def result_of_error(call: Call, error: str) -> Result:
    """How a call has ended that is a failure to OpenCode."""
    if error.startswith(_REJECTED):
        return Result("denied", error, message=error)
    if error.startswith(_ABORTED):
        return Result("cancelled", error, message="interrupted by the operator")
    result = judged(call, error, None, error)
    invalid = "was called with invalid arguments" in error
    return replace(result, kind=FailureKind.INVALID_TOOL_CALL) if invalid else result
