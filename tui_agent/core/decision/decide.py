"""The next step: the loop decides here and nowhere else.

`decide(state)` is pure. The live loop carries its steps out; the repair of a torn journal, resume, forks and the
judging of recorded runs ask the same function, so that no judgement is written twice.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from pydantic import JsonValue

from tui_agent.core import events
from tui_agent.core.decision.advice import advice_due
from tui_agent.core.decision.closing import end, in_closing
from tui_agent.core.decision.endings import close_what_is_open, ended_by, partial, stopped
from tui_agent.core.decision.limits import before_iteration
from tui_agent.core.decision.model_calls import before_reply, compaction_due
from tui_agent.core.decision.planning import after_plan, plan_answer
from tui_agent.core.decision.steps import Ask, BringBack, Finish, Record, StartIteration, Step
from tui_agent.core.decision.tool_calls import after_reply
from tui_agent.core.decision.verification import announced, to_verify
from tui_agent.core.recovery import note
from tui_agent.core.recovery.answers import choice_of
from tui_agent.core.recovery.form import FormErrors, was_cut
from tui_agent.core.recovery.remarks import Remark
from tui_agent.core.recovery.rules import Rule
from tui_agent.core.recovery.verdict import NOTHING
from tui_agent.core.request import compaction
from tui_agent.core.request.fresh_start import better_files, started_afresh
from tui_agent.core.state import RunState

NO_CALL = "The reply has no tool call."


def decide(state: RunState) -> Step:
    """The next step of the run that goes on in `state`; between runs, of the summary that was asked for."""
    if state.compacting is not None:
        return Record((compaction.failed(state, compaction.CUT_SHORT),))
    if state.compaction_asked is not None and not state.running:
        step = compaction_due(state, state.model, None)
        if step is not None:
            return step
    if state.stop is not None:
        closing = tuple(close_what_is_open(state))
        return Record(closing) if closing else Finish(stopped(state, state.stop))
    if state.interrupted:
        closing = tuple(close_what_is_open(state))
        if closing:
            return Record(closing)
    if state.escalation is not None:
        return Ask(state.escalation)
    return _within_iteration(state) if state.iteration_open else _between_iterations(state)


def _between_iterations(state: RunState) -> Step:
    if state.text_answer is not None and state.closing is None:
        step = after_plan(state, state.text_answer)
        if step is not None:
            return step
    if not state.judged:
        last = state.recovery.last
        if last is None or not last.cancelled:
            return Record((_verdict(state),))
    if state.closing is not None:
        return in_closing(state, state.closing)
    reached = state.verdict
    if reached is not None and reached.iteration == state.run.iteration and state.judged:
        step = _after_verdict(state, reached)
        if step is not None:
            return step
    advice = advice_due(state)
    if advice is not None:
        return advice
    answer = None if plan_answer(state) else state.answer
    written = note.compose(state.recovery, answer, state.hook_context)
    if written.text != state.note and not state.note_edited and state.recovery.last is not None:
        fresh = state.recovery.last.number == state.run.iteration and not state.recovery.last.cancelled
        if fresh:
            return Record((events.NotePrepared(text=written.text, rules=written.rules),))
    return _calls_as_text(state) or before_iteration(state) or StartIteration(state.run.iteration + 1)


def _calls_as_text(state: RunState) -> Step | None:
    """The switch to the text protocol, said once, for a model that does not manage calls of the API."""
    called = state.called
    if called is None or called.model in state.text_models:
        return None
    if not state.recovery.of(FormErrors).needs_text(state.recovery.policy):
        return None
    text = (
        f"{called.model} does not call tools as its server has it: from now on its tools are described in the "
        'prompt, and it writes its calls as text. tool_calls = "native" forbids that.'
    )
    rule = Rule.FORM_TEXT_PROTOCOL
    return Record((events.Notice(text=text, origin="form", about=called.model, rule=rule),))


def _verdict(state: RunState) -> events.VerdictReached:
    recovery = state.recovery
    strongest = recovery.strongest()
    if strongest is NOTHING:
        return _NOTHING_SAID.with_values({"iteration": state.run.iteration})
    return events.VerdictReached(
        iteration=state.run.iteration,
        level=strongest.level,
        detector=strongest.detector,
        reason=strongest.reason,
        rule=strongest.rule,
        verdicts=tuple(record for record in recovery.last_verdicts if record.reason),
    )


_NOTHING_SAID = events.VerdictReached(iteration=0, level=NOTHING.level)


def _after_verdict(state: RunState, reached: events.VerdictReached) -> Step | None:
    """The demand of the strongest verdict; None if the run just goes on."""
    match reached.level:
        case events.Level.STOP | events.Level.DEGRADE:
            return end(state, ended_by(state, reached))
        case events.Level.RESTART:
            return Record((started_afresh(state, reached.reason, reached.detector, reached.rule),))
        case events.Level.ESCALATE:
            if state.answer is None:
                return Record((_question(state, reached),))
            return _after_answer(state, reached, state.answer)
        case _:
            return None


def _question(state: RunState, reached: events.VerdictReached) -> events.EscalationRaised:
    subject, better = state.recovery.subject(), better_files(state)
    return events.EscalationRaised(
        id=f"escalation-{state.seq + 1}",
        question=reached.reason,
        source=reached.detector,
        rule=reached.rule,
        tool="" if subject is None else subject.tool,
        input={} if subject is None else dict(subject.input),
        key="" if subject is None else subject.key,
        options=() if better is None else (better.option,),
    )


def _after_answer(
    state: RunState, reached: events.VerdictReached, answer: events.EscalationAnswered
) -> Step | None:
    match choice_of(answer):
        case "answer" if (better := better_files(state)) is not None and answer.text == better.option:
            kept = started_afresh(state, reached.reason, reached.detector, reached.rule, by_operator=True)
            back = started_afresh(
                state, reached.reason, reached.detector, reached.rule, by_operator=True, files=better
            )
            return BringBack(better.ref, back, kept)
        case "fresh_start":
            return Record(
                (started_afresh(state, reached.reason, reached.detector, reached.rule, by_operator=True),)
            )
        case "partial":
            return _end_by_answer(state, reached, answer, events.Outcome.PARTIAL, Rule.OPERATOR_PARTIAL)
        case "stop":
            return _end_by_answer(state, reached, answer, events.Outcome.ESCALATED, Rule.OPERATOR_STOP)
        case "edit" | "retry" if answer.runs_call and answer.input is not None:
            return Record(tuple(_operators_iteration(state, answer.tool, answer.input)))
        case _:
            return None


def _end_by_answer(
    state: RunState,
    reached: events.VerdictReached,
    answer: events.EscalationAnswered,
    outcome: events.Outcome,
    chosen: Rule,
) -> Step:
    """At once if the operator wants it; if nobody is there, recovery ends the run."""
    if answer.by == "operator":
        return Finish(partial(state, outcome, reached.reason, reached.detector, chosen))
    return end(state, partial(state, outcome, reached.reason, reached.detector, Rule.OPERATOR_ABSENT))


def _operators_iteration(
    state: RunState, tool: str, arguments: dict[str, JsonValue]
) -> Iterator[events.Event]:
    """Make an iteration of the operator's own call, which the engine runs (`operator.edit`, `operator.retry`)."""
    number = state.run.iteration + 1
    call = events.ToolCall(
        id=f"operator-{number}",
        name=tool,
        arguments=json.dumps(arguments, ensure_ascii=False),
        key=state.recovery.key(tool, arguments),
    )
    yield events.IterationStarted(iteration=number)
    yield events.ReplyFinished(calls=(call,), finish_reason="tool_calls", model="operator", by="operator")


