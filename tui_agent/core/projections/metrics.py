"""Counts and sums of a run, as the result object reports them, and of the session.

A failure is recovered when the same call succeeds later, or when another call of the same tool for the same target (a
path, a command's first word) does; a rejected reply, a malformed call and a failed model call by the next proper reply.
An answer alone recovers nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from tui_agent.core import events
from tui_agent.core.evolve import evolve
from tui_agent.core.recovery.iteration import FORM_ERRORS, found_nothing
from tui_agent.core.recovery.policy import policy_of_run
from tui_agent.core.recovery.signature import call_key

_TARGETS = ("path", "file_path", "filename", "file", "pattern", "url", "query")
_WORD = re.compile(r"(?:cd\s+\S+\s*(?:&&|;)\s*)?(?:\w+=\S*\s+)*([^\s;&|]+)")

MOST_COMMANDS = 5
"""Successful commands that are remembered, the newest."""

_LONGEST_COMMAND = 120


@dataclass(frozen=True)
class Usage:
    """Tokens and USD. `priced` is the sum of the known costs, `unpriced` counts the calls without one."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    priced: float = 0.0
    unpriced: int = 0

    @property
    def cost(self) -> float | None:
        """What the calls cost at least; None where no call has a known price."""
        return None if self.unpriced and not self.priced else self.priced

    @property
    def tokens(self) -> int:
        """Of prompts and replies."""
        return self.prompt_tokens + self.completion_tokens

    def plus(self, reply: events.ReplyFinished) -> Usage:
        """This usage and one reply's."""
        return Usage(
            self.prompt_tokens + (reply.prompt_tokens or 0),
            self.cached_tokens + (reply.cached_tokens or 0),
            self.completion_tokens + (reply.completion_tokens or 0),
            self.priced + (reply.cost or 0.0),
            self.unpriced + (reply.cost is None),
        )


class OpenFailure(NamedTuple):
    """Failures of one call that nothing has recovered yet."""

    tool: str
    target: str
    times: int


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
    """Iterations that ended with a reply and were not cut short."""
    failures: int = 0
    """Of tools, of the reply's form and of the model."""
    recovered_same_call: int = 0
    recovered_worked_round: int = 0
    coherence_violations: int = 0
    escalations: int = 0
    usage: Usage = Usage()
    last_prompt_tokens: int | None = None
    started_at: float = 0.0
    ended_at: float | None = None
    session_usage: Usage = Usage()
    """Over all runs of the session."""
    files_changed: tuple[str, ...] = ()
    """Each once, in the order of their first change."""
    commands_succeeded: tuple[str, ...] = ()
    """The newest, each once."""
    open_failures: dict[str, OpenFailure] = field(default_factory=dict)
    """By call key."""
    open_replies: int = 0
    """Rejected replies, calls of a wrong form and failed model calls that no proper reply has followed yet."""
    reply: Literal["none", "proper", "broken"] = "none"
    """The open iteration's reply; broken: it cannot be executed or taken as an answer."""
    search_results: bool = False
    """The policy takes a search that finds nothing as a result."""

    @property
    def recoveries(self) -> int:
        """Failures that were recovered, in either way."""
        return self.recovered_same_call + self.recovered_worked_round

    @property
    def unrecovered(self) -> int:
        """Failures that nothing has recovered."""
        return self.failures - self.recoveries

    def apply(self, event: events.Event) -> Metrics:
        """Fold one event."""
        handler = _HANDLERS.get(type(event))
        return self if handler is None else handler(self, event)


def target_of(arguments: Mapping[str, Any]) -> str:
    """What a call is about: its path, pattern or address, or the first word of its command."""
    command = arguments.get("command", arguments.get("cmd"))
    if isinstance(command, str):
        match = _WORD.match(command.strip())
        return match.group(1) if match else ""
    for name in _TARGETS:
        value = arguments.get(name)
        if isinstance(value, str):
            return value
    return ""


def _run_started(metrics: Metrics, event: events.RunStarted) -> Metrics:
    policy = policy_of_run(event.policy, event.policy_settings)
    return Metrics(
        started_at=event.at, session_usage=metrics.session_usage, search_results=policy.search_results
    )


def _model_call_started(metrics: Metrics, event: events.ModelCallStarted) -> Metrics:
    retry = 1 if event.attempt > 1 else 0
    return evolve(metrics, model_calls=metrics.model_calls + 1, model_retries=metrics.model_retries + retry)


def _reply_finished(metrics: Metrics, event: events.ReplyFinished) -> Metrics:
    changes: dict[str, Any] = {"reply": "proper", "tool_calls": metrics.tool_calls + len(event.calls)}
    if event.by == "model":
        changes |= {
            "usage": metrics.usage.plus(event),
            "session_usage": metrics.session_usage.plus(event),
            "last_prompt_tokens": event.prompt_tokens,
        }
    return evolve(metrics, **changes)


