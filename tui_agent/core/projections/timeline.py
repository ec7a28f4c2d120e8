"""The run's story in lines: verdicts with detector and reason, faults, escalations, outcomes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tui_agent.core import events
from tui_agent.core.append_log import AppendLog
from tui_agent.core.evolve import evolve
from tui_agent.core.names import MODEL_CALL, REPLY_FORM
from tui_agent.core.projections.incidents import Incident
from tui_agent.core.recovery.tool_breaker import ToolBreakers
from tui_agent.headline import headline
from tui_agent.quantities import counted, resets
from tui_agent.terminal_text import one_line


def _cut(event: events.WindowCut) -> str:
    """The steps that left the window; if none did, long results were shortened."""
    if not event.groups:
        return f"results of more than {event.longest_result:,} characters were cut in the middle"
    return f"{counted(event.groups, 'step')} left out of requests"


@dataclass(frozen=True)
class TimelineLine:
    """One line. `kind` is a role for colouring: run, verdict, error, fault, refused, recovered, escalation,
    operator, breaker, coherence, window, hook, notice or outcome; `level` is set for verdicts."""

    seq: int
    at: float
    iteration: int
    kind: str
    text: str
    level: events.Level | None = None
    detector: str = ""
    rule: str = ""
    """Id of the rule that made the event; empty if none did."""
    began: float = 0.0
    """When its run began, without the time in which no process was there; 0.0 outside of a run."""

    @property
    def in_a_line(self) -> str:
        """The text on one line; of a failure that has many, the tool and the line that says what is wrong."""
        if self.kind == "error" and "\n" in self.text:
            tool, colon, message = self.text.partition(": ")
            return f"{one_line(tool)}: {headline(message)}" if colon else headline(self.text)
        return one_line(self.text)


@dataclass(frozen=True)
class Timeline:
    """Lines in order, oldest first."""

    lines: AppendLog[TimelineLine] = field(default_factory=AppendLog)
    iteration: int = 0
    remark: str = ""
    """Reason of the verdict before, if it let the run continue: what stays true is said once."""

    def apply(
        self,
        event: events.Event,
        recovered: Sequence[Incident] = (),
        answered: bool = False,
        began: float = 0.0,
    ) -> Timeline:
        """Fold one event, which ended the incidents in `recovered`. `answered`: it is no failure, but an answer;
        `began`: when its run did.
        """
        timeline = self if answered else self._with(event, began)
        for incident in recovered:
            if incident.recovery is not None and incident.recovery.why == "not_needed":
                continue  # nothing happened to it: the run only did without
            line = TimelineLine(
                event.seq, event.at, self.iteration, "recovered", _recovered(incident), began=began
            )
            timeline = evolve(timeline, lines=timeline.lines.append(line), remark="")
        return timeline

    def _with(self, event: events.Event, began: float) -> Timeline:
        describe = _DESCRIPTIONS.get(type(event))
        if describe is None:
            return self
        if type(event) is events.IterationStarted:
            return evolve(self, iteration=event.iteration)
        found: tuple[str, str] | None = describe(event)
        if found is None:
            return self
        kind, text = found
        remark = self.remark
        withheld: list[events.VerdictRecord] = []
        if type(event) is events.VerdictReached:
            withheld = _withheld(event)
            remark = text if event.level is events.Level.CONTINUE else ""
            if remark and remark == self.remark:
                return self
            by = event.level, event.detector, event.rule
            line = TimelineLine(event.seq, event.at, event.iteration, kind, text, *by, began)
        else:
            iteration = 0 if type(event) is events.RunStarted else self.iteration
            rule = getattr(event, "rule", "")
            line = TimelineLine(event.seq, event.at, iteration, kind, text, rule=rule, began=began)
        lines = self.lines.append(line)
        for record in withheld:
            lines = lines.append(
                evolve(line, kind="breaker", text=record.reason, level=None, detector="", rule=record.rule)
            )
        return evolve(self, lines=lines, iteration=line.iteration, remark=remark)


def _withheld(event: events.VerdictReached) -> list[events.VerdictRecord]:
    """The entry for a tool that is left out from now on, if another detector's word had more weight."""
    said = (record for record in event.verdicts if record.reason)
    return [record for record in said if record.detector == ToolBreakers.name != event.detector]


