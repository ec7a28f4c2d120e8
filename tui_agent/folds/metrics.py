"""Counts and sums of a run, as the result object reports them, and of the session."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tui_agent import events as e
from tui_agent.evolve import evolve
from tui_agent.recovery.signature import call_key


@dataclass(frozen=True)
class Usage:
    """Tokens and USD. `cost` is None as soon as one call's cost is unknown: a sum with holes is not a sum."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = 0.0

    def plus(self, reply: e.ReplyFinished) -> Usage:
        """This usage and one reply's."""
        cost = None if self.cost is None or reply.cost is None else self.cost + reply.cost
        return Usage(
            self.prompt_tokens + (reply.prompt_tokens or 0),
            self.completion_tokens + (reply.completion_tokens or 0),
            cost,
        )


@dataclass(frozen=True)
class Metrics:
    """The run's counters. `failures`: of tools, of the reply's form and of the model; `recoveries`: those of them
    whose call later succeeded, or that an answer followed.
    """

    model_calls: int = 0
    model_retries: int = 0
    tool_calls: int = 0
    tool_errors: int = 0
    failures: int = 0
    recoveries: int = 0
    coherence_violations: int = 0
    escalations: int = 0
    usage: Usage = Usage()
    last_prompt_tokens: int | None = None
    started_at: float = 0.0
    ended_at: float | None = None
    session_usage: Usage = Usage()
    """Over all runs of the session."""
    unrecovered: dict[str, int] = field(default_factory=dict)
    """Failures that nothing has made good yet, by call key ("" for those of the model)."""

    def apply(self, event: e.Event) -> Metrics:
        """Fold one event."""
        handler = _HANDLERS.get(type(event))
        return self if handler is None else handler(self, event)

    def _failed(self, key: str, **changes: Any) -> Metrics:
        open_failures = {**self.unrecovered, key: self.unrecovered.get(key, 0) + 1}
        return evolve(self, unrecovered=open_failures, failures=self.failures + 1, **changes)

    def _recovered(self, key: str, **changes: Any) -> Metrics:
        count = self.unrecovered.get(key, 0)
        if not count:
            return evolve(self, **changes)
        rest = {other: n for other, n in self.unrecovered.items() if other != key}
        return evolve(self, unrecovered=rest, recoveries=self.recoveries + count, **changes)


def _run_started(metrics: Metrics, event: e.RunStarted) -> Metrics:
    return Metrics(started_at=event.at, session_usage=metrics.session_usage)


def _model_call_started(metrics: Metrics, event: e.ModelCallStarted) -> Metrics:
    retry = 1 if event.attempt > 1 else 0
    return evolve(metrics, model_calls=metrics.model_calls + 1, model_retries=metrics.model_retries + retry)


def _reply_finished(metrics: Metrics, event: e.ReplyFinished) -> Metrics:
    return metrics._recovered(
        "",
        usage=metrics.usage.plus(event),
        session_usage=metrics.session_usage.plus(event),
        last_prompt_tokens=event.prompt_tokens,
        tool_calls=metrics.tool_calls + len(event.calls),
    )


def _model_faulted(metrics: Metrics, _: e.ModelFaulted) -> Metrics:
    return metrics._failed("")


def _reply_rejected(metrics: Metrics, _: e.ReplyRejected) -> Metrics:
    return metrics._failed("no_tool_call")


def _tool_succeeded(metrics: Metrics, event: e.ToolSucceeded) -> Metrics:
    return metrics._recovered(call_key(event.tool, event.input)) if metrics.unrecovered else metrics


def _tool_failed(metrics: Metrics, event: e.ToolFailed) -> Metrics:
    return metrics._failed(call_key(event.tool, event.input), tool_errors=metrics.tool_errors + 1)


def _coherence_repaired(metrics: Metrics, event: e.CoherenceRepaired) -> Metrics:
    return evolve(metrics, coherence_violations=metrics.coherence_violations + sum(event.repairs.values()))


def _escalation_raised(metrics: Metrics, _: e.EscalationRaised) -> Metrics:
    return evolve(metrics, escalations=metrics.escalations + 1)


def _run_finished(metrics: Metrics, event: e.RunFinished) -> Metrics:
    if event.outcome is not e.Outcome.ANSWERED:
        return evolve(metrics, ended_at=event.at)
    made_good = metrics.recoveries + sum(metrics.unrecovered.values())
    return evolve(metrics, ended_at=event.at, recoveries=made_good, unrecovered={})


_HANDLERS: dict[type[e.Event], Callable[[Metrics, Any], Metrics]] = {
    e.RunStarted: _run_started,
    e.ModelCallStarted: _model_call_started,
    e.ReplyFinished: _reply_finished,
    e.ModelFaulted: _model_faulted,
    e.ReplyRejected: _reply_rejected,
    e.ToolSucceeded: _tool_succeeded,
    e.ToolFailed: _tool_failed,
    e.CoherenceRepaired: _coherence_repaired,
    e.EscalationRaised: _escalation_raised,
    e.RunFinished: _run_finished,
}
