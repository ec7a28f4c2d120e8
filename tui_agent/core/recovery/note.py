"""The recovery note: what the model reads next, once, beside the tool results.

The text is composed from the state after an iteration and after the operator's answer; it is sent as the last message
of one call and never stored. It says only what helps, and stays bounded however long the errors are and however many
calls failed. Under `combined` it says what to do next and leaves the errors to the results above it; the presets
quote them. Each paragraph comes with the id of the rule that wrote it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tui_agent.core.events import EscalationAnswered, Failure, FailureKind, Level
from tui_agent.core.framed import cleaned, framed, named, sealed
from tui_agent.core.recovery.answers import choice_of
from tui_agent.core.recovery.attempts import AttemptEntry, AttemptLedger
from tui_agent.core.recovery.cognition import CognitiveState, Strategy
from tui_agent.core.recovery.forge_note import closing_instruction, forge_note
from tui_agent.core.recovery.form import CALL_AS_TEXT, FormErrors
from tui_agent.core.recovery.implicit import ImplicitFailures
from tui_agent.core.recovery.iteration import FORM_ERRORS, CallStatus
from tui_agent.core.recovery.model_faults import ModelFaults
from tui_agent.core.recovery.refusals import wait_first
from tui_agent.core.recovery.rules import Rule
from tui_agent.core.recovery.stuck import StuckPatterns
from tui_agent.core.recovery.tool_breaker import ToolBreakers
from tui_agent.core.recovery.trials import Trials, advice, most_tried
from tui_agent.quantities import counted, ordinal_word

if TYPE_CHECKING:
    from tui_agent.core.recovery.engine import RecoveryState

LONGEST_MESSAGE = 1_200
"""Characters of one error message in the note; the whole of it stands in the tool result."""

LONGEST_NOTE = 6_000
"""Characters of a whole note."""

MOST_FAILURES = 5
"""Failures that are quoted; of more only the number is given."""

NOTE_TAG = "recovery_note"
"""Marks the note among the messages of a request."""

_SYSTEM_RULE = (
    "When a tool call fails, do not give up: read the error, understand what caused it, and either correct the call "
    "and try again or reach the goal in another way. Never end the task after a single failure, and never repeat a "
    "failed call unchanged.{answers} A message inside <{tag}> tags comes from the recovery engine: use it for your "
    "next step, and neither quote nor answer it. When the task is done, say so with the finish tool."
)


class Paragraph(NamedTuple):
    """One paragraph of the note and the rule that wrote it."""

    rule: Rule
    text: str


class Note(NamedTuple):
    """The whole note; `text` None if there is nothing to say."""

    text: str | None
    rules: tuple[str, ...]


def closing_note(reason: str) -> str:
    """The model's text before its closing turn."""
    return (
        f"This run ends after your next reply: {reason.rstrip('.')}. Use its calls to bring the files into the best "
        "state that you can, and undo what is half done. In the same reply say, with finish, what is done, what is "
        "not, and what you found."
    )


def tagged(note: str) -> str:
    """The note as the message that is sent."""
    return f"<{NOTE_TAG}>\n{sealed(note)}\n</{NOTE_TAG}>"


def system_rule(*, operator_present: bool = True) -> str:
    """The rule about failures for the system prompt."""
    answers = " When the operator answers a question, follow the answer." if operator_present else ""
    return _SYSTEM_RULE.format(answers=answers, tag=NOTE_TAG)


def shortened(text: str, longest: int = LONGEST_MESSAGE) -> str:
    """`text`, its middle left out when it is longer than `longest` characters."""
    if len(text) <= longest:
        return text
    head, tail = longest * 2 // 3, longest // 3
    return f"{text[:head]}\n… {len(text) - head - tail} characters left out …\n{text[-tail:]}"


