"""What comes next: the one place where the loop decides.

`decide(state)` is pure. The live loop carries its steps out; the repair of a torn journal, resume, forks and the
judging of recorded runs ask the same function, so that no judgement is written twice. `Record` holds events that
follow from the state alone; every other step needs the world and ends in events again.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tui_agent.core import budgets, events
from tui_agent.core.partial_answer import compose as compose_partial_answer
from tui_agent.core.projections.history import estimate_tokens
from tui_agent.core.recovery import model_faults, note, verdict
from tui_agent.core.recovery.answers import choice_of
from tui_agent.core.recovery.engine import was_cut
from tui_agent.core.recovery.rules import Rule
from tui_agent.core.recovery.streak import exceeded_message
from tui_agent.core.request import compaction, window
from tui_agent.core.state import ASK_OPERATOR, FINISH, SUMMARY_TRIES, RunFacts, RunState, counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic import JsonValue

    from tui_agent.core.recovery.engine import Permit


@dataclass(frozen=True)
class Record:
    """These events follow from the state; ask again when they are recorded."""

    events: tuple[events.Event, ...]


@dataclass(frozen=True)
class StartIteration:
    """Let the operator's gate open, then record the start of iteration `number`."""

    number: int


@dataclass(frozen=True)
class LearnWindow:
    """Find out how long a prompt of `model` may be."""

    model: str


@dataclass(frozen=True)
class Summarise:
    """Ask `model` for a summary of the older part of the history."""

    model: str
    plan: compaction.Plan
    instructions: str
    rule: str


@dataclass(frozen=True)
class CallModel:
    """Wait `delay` seconds, then send the request with `note`. `attempt` counts from 1 in the iteration."""

    model: str
    attempt: int
    note: str | None
    delay: float = 0.0


@dataclass(frozen=True)
class RunCalls:
    """Execute these calls, group after group; those of a group at the same time.

    `approved`: the operator wrote them and is not asked again.
    """

    groups: tuple[tuple[events.ToolCall, ...], ...]
    approved: bool = False


@dataclass(frozen=True)
class Ask:
    """Put this question, which is recorded already, to the operator."""

    question: events.EscalationRaised


@dataclass(frozen=True)
class Finish:
    """The run ends."""

    finished: events.RunFinished


Step = Record | StartIteration | LearnWindow | Summarise | CallModel | RunCalls | Ask | Finish

_REPLY_ROOM = 4_096
"""Tokens of a window that are kept for the reply, at most a quarter of it."""

INTERRUPTED = "interrupted"
UNKNOWN_EFFECT = (
    "The call was interrupted before it ended. Whether it had an effect is unknown: "
    "verify before repeating it."
)
NOT_STARTED = "The call was not started: the iteration was interrupted before its turn."
RUN_OVER = "The call was not started: the run ended with an earlier call of the same reply."
NO_CALL = "The reply has no tool call."
NOBODY_ANSWERED = (
    "Nobody can answer now. Decide by yourself, say which assumption you made, and go on with the task."
)


def decide(state: RunState) -> Step:
    """The next step of the run that goes on in `state`; between runs, of the summary that was asked for."""
    if state.compacting is not None:
        return Record((compaction.failed(state, compaction.CUT_SHORT),))
    if state.compaction_asked is not None and not state.running:
        step = _compaction(state, state.session.model or state.run.model, None)
        if step is not None:
            return step
    if state.stop is not None:
        closing = tuple(_closing(state))
        return Record(closing) if closing else Finish(_stopped(state, state.stop))
    if state.interrupted:
        closing = tuple(_closing(state))
        if closing:
            return Record(closing)
    if state.escalation is not None:
        return Ask(state.escalation)
    return _within_iteration(state) if state.iteration_open else _between_iterations(state)


# --- between iterations -------------------------------------------------------------------------------------


def _between_iterations(state: RunState) -> Step:
    if state.text_answer is not None:
        return Finish(_answered(state, state.text_answer))
    if not state.judged:
        last = state.recovery.last
        if last is None or not last.cancelled:
            return Record((_verdict(state),))
    reached = state.verdict
    if reached is not None and reached.iteration == state.run.iteration and state.judged:
        step = _after_verdict(state, reached)
        if step is not None:
            return step
    written = note.compose(state.recovery, state.answer, state.hook_context)
    if written.text != state.note and not state.note_edited and state.recovery.last is not None:
        fresh = state.recovery.last.number == state.run.iteration and not state.recovery.last.cancelled
        if fresh:
            return Record((events.NotePrepared(text=written.text, rules=written.rules),))
    return _limit(state) or StartIteration(state.run.iteration + 1)


