"""Our detectors over a run that happened elsewhere: what a policy would have said, asked and stopped.

Facts stay as recorded; verdicts and notes are those that `decide` demands, at exactly the points at which the
live loop asks it. Nobody was asked and nothing was stopped, so no question and no outcome is invented: the
verdict says what would have happened, a notice marks it, and the detectors go on with the next step of the
recording.

Several policies judge side by side, event by event: what was read from a command or an error is still known then.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from typing import Any, NamedTuple, cast

from pydantic import JsonValue

from tui_agent.core import events
from tui_agent.core.decision.decide import decide
from tui_agent.core.decision.receipts import receipts
from tui_agent.core.decision.steps import Finish, Record
from tui_agent.core.decision.tool_calls import arguments_of, as_error
from tui_agent.core.evolve import evolve
from tui_agent.core.fold import RESULTS, apply_judged
from tui_agent.core.names import unanswered
from tui_agent.core.recovery import folding
from tui_agent.core.recovery.attempts import AttemptLedger
from tui_agent.core.recovery.policy import RecoveryPolicy, policy_of_run, preset
from tui_agent.core.recovery.rules import Rule
from tui_agent.core.recovery.stuck import StuckPatterns
from tui_agent.core.recovery.tool_breaker import ToolBreakers
from tui_agent.core.state import RunState
from tui_agent.formats.importers.values import equal_ones

_OfACall = events.ToolStarted | events.ToolResult

# Types are compared here and below, since `isinstance` on pydantic models costs more than all else that is done.
_OF_A_CALL = RESULTS | {events.ToolStarted}

_WOULD: dict[events.Level, str] = {
    events.Level.ESCALATE: "would have asked the operator here",
    events.Level.RESTART: "would have begun anew here, with what was learned",
    events.Level.DEGRADE: "would have ended the run here with a partial answer",
    events.Level.STOP: "would have stopped the run here",
}

_WITHHELD: dict[str, str] = {
    "blocked": "would have blocked this call of {}: it had failed too often, and nothing had changed",
    "withheld": "would have withheld this call of {}: its outcome was the same each time",
    "breaker": "would have left {} out of the tools here: it failed too often",
}


def judged(
    facts: Iterable[events.Event],
    policy: str | RecoveryPolicy = "combined",
    *,
    operator_present: bool | None = None,
) -> list[events.Event]:
    """The events with the verdicts, notes and marks of `policy`, numbered anew.

    Verdicts, notes and marks that `facts` hold already are dropped, so that a session can be judged again by
    another policy. `operator_present` overrides the recording (an operator who is present is asked; without
    one the run would end). Raises `ValueError` for an unknown policy.
    """
    made = Numbered()
    judge_by([Judge(policy, made.add, operator_present)], facts)
    return made.events


class Numbered:
    """Events as they come, numbered anew from 1."""

    def __init__(self) -> None:
        self.events: list[events.Event] = []

    def add(self, event: events.Event) -> None:
        seq = len(self.events) + 1
        self.events.append(event if event.seq == seq else event.stamped(seq, event.at))


def judge_by(judges: Sequence[Judge], facts: Iterable[events.Event]) -> None:
    """Have each of the judges judge the whole run. The keys of its calls are made once for each form of them."""
    listed = [event for event in facts if not is_judgement(event)]
    for place, event in enumerate(listed):
        inputs = _inputs(listed, place + 1) if type(event) is events.ReplyFinished else {}
        following = listed[place + 1] if place + 1 < len(listed) else None
        keyed: dict[str, events.Event] = {}
        for judge in judges:
            form = judge.policy.attempts_key
            if form not in keyed:
                keyed[form] = judge.keyed(event, inputs)
            judge.take(keyed[form], following)


def _inputs(listed: list[events.Event], first: int) -> dict[str, dict[str, JsonValue]]:
    """The arguments of a reply's calls by their ids, as their results have them."""
    inputs: dict[str, dict[str, JsonValue]] = {}
    for place in range(first, len(listed)):
        event = listed[place]
        kind = type(event)
        if kind is events.IterationFinished or kind is events.ReplyFinished:
            break
        if kind in _OF_A_CALL:
            of_call = cast(_OfACall, event)
            inputs[of_call.call_id] = of_call.input
    return inputs