def _recovered(incident: Incident) -> str:
    what = {MODEL_CALL: "the model answers", REPLY_FORM: "the reply has the right form"}.get(
        incident.key, incident.tool
    )
    failures = counted(incident.times, "failure")
    recovery = incident.recovery
    how = " in another way" if recovery is not None and recovery.how == "worked_round" else ""
    return f"{what}{how} after {failures}"


Describe = Callable[[Any], tuple[str, str] | None]


def _fault(event: events.ModelFaulted) -> tuple[str, str]:
    return "fault", f"{event.fault.kind.in_words}: {event.fault.message.rstrip('.')}; {event.then}"


def _verdict(event: events.VerdictReached) -> tuple[str, str] | None:
    return None if event.level is events.Level.CONTINUE and not event.reason else ("verdict", event.reason)


def _compacted(event: events.Compacted) -> tuple[str, str]:
    return (
        "window",
        f"{counted(event.groups, 'step')} summarised: {event.tokens_before:,} → {event.tokens_after:,} tokens",
    )


def _hook(event: events.HookReported) -> tuple[str, str] | None:
    if event.status == "ok":
        return None
    return "hook", f"{event.hook} hook {event.status_in_words}: {event.error or event.command}"


_DESCRIPTIONS: dict[type[events.Event], Describe] = {
    events.IterationStarted: lambda _: None,
    events.RunStarted: lambda event: ("run", f"run {event.run}, policy {event.policy}"),
    events.VerdictReached: _verdict,
    events.Advised: lambda event: ("verdict", event.in_words),
    events.ToolFailed: lambda event: ("error", f"{event.tool}: {event.failure.message}"),
    events.ToolRefused: lambda event: ("refused", f"{event.tool} {event.in_words}: {event.reason}"),
    events.ReplyRejected: lambda event: ("refused" if event.unverified else "error", event.failure.message),
    events.ModelFaulted: _fault,
    events.EscalationRaised: lambda event: ("escalation", event.in_words),
    events.EscalationAnswered: lambda event: ("operator", event.in_words),
    events.OperatorSpoke: lambda event: ("operator", event.text),
    events.OwnCommandEnded: lambda event: ("operator", f"$ {event.command}"),
    events.CoherenceRepaired: lambda event: (
        "coherence",
        ", ".join(f"{kind} ×{count}" for kind, count in event.repairs.items()),
    ),
    events.WindowCut: lambda event: ("window", _cut(event)),
    events.Compacted: _compacted,
    events.CompactionFailed: lambda event: ("window", f"no summary: {event.in_words}"),
    events.LimitWaitStarted: lambda event: (
        "fault",
        f"the run waits for the limit, which {resets(event.until, event.at)}",
    ),
    events.WaitSkipped: lambda _: ("operator", "the wait was skipped"),
    events.BreakerSet: lambda event: (
        "breaker",
        f"{event.tool} {'opened' if event.open else 'closed'} by hand",
    ),
    events.SettingChanged: lambda event: ("operator", f"{event.setting} set to {event.value}"),
    events.RulesChanged: lambda event: ("operator", event.in_words),
    events.AgentOptionChosen: lambda event: ("operator", event.in_words),
    events.BudgetRaised: lambda event: ("operator", event.in_words),
    events.ClosingTurnOpened: lambda event: ("verdict", event.in_words),
    events.StartedAfresh: lambda event: ("verdict", event.in_words),
    events.HookReported: _hook,
    events.Notice: lambda event: ("notice", event.text),
    events.Rewound: lambda event: ("operator", event.in_words),
    events.ServerChanged: lambda event: ("server", event.in_words),
    events.ServerAnswered: lambda event: ("operator", f"MCP server {event.server}: {event.decision}"),
    events.RunFinished: lambda event: (
        "outcome",
        f"{event.outcome.in_words}: {event.reason}" if event.reason else event.outcome.in_words,
    ),
}