def _unpriced(state: RunState) -> events.Notice | None:
    """Said once where a cost is limited and known in part only."""
    limits = state.run.limits
    limit = limits.get("max_cost", limits.get("max_session_cost"))
    if limit is None or not state.metrics.usage.unpriced or state.unpriced_noticed:
        return None
    text = (
        f"A call of {state.run.model} has no known price: the limit of {limit} USD is held against "
        "what the other calls cost."
    )
    return events.Notice(severity="warning", text=text, origin="cost")


def _verdict(state: RunState) -> events.VerdictReached:
    recovery = state.recovery
    strongest = recovery.strongest()
    return events.VerdictReached(
        iteration=state.run.iteration,
        level=strongest.level,
        detector=strongest.detector,
        reason=strongest.reason,
        rule=strongest.rule,
        verdicts=recovery.last_verdicts,
    )


def _after_verdict(state: RunState, reached: events.VerdictReached) -> Step | None:
    """What the strongest verdict demands; None where the run just goes on."""
    match reached.level:
        case events.Level.STOP | events.Level.DEGRADE:
            return Finish(_ended_by(state, reached))
        case events.Level.ESCALATE:
            if state.answer is None:
                return Record((_question(state, reached),))
            return _after_answer(state, reached, state.answer)
        case _:
            return None


def _question(state: RunState, reached: events.VerdictReached) -> events.EscalationRaised:
    subject = state.recovery.subject()
    return events.EscalationRaised(
        id=f"escalation-{state.seq + 1}",
        question=reached.reason,
        source=reached.detector,
        rule=reached.rule,
        tool="" if subject is None else subject.tool,
        input={} if subject is None else dict(subject.input),
        key="" if subject is None else subject.key,
    )


def _after_answer(
    state: RunState, reached: events.VerdictReached, answer: events.EscalationAnswered
) -> Step | None:
    match choice_of(answer):
        case "partial":
            rule = Rule.OPERATOR_PARTIAL if answer.by == "operator" else Rule.OPERATOR_ABSENT
            return Finish(_partial(state, events.Outcome.PARTIAL, reached.reason, reached.detector, rule))
        case "stop":
            rule = Rule.OPERATOR_STOP if answer.by == "operator" else Rule.OPERATOR_ABSENT
            return Finish(_partial(state, events.Outcome.ESCALATED, reached.reason, reached.detector, rule))
        case "edit" if answer.tool and answer.input is not None:
            return Record(tuple(_operators_iteration(state, answer.tool, answer.input)))
        case _:
            return None


def _operators_iteration(
    state: RunState, tool: str, arguments: dict[str, JsonValue]
) -> Iterator[events.Event]:
    """An iteration whose reply the operator wrote: the edited call is executed itself (`operator.edit`)."""
    number = state.run.iteration + 1
    call = events.ToolCall(
        id=f"operator-{number}",
        name=tool,
        arguments=json.dumps(arguments, ensure_ascii=False),
        key=state.recovery.key(tool, arguments),
    )
    yield events.IterationStarted(iteration=number)
    yield events.ReplyFinished(calls=(call,), finish_reason="tool_calls", model="operator", by="operator")


def _limit(state: RunState) -> Step | None:
    """What the bounds of the run demand before another iteration."""
    unpriced = _unpriced(state)
    if unpriced is not None:
        return Record((unpriced,))
    run = state.run
    if run.iteration >= run.max_iterations:
        reason = f"All {run.max_iterations} iterations are used up without an answer."
        return Finish(
            _partial(state, events.Outcome.PARTIAL, reason, "max_iterations", Rule.LIMIT_ITERATIONS)
        )
    spent = budgets.exceeded(state)
    if spent is not None:
        return _over_budget(state, spent)
    near = budgets.near(state)
    if near is None:
        return None
    text = budgets.warning(state, near)
    rule = Rule.LIMIT_WARNING
    return Record((events.Notice(severity="warning", text=text, origin="budget", about=near.key, rule=rule),))


