"""The next call of a model: its window is known, the history fits, and what a failed call leads to."""

from __future__ import annotations

from typing import Literal

from tui_agent.core import events
from tui_agent.core.decision.steps import CallModel, LearnWindow, Record, Step, Summarise
from tui_agent.core.recovery import fault_plan, model_faults
from tui_agent.core.recovery.answers import choice_of
from tui_agent.core.recovery.model_faults import ModelFaults
from tui_agent.core.recovery.rules import Rule
from tui_agent.core.request import compaction, window
from tui_agent.core.request.tokens import REPLY_ROOM, budget, counted, overhead, room_for_history, scale
from tui_agent.core.state import SUMMARY_TRIES, RunFacts, RunState

NEARLY_FULL = 0.8
"""Share of the window from which on a refusal without a reason may mean that the request is too long."""


def before_reply(state: RunState) -> Step:
    run, fault = state.run, state.fault
    if fault is not None:
        return _after_fault(state, fault)
    if state.queue and not run.attempt and not run.agent:
        message = state.queue[0]
        said = events.OperatorSpoke(text=message.text, queued=message.id, images=message.images)
        return Record((said,))
    model = state.recovery.of(ModelFaults).usable(run.model, state.at)
    return _call(state, CallModel(model, run.attempt + 1, state.note))


def _call(state: RunState, call: CallModel) -> Step:
    """The call, once the model's window is known and the history fits into it."""
    run = state.run
    # While a server is waited for, it cannot be asked.
    if run.context_tokens is None and call.model not in state.windows and not call.delay and not call.until:
        return LearnWindow(call.model)
    if run.iteration == 1 and not run.attempt and (refused := _too_small(state, call.model)) is not None:
        return Record((refused,))
    if state.fault is None:
        step = compaction_due(state, call.model, call.note)
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
    own = run.context_tokens is not None and run.context_tokens == limit
    whose = (
        "The budget (context_tokens)" if own else f"The context window of {model}, less room for the reply,"
    )
    todo = "Allow more" if own else "Start the server with a larger context window, choose another model"
    reason = (
        f"{whose} is {limit:,} tokens, and a request needs about {needed:,} of them: {run.system_tokens:,} for the "
        f"system prompt, {run.tools_tokens:,} for the tools, {task:,} for the task. Nothing was sent. "
        f"{todo}, or shorten the task."
    )
    return events.StopRequested(
        reason=reason, outcome=events.Outcome.MODEL_FAILED, rule=Rule.WINDOW_TOO_SMALL
    )


def compaction_due(state: RunState, model: str, text: str | None) -> Step | None:
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
        if window.tokens_in_window(state.history, run.number) <= room * run.compact_at:
            return None
    plan = compaction.plan(state.history, run.number, room, asked=asked is not None)
    writer = state.summary_by or run.summary_model or model
    if plan is not None and writer not in state.windows and writer != model:
        return LearnWindow(writer)
    if plan is not None and not _holds(state, writer, plan):
        writer = model if _holds(state, model, plan) else ""
    if plan is None or not writer:
        why = compaction.NOTHING if plan is None else compaction.TOO_LONG
        return None if asked is None else Record((compaction.failed(state, why),))
    rule = Rule.WINDOW_SUMMARY if asked is None else Rule.OPERATOR_COMPACT
    instead = model if writer != model and not state.summary_by and _holds(state, model, plan) else ""
    return Summarise(writer, plan, "" if asked is None else asked.instructions, rule, instead)


def _holds(state: RunState, writer: str, plan: compaction.CompactionPlan) -> bool:
    """True if the request for a summary, and the summary, fit into the window of `writer`, as far as it is
    known.
    """
    limit = state.windows.get(writer)
    return limit is None or plan.tokens + overhead(state, None) <= limit / scale(state, writer)


def _after_fault(state: RunState, fault: events.ModelFaulted) -> Step:
    run = state.run
    match fault.action:
        case "retry" | "shrink" | "text_calls":
            faults = state.recovery.of(ModelFaults)
            model = fault.model if faults.used_fallbacks else faults.usable(run.model, state.at)
            return _call(state, CallModel(model, run.attempt + 1, state.note, fault.delay))
        case "wait":
            return _waited(state, fault, "policy", Rule.MODEL_WAIT)
        case "fallback":
            return _call(state, CallModel(fault.next_model, run.attempt + 1, state.note))
        case "ask":
            return _after_fault_question(state, fault)
        case _:
            return Record((events.IterationFinished(iteration=run.iteration),))