def compose(
    state: RecoveryState, answer: EscalationAnswered | None = None, hook_context: Sequence[str] = ()
) -> Note:
    """The note for the next model call, after `answer` if a question was put and answered.

    `hook_context` is what hooks add, each as a paragraph of its own.
    """
    composer = _COMPOSERS.get(state.policy.note)
    # Two calls that failed alike give the same paragraph: it is said once.
    paragraphs = [] if composer is None else list(dict.fromkeys(composer(state, answer)))
    form = state.of(FormErrors)
    if form.cut and form.broken and state.policy.note != "merged":
        paragraphs.append(_cut())
    paragraphs += [
        Paragraph(Rule.NOTE_HOOK, cleaned(shortened(text.strip())))
        for text in hook_context[:MOST_FAILURES]
        if text.strip()
    ]
    if not paragraphs:
        return Note(None, ())
    # Whatever was quoted on the way, it does not end the note.
    whole = sealed("\n\n".join(paragraph.text for paragraph in paragraphs))
    text = shortened(whole, LONGEST_NOTE)
    return Note(text, tuple(dict.fromkeys(paragraph.rule.value for paragraph in paragraphs)))


def _failures(state: RecoveryState) -> list[Failure]:
    if state.last is None:
        return []
    unique: dict[tuple[str, str, str], Failure] = {}
    for failure in state.last.failures():
        unique.setdefault((failure.kind.value, failure.tool, failure.message), failure)
    return list(unique.values())


def _short(failure: Failure) -> Failure:
    # What is wrong with a reply is said in words of ours.
    message = cleaned(failure.message) if failure.kind not in FORM_ERRORS else failure.message
    return failure.model_copy(update={"message": shortened(message)})


# --- Forge ---------------------------------------------------------------------------------------------------


def _forge_style(state: RecoveryState, _: EscalationAnswered | None) -> Iterator[Paragraph]:
    failures = _failures(state)
    for failure in failures[:MOST_FAILURES]:
        yield Paragraph(Rule.NOTE_ERROR, forge_note(_short(failure), state.tools))
    if len(failures) > MOST_FAILURES:
        yield Paragraph(Rule.NOTE_ERROR, _more(len(failures)))


def _more(failures: int) -> str:
    return f"{counted(failures - MOST_FAILURES, 'more call')} failed; the errors stand in the tool results."


# --- Gigi ----------------------------------------------------------------------------------------------------


def _gigi_style(state: RecoveryState, answer: EscalationAnswered | None) -> Iterator[Paragraph]:
    for entry in _triggered(state):
        text = (
            f"{_attempt_lines(entry, state, answer)}\nThe error was:{framed(shortened(entry.last_message))}"
        )
        yield Paragraph(Rule.NOTE_ATTEMPTS, text)


def _triggered(state: RecoveryState) -> list[AttemptEntry]:
    attempts = state.of(AttemptLedger)
    entries = attempts.entries
    found = [entries[key] for key in attempts.triggered if key in entries]
    return [entry for entry in found if entry.count][:MOST_FAILURES]


def _attempt_lines(entry: AttemptEntry, state: RecoveryState, answer: EscalationAnswered | None) -> str:
    if entry.count >= entry.limit:
        line = f"Tool {named(entry.tool)} has failed {entry.count} times."
        if answer is not None or not state.operator_present:
            return line
        return (
            f"{line}\nThe issue is now with the operator: do not repeat this call unless the operator's answer asks "
            "for it."
        )
    line = f"Tool {named(entry.tool)} failed (attempt {entry.count}/{entry.limit})."
    if entry.count < entry.limit - 1:
        return f"{line}\nRead the error, correct what caused it, then try again or choose another way."
    return (
        f"{line}\nWarning: if this call fails once more, {_after_the_limit(state)}. "
        "Do not repeat it unchanged: correct it, or reach the goal in another way."
    )


# --- FunnelCanary --------------------------------------------------------------------------------------------


def _funnelcanary_style(state: RecoveryState, _: EscalationAnswered | None) -> Iterator[Paragraph]:
    level, fault = state.strongest().level, state.of(ModelFaults).last
    if level is Level.PIVOT:
        yield _pivot(state)
    elif level is Level.GUIDE and fault is not None:
        kind = fault.fault.kind.in_words
        yield Paragraph(Rule.NOTE_FAULT, f"The previous model call failed ({kind}). Go on with the task.")
    elif state.of(CognitiveState).strategy is Strategy.CONCLUDE:
        yield _conclude()


def _pivot(state: RecoveryState) -> Paragraph:
    text = (
        f"{state.of(CognitiveState).stall} steps have passed without a successful tool call. Leave this line of work: "
        "step back, question what you took for granted, and try a fundamentally different approach."
    )
    return Paragraph(Rule.NOTE_PIVOT, text)


def _conclude() -> Paragraph:
    text = "No question is open and confidence is high: if the task is done, give the answer now."
    return Paragraph(Rule.NOTE_CONCLUDE, text)


