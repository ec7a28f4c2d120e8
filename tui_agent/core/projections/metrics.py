"""Counts and sums of a run, as the result object reports them, and of the session. What failed is in its incidents."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tui_agent.core import events
from tui_agent.core.append_log import AppendLog
from tui_agent.core.evolve import evolve
from tui_agent.core.names import ASK_OPERATOR, OF_NO_FAILURE
from tui_agent.core.projections.incidents import HANDLERS as OF_INCIDENTS
from tui_agent.core.projections.incidents import Incidents
from tui_agent.core.recovery.iteration import did_work
from tui_agent.core.recovery.policy import policy_of_run

MOST_COMMANDS = 5
"""Successful commands that are remembered, the newest."""

_LONGEST_COMMAND = 120


Billed = events.ReplyFinished | events.Compacted | events.CompactionFailed | events.Advised
"""Events that may have cost tokens."""


@dataclass(frozen=True)
class Usage:
    """Tokens and USD. `priced` is the sum of the known costs, `unpriced` counts the calls without one.

    Of the prompts' tokens, `cached_tokens` were read from a provider's cache and `cache_write_tokens` written to it.
    """

    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    priced: float = 0.0
    unpriced: int = 0
    cache_write_tokens: int = 0

    @property
    def cost(self) -> float | None:
        """The least cost of the calls; None if no call has a known price."""
        return None if self.unpriced and not self.priced else self.priced

    @property
    def tokens(self) -> int:
        """Of prompts and replies."""
        return self.prompt_tokens + self.completion_tokens

    def plus(self, reply: Billed) -> Usage:
        """This usage and one reply's, a summary's or a suggestion's included."""
        return Usage(
            self.prompt_tokens + (reply.prompt_tokens or 0),
            self.cached_tokens + (reply.cached_tokens or 0),
            self.completion_tokens + (reply.completion_tokens or 0),
            self.priced + (reply.cost or 0.0),
            self.unpriced + (reply.cost is None),
            self.cache_write_tokens + (reply.cache_write_tokens or 0),
        )


@dataclass(frozen=True)
class IterationPoint:
    """One iteration of the run's course. `latency` in seconds, `cost` in USD; None: unknown."""

    iteration: int
    failures: int
    tokens: int
    latency: float
    cost: float | None


@dataclass(frozen=True)
class Metrics:
    """The run's counters."""

    model_calls: int = 0
    model_retries: int = 0
    model_faults: int = 0
    tool_calls: int = 0
    tool_errors: int = 0
    tool_successes: int = 0
    completed_iterations: int = 0
    """Iterations in which a call did its work."""
    incidents: Incidents = field(default_factory=Incidents)
    course: AppendLog[IterationPoint] = field(default_factory=AppendLog)
    """The iterations that have ended."""
    open_point: IterationPoint = IterationPoint(0, 0, 0, 0.0, None)
    """The open iteration so far; until it ends, its failures are those of the run before it."""
    coherence_violations: int = 0
    escalations: int = 0
    unasked: int = 0
    """Those of them that were put to nobody."""
    usage: Usage = Usage()
    """Of the run and its sub-agents."""
    last_prompt_tokens: int | None = None
    started_at: float = 0.0
    ended_at: float | None = None
    session_usage: Usage = Usage()
    """Over all runs of the session."""
    session_seconds: float = 0.0
    """Of the runs before this one, from their start to their end."""
    answered_seconds: float = 0.0
    """For which the run waited for the operator, questions that are open left out."""
    questions: int = 0
    """Open ones, the first of them asked at `asked_at`."""
    asked_at: float = 0.0
    files_changed: tuple[str, ...] = ()
    """Each once, in the order of their first change."""
    commands_succeeded: tuple[str, ...] = ()
    """The newest, each once."""
    worked: float = 0.0
    """Seconds of this run in iterations, without the waits for the operator."""
    session_worked: float = 0.0
    """The same over all runs of the session."""
    in_iteration: bool = False
    working_since: float | None = None
    """When the open stretch of work began."""
    replied: bool = False
    """The open iteration has its reply."""
    worked_in_it: bool = False
    """A call of the open iteration did its work."""

    @property
    def failures(self) -> int:
        """Of tools, of the reply's form and of the model."""
        return self.incidents.failures

    @property
    def recovered_same_call(self) -> int:
        """Failures whose call succeeded later."""
        return self.recoveries - self.recovered_worked_round

    @property
    def recovered_worked_round(self) -> int:
        """Failures that another call made good."""
        return self.incidents.recovered_worked_round

    @property
    def recoveries(self) -> int:
        """Failures that were recovered, in either way."""
        return self.incidents.recoveries

    @property
    def unrecovered(self) -> int:
        """Failures that nothing has recovered."""
        return self.incidents.left

    def waited(self, now: float) -> float:
        """Seconds for which the run waited for the operator, up to `now`."""
        return self.answered_seconds + (max(0.0, now - self.asked_at) if self.questions else 0.0)

    def began(self, now: float) -> float:
        """When the run that is under way (or ends) `now` began, without the time in which no process was
        there; 0.0 if there is none.
        """
        return self.started_at if self.ended_at is None or self.ended_at == now else 0.0

    def after_absence(self, seconds: float) -> Metrics:
        """These counters after no process was there for so long: what is open goes on as if it had begun later."""
        if not self.started_at or self.ended_at is not None:
            return self
        return evolve(
            self,
            started_at=self.started_at + seconds,
            asked_at=self.asked_at + seconds,
            working_since=None if self.working_since is None else self.working_since + seconds,
        )

    def apply(self, event: events.Event) -> Metrics:
        """Fold one event."""
        incidents = self.incidents.apply(event)
        metrics = self if incidents is self.incidents else evolve(self, incidents=incidents)
        handler = _HANDLERS.get(type(event))
        return metrics if handler is None else handler(metrics, event)


