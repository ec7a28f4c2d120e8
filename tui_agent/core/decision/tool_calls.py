"""Decisions about the calls of a reply: results that are known already, groups that run, questions to the
operator.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from pydantic import JsonValue

from tui_agent.core import events
from tui_agent.core.decision.answers import INTERRUPTED
from tui_agent.core.decision.steps import Record, RunCalls, Step
from tui_agent.core.decision.verification import announced, to_verify
from tui_agent.core.framed import framed
from tui_agent.core.names import ASK_OPERATOR, FINISH
from tui_agent.core.recovery.engine import Permit
from tui_agent.core.recovery.remarks import Remark
from tui_agent.core.recovery.rules import Rule
from tui_agent.core.state import RunState
from tui_agent.core.tool_facts import SIDE_BY_SIDE, UNTOUCHED, Effect, named

UNKNOWN_EFFECT = (
    "The call was interrupted before it ended. Whether it had an effect is unknown: "
    "verify before repeating it."
)


NOT_STARTED = "The call was not started: the step was interrupted before its turn."


RUN_OVER = "The call was not started: the run ended with an earlier call of the same reply."


NOBODY_ANSWERED = (
    "Nobody can answer now. Decide by yourself, say which assumption you made, and go on with the task."
)


def after_reply(state: RunState, reply: events.ReplyFinished) -> Step:
    """Results that are known already, then what can run up to the next call of the loop itself."""
    open_calls = state.history.open_calls()
    if not open_calls:
        return Record((events.IterationFinished(iteration=state.run.iteration),))
    if state.text_answer is not None:
        return Record(tuple(cancel_open_calls(state, RUN_OVER)))
    decided, waiting_from = _decided(state, open_calls)
    if decided:
        return Record(tuple(decided))
    open_calls = open_calls[:waiting_from]
    index, first = open_calls[0]
    if _is_dialogue(first):
        return _dialogue(state, index, first)
    groups: list[list[events.ToolCall]] = []
    for _, call in open_calls:
        if _is_dialogue(call):
            break
        if call.effect in SIDE_BY_SIDE and groups and groups[-1][0].effect == call.effect:
            groups[-1].append(call)
        else:
            groups.append([call])
    return RunCalls(tuple(tuple(group) for group in groups), approved=reply.by == "operator")


_LONGEST_EARLIER = 40_000
"""Characters of a result that is told again in place of a call."""
_FOR_WANT_OF_A_CHANGE = frozenset({"blocked", "withheld"})


def _is_dialogue(call: events.ToolCall) -> bool:
    """Carried out by the loop itself; journals of version 1 say no effect."""
    return (call.effect or named(call.name).effect) == Effect.DIALOGUE


def _decided(
    state: RunState, open_calls: list[tuple[int, events.ToolCall]]
) -> tuple[list[events.Event], int]:
    """Results of calls that are not executed: wrong ones, and those that recovery refuses; and the place of the first
    call that waits. What is refused because nothing has changed waits for calls before it that may change something.
    """
    recovery, decided = state.recovery, list[events.Event]()
    earlier: Counter[str] = Counter()
    for result in state.history.results:
        if isinstance(result, events.ToolSucceeded | events.ToolFailed):
            earlier.update((result.key, result.tool))
    by_operator = recovery.reply is not None and recovery.reply.by == "operator"
    # What another agent runs nobody here can withhold.
    runs_all, writes = by_operator or bool(state.run.agent), False
    for place, (index, call) in enumerate(open_calls):
        if call.problem is not None:
            decided.append(wrong_call(state, index, call, call.problem))
            continue
        permit = recovery.permit(call.name, call.key, earlier)
        if permit.allowed or runs_all:
            earlier.update((call.key, call.name))
            writes = writes or call.effect not in UNTOUCHED
        elif writes and permit.refusal in _FOR_WANT_OF_A_CHANGE:
            return decided, place
        else:
            decided.append(_refused(index, call, permit))
    return decided, len(open_calls)


def wrong_call(
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
    facts = facts_of(index, call, problem.input)
    return events.ToolFailed(**facts, content=as_error(problem.message), failure=failure)


def _refused(index: int, call: events.ToolCall, permit: Permit) -> events.ToolRefused:
    content = permit.reason
    if permit.earlier_result:
        content = f"{permit.reason}\n\nThe earlier result:{framed(permit.earlier_result, _LONGEST_EARLIER)}"
    return events.ToolRefused(
        **facts_of(index, call, arguments_of(call)),
        content=content,
        refusal=permit.refusal or "blocked",
        reason=permit.reason,
        rule=permit.rule,
    )


def _dialogue(state: RunState, index: int, call: events.ToolCall) -> Step:
    """The calls that the loop carries out itself: the final answer, and a question to the operator."""
    arguments = arguments_of(call)
    facts = facts_of(index, call, arguments)
    started = events.ToolStarted(**facts)
    if call.name == FINISH:
        words = str(arguments.get("answer", ""))
        empty = announced(state, words)
        if empty is not None:
            return Record((wrong_call(state, index, call, empty),))
        unproved = to_verify(state, words)
        if unproved is not None:
            return Record((_unverified(facts, unproved),))
        done = events.ToolSucceeded(**facts, content="The run ends with this answer.")
        return Record((started, done))
    if call.name != ASK_OPERATOR:
        failed = events.CallProblem(
            kind=events.FailureKind.UNKNOWN_TOOL, message=f"There is no tool {call.name!r} here."
        )
        return Record((wrong_call(state, index, call, failed),))
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
        unanswered = _unanswered(facts, "The run ended with this question.")
        return Record((unanswered, events.StopRequested(reason=reason, outcome=outcome, rule=rule)))
    if answer.choice in {"continue", "skip"}:
        return Record((_unanswered(facts, NOBODY_ANSWERED),))
    said = answer.text or "The operator gave no answer in words; go on as you think best."
    return Record((events.ToolSucceeded(**facts, content=said),))


def _unverified(facts: dict[str, Any], unproved: Remark) -> events.ToolRefused:
    return events.ToolRefused(
        **facts,
        content=unproved.text,
        refusal="unverified",
        reason=unproved.text,
        rule=unproved.rule,
    )


def _unanswered(facts: dict[str, Any], content: str) -> events.ToolCancelled:
    """A question without an answer is neither a success nor a failure."""
    return events.ToolCancelled(**facts, content=content, reason="asked, and nobody answered")


def cancel_open_calls(state: RunState, why: str = "") -> Iterator[events.ToolCancelled]:
    """A result for every call of the open reply that has none: it was cancelled."""
    entries = {entry.call_id: entry for entry in state.conversation.calls}
    for index, call in state.history.open_calls():
        shown = entries.get(call.id)
        started = shown is not None and shown.started is not None
        arguments = shown.input if shown and shown.input else arguments_of(call)
        content = why or (UNKNOWN_EFFECT if started else NOT_STARTED)
        written = shown.progress.strip("\n") if shown and not why else ""
        if written:
            content = f"{content} The last that it wrote:\n{written}"
        yield events.ToolCancelled(
            **facts_of(index, call, arguments), content=content, reason=why or INTERRUPTED
        )


def arguments_of(call: events.ToolCall) -> dict[str, JsonValue]:
    """The arguments as recorded; {} if they are no JSON object."""
    try:
        value = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def facts_of(index: int, call: events.ToolCall, arguments: dict[str, Any]) -> dict[str, Any]:
    """Fields that every event of a call has."""
    of_call = {"call_id": call.id, "tool": call.name, "facts": call.facts}
    return {**of_call, "input": arguments, "index": index, "key": call.key}


def as_error(message: str) -> str:
    """A failure's message as the model reads it."""
    return message if message.startswith("Error:") else f"Error: {message}"