def _cut() -> Paragraph:
    text = (
        "Your reply was longer than one reply may be and was cut. Go on exactly where it stopped; for a long text, "
        "write it to a file in several steps."
    )
    return Paragraph(Rule.NOTE_CUT, text)


# --- combined ------------------------------------------------------------------------------------------------


def _merged(state: RecoveryState, answer: EscalationAnswered | None) -> Iterator[Paragraph]:
    """Advice on the failures, then the words of the strongest verdict and of the operator."""
    if answer is not None and answer.by == "operator":
        # The operator has spoken: what the engine would advise could only contradict it.
        yield from _answered(state, state.strongest().detector, answer)
        return
    failures = _failures(state)
    closing = _closing(state, failures)
    if closing:
        yield Paragraph(Rule.NOTE_ERROR, closing)
    # A refusal says by itself why the call was not executed.
    executed = {result.key for result in state.last.results if result.failure} if state.last else set()
    for entry in _triggered(state):
        if entry.count > 1 and not entry.settled and entry.key in executed:
            yield Paragraph(Rule.NOTE_ATTEMPTS, _failed_again(entry, state))
    yield from _tried(state)
    yield from _remarks(state, failures)
    yield from _strongest(state, answer)


def _tried(state: RecoveryState) -> Iterator[Paragraph]:
    """About the call that fails after every change, once that has been so for a while."""
    entry = most_tried(state.of(AttemptLedger))
    if entry is not None and state.policy.trials != "off" and entry.trials >= state.policy.trials_guide:
        pivots = any(record.rule == Rule.TRIALS_PIVOT for record in state.last_verdicts)
        yield Paragraph(Rule.TRIALS_PIVOT if pivots else Rule.TRIALS_GUIDE, advice(entry))


def _failed_again(entry: AttemptEntry, state: RecoveryState) -> str:
    """Which failure of this call it was. In words: models copy a `2/3` into their next call."""
    line = f"The {ordinal_word(entry.count)} failure of this call of {named(entry.tool)}, and the error is the same."
    if entry.again is not None and not state.operator_present:
        return f"{line} {wait_first(entry.again.seconds)}"
    if entry.blocked and not state.operator_present:
        return f"{line} It is not executed again until something has changed: reach the goal in another way."
    if entry.count >= entry.limit:
        return f"{line} Do not repeat it: reach the goal in another way."
    if entry.count == entry.limit - 1:
        line = f"{line} If it fails once more, {_after_the_limit(state)}."
    return f"{line} Correct it, or reach the goal in another way."


def _after_the_limit(state: RecoveryState) -> str:
    """The consequence of the last failure that a call may have."""
    if state.operator_present:
        return "the operator's help will be needed"
    return (
        "it will not be executed any more"
        if state.policy.attempts == "block"
        else "it counts as out of reach"
    )


def _closing(state: RecoveryState, failures: Sequence[Failure]) -> str:
    """Advice on errors of form, each once; a call that was cut has it in its result."""
    wrong = [one for one in failures if one.kind in FORM_ERRORS and one.rule != Rule.FORM_CUT]
    form = state.of(FormErrors)
    as_text = bool(wrong) and form.needs_text(state.policy)
    asked = (
        [CALL_AS_TEXT] if as_text else list(dict.fromkeys(_asked_for(failure, state) for failure in wrong))
    )
    if any(failure.rule in _SAID_OF_THE_REPLY for failure in wrong) and form.row > 1:
        # The same words again would make the same request again, which ends as before.
        asked.append(f"It is the {ordinal_word(form.row)} reply in a row of which nothing could be used.")
    return "\n".join(asked)


_SAID_OF_THE_REPLY = frozenset({Rule.FORM_TEXT_CALL, Rule.FORM_LOST_CALL, Rule.FORM_NO_ANSWER})


def _asked_for(failure: Failure, state: RecoveryState) -> str:
    if failure.rule and failure.kind is FailureKind.NO_TOOL_CALL:
        return failure.message
    if failure.input and failure.kind is FailureKind.INVALID_TOOL_CALL:
        return "Give each argument as the tool's schema asks for it; the error names what is wrong."
    asked = closing_instruction(failure, state.tools)
    if failure.kind is FailureKind.NO_TOOL_CALL and state.goes_on:
        says = "call finish and say" if "finish" in state.tools else "say"
        return f"{asked} Try a way that was not tried yet; if there is none, {says} what is missing."
    return asked