def _over_budget(state: RunState, spent: budgets.Spending) -> Step:
    """A partial answer, or what the operator says where one is there."""
    reason, answer = spent.in_words(), state.budget_answer
    by_policy = answer is not None and answer.by != "operator" and answer.text != INTERRUPTED
    if not state.run.operator_present or by_policy:
        return Finish(_partial(state, events.Outcome.PARTIAL, reason, spent.key, spent.kind.rule))
    if answer is None or answer.by != "operator":
        return Record((_budget_question(state, spent, reason),))
    if answer.choice == "partial":
        return Finish(_partial(state, events.Outcome.PARTIAL, reason, spent.key, Rule.OPERATOR_PARTIAL))
    if answer.choice == "stop":
        return Finish(_partial(state, events.Outcome.ESCALATED, reason, spent.key, Rule.OPERATOR_STOP))
    limit = spent.raised() if answer.choice == "retry" else spent.limit_in(answer.text)
    if limit is None:
        unclear = f"{answer.text.strip()!r} names no limit above that. {reason}"
        return Record((_budget_question(state, spent, unclear),))
    raised = events.BudgetRaised(
        key=spent.key, limit=None if limit == float("inf") else limit, rule=Rule.LIMIT_ASK
    )
    return Record((raised,))


def _budget_question(state: RunState, spent: budgets.Spending, reason: str) -> events.EscalationRaised:
    return events.EscalationRaised(
        id=f"budget-{state.seq + 1}",
        question=f"{reason} How should it go on?",
        source=budgets.SOURCE,
        rule=Rule.LIMIT_ASK,
        options=spent.options(),
    )


# --- within an iteration ------------------------------------------------------------------------------------


def _within_iteration(state: RunState) -> Step:
    reply = state.recovery.reply
    if reply is None:
        return _before_reply(state)
    if reply.calls:
        return _calls(state, reply)
    if not was_cut(reply) and state.recovery.rejected is None and state.recovery.rejects_text(reply.text):
        return Record((_rejection(state),))
    return Record((events.IterationFinished(iteration=state.run.iteration),))


def _rejection(state: RunState) -> events.ReplyRejected:
    failure = events.Failure(
        kind=events.FailureKind.NO_TOOL_CALL, message=NO_CALL, iteration=state.run.iteration
    )
    return events.ReplyRejected(failure=failure, rule=Rule.REPLY_REJECTED)


def _before_reply(state: RunState) -> Step:
    run, fault = state.run, state.fault
    if fault is not None:
        return _after_fault(state, fault)
    if state.queue and not run.attempt:
        message = state.queue[0]
        return Record((events.OperatorSpoke(text=message.text, queued=message.id),))
    model = state.recovery.faults.usable(run.model)
    return _call(state, CallModel(model, run.attempt + 1, state.note))


def _call(state: RunState, call: CallModel) -> Step:
    """The call, once the model's window is known and the history fits into it."""
    run = state.run
    # While a server is waited for, it cannot be asked.
    if run.context_tokens is None and call.model not in state.windows and not call.delay:
        return LearnWindow(call.model)
    if run.iteration == 1 and not run.attempt and (refused := _too_small(state, call.model)) is not None:
        return Record((refused,))
    if state.fault is None:
        step = _compaction(state, call.model, call.note)
        if step is not None:
            return step
    room = room_for_history(state, call.note, call.model)
    cut = None if room is None else window.cut(state.history, run.number, room, state.metrics.files_changed)
    return call if cut is None else Record((cut,))


def _too_small(state: RunState, model: str) -> events.StopRequested | None:
    """The end of a run whose budget cannot even hold what every request holds; with the figures."""
    limit = budget(state, model)
    task = state.history.groups[-1].tokens if len(state.history.groups) else 0
    needed = int((overhead(state, None) + task) * scale(state, model))
    if limit is None or needed <= limit:
        return None
    run = state.run
    system = estimate_tokens(run.system_prompt)
    own = run.context_tokens is not None and run.context_tokens == limit
    whose = "The budget (context_tokens)" if own else f"The window of {model}, less room for the reply,"
    todo = "Allow more" if own else "Start the server with a larger window, choose another model"
    reason = (
        f"{whose} is {limit:,} tokens, and a request needs about {needed:,} of them: {system:,} for the system prompt, "
        f"{run.tools_tokens:,} for the tools, {task:,} for the task. Nothing was sent. {todo}, or shorten the task."
    )
    return events.StopRequested(
        reason=reason, outcome=events.Outcome.MODEL_FAILED, rule=Rule.WINDOW_TOO_SMALL
    )


