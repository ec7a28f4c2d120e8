"""How a run ends: what is still open is closed, and the outcome says by which rule and with which answer."""

from __future__ import annotations

import json
from collections.abc import Iterator

from tui_agent.core import events
from tui_agent.core.decision.answers import INTERRUPTED, escalation_answered
from tui_agent.core.decision.receipts import receipts
from tui_agent.core.decision.tool_calls import cancel_open_calls
from tui_agent.core.partial_answer import compose as compose_partial_answer
from tui_agent.core.recovery.implicit import ImplicitFailures
from tui_agent.core.recovery.model_faults import ModelFaults
from tui_agent.core.recovery.rules import Rule
from tui_agent.core.recovery.streak import ErrorStreak, exceeded_message
from tui_agent.core.state import RunState


def close_what_is_open(state: RunState) -> Iterator[events.Event]:
    """Events that close all that is open: a question without an answer, calls without a result, the
    iteration.
    """
    asked = state.escalation
    if asked is not None:
        yield escalation_answered(asked, "skip", INTERRUPTED, by="policy")
    if state.iteration_open:
        cancelled = tuple(cancel_open_calls(state))
        yield from cancelled
        reply = state.recovery.reply
        if state.stop is not None or reply is None or cancelled:
            streamed = state.conversation.reply
            said = "" if reply is not None or streamed is None or streamed.summarises else streamed.text
            yield events.IterationFinished(
                iteration=state.run.iteration, cancelled=True, cut_reply=said if said.strip() else ""
            )


def answered(state: RunState, answer: str) -> events.RunFinished:
    implicit, reason = state.recovery.of(ImplicitFailures), ""
    if implicit.unopened:
        reason = f"Answered without a single call, though the task names {implicit.unopened[0]}."
    elif implicit.called and not state.metrics.tool_successes and _not_by_choice(state):
        reason = "Answered without a single successful tool call."
    return events.RunFinished(
        outcome=events.Outcome.ANSWERED, answer=answer, reason=reason, receipts=receipts(state, answer)
    )


def _not_by_choice(state: RunState) -> bool:
    """Tell whether calls failed, or nobody was there who could have denied or interrupted all of them."""
    return state.metrics.tool_errors > 0 or not state.run.operator_present


def ended_by(state: RunState, reached: events.VerdictReached) -> events.RunFinished:
    stop = reached.level is events.Level.STOP
    outcome = events.Outcome.STOPPED if stop else events.Outcome.PARTIAL
    fault = state.recovery.of(ModelFaults).last
    if reached.detector == ModelFaults.name and fault is not None:
        overflow = _overflowed(state, reached.detector)
        outcome = events.Outcome.PARTIAL if overflow else events.Outcome.MODEL_FAILED
    return partial(state, outcome, reached.reason, reached.detector, reached.rule)


def _overflowed(state: RunState, detector: str) -> bool:
    """The run ends because its request fits no window: the reason names the ways on, and no answer would be one."""
    fault = state.recovery.of(ModelFaults).last
    kind = events.FaultKind.CONTEXT_OVERFLOW
    return detector == ModelFaults.name and fault is not None and fault.fault.kind is kind


def stopped(state: RunState, stop: events.StopRequested) -> events.RunFinished:
    return partial(state, stop.outcome, stop.reason, "", stop.rule or Rule.RUN_INTERRUPTED)


def partial(
    state: RunState, outcome: events.Outcome, reason: str, detector: str, rule: str
) -> events.RunFinished:
    question = ""
    unasked = {events.Outcome.INTERRUPTED, events.Outcome.ERROR, events.Outcome.MODEL_FAILED}
    # An operator who chose this end knows how to go on, and if nobody is there nobody can answer.
    chosen = rule in {Rule.OPERATOR_STOP, Rule.OPERATOR_PARTIAL}
    asks = state.run.operator_present and not chosen and not _overflowed(state, detector)
    if asks and outcome not in unasked:
        asked = state.recovery.subject()
        about = (
            f" with {asked.tool} {json.dumps(dict(asked.input), ensure_ascii=False)}"
            if asked is not None
            else ""
        )
        question = f"How should I go on{about}?"
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
    return events.Notice(severity="warning", text=exceeded_message(state.recovery.of(ErrorStreak).limit))