def _waited(
    state: RunState, fault: events.ModelFaulted, by: Literal["operator", "policy"], rule: Rule
) -> Step:
    """The wait for a limit, which is in the journal before it begins; then the call of the same model."""
    waiting = state.waiting
    if waiting is None:
        until = state.at if fault.until is None else fault.until
        iteration = state.run.iteration
        return Record(
            (events.LimitWaitStarted(model=fault.model, until=until, iteration=iteration, by=by, rule=rule),)
        )
    planned = max(0.0, waiting.until - waiting.at)
    return _call(
        state, CallModel(waiting.model, state.run.attempt + 1, state.note, planned, until=waiting.until)
    )


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
            until=fault.until,
        )
        return Record((asked,))
    if answer.choice == "wait":
        return _waited(state, fault, answer.by, Rule.OPERATOR_WAIT)
    if answer.choice not in {"retry", "answer", "edit"}:
        reason = fault.reason or model_faults.fault_words(fault.fault)
        rule = answer.rule or Rule.OPERATOR_STOP if answer.by == "operator" else Rule.MODEL_ASK
        return Record((events.StopRequested(reason=reason, outcome=events.Outcome.MODEL_FAILED, rule=rule),))
    named = answer.text.strip()
    if named and choice_of(answer) != "retry" and named != run.model:
        return Record((events.SettingChanged(setting="model", value=named),))
    return _call(state, CallModel(run.model, run.attempt + 1, state.note))


def model_faulted(
    state: RunState, fault: events.Fault, model: str, jitter: float, now: float | None = None
) -> events.ModelFaulted:
    """The event of a failed call of `model`, with what happens next; `jitter` is a random number in [0, 1), `now` the
    time in seconds since 1970, else that of the newest event.
    """
    run, recovery = state.run, state.recovery
    used = recovery.of(ModelFaults).used_fallbacks
    shrunk = _shrunk(state, model, fault)
    limit = budget(state, model)
    plan = fault_plan.plan(
        recovery.policy,
        recovery.of(ModelFaults),
        fault,
        operator_present=run.operator_present and state.closing is None,
        fallbacks=tuple(
            n
            for n in _fallbacks(run, fault.kind)
            if n not in {run.model, model, *used, *recovery.of(ModelFaults).limited}
        ),
        can_shrink=shrunk is not None,
        can_write_calls=run.tool_calls == "auto" and model not in state.text_models,
        nearly_full=limit is not None and run.request_tokens >= NEARLY_FULL * limit,
        jitter=jitter,
        now=state.at if now is None else now,
        on_limit=run.on_limit,
        wait_at_most=run.wait_at_most,
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
        until=plan.until,
        context_tokens=shrunk if plan.action == "shrink" else None,
    )


def _fallbacks(run: RunFacts, kind: events.FaultKind) -> tuple[str, ...]:
    """Models for a fault of this kind, in order; the general ones help if a model is out of reach."""
    # If somebody is there, a limit is asked about, and these are among the answers.
    limited = kind is events.FaultKind.USAGE_LIMIT and (run.on_limit is not None or not run.operator_present)
    general = run.fallback_models if kind in model_faults.TRANSIENT or limited else ()
    return tuple(dict.fromkeys((*run.fallbacks.get(kind.value, ()), *general)))


def _shrunk(state: RunState, model: str, fault: events.Fault) -> int | None:
    """The next budget after an overflow, as the provider counts: the limit that it names, else half of the
    last one. None if no budget would change the request.
    """
    tokens = state.run.request_tokens
    budgets = [max(1_000, min(tokens, budget(state, model) or tokens) // 2)]
    if fault.window is not None:
        named = fault.window - min(REPLY_ROOM, fault.window // 4)
        if named < (fault.prompt_tokens or tokens):
            # A provider that counts far more than we estimate names what seems enough to us.
            budgets.insert(0, named)
    return next((each for each in budgets if _would_cut(state, model, fault, each)), None)


def _would_cut(state: RunState, model: str, fault: events.Fault, tokens: int) -> bool:
    ratio = counted(state, fault.prompt_tokens) or scale(state, model)
    room = max(0, int(tokens / ratio) - overhead(state, state.sent_note))
    return window.cut(state.history, state.run.number, room, state.metrics.files_changed) is not None