def _compaction(state: RunState, model: str, text: str | None) -> Step | None:
    """The summary that the operator asked for, or that the history needs before the next call of `model`."""
    run, asked = state.run, state.compaction_asked
    if run.context_tokens is None and model and model not in state.windows:
        return LearnWindow(model)
    room = room_for_history(state, text, model)
    if asked is None:
        failures = state.compaction_failures
        if failures >= SUMMARY_TRIES or (failures and state.compaction_failed_in == run.iteration):
            return None
        if room is None or not run.compact_at:
            return None
        if window.tokens_of(window.messages_in_window(state.history, run.number)) <= room * run.compact_at:
            return None
    plan = compaction.plan(state.history, run.number, room, asked=asked is not None)
    writer = run.summary_model or model
    if plan is not None and writer not in state.windows and writer != model:
        return LearnWindow(writer)
    if plan is not None and not _holds(state, writer, plan):
        writer = model if _holds(state, model, plan) else ""
    if plan is None or not writer:
        why = compaction.NOTHING if plan is None else compaction.TOO_LONG
        return None if asked is None else Record((compaction.failed(state, why),))
    rule = Rule.WINDOW_SUMMARY if asked is None else Rule.OPERATOR_COMPACT
    return Summarise(writer, plan, "" if asked is None else asked.instructions, rule)


def _holds(state: RunState, writer: str, plan: compaction.Plan) -> bool:
    """Whether the request for a summary, and the summary, fit into the window of `writer`, as far as it is known."""
    limit = state.windows.get(writer)
    return limit is None or plan.tokens + overhead(state, None) <= limit / scale(state, writer)


def scale(state: RunState, model: str) -> float:
    """Tokens as this model's provider counts them, for one that we estimate."""
    return state.calibration.get(model, 1.0)


def writes_calls(state: RunState, model: str) -> bool:
    """Whether the model writes its tool calls as text."""
    chosen = state.run.tool_calls
    return model in state.text_models if chosen == "auto" else chosen == "text"


def budget(state: RunState, model: str) -> int | None:
    """Tokens that a request to `model` may have: the run's budget or the model's, the smaller; None: unknown."""
    known = [limit for limit in (state.run.context_tokens, state.windows.get(model)) if limit is not None]
    return min(known, default=None)


def room_for_history(state: RunState, text: str | None, model: str) -> int | None:
    """What system prompt, tools and note leave of that budget to the history, in tokens as we estimate them."""
    limit = budget(state, model)
    return None if limit is None else max(0, int(limit / scale(state, model)) - overhead(state, text))


def overhead(state: RunState, text: str | None) -> int:
    """Estimate of a request's tokens beside the history."""
    return (
        estimate_tokens(state.run.system_prompt)
        + state.run.tools_tokens
        + (estimate_tokens(note.tagged(text)) if text else 0)
    )


def _after_fault(state: RunState, fault: events.ModelFaulted) -> Step:
    run = state.run
    match fault.action:
        case "retry" | "shrink" | "text_calls":
            faults = state.recovery.faults
            model = fault.model if faults.used_fallbacks else faults.usable(run.model)
            return _call(state, CallModel(model, run.attempt + 1, state.note, fault.delay))
        case "fallback":
            return _call(state, CallModel(fault.next_model, run.attempt + 1, state.note))
        case "ask":
            return _after_fault_question(state, fault)
        case _:
            return Record((events.IterationFinished(iteration=run.iteration),))


def _after_fault_question(state: RunState, fault: events.ModelFaulted) -> Step:
    run, answer = state.run, state.answer
    if answer is None:
        question = f"{fault.reason or fault.fault.message}".strip()
        asked = events.EscalationRaised(
            id=f"model-{state.seq + 1}",
            question=question,
            source="model",
            rule=Rule.MODEL_ASK,
            options=run.fallback_models,
        )
        return Record((asked,))
    if answer.choice not in {"retry", "answer", "edit"}:
        reason = fault.reason or model_faults.fault_words(fault.fault)
        rule = Rule.OPERATOR_STOP if answer.by == "operator" else Rule.MODEL_ASK
        return Record((events.StopRequested(reason=reason, outcome=events.Outcome.MODEL_FAILED, rule=rule),))
    named = answer.text.strip()
    if named and choice_of(answer) != "retry" and named != run.model:
        return Record((events.SettingChanged(setting="model", value=named),))
    return _call(state, CallModel(run.model, run.attempt + 1, state.note))