def _run_started(metrics: Metrics, event: events.RunStarted) -> Metrics:
    policy = policy_of_run(event.policy, event.policy_settings)
    before = metrics.session_seconds
    if metrics.started_at and metrics.ended_at is not None:
        before += metrics.ended_at - metrics.started_at
    return Metrics(
        started_at=event.at,
        session_usage=metrics.session_usage,
        session_seconds=before,
        session_worked=metrics.session_worked,
        incidents=Incidents(policy=policy),
    )


def _iteration_started(metrics: Metrics, event: events.IterationStarted) -> Metrics:
    point = IterationPoint(event.iteration, metrics.failures, 0, 0.0, None)
    return evolve(metrics, open_point=point, working_since=event.at, in_iteration=True)


def _rest(metrics: Metrics, at: float) -> dict[str, Any]:
    """The open stretch of work ends."""
    if metrics.working_since is None:
        return {}
    seconds = max(0.0, at - metrics.working_since)
    return {
        "worked": metrics.worked + seconds,
        "session_worked": metrics.session_worked + seconds,
        "working_since": None,
    }


def _model_call_started(metrics: Metrics, event: events.ModelCallStarted) -> Metrics:
    retry = 1 if event.attempt > 1 else 0
    return evolve(metrics, model_calls=metrics.model_calls + 1, model_retries=metrics.model_retries + retry)


def _reply_finished(metrics: Metrics, event: events.ReplyFinished) -> Metrics:
    changes: dict[str, Any] = {"tool_calls": metrics.tool_calls + len(event.calls), "replied": True}
    if event.by == "model":
        point = metrics.open_point
        changes |= {
            "open_point": evolve(
                point,
                tokens=point.tokens + (event.prompt_tokens or 0) + (event.completion_tokens or 0),
                latency=point.latency + event.duration,
                cost=event.cost if point.cost is None else point.cost + (event.cost or 0.0),
            ),
            "usage": metrics.usage.plus(event),
            "session_usage": metrics.session_usage.plus(event),
            "last_prompt_tokens": event.prompt_tokens,
        }
    return evolve(metrics, **changes)


def _beside_ended(metrics: Metrics, event: Billed) -> Metrics:
    """A summary or a suggestion."""
    if event.completion_tokens is None and event.prompt_tokens is None and event.cost is None:
        return metrics  # it never got a reply
    return evolve(metrics, usage=metrics.usage.plus(event), session_usage=metrics.session_usage.plus(event))


def _model_faulted(metrics: Metrics, _: events.ModelFaulted) -> Metrics:
    return evolve(metrics, model_faults=metrics.model_faults + 1)


def _tool_succeeded(metrics: Metrics, event: events.ToolSucceeded) -> Metrics:
    if not did_work(event):
        return metrics
    changes: dict[str, Any] = {"tool_successes": metrics.tool_successes + 1, "worked_in_it": True}
    new = [name for name in event.changed if name not in metrics.files_changed]
    if new:
        changes["files_changed"] = (*metrics.files_changed, *new)
    command = event.input.get("command")
    if isinstance(command, str):
        line = " ".join(command.split())[:_LONGEST_COMMAND]
        kept = [known for known in metrics.commands_succeeded if known != line]
        changes["commands_succeeded"] = (*kept, line)[-MOST_COMMANDS:]
    return evolve(metrics, **changes)