def _reply_failed(metrics: Metrics) -> Metrics:
    reply = metrics.reply if metrics.reply == "none" else "broken"
    return evolve(metrics, failures=metrics.failures + 1, open_replies=metrics.open_replies + 1, reply=reply)


def _model_faulted(metrics: Metrics, _: events.ModelFaulted) -> Metrics:
    return evolve(_reply_failed(metrics), model_faults=metrics.model_faults + 1)


def _reply_rejected(metrics: Metrics, _: events.ReplyRejected) -> Metrics:
    return _reply_failed(metrics)


def _key(event: events.ToolResult) -> str:
    return event.key or call_key(event.tool, event.input)


def _tool_succeeded(metrics: Metrics, event: events.ToolSucceeded) -> Metrics:
    changes: dict[str, Any] = {"tool_successes": metrics.tool_successes + 1}
    new = [name for name in event.changed if name not in metrics.files_changed]
    if new:
        changes["files_changed"] = (*metrics.files_changed, *new)
    command = event.input.get("command")
    if isinstance(command, str):
        line = " ".join(command.split())[:_LONGEST_COMMAND]
        kept = [known for known in metrics.commands_succeeded if known != line]
        changes["commands_succeeded"] = (*kept, line)[-MOST_COMMANDS:]
    return _recovered(evolve(metrics, **changes), event)


def _recovered(metrics: Metrics, event: events.ToolResult) -> Metrics:
    if not metrics.open_failures:
        return metrics
    key, target = _key(event), target_of(event.input)
    same = metrics.open_failures.get(key)
    round_ = {
        other: failure
        for other, failure in metrics.open_failures.items()
        if other != key and target and (failure.tool, failure.target) == (event.tool, target)
    }
    if same is None and not round_:
        return metrics
    rest = {
        other: failure
        for other, failure in metrics.open_failures.items()
        if other != key and other not in round_
    }
    return evolve(
        metrics,
        open_failures=rest,
        recovered_same_call=metrics.recovered_same_call + (same.times if same else 0),
        recovered_worked_round=metrics.recovered_worked_round
        + sum(failure.times for failure in round_.values()),
    )


def _tool_failed(metrics: Metrics, event: events.ToolFailed) -> Metrics:
    kind = event.failure.kind
    if kind is events.FailureKind.CANCELLED:
        return metrics
    if metrics.search_results and found_nothing(event):
        return _recovered(evolve(metrics, tool_successes=metrics.tool_successes + 1), event)
    errors = metrics.tool_errors + 1
    if kind in FORM_ERRORS:
        return evolve(_reply_failed(metrics), tool_errors=errors)
    key = _key(event)
    before = metrics.open_failures.get(key)
    failure = OpenFailure(event.tool, target_of(event.input), 1 + (before.times if before else 0))
    return evolve(
        metrics,
        failures=metrics.failures + 1,
        tool_errors=errors,
        open_failures={**metrics.open_failures, key: failure},
    )


def _iteration_finished(metrics: Metrics, event: events.IterationFinished) -> Metrics:
    changes: dict[str, Any] = {"reply": "none"}
    if metrics.reply == "proper" and metrics.open_replies:
        changes["recovered_same_call"] = metrics.recovered_same_call + metrics.open_replies
        changes["open_replies"] = 0
    if metrics.reply != "none" and not event.cancelled:
        changes["completed_iterations"] = metrics.completed_iterations + 1
    return evolve(metrics, **changes)


def _coherence_repaired(metrics: Metrics, event: events.CoherenceRepaired) -> Metrics:
    return evolve(metrics, coherence_violations=metrics.coherence_violations + sum(event.repairs.values()))


def _escalation_raised(metrics: Metrics, _: events.EscalationRaised) -> Metrics:
    return evolve(metrics, escalations=metrics.escalations + 1)


def _run_finished(metrics: Metrics, event: events.RunFinished) -> Metrics:
    return evolve(metrics, ended_at=event.at)


_HANDLERS: dict[type[events.Event], Callable[[Metrics, Any], Metrics]] = {
    events.RunStarted: _run_started,
    events.ModelCallStarted: _model_call_started,
    events.ReplyFinished: _reply_finished,
    events.ModelFaulted: _model_faulted,
    events.ReplyRejected: _reply_rejected,
    events.ToolSucceeded: _tool_succeeded,
    events.ToolFailed: _tool_failed,
    events.IterationFinished: _iteration_finished,
    events.CoherenceRepaired: _coherence_repaired,
    events.EscalationRaised: _escalation_raised,
    events.RunFinished: _run_finished,
}