def model_faulted(state: RunState, fault: events.Fault, model: str, jitter: float) -> events.ModelFaulted:
    """The event of a failed call of `model`, with what happens next; `jitter` is a random number in [0, 1)."""
    run, recovery = state.run, state.recovery
    used = recovery.faults.used_fallbacks
    shrunk = _shrunk(state, model, fault)
    smaller = window.cut(
        state.history,
        run.number,
        max(
            0,
            int(shrunk / (counted(state, fault.prompt_tokens) or scale(state, model)))
            - overhead(state, state.sent_note),
        ),
        state.metrics.files_changed,
    )
    plan = model_faults.plan(
        recovery.policy,
        recovery.faults,
        fault,
        operator_present=run.operator_present,
        fallbacks=tuple(n for n in _fallbacks(run, fault.kind) if n not in {run.model, model, *used}),
        can_shrink=smaller is not None,
        can_write_calls=run.tool_calls == "auto" and model not in state.text_models,
        jitter=jitter,
    )
    return events.ModelFaulted(
        fault=fault,
        iteration=run.iteration,
        attempt=run.attempt,
        model=model,
        action=plan.action,
        rule=plan.rule,
        reason=plan.reason,
        delay=plan.delay,
        next_model=plan.next_model,
        context_tokens=shrunk if plan.action == "shrink" else None,
    )


def _fallbacks(run: RunFacts, kind: events.FaultKind) -> tuple[str, ...]:
    """Models for a fault of this kind, in order; the general ones help where a model is out of reach."""
    general = run.fallback_models if kind in model_faults.TRANSIENT else ()
    return tuple(dict.fromkeys((*run.fallbacks.get(kind.value, ()), *general)))


