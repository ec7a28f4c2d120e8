"""The recovery engine for other programs: say what happened, and read what to do next.

The same state and the same `decide` as in the console. No input or output, no clock, no model.

    r = Recovery()
    if r.permit("bash", {"command": "make"}).allowed:
        r.tool_failed("bash", {"command": "make"}, "exit code 2: …")
    step = r.end_iteration()
    if step.level == "escalate":
        r.operator_answered("Try it with -j1.", choice="skip")
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from tui_agent.core import events
from tui_agent.core.decision.answers import escalation_answered
from tui_agent.core.decision.decide import NO_CALL, decide
from tui_agent.core.decision.model_calls import model_faulted
from tui_agent.core.decision.steps import Record
from tui_agent.core.decision.tool_calls import as_error
from tui_agent.core.fold import apply
from tui_agent.core.names import OnEscalation
from tui_agent.core.recovery.note import compose
from tui_agent.core.recovery.policy import RecoveryPolicy, preset
from tui_agent.core.recovery.rules import Rule
from tui_agent.core.state import RunState

Choice = Literal["answer", "retry", "edit", "skip", "partial", "stop"]

_VERSION = 1
_VERDICT = (events.VerdictReached, events.NotePrepared)


@dataclass(frozen=True)
class Step:
    """The demand of the strongest verdict after an iteration.

    `level`: continue, guide, pivot, escalate, degrade or stop. `rule` is the rule's id ("" for none), `detector` what
    saw it, `reason` says why. `note` is what the model should read with its next call; None: nothing.
    """

    level: str
    rule: str
    detector: str
    reason: str
    note: str | None


@dataclass(frozen=True)
class Permission:
    """Permission for a call to run now; if it may not, `rule` and `reason` say why."""

    allowed: bool
    rule: str = ""
    reason: str = ""


class Recovery:
    """One run under a policy: `forge`, `gigi`, `funnelcanary`, `hpd` or `combined`, with parameters of one's own.

    `task` is what the run is about, for its journal. `tools` are the names that the note on an unknown tool lists.
    `on_escalation`: what your program does with a question that nobody can answer; under `continue` none is put.
    Raises `ValueError` for an unknown policy or parameter.
    """

    def __init__(
        self,
        policy: str = "combined",
        operator_present: bool = False,
        *,
        task: str = "",
        tools: Sequence[str] = (),
        on_escalation: OnEscalation = "partial",
        **settings: Any,
    ) -> None:
        chosen: RecoveryPolicy = preset(policy, **{"closing_turn": False, **settings})
        self._journal: list[events.Event] = []
        self._written = 0
        self._state = RunState()
        self._issued: list[events.ToolCall] = []
        self._pending: list[events.Event] = []
        self._feed(
            events.RunStarted(
                run=1,
                task=task,
                policy=policy,
                policy_settings=chosen.model_dump(mode="json"),
                tools=tuple(tools),
                operator_present=operator_present,
                on_escalation=on_escalation,
                tool_calls="native",
            )
        )

    # --- what happened ---------------------------------------------------------------------------------------

    def tool_succeeded(
        self, tool: str, arguments: Mapping[str, Any], content: str = "", *, changed: Sequence[str] = ()
    ) -> None:
        """A call did its work. `content` is its result, `changed` the files that it altered."""
        place = self._call(tool, arguments)
        self._pending.append(
            events.ToolSucceeded.model_validate({**place, "content": content, "changed": tuple(changed)})
        )

    def tool_failed(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        error: str,
        *,
        kind: str = "tool_execution",
        transient: bool = False,
        unknown_effect: bool = False,
    ) -> None:
        """A call failed. `kind` is `tool_execution`, `invalid_tool_call`, `unknown_tool` or `cancelled`.

        `transient`: the infrastructure's fault; `unknown_effect`: it may have had its effect. Raises `ValueError`
        for another kind.
        """
        place = self._call(tool, arguments)
        failure = {
            "kind": events.FailureKind(kind),
            "message": error,
            "tool": tool,
            "input": place["input"],
            "iteration": self._iteration,
            "transient": transient,
            "unknown_effect": unknown_effect,
        }
        self._pending.append(
            events.ToolFailed.model_validate({**place, "content": as_error(error), "failure": failure})
        )

    def tool_refused(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        reason: str = "",
        *,
        refusal: Literal["denied", "blocked", "withheld", "breaker"] = "denied",
    ) -> None:
        """A call was not executed: the operator denied it, or `permit` did not allow it."""
        place = self._call(tool, arguments)
        self._pending.append(
            events.ToolRefused.model_validate(
                {**place, "refusal": refusal, "reason": reason, "content": reason}
            )
        )

    def reply_rejected(self, message: str = NO_CALL) -> None:
        """The model's reply had no call although one was due; see `takes_as_answer`."""
        failure = events.Failure(
            kind=events.FailureKind.NO_TOOL_CALL, message=message, iteration=self._iteration
        )
        self._pending.append(events.ReplyRejected(failure=failure, rule=Rule.REPLY_REJECTED))

    def answered(self, text: str) -> None:
        """The model's reply was text alone, and ended the run as its answer."""
        self._flush()
        self._open()
        self._feed(events.ReplyFinished(text=text))
        self._feed(events.IterationFinished(iteration=self._iteration))
        self._feed(events.RunFinished(outcome=events.Outcome.ANSWERED, answer=text))

    def takes_as_answer(self, text: str) -> bool:
        """True if a reply of text alone ends the run as its answer; else it is to be rejected."""
        return not self._state.recovery.rejects_text(text)

    def model_failed(
        self, kind: str, message: str = "", *, retry_after: float | None = None, jitter: float = 0.5
    ) -> Step:
        """A model call failed. `kind` is a sub-kind such as `rate_limit`, `auth` or `context_overflow`.

        Returns what to do: `continue` stands for a retry after the wait that `reason` names. `jitter` is a random
        number in [0, 1). Raises `ValueError` for an unknown kind.
        """
        self._open()
        attempt = self._state.run.attempt + 1
        self._feed(events.ModelCallStarted(iteration=self._iteration, attempt=attempt))
        fault = events.Fault(kind=events.FaultKind(kind), message=message, retry_after=retry_after)
        faulted = model_faulted(self._state, fault, "", jitter)
        self._feed(faulted)
        if faulted.action in {"next_iteration", "degrade", "stop"}:
            self._feed(events.IterationFinished(iteration=self._iteration))
        return self._step()

    def operator_answered(
        self, text: str = "", choice: Choice = "answer", *, arguments: Mapping[str, Any] | None = None
    ) -> None:
        """The operator answered the question that the strongest verdict raises.

        Only `retry` and `edit` (with the call's new `arguments`) let a blocked call run once more. Raises `ValueError`
        for another choice.
        """
        if choice not in get_args(Choice):
            raise ValueError(f"There is no choice {choice!r}; there are {', '.join(get_args(Choice))}.")
        self._flush()
        raised = self._judged()
        if raised is None:
            self._feed(events.OperatorSpoke(text=text))
            return
        self._feed(raised)
        edited = None if arguments is None else dict(arguments)
        self._feed(escalation_answered(raised, choice, text, edited))

    def new_run(self, task: str = "") -> None:
        """The operator's next message: a run with fresh counters."""
        self._flush()
        started = next(event for event in reversed(self._journal) if isinstance(event, events.RunStarted))
        self._feed(started.model_copy(update={"run": started.run + 1, "task": task}))

    # --- what to do ------------------------------------------------------------------------------------------

    def permit(self, tool: str, arguments: Mapping[str, Any]) -> Permission:
        """Permission for this call to run now, beside those of the same iteration that were reported already."""
        state = self._state
        for event in self._pending:  # what changed something in this iteration lets a blocked call run
            state = apply(state, event)
        recovery = state.recovery
        earlier: Counter[str] = Counter()
        for call in self._issued:
            earlier.update((call.key, call.name))
        permit = recovery.permit(tool, recovery.key(tool, arguments), earlier)
        return Permission(permit.allowed, str(permit.rule), permit.reason)

    def end_iteration(self) -> Step:
        """Every call of the reply was reported: what the detectors say."""
        self._flush()
        self._record_verdict()
        return self._step()

    # --- keeping it ------------------------------------------------------------------------------------------

    def to_json(self) -> str:
        """The run so far, for `from_json`: its events, one after another."""
        self._flush_calls()
        kept = [event.model_dump(mode="json") for event in self._journal]
        return json.dumps({"version": _VERSION, "events": kept, "written": self._written}, ensure_ascii=False)

    def lines(self, at: float, session: str = "embedded") -> str:
        """Give what happened since this was asked last, as lines of a journal that `agent-tui watch` and `replay` read.

        `at` is the time now, in seconds since the epoch; `session` names the session in the first line.
        """
        new = [event.stamped(event.seq + 1, at) for event in self._journal[self._written :]]
        if not self._written:
            new.insert(0, events.SessionStarted(session_id=session, workspace="").stamped(1, at))
        self._written = len(self._journal)
        return "".join(json.dumps(event.model_dump(mode="json")) + "\n" for event in new)

    @classmethod
    def from_json(cls, text: str) -> Recovery:
        """The run that `to_json` kept. Raises `ValueError` for anything else."""
        raw = json.loads(text)
        if not isinstance(raw, dict) or raw.get("version") != _VERSION or not raw.get("events"):
            raise ValueError(f"This is no run of version {_VERSION}: give what `to_json` returned.")
        kept = cls.__new__(cls)
        kept._journal, kept._state, kept._issued, kept._pending = [], RunState(), [], []
        for event in raw["events"]:
            kept._feed(events.parse_event(json.dumps(event)))
        kept._written = min(int(raw.get("written", 0)), len(kept._journal))
        return kept

    # --- inside ----------------------------------------------------------------------------------------------

    @property
    def _iteration(self) -> int:
        return self._state.run.iteration + (not self._state.iteration_open)

    def _feed(self, event: events.Event) -> None:
        stamped = event.stamped(self._state.seq + 1, float(self._state.seq + 1))
        self._journal.append(stamped)
        self._state = apply(self._state, stamped)

    def _open(self) -> None:
        if not self._state.iteration_open:
            self._feed(events.IterationStarted(iteration=self._state.run.iteration + 1))

    def _call(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The place of one more call in the iteration's reply."""
        plain = json.loads(json.dumps(dict(arguments), default=str))
        index = len(self._issued)
        key = self._state.recovery.key(tool, plain)
        call = events.ToolCall(id=f"{self._iteration}.{index}", name=tool, key=key)
        self._issued.append(call)
        return {"call_id": call.id, "tool": tool, "input": plain, "index": index, "key": key}

    def _flush_calls(self) -> None:
        """The reply and its results become events once something comes after them."""
        if not self._pending:
            return
        self._open()
        if self._state.recovery.reply is None:
            self._feed(events.ReplyFinished(calls=tuple(self._issued)))
        for event in self._pending:
            self._feed(event)
        self._pending.clear()

    def _flush(self) -> None:
        self._flush_calls()
        self._issued.clear()
        if self._state.iteration_open and self._state.recovery.reply is not None:
            self._feed(events.IterationFinished(iteration=self._iteration))

    def _record_verdict(self) -> None:
        """Record the verdict of the iteration that ended, and its note; what follows from them is the program's."""
        while isinstance(step := decide(self._state), Record):
            if not all(isinstance(event, _VERDICT) for event in step.events):
                return
            for event in step.events:
                self._feed(event)

    def _judged(self) -> events.EscalationRaised | None:
        """Record the verdict and the note of the iteration that ended; the question that follows, if one does."""
        while isinstance(step := decide(self._state), Record):
            for event in step.events:
                if isinstance(event, events.EscalationRaised):
                    return event
                self._feed(event)
        return None

    def _step(self) -> Step:
        recovery = self._state.recovery
        strongest = recovery.strongest()
        note = compose(recovery, self._state.answer).text
        return Step(strongest.level.value, strongest.rule, strongest.detector, strongest.reason, note)
