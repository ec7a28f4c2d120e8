"""The recovery note: what the model is told next, once, beside the tool results (RECOVERY.md, 2).

The text is composed from the state after an iteration; it is sent as the last message of one call and never stored.
It stays bounded, however long the errors are and however many calls failed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_agent.events import Failure, FailureKind, Level

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tui_agent.recovery.attempts import AttemptEntry
    from tui_agent.recovery.engine import RecoveryState

LONGEST_MESSAGE = 2_000
"""Characters of one error message in the note; the whole of it stands in the tool result."""

MOST_FAILURES = 8
"""Failures that are quoted; of more only the number is told."""

SYSTEM_RULE = (
    "When a tool call fails, do not give up: read the error, understand what caused it, and either correct the call "
    "and try again or reach the goal in another way. Never end the task after a single failure, and never repeat a "
    "failed call unchanged. When the operator answers a question, follow the answer. A message that begins with "
    '"The previous iteration failed" comes from the recovery engine, not from the operator: use it for your next step. '
    "When the task is done, say so with the finish tool."
)
"""The rule about failures for the system prompt."""

_ANALYZE = "Please analyze what went wrong and try a different approach."


def shortened(text: str, longest: int = LONGEST_MESSAGE) -> str:
    """`text`, its middle left out when it is longer than `longest` characters."""
    if len(text) <= longest:
        return text
    head, tail = longest * 2 // 3, longest // 3
    return f"{text[:head]}\n… {len(text) - head - tail} characters left out …\n{text[-tail:]}"


def closing_instruction(failure: Failure, tools: Sequence[str]) -> str:
    """What to do about a failure of this kind, in Forge's words; the tools are sorted so that it is stable."""
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
    return _forge(failure.message, closing_instruction(failure, tools))


def _forge(detail: str, closing: str) -> str:
    return f"The previous iteration failed with the following error:\n\n{detail}\n\n{_ANALYZE}\n{closing}"


def compose(state: RecoveryState, hook_context: Sequence[str] = ()) -> str | None:
    """The note for the next model call; None where there is nothing to say.

    `hook_context` is what `PostToolUseFailure` hooks add, each as a paragraph of its own.
    """
    composer = {
        "merged": _merged,
        "forge": _forge_style,
        "gigi": _gigi_style,
        "funnelcanary": _funnelcanary_style,
    }.get(state.policy.note)
    parts = [] if composer is None else list(composer(state))
    parts += [shortened(text.strip()) for text in hook_context[:MOST_FAILURES] if text.strip()]
    return "\n\n".join(parts) or None


def _failures(state: RecoveryState) -> list[Failure]:
    if state.last is None:
        return []
    unique: dict[tuple[str, str, str], Failure] = {}
    for failure in state.last.failures():
        unique.setdefault((failure.kind.value, failure.tool, failure.message), failure)
    return list(unique.values())


def _short(failure: Failure) -> Failure:
    if len(failure.message) <= LONGEST_MESSAGE:
        return failure
    return failure.model_copy(update={"message": shortened(failure.message)})


# --- Forge ---------------------------------------------------------------------------------------------------


def _forge_style(state: RecoveryState) -> Iterator[str]:
    failures = _failures(state)
    for failure in failures[:MOST_FAILURES]:
        yield forge_note(_short(failure), state.tools)
    if len(failures) > MOST_FAILURES:
        yield f"{len(failures) - MOST_FAILURES} more calls failed; their errors stand in the tool results."


# --- Gigi ----------------------------------------------------------------------------------------------------


def _gigi_style(state: RecoveryState) -> Iterator[str]:
    for entry in _spoken(state):
        yield f"{_attempt_lines(entry)}\nThe error was: {shortened(entry.last_message)}"


def _spoken(state: RecoveryState) -> list[AttemptEntry]:
    entries = state.attempts.entries
    return [entries[key] for key in state.attempts.spoke if key in entries][:MOST_FAILURES]