def _shrunk(state: RunState, model: str, fault: events.Fault) -> int:
    """The next budget after an overflow, as the provider counts: what it names, else half of what there was."""
    tokens = state.run.request_tokens
    if fault.window is not None:
        named = fault.window - min(_REPLY_ROOM, fault.window // 4)
        if named < (fault.prompt_tokens or tokens):
            return named
    return max(1_000, min(tokens, budget(state, model) or tokens) // 2)


# --- calls --------------------------------------------------------------------------------------------------


def _calls(state: RunState, reply: events.ReplyFinished) -> Step:
    """Results that are known already, then what can run up to the next call of the loop itself."""
    open_calls = state.history.open_calls()
    if not open_calls:
        return Record((events.IterationFinished(iteration=state.run.iteration),))
    if state.text_answer is not None:
        return Record(tuple(_cancelled(state, RUN_OVER)))
    decided = tuple(_decided(state, open_calls))
    if decided:
        return Record(decided)
    index, first = open_calls[0]
    if _is_dialogue(first):
        return _dialogue(state, index, first)
    groups: list[list[events.ToolCall]] = []
    for _, call in open_calls:
        if _is_dialogue(call):
            break
        if call.effect == "read" and groups and groups[-1][0].effect == "read":
            groups[-1].append(call)
        else:
            groups.append([call])
    return RunCalls(tuple(tuple(group) for group in groups), approved=reply.by == "operator")


def _is_dialogue(call: events.ToolCall) -> bool:
    """Carried out by the loop itself; journals of version 1 say no effect."""
    return call.effect == "dialogue" or (not call.effect and call.name in {FINISH, ASK_OPERATOR})


def _decided(state: RunState, open_calls: list[tuple[int, events.ToolCall]]) -> Iterator[events.Event]:
    """Results of calls that are not executed: wrong ones, and those that recovery refuses."""
    earlier: Counter[str] = Counter()
    reply = state.recovery.reply
    by_operator = reply is not None and reply.by == "operator"
    for result in state.history.results:
        if isinstance(result, events.ToolSucceeded | events.ToolFailed):
            earlier.update((result.key, result.tool))
    for index, call in open_calls:
        if call.problem is not None:
            yield _wrong_call(state, index, call, call.problem)
            continue
        permit = state.recovery.permit(call.name, call.key, earlier)
        if permit.allowed or by_operator:
            earlier.update((call.key, call.name))
        else:
            yield _refused(index, call, permit)


def _wrong_call(
    state: RunState, index: int, call: events.ToolCall, problem: events.CallProblem
) -> events.ToolFailed:
    failure = events.Failure(
        kind=problem.kind,
        message=problem.message,
        tool=call.name,
        input=problem.input,
        iteration=state.run.iteration,
        rule=problem.rule,
    )
    return events.ToolFailed(
        call_id=call.id,
        tool=call.name,
        input=problem.input,
        index=index,
        key=call.key,
        content=as_error(problem.message),
        failure=failure,
    )


def _refused(index: int, call: events.ToolCall, permit: Permit) -> events.ToolRefused:
    content = permit.reason
    if permit.earlier_result:
        content = f"{permit.reason}\n\nThe earlier result:\n{permit.earlier_result}"
    return events.ToolRefused(
        call_id=call.id,
        tool=call.name,
        input=arguments_of(call),
        index=index,
        key=call.key,
        content=content,
        refusal=permit.refusal or "blocked",
        reason=permit.reason,
        rule=permit.rule,
    )


def arguments_of(call: events.ToolCall) -> dict[str, JsonValue]:
    """The arguments as recorded; {} where they are no JSON object."""
    try:
        value = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def as_error(message: str) -> str:
    """A failure's message as the model reads it."""
    return message if message.startswith("Error:") else f"Error: {message}"


def _dialogue(state: RunState, index: int, call: events.ToolCall) -> Step:
    """The calls that the loop carries out itself: the final answer, and a question to the operator."""
    arguments = arguments_of(call)
    place = {"call_id": call.id, "tool": call.name, "input": arguments, "index": index, "key": call.key}
    started = events.ToolStarted.model_validate(place)
    if call.name == FINISH:
        done = events.ToolSucceeded.model_validate({**place, "content": "The run ends with this answer."})
        return Record((started, done))
    if call.name != ASK_OPERATOR:
        failed = events.CallProblem(
            kind=events.FailureKind.UNKNOWN_TOOL, message=f"There is no tool {call.name!r} here."
        )
        return Record((_wrong_call(state, index, call, failed),))
    question, answer = str(arguments.get("question", "")), state.answer
    asked = f"ask-{call.id}"
    if answer is None or answer.id != asked:
        options = arguments.get("options")
        raised = events.EscalationRaised(
            id=asked,
            question=question,
            source=ASK_OPERATOR,
            rule=Rule.OPERATOR_ANSWER,
            tool=call.name,
            options=tuple(str(option) for option in options) if isinstance(options, list) else (),
        )
        return Record((started, raised))
    if answer.choice in {"partial", "stop"}:
        outcome = events.Outcome.PARTIAL if answer.choice == "partial" else events.Outcome.ESCALATED
        reason = f"The agent asked, and nobody answered: {question}"
        rule = Rule.OPERATOR_ABSENT
        if answer.by == "operator":
            reason = f"The operator ended the run when the agent asked: {question}"
            rule = Rule.OPERATOR_PARTIAL if answer.choice == "partial" else Rule.OPERATOR_STOP
        unanswered = _unanswered(place, "The run ended with this question.")
        return Record((unanswered, events.StopRequested(reason=reason, outcome=outcome, rule=rule)))
    if answer.choice in {"continue", "skip"}:
        return Record((_unanswered(place, NOBODY_ANSWERED),))
    said = answer.text or "The operator gave no answer in words; go on as you think best."
    return Record((events.ToolSucceeded.model_validate({**place, "content": said}),))


def _unanswered(place: dict[str, object], content: str) -> events.ToolCancelled:
    """A question without an answer is neither a success nor a failure."""
    return events.ToolCancelled.model_validate(
        {**place, "content": content, "reason": "asked, and nobody answered"}
    )


# --- the operator's answer ----------------------------------------------------------------------------------


def escalation_answered(
    question: events.EscalationRaised,
    choice: str,
    text: str = "",
    edited: dict[str, JsonValue] | None = None,
    by: str = "operator",
) -> events.EscalationAnswered:
    """The event of an answer, with the message that the model keeps in its history ("" for none)."""
    about_call = question.source not in {"model", ASK_OPERATOR, budgets.SOURCE}
    arguments = edited if edited is not None else question.input
    return events.EscalationAnswered.model_validate(
        {
            "id": question.id,
            "choice": choice,
            "text": text,
            "message": _message(question, choice, text.strip(), arguments)
            if about_call and by == "operator"
            else "",
            "tool": question.tool if about_call else "",
            "input": arguments if about_call else None,
            "by": by,
            "rule": _ANSWER_RULES.get(choice, Rule.OPERATOR_ABSENT)
            if by == "operator"
            else Rule.OPERATOR_ABSENT,
        }
    )


_ANSWER_RULES = {
    "answer": Rule.OPERATOR_ANSWER,
    "retry": Rule.OPERATOR_RETRY,
    "edit": Rule.OPERATOR_EDIT,
    "skip": Rule.OPERATOR_SKIP,
    "partial": Rule.OPERATOR_PARTIAL,
    "stop": Rule.OPERATOR_STOP,
}


def _message(
    question: events.EscalationRaised, choice: str, words: str, arguments: dict[str, JsonValue]
) -> str:
    tool = question.tool
    subject = f"{tool} {json.dumps(question.input, ensure_ascii=False)}" if tool else "the failing step"
    match choice:
        case "answer":
            return words
        case "retry":
            base = f"Try {subject} once more."
        case "edit":
            edited = json.dumps(arguments, ensure_ascii=False)
            base = f"I changed the call of {tool} to these arguments and had it executed: {edited}"
        case "skip":
            base = f"Go on without {subject}; do not repeat it."
        case _:
            return ""
    return f"{base} {words}".strip()


# --- closing and ending -------------------------------------------------------------------------------------


def _closing(state: RunState) -> Iterator[events.Event]:
    """What closes all that is open: a question without an answer, calls without a result, the iteration."""
    asked = state.escalation
    if asked is not None:
        yield escalation_answered(asked, "skip", INTERRUPTED, by="policy")
    if state.iteration_open:
        cancelled = tuple(_cancelled(state))
        yield from cancelled
        reply = state.recovery.reply
        if state.stop is not None or reply is None or cancelled:
            yield events.IterationFinished(iteration=state.run.iteration, cancelled=True)


def _cancelled(state: RunState, why: str = "") -> Iterator[events.ToolCancelled]:
    """A result for every call of the open reply that has none: it was cancelled."""
    for index, call in state.history.open_calls():
        shown = state.conversation.call(call.id)
        started = shown is not None and shown.started is not None
        yield events.ToolCancelled(
            call_id=call.id,
            tool=call.name,
            input=shown.input if shown and shown.input else arguments_of(call),
            index=index,
            key=call.key,
            content=why or (UNKNOWN_EFFECT if started else NOT_STARTED),
            reason=why or INTERRUPTED,
        )


def _answered(state: RunState, answer: str) -> events.RunFinished:
    nothing = state.metrics.tool_calls and not state.metrics.tool_successes
    reason = "Answered without a single successful tool call." if nothing else ""
    return events.RunFinished(outcome=events.Outcome.ANSWERED, answer=answer, reason=reason)


def _ended_by(state: RunState, reached: events.VerdictReached) -> events.RunFinished:
    stop = reached.level is events.Level.STOP
    outcome = events.Outcome.STOPPED if stop else events.Outcome.PARTIAL
    fault = state.recovery.faults.last
    if reached.detector == verdict.MODEL and fault is not None:
        overflow = fault.fault.kind is events.FaultKind.CONTEXT_OVERFLOW
        outcome = events.Outcome.PARTIAL if overflow else events.Outcome.MODEL_FAILED
    return _partial(state, outcome, reached.reason, reached.detector, reached.rule)


def _stopped(state: RunState, stop: events.StopRequested) -> events.RunFinished:
    return _partial(state, stop.outcome, stop.reason, "", stop.rule or Rule.RUN_INTERRUPTED)


def _partial(
    state: RunState, outcome: events.Outcome, reason: str, detector: str, rule: str
) -> events.RunFinished:
    question = ""
    if outcome not in {events.Outcome.INTERRUPTED, events.Outcome.ERROR, events.Outcome.MODEL_FAILED}:
        asked = state.recovery.subject()
        about = f" ({json.dumps(dict(asked.input), ensure_ascii=False)})" if asked is not None else ""
        question = f"{reason.rstrip('.')}{about}. How should I go on?"
    return events.RunFinished(
        outcome=outcome,
        reason=reason,
        answer=compose_partial_answer(reason, state, question),
        detector=detector,
        rule=rule,
    )


def warning_before(state: RunState, finished: events.RunFinished) -> events.Notice | None:
    """HPD-Agent's own warning, which it shows when its limit is exceeded."""
    if finished.rule != Rule.STREAK_STOP:
        return None
    return events.Notice(severity="warning", text=exceeded_message(state.recovery.streak.limit))