_BY_POLICY = frozenset(
    {
        Rule.REPLY_REJECTED,
        Rule.FORM_ANNOUNCED,
        Rule.IMPLICIT_CLAIM,
        Rule.IMPLICIT_NOTHING,
        Rule.IMPLICIT_ELSEWHERE,
    }
)
"""Rules by which a policy does not take a reply."""


def is_judgement(event: events.Event) -> bool:
    """Made by a policy, not by the run: left out before judging again."""
    match event:
        case events.VerdictReached() | events.NotePrepared():
            return True
        case events.Notice(origin="judgement"):
            return True
        case events.ReplyRejected(rule=rule):
            return rule in _BY_POLICY
    return False


class _Key(NamedTuple):
    tool: str
    arguments: dict[str, JsonValue]
    key: str


class Judge:
    """One policy over one run: the state beside the events, as the live loop has it."""

    def __init__(
        self,
        policy: str | RecoveryPolicy,
        report: Callable[[events.Event], None],
        operator_present: bool | None = None,
        *,
        asks: bool = False,
    ) -> None:
        """`report` gets each event, those that are made here with the number of the fact before them. `asks`: a
        question at the end of what is known is put, until something follows. Raises `ValueError` for an unknown
        policy; the rest as in `judged`.
        """
        self.asks = asks
        policy = preset(policy) if isinstance(policy, str) else policy
        # The recording goes on as it did: no turn is put into it, and it does not hang on what is known here today.
        self.policy = policy.model_copy(update={"closing_turn": False, "playbook": False})
        self.operator_present = operator_present
        self.settings = self.policy.model_dump(mode="json")
        self.state = RunState()
        self.report = report
        self.mark: tuple[events.Level, str] = (events.Level.CONTINUE, "")
        self.withheld: frozenset[str] = frozenset()
        self.rekey = False
        self.keys: dict[str, _Key] = {}
        """Of the calls of the newest reply, by their ids."""

    def go_on(self, known: Iterable[events.Event]) -> None:
        """The next events follow these, which were judged before."""
        for event in known:
            self.state = apply_judged(self.state, event)
        self._lift_limits()

    def put(self, event: events.Event) -> None:
        """Report the event and fold it."""
        self.report(event)
        self.state = apply_judged(self.state, event)

    def make(self, event: events.Event) -> None:
        """A new event at this moment."""
        self.put(event.stamped(self.state.seq, self.state.at))

    def remark(self, text: str, severity: str = "warning") -> None:
        """A mark that the policy would have acted otherwise than the run."""
        words = f"{self.policy.name} {text}"
        self.make(events.Notice.model_validate({"severity": severity, "text": words, "origin": "judgement"}))

    def take(self, event: events.Event, following: events.Event | None) -> None:
        """One fact, its calls `keyed`, with what the policy adds before and after it."""
        take = _TAKES.get(type(event))
        if take is None:
            self.put(event)
        else:
            take(self, event, following)

    def _reply(self, event: events.ReplyFinished, _: events.Event | None) -> None:
        self.put(event)
        self._refusals(event)

    def _succeeded(self, event: events.ToolSucceeded, _: events.Event | None) -> None:
        self.put(_as_failed(event, self.state.run.iteration) if self._reports_error(event) else event)

    def _run(self, event: events.RunStarted, _: events.Event | None) -> None:
        present = event.operator_present if self.operator_present is None else self.operator_present
        changes = {
            "policy": self.policy.name,
            "policy_settings": self.settings,
            "operator_present": present,
            "on_escalation": unanswered(self.policy.name, None),
            # No request follows: how calls are sent is the recording's.
            "tool_calls": "native",
            "advisor": "",
        }
        self.mark, self.withheld = (events.Level.CONTINUE, ""), frozenset()
        recorded = policy_of_run(event.policy, event.policy_settings)
        self.rekey = recorded.attempts_key != self.policy.attempts_key
        self.put(event.model_copy(update=changes))
        self._lift_limits()

    def _lift_limits(self) -> None:
        """The run had the limits of its own harness: ours would end long runs that went on."""
        self.state = evolve(self.state, run=evolve(self.state.run, max_iterations=sys.maxsize, limits={}))

    def keyed(
        self, event: events.Event, inputs: Mapping[str, dict[str, JsonValue]] | None = None
    ) -> events.Event:
        """The event with the keys of its calls: those of a recording have none yet, or another policy's.
        `inputs`: the arguments of a reply's calls by their ids, if their results have them.
        """
        if type(event) is events.ReplyFinished:
            return self._keyed_reply(event, inputs or {})
        if type(event) in _OF_A_CALL:
            of_call = cast(_OfACall, event)
            if self.rekey or not of_call.key:
                key = self._key(of_call.call_id, of_call.tool, of_call.input).key
                return of_call.with_values({"key": key})
        return event

    def _keyed_reply(
        self, event: events.ReplyFinished, inputs: Mapping[str, dict[str, JsonValue]]
    ) -> events.Event:
        if not event.calls or (not self.rekey and all(call.key for call in event.calls)):
            return event
        self.keys = {
            call.id: self._key(call.id, call.name, inputs.get(call.id) or arguments_of(call))
            for call in event.calls
        }
        named = (call.with_values({"key": self.keys[call.id].key}) for call in event.calls)
        return event.with_values({"calls": tuple(named)})

    def _key(self, call: str, tool: str, arguments: dict[str, JsonValue]) -> _Key:
        known = self.keys.get(call)
        if known is not None and known.arguments is arguments and known.tool == tool:
            return known
        return _Key(tool, arguments, self.state.recovery.key(tool, arguments))

    def _reports_error(self, event: events.ToolSucceeded) -> bool:
        return self.policy.error_prefix == "every_tool" and event.content.startswith("Error:")

    def _refusals(self, reply: events.ReplyFinished) -> None:
        """Calls that would not have run although the recording says that they did; each is marked once."""
        recovery = self.state.recovery
        breakers, stuck = recovery.of(ToolBreakers), recovery.of(StuckPatterns)
        if not (recovery.of(AttemptLedger).entries or stuck.patterns or breakers.states):
            return  # nothing that refuses a call
        if all(recovery.permit(call.name, call.key).allowed for call in reply.calls) and len(reply.calls) < 2:
            return
        step = decide(evolve(self.state, history=evolve(self.state.history, reply=reply, results=())))
        for event in step.events if isinstance(step, Record) else ():
            if isinstance(event, events.ToolRefused) and event.refusal in _WITHHELD:
                key = f"{event.refusal} {event.key}"
                if key not in self.withheld:
                    self.withheld = self.withheld | {key}
                    self.remark(_WITHHELD[event.refusal].format(event.tool))

    def _rejection(self) -> None:
        """The reply that the policy would not take: one of text alone."""
        reply = self.state.recovery.reply
        if reply is None or reply.calls:
            return
        step = decide(self.state)
        for made in step.events if isinstance(step, Record) else ():
            if isinstance(made, events.ReplyRejected):
                self.make(made)

    def _iteration(self, event: events.IterationFinished, following: events.Event | None) -> None:
        if not self.state.recovery.not_taken and not event.cancelled:
            self._rejection()
        self.put(event)
        goes_on = not isinstance(following, events.RunFinished | None)
        while isinstance(step := decide(self.state), Record):
            for made in step.events:
                if isinstance(made, events.EscalationRaised):
                    if self.asks and following is None:
                        self.make(made)
                        return
                    self._mark(following)
                    # Nobody was asked: what comes next is what follows a question that nobody answers.
                    self.state = evolve(self.state, answer=_unanswered(made))
                elif isinstance(made, events.VerdictReached | events.NotePrepared):
                    self.make(made)
                elif isinstance(made, events.StartedAfresh):
                    self._begin_anew(made, following)
                    return
                else:
                    return
        if isinstance(step, Finish):
            if step.finished.outcome is not events.Outcome.ANSWERED:
                self._mark(following)
            elif goes_on:
                self.remark("would have taken this reply as the run's answer", "info")
        reached = self.state.verdict
        if reached is not None:
            self.mark = (reached.level, reached.detector)

    def _finished(self, event: events.RunFinished, _: events.Event | None) -> None:
        """The end as it was, with what shows the claims of its answer."""
        if event.outcome is events.Outcome.ANSWERED:
            event = event.model_copy(update={"receipts": receipts(self.state, event.answer)})
        self.put(event)

    def _begin_anew(self, made: events.StartedAfresh, following: events.Event | None) -> None:
        """Count from here on as after a fresh start, though the recording goes on as it did."""
        self._mark(following)
        self.mark = (events.Level.RESTART, made.detector)
        self.state = evolve(self.state, recovery=folding.apply(self.state.recovery, made))

    def _mark(self, following: events.Event | None) -> None:
        """Say once what the verdict would have done, unless the recording did it."""
        reached = self.state.verdict
        if reached is None or reached.level not in _WOULD or (reached.level, reached.detector) == self.mark:
            return
        happened = isinstance(following, events.EscalationRaised) or (
            isinstance(following, events.RunFinished) and following.detector == reached.detector != ""
        )
        if not happened:
            self.remark(f"{_WOULD[reached.level]} ({reached.detector}): {reached.reason}")