def _attempt_lines(entry: AttemptEntry) -> str:
    if entry.count >= entry.limit:
        return (
            f"Tool {entry.tool} has failed {entry.count} times.\n"
            "The issue is now with the operator: do not repeat this call unless the operator's answer asks for it."
        )
    line = f"Tool {entry.tool} failed (attempt {entry.count}/{entry.limit})."
    if entry.count == entry.limit - 1:
        return (
            f"{line}\nWarning: if this call fails once more, the operator's help will be needed. "
            "Do not repeat it unchanged: correct it, or reach the goal in another way."
        )
    return f"{line}\nRead the error, correct what caused it, then try again or choose another way."


# --- FunnelCanary --------------------------------------------------------------------------------------------


def _funnelcanary_style(state: RecoveryState) -> Iterator[str]:
    level = state.strongest().level
    if level is Level.PIVOT:
        yield _pivot(state)
    elif level is Level.GUIDE and state.faults.last is not None:
        yield f"The previous model call failed ({state.faults.last.fault.kind.value}). Go on with the task."
    elif state.cognition.strategy.value == "CONCLUDE":
        yield "No question is open and confidence is high: if the task is done, give the answer now."


def _pivot(state: RecoveryState) -> str:
    return (
        f"{state.cognition.stall} iterations have passed without a successful tool call. Leave this line of work: "
        "step back, question what you took for granted, and try a fundamentally different approach."
    )


# --- combined ------------------------------------------------------------------------------------------------


def _merged(state: RecoveryState) -> Iterator[str]:
    failures = _failures(state)
    remarks = list(_remarks(state))
    closing = list(_closing(state, failures))
    if failures:
        yield _forge(_details(failures), "\n".join((*remarks, *closing)))
    elif remarks or closing:
        yield "\n".join((*remarks, *closing))


def _details(failures: Sequence[Failure]) -> str:
    if len(failures) == 1:
        return _detail(failures[0])
    quoted = [f"{place}. {_detail(failure)}" for place, failure in enumerate(failures[:MOST_FAILURES], 1)]
    if len(failures) > MOST_FAILURES:
        quoted.append(f"{len(failures) - MOST_FAILURES} more failed; their errors stand in the tool results.")
    return "\n\n".join(quoted)


def _detail(failure: Failure) -> str:
    message = shortened(failure.message)
    return f"{failure.tool}: {message}" if failure.tool else message


def _remarks(state: RecoveryState) -> Iterator[str]:
    last, policy = state.last, state.policy
    if policy.attempts != "off":
        for entry in _spoken(state):
            if entry.count:
                yield _attempt_lines(entry)
    if last is not None:
        for tool in dict.fromkeys(failure.tool for failure in last.failures() if failure.unknown_effect):
            yield (
                f"It is not known whether {tool} had its effect before it was cut off: "
                "verify the state before you repeat it."
            )
    pattern = state.stuck.moving if policy.stuck else None
    if pattern is not None:
        yield f"You are going in circles: {pattern.told}. Nothing will change by doing it again."
    if policy.breaker:
        for tool in state.breakers.opened:
            broken = state.breakers.states[tool]
            yield f"Tool {tool} failed too often and is not available for the next {broken.span} iterations."
    level = state.strongest().level
    if level.rank >= Level.PIVOT.rank and policy.cognition != "off" and _stalled(state):
        yield _pivot(state)


def _stalled(state: RecoveryState) -> bool:
    return state.cognition.moved and state.cognition.stall >= state.policy.stall_threshold


def _closing(state: RecoveryState, failures: Sequence[Failure]) -> Iterator[str]:
    """The strongest verdict's instruction; below a pivot, what each kind of failure asks for."""
    match state.strongest().level:
        case Level.CONTINUE:
            return
        case Level.GUIDE:
            yield from dict.fromkeys(
                closing_instruction(_short(failure), state.tools) for failure in failures[:MOST_FAILURES]
            )
            if not failures:
                yield "Choose a different next step."
        case Level.PIVOT:
            yield "Your next step must differ in kind from the ones that failed."
        case Level.ESCALATE if state.operator_present:
            yield "The operator was asked: follow the operator's answer, and work round what stays blocked."
        case Level.ESCALATE:
            yield "Nobody can answer now: work round what is blocked, and reach the goal in another way."
        case _:
            yield "Stop here, and say what was done, what is open and why."
