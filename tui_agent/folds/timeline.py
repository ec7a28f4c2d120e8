"""The run's story in lines: verdicts with detector and reason, faults, escalations, outcomes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tui_agent import events as e
from tui_agent.appendlog import AppendLog
from tui_agent.evolve import evolve


@dataclass(frozen=True)
class TimelineLine:
    """One line. `kind` is a role for colouring: run, verdict, error, fault, refused, escalation, operator,
    breaker, coherence, hook, notice or outcome; `level` is set for verdicts."""

    seq: int
    at: float
    iteration: int
    kind: str
    text: str
    level: e.Level | None = None
    detector: str = ""


@dataclass(frozen=True)
class Timeline:
    """Lines in order, oldest first."""

    lines: AppendLog[TimelineLine] = field(default_factory=AppendLog)
    iteration: int = 0
    remark: str = ""
    """Reason of the verdict before, if it let the run continue: what stays true is told once."""

    def apply(self, event: e.Event) -> Timeline:
        """Fold one event."""
        teller = _TELLERS.get(type(event))
        if teller is None:
            return self
        if type(event) is e.IterationStarted:
            return evolve(self, iteration=event.iteration)
        told: tuple[str, str] | None = teller(event)
        if told is None:
            return self
        kind, text = told
        remark = self.remark
        if type(event) is e.VerdictReached:
            remark = text if event.level is e.Level.CONTINUE else ""
            if remark and remark == self.remark:
                return self
            line = TimelineLine(event.seq, event.at, event.iteration, kind, text, event.level, event.detector)
        else:
            iteration = 0 if type(event) is e.RunStarted else self.iteration
            line = TimelineLine(event.seq, event.at, iteration, kind, text)
        return evolve(self, lines=self.lines.append(line), iteration=line.iteration, remark=remark)


Teller = Callable[[Any], tuple[str, str] | None]


def _fault(event: e.ModelFaulted) -> tuple[str, str]:
    then = {
        "retry": f"retry {event.attempt + 1} in {event.delay:.1f} s",
        "fallback": f"falling back to {event.next_model}",
        "shrink": "the window is shrunk and the call retried",
        "next_iteration": "the next iteration tries again",
        "ask": "the operator is asked",
    }.get(event.action, "the run ends")
    return "fault", f"{event.fault.kind}: {event.fault.message}; {then}"


def _verdict(event: e.VerdictReached) -> tuple[str, str] | None:
    return None if event.level is e.Level.CONTINUE and not event.reason else ("verdict", event.reason)


def _rewound(event: e.Rewound) -> tuple[str, str]:
    if event.undoes:
        return "operator", f"took back the rewind of event {event.undoes}"
    return "operator", f"rewound {event.scope} to event {event.to_seq}"


def _hook(event: e.HookReported) -> tuple[str, str] | None:
    if event.status == "ok":
        return None
    return "hook", f"{event.hook} hook {event.status.replace('_', ' ')}: {event.error or event.command}"


_TELLERS: dict[type[e.Event], Teller] = {
    e.IterationStarted: lambda _: None,
    e.RunStarted: lambda event: ("run", f"run {event.run}, policy {event.policy}"),
    e.VerdictReached: _verdict,
    e.ToolFailed: lambda event: ("error", f"{event.tool}: {event.failure.message}"),
    e.ToolRefused: lambda event: ("refused", f"{event.tool} {event.refusal}: {event.reason}"),
    e.ReplyRejected: lambda event: ("error", event.failure.message),
    e.ModelFaulted: _fault,
    e.EscalationRaised: lambda event: ("escalation", event.question),
    e.EscalationAnswered: lambda event: ("operator", event.text or event.choice),
    e.OperatorSpoke: lambda event: ("operator", event.text),
    e.CoherenceRepaired: lambda event: (
        "coherence",
        ", ".join(f"{kind} ×{count}" for kind, count in event.repairs.items()),
    ),
    e.BreakerSet: lambda event: ("breaker", f"{event.tool} {'opened' if event.open else 'closed'} by hand"),
    e.SettingChanged: lambda event: ("operator", f"{event.setting} set to {event.value}"),
    e.HookReported: _hook,
    e.Notice: lambda event: ("notice", event.text),
    e.Rewound: _rewound,
    e.RunFinished: lambda event: (
        "outcome",
        f"{event.outcome}: {event.reason}" if event.reason else str(event.outcome),
    ),
}