def _tool_failed(metrics: Metrics, event: events.ToolFailed) -> Metrics:
    if event.failure.kind is events.FailureKind.CANCELLED:
        return metrics
    if not metrics.incidents.counts(event):
        return evolve(metrics, tool_successes=metrics.tool_successes + 1, worked_in_it=True)
    return evolve(metrics, tool_errors=metrics.tool_errors + 1)


def _asked(metrics: Metrics, event: events.ApprovalAsked | events.EscalationRaised) -> Metrics:
    began = metrics.asked_at if metrics.questions else event.at
    return evolve(metrics, **_rest(metrics, event.at), questions=metrics.questions + 1, asked_at=began)


def _escalation_answered(metrics: Metrics, event: events.EscalationAnswered) -> Metrics:
    return evolve(_answered(metrics, event), unasked=metrics.unasked + event.unasked)


def _answered(metrics: Metrics, event: events.ApprovalAnswered | events.EscalationAnswered) -> Metrics:
    if metrics.questions <= 1:
        since = event.at if metrics.in_iteration else None
        return evolve(metrics, **_no_questions(metrics, event.at), working_since=since)
    return evolve(metrics, questions=metrics.questions - 1)


def _no_questions(metrics: Metrics, at: float) -> dict[str, Any]:
    return {"questions": 0, "answered_seconds": metrics.waited(at)}


def _iteration_finished(metrics: Metrics, event: events.IterationFinished) -> Metrics:
    point = metrics.open_point
    point = evolve(point, failures=metrics.failures - point.failures)
    completed = metrics.replied and not event.cancelled
    return evolve(
        metrics,
        **_rest(metrics, event.at),
        **_no_questions(metrics, event.at),
        in_iteration=False,
        replied=False,
        worked_in_it=False,
        completed_iterations=metrics.completed_iterations + metrics.worked_in_it,
        course=metrics.course.append(point) if completed else metrics.course,
    )


def _coherence_repaired(metrics: Metrics, event: events.CoherenceRepaired) -> Metrics:
    return evolve(metrics, coherence_violations=metrics.coherence_violations + sum(event.repairs.values()))


def _escalation_raised(metrics: Metrics, event: events.EscalationRaised) -> Metrics:
    # A budget that is used up and a plan to approve are nothing that went wrong.
    went_wrong = event.source not in OF_NO_FAILURE - {ASK_OPERATOR}
    return evolve(_asked(metrics, event), escalations=metrics.escalations + went_wrong)


def _lane_event(metrics: Metrics, event: events.LaneEvent) -> Metrics:
    """Additions of a sub-agent to the run: costs, changed files, waits for the operator."""
    match event.placed:
        case (
            events.ReplyFinished(by="model")
            | events.Compacted()
            | events.CompactionFailed()
            | events.Advised() as reply
        ):
            usage, session = metrics.usage.plus(reply), metrics.session_usage.plus(reply)
            return evolve(metrics, usage=usage, session_usage=session)
        case events.ToolSucceeded(changed=changed) if changed:
            files = dict.fromkeys((*metrics.files_changed, *changed))
            return evolve(metrics, files_changed=tuple(files))
        case events.ApprovalAsked() | events.EscalationRaised() as asked:
            return _HANDLERS[type(asked)](metrics, asked)
        case events.ApprovalAnswered() | events.EscalationAnswered() as answered:
            return _HANDLERS[type(answered)](metrics, answered)
        case _:
            return metrics


def _run_finished(metrics: Metrics, event: events.RunFinished) -> Metrics:
    return evolve(metrics, ended_at=event.at, **_no_questions(metrics, event.at))


_HANDLERS: dict[type[events.Event], Callable[[Metrics, Any], Metrics]] = {
    events.RunStarted: _run_started,
    events.IterationStarted: _iteration_started,
    events.ModelCallStarted: _model_call_started,
    events.ReplyFinished: _reply_finished,
    events.Compacted: _beside_ended,
    events.CompactionFailed: _beside_ended,
    events.Advised: _beside_ended,
    events.ModelFaulted: _model_faulted,
    events.ToolSucceeded: _tool_succeeded,
    events.ToolFailed: _tool_failed,
    events.IterationFinished: _iteration_finished,
    events.CoherenceRepaired: _coherence_repaired,
    events.ApprovalAsked: _asked,
    events.ApprovalAnswered: _answered,
    events.EscalationRaised: _escalation_raised,
    events.EscalationAnswered: _escalation_answered,
    events.RunFinished: _run_finished,
    events.LaneEvent: _lane_event,
}

HANDLERS = dict.fromkeys({**_HANDLERS, **OF_INCIDENTS}, Metrics.apply)
"""By the kinds of events that change counters or incidents."""