def _within_iteration(state: RunState) -> Step:
    reply = state.recovery.reply
    if reply is None:
        return before_reply(state)
    if reply.calls:
        return after_reply(state, reply)
    if not state.recovery.not_taken and state.closing is None:
        if reply.broken is not None:
            return Record((_rejection(state, reply.broken),))
        if not was_cut(reply):
            answer = state.cut_text + reply.text
            empty = announced(state, answer)
            if empty is not None or state.recovery.rejects_text(reply.text):
                return Record((_rejection(state, empty),))
            unproved = to_verify(state, answer)
            if unproved is not None:
                return Record((_sent_back(state, unproved),))
    return Record((events.IterationFinished(iteration=state.run.iteration),))


def _sent_back(state: RunState, unproved: Remark) -> events.ReplyRejected:
    failure = events.Failure(
        kind=events.FailureKind.UNVERIFIED_CLAIM, message=unproved.text, iteration=state.run.iteration
    )
    return events.ReplyRejected(failure=failure, rule=unproved.rule)


def _rejection(state: RunState, broken: events.CallProblem | None = None) -> events.ReplyRejected:
    """`broken`: what is wrong with a text that no policy would take."""
    failure = events.Failure(
        kind=events.FailureKind.NO_TOOL_CALL,
        message=NO_CALL if broken is None else broken.message,
        iteration=state.run.iteration,
        rule="" if broken is None else broken.rule,
    )
    return events.ReplyRejected(failure=failure, rule=failure.rule or Rule.REPLY_REJECTED)
