"""Forge's note for one failure: the error in its frame, and what each kind of failure asks for."""

from __future__ import annotations

from collections.abc import Sequence

from tui_agent.core.events import Failure, FailureKind

ANALYZE = "Please analyze what went wrong and try a different approach."


def closing_instruction(failure: Failure, tools: Sequence[str]) -> str:
    """Advice on a failure of this kind, in Forge's words; the tools are sorted so that it is stable."""
    match failure.kind:
        case FailureKind.NO_TOOL_CALL:
            return "You must provide a tool call in your response."
        case FailureKind.INVALID_TOOL_CALL:
            return "Ensure your tool call JSON is properly formatted."
        case FailureKind.UNKNOWN_TOOL:
            return f"Use one of the available tools: [{', '.join(sorted(tools))}]"
        case _:
            return f"The error was: {failure.message}"


def forge_note(failure: Failure, tools: Sequence[str]) -> str:
    """Forge's note for one failure, whole: its text is also what Forge compares."""
    closing = closing_instruction(failure, tools)
    return f"The previous iteration failed with the following error:\n\n{failure.message}\n\n{ANALYZE}\n{closing}"