_TAKES: dict[type[events.Event], Callable[[Judge, Any, events.Event | None], None]] = {
    events.IterationFinished: Judge._iteration,
    events.ReplyFinished: Judge._reply,
    events.ToolSucceeded: Judge._succeeded,
    events.RunStarted: Judge._run,
    events.RunFinished: Judge._finished,
}


class _Place(NamedTuple):
    """A point at which judging can begin again: before an iteration or a run."""

    fact: int
    events: int
    judge: Judge


_KEPT = 128
"""Places; of those long ago every second one goes."""


class GrowingJudgement:
    """One policy over facts that grow; the newest may change."""

    def __init__(
        self, policy: str | RecoveryPolicy, operator_present: bool | None = None, *, asks: bool = False
    ) -> None:
        """As for `Judge`."""
        self._made = Numbered()
        self.events = self._made.events
        self._places = [_Place(-1, 0, Judge(policy, self._made.add, operator_present, asks=asks))]

    def update(self, facts: list[events.Event], stand: int) -> int:
        """Judge the facts from `stand` on, which are new; how many of the events stand as they were."""
        places = self._places
        while len(places) > 1 and places[-1].fact >= stand:
            places.pop()
        place, count, judge = places[-1]
        judge = copy(judge)
        before = self.events[count:]
        del self.events[count:]
        for number in range(max(place, 0), len(facts)):
            fact = facts[number]
            if number > place and isinstance(fact, events.IterationStarted | events.RunStarted):
                places.append(_Place(number, len(self.events), copy(judge)))
            inputs = _inputs(facts, number + 1) if isinstance(fact, events.ReplyFinished) else None
            following = facts[number + 1] if number + 1 < len(facts) else None
            judge.take(judge.keyed(fact, inputs), following)
        if len(places) > _KEPT:
            del places[1 : -_KEPT // 4 : 2]
        return count + equal_ones(before, itertools.islice(self.events, count, None))


def _unanswered(asked: events.EscalationRaised) -> events.EscalationAnswered:
    return events.EscalationAnswered(id=asked.id, choice="continue", by="policy")


def _as_failed(event: events.ToolSucceeded, iteration: int) -> events.ToolFailed:
    """The same result, failed: for a policy to which text that begins with `Error:` is a failure."""
    failure = events.Failure(
        kind=events.FailureKind.TOOL_EXECUTION,
        message=event.content,
        tool=event.tool,
        input=event.input,
        iteration=iteration,
    )
    same = {name: getattr(event, name) for name in events.ToolResult.model_fields if name != "type"}
    return events.ToolFailed(**{**same, "content": as_error(event.content), "failure": failure})