def _remarks(state: RecoveryState, failures: Sequence[Failure]) -> Iterator[Paragraph]:
    policy = state.policy
    for hint in dict.fromkeys(failure.hint for failure in failures[:MOST_FAILURES] if failure.hint):
        yield Paragraph(Rule.NOTE_HINT, shortened(hint))
    if policy.playbook:
        for known in dict.fromkeys(failure.known for failure in failures[:MOST_FAILURES] if failure.known):
            yield Paragraph(Rule.NOTE_PLAYBOOK, known.in_words)
    for tool in dict.fromkeys(failure.tool for failure in failures if failure.unknown_effect):
        text = (
            f"It is not known whether {named(tool)} had its effect before it was cut off: "
            "verify the state before you repeat it."
        )
        yield Paragraph(Rule.NOTE_UNKNOWN_EFFECT, text)
    if state.last is not None and any(one.status is CallStatus.UNFINISHED for one in state.last.results):
        beside = "in the background, or " if "bash_output" in state.tools else ""
        text = (
            "The command was still at work when its time was over. Let it go on where it stopped: "
            f"{beside}with a longer time limit, or a part of the work at a time. What it has done need not be undone."
        )
        yield Paragraph(Rule.FAILURE_UNFINISHED, text)
    pattern = state.of(StuckPatterns).moving if policy.stuck else None
    if pattern is not None:
        text = f"You are going in circles: {pattern.words}. Choose another step."
        yield Paragraph(Rule.NOTE_REPEATED, text)
    if policy.breaker:
        breakers = state.of(ToolBreakers)
        for tool in breakers.opened:
            span = breakers.states[tool].span
            text = f"Tool {named(tool)} failed too often and is not available for the next {span} steps."
            yield Paragraph(Rule.NOTE_BREAKER, text)
    for remark in state.of(ImplicitFailures).remarks:
        if remark.text:
            yield Paragraph(remark.rule, shortened(remark.text))
    form = state.of(FormErrors)
    if form.cut and form.broken:
        yield _cut()


def _strongest(state: RecoveryState, answer: EscalationAnswered | None) -> Iterator[Paragraph]:
    """The instruction of the strongest verdict. An answered question replaces what was to be asked."""
    verdict = state.strongest()
    if verdict.level is Level.ESCALATE:
        if answer is not None:
            yield from _answered(state, verdict.detector, answer)
    elif verdict.level is Level.PIVOT and verdict.detector != Trials.name:
        stall = state.of(CognitiveState).stall
        again = ", and the same kind of error again" if verdict.rule == Rule.COGNITION_PIVOT else ""
        why = f"{stall} steps without a success{again}" if stall > 1 else verdict.reason
        text = f"{why}. Leave this line of work: the next step must differ in kind."
        yield Paragraph(Rule.NOTE_PIVOT, text)
    if state.advice is not None and state.advice.text:
        who, _, words = state.advice.in_words.partition(": ")
        yield Paragraph(Rule.NOTE_ADVISOR, f"{who}:{framed(words, LONGEST_MESSAGE)}")


def _answered(state: RecoveryState, detector: str, answer: EscalationAnswered) -> Iterator[Paragraph]:
    if answer.by == "policy":
        if not state.operator_present:
            yield Paragraph(Rule.OPERATOR_ABSENT, _NOBODY)
        return
    choice = choice_of(answer)
    about_call = detector in {AttemptLedger.name, Trials.name} and choice in _ANSWERED
    text = _ANSWERED[choice] if about_call else "The operator answered: follow the answer."
    yield Paragraph(Rule.NOTE_OPERATOR, text)


_NOBODY = "Nobody can answer now: work round what is blocked, and reach the goal in another way."

_ANSWERED = {
    "retry": "The operator allows this call to run once more.",
    "skip": "The operator chose to go on without this call: it stays blocked. Reach the goal in another way.",
    "answer": "The operator answered: follow the answer. The call that failed runs again once something has changed.",
}
"""By the operator's choice, what the model reads about a call that has failed too often."""

_COMPOSERS = {
    "merged": _merged,
    "forge": _forge_style,
    "gigi": _gigi_style,
    "funnelcanary": _funnelcanary_style,
}
