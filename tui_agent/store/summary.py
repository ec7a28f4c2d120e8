"""One session in a row: what the list shows of it, and what the search finds in it.

Read from the journal, event by event, without building the whole state: a list of thousands of sessions is made of
these. `session_index` stores them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from tui_agent.core import events
from tui_agent.core.evolve import evolve
from tui_agent.core.fold import title_of
from tui_agent.core.projections.metrics import Metrics
from tui_agent.store.errors import SessionError
from tui_agent.store.journal import JOURNAL_NAME
from tui_agent.store.journal_index import EventSource, JournalIndex


class SearchText(NamedTuple):
    """Text that the search finds. `role`: operator, model, error or title."""

    seq: int
    role: str
    text: str


@dataclass(frozen=True)
class SessionRow:
    """A row of the list. Times in seconds since the epoch, `cost` in USD (None: not known), `size` in bytes."""

    id: str
    title: str = ""
    workspace: str = ""
    model: str = ""
    policy: str = ""
    source: str = ""
    outcome: str = ""
    """Of the newest run; empty while it goes on or was never finished."""
    runs: int = 0
    endings: int = 0
    """Runs that ended."""
    partial_answers: int = 0
    """Of these, those with the outcome `partial`."""
    iterations: int = 0
    model_retries: int = 0
    model_faults: int = 0
    tool_calls: int = 0
    tool_errors: int = 0
    failures: int = 0
    """Failed calls, rejected replies and faults of the model."""
    recovered_same_call: int = 0
    """Failures after which the same call succeeded, or the model replied properly."""
    recovered_worked_round: int = 0
    """Failures after which another call for the same target succeeded."""
    coherence_violations: int = 0
    escalations: int = 0
    cost: float | None = 0.0
    tokens: int = 0
    started_at: float = 0.0
    ended_at: float = 0.0
    """Of the last event."""
    events: int = 0
    size: int = 0
    changed_ns: int = 0
    """When the journal changed: shows whether this row is up to date."""
    parent: str = ""
    parent_seq: int = 0
    problem: str = ""
    """Why the journal cannot be read, or no further; the counts are of what can."""

    @property
    def outcome_in_words(self) -> str:
        """As people read it, also that the session cannot be read, or that no run has come to its end."""
        return "damaged" if self.problem else self.outcome.replace("_", " ") or "unfinished"

    @property
    def is_worth_listing(self) -> bool:
        """A session in which nothing was said is not; one that is not indexed yet, or cannot be read, may be."""
        return bool(self.runs or self.problem or self.parent or not self.events)

    @property
    def recoveries(self) -> int:
        """Failures that were recovered, in either way."""
        return self.recovered_same_call + self.recovered_worked_round

    @property
    def unrecovered(self) -> int:
        """Failures that nothing has recovered."""
        return self.failures - self.recoveries

    @property
    def error_rate(self) -> float | None:
        """The share of failed calls; None if there was no call."""
        return _rate(self.tool_errors, self.tool_calls)

    @property
    def recovery_rate(self) -> float | None:
        """The share of recovered failures; None if nothing failed."""
        return _rate(self.recoveries, self.failures)

    @property
    def partial_answer_rate(self) -> float | None:
        """The share of partial answers; None if no run ended."""
        return _rate(self.partial_answers, self.endings)


def _rate(part: int, whole: int) -> float | None:
    return part / whole if whole else None


_COUNTED = (
    "model_retries",
    "model_faults",
    "tool_calls",
    "tool_errors",
    "failures",
    "recovered_same_call",
    "recovered_worked_round",
    "coherence_violations",
    "escalations",
)
"""The sums of a row over the metrics of its runs, by the same names."""


@dataclass(frozen=True)
class _Sums:
    """A row that grows, with the sums of the runs that are over, and the counters of the run that goes on."""

    row: SessionRow
    run: Metrics = field(default_factory=Metrics)

    def with_run(self) -> SessionRow:
        """The row with the counters of the run."""
        return evolve(
            self.row, **{name: getattr(self.row, name) + getattr(self.run, name) for name in _COUNTED}
        )


def summarise(folder: Path) -> tuple[SessionRow, list[SearchText]]:
    """The row and the passages of the session in `folder`: of a damaged one as far as it can be read, with the reason
    why no further.
    """
    path = folder / JOURNAL_NAME
    try:
        found = path.stat()
    except OSError as fault:
        return SessionRow(folder.name, problem=f"there is no journal ({fault.strerror})"), []
    blank = SessionRow(
        folder.name, size=found.st_size, changed_ns=found.st_mtime_ns, ended_at=found.st_mtime_ns / 1e9
    )
    passages: list[SearchText] = []
    try:
        source = JournalIndex(path, salvage=True)
        row, damage = _summed(source, blank, passages)
    except SessionError as error:
        row, damage = blank, error
    else:
        damage = damage or source.damage
    problem = "" if damage is None else str(damage).replace(str(path), path.name)
    return evolve(row, problem=problem), passages


def _summed(
    source: EventSource, row: SessionRow, passages: list[SearchText]
) -> tuple[SessionRow, SessionError | None]:
    """The row of what can be read, and why no more of it can."""
    sums, length, damage = _Sums(row), len(source), None
    for number, kind in enumerate(source.kinds, 1):
        if kind not in _READ:
            continue
        try:
            event = source.event(number)
        except SessionError as error:
            length, damage = number - 1, error
            break
        passages.extend(_passages(event.placed if isinstance(event, events.LaneEvent) else event))
        row = sums.with_run() if kind == "run_started" else sums.row
        handler = _HANDLERS.get(type(event))
        if handler is not None:
            row = evolve(row, **handler(row, event))
        sums = _Sums(row, sums.run.apply(event))
    usage = sums.run.session_usage
    row = evolve(
        sums.with_run(),
        cost=usage.cost,
        tokens=usage.prompt_tokens + usage.completion_tokens,
        events=length,
        ended_at=source.at(length) if length else row.ended_at,
    )
    return row, damage


Changes = dict[str, Any]


def _session_started(row: SessionRow, event: events.SessionStarted) -> Changes:
    changes: Changes = {
        "title": event.title,
        "workspace": event.workspace,
        "source": event.source,
        "started_at": event.at,
    }
    if event.parent is not None:
        changes |= {"parent": event.parent.session_id, "parent_seq": event.parent.seq}
    return changes


def _run_started(row: SessionRow, event: events.RunStarted) -> Changes:
    return {
        "runs": row.runs + 1,
        "policy": event.policy,
        "model": event.model,
        "outcome": "",
        "title": row.title or title_of(event.task),
    }


def _run_finished(row: SessionRow, event: events.RunFinished) -> Changes:
    return {
        "outcome": event.outcome.value,
        "endings": row.endings + 1,
        "partial_answers": row.partial_answers + (event.outcome is events.Outcome.PARTIAL),
    }


def _setting_changed(row: SessionRow, event: events.SettingChanged) -> Changes:
    return {event.setting: event.value} if event.setting in {"policy", "model"} else {}


_HANDLERS: dict[type[events.Event], Callable[[SessionRow, Any], Changes]] = {
    events.SessionStarted: _session_started,
    events.RunStarted: _run_started,
    events.SettingChanged: _setting_changed,
    events.TitleChanged: lambda _, event: {"title": event.title},
    events.RunFinished: _run_finished,
    events.IterationFinished: lambda row, _: {"iterations": row.iterations + 1},
}


def _passages(event: events.Event) -> Iterator[SearchText]:
    match event:
        case events.RunStarted():
            yield SearchText(event.seq, "operator", event.task)
        case events.OperatorSpoke():
            yield SearchText(event.seq, "operator", event.text)
        case events.OwnCommandEnded():
            yield SearchText(event.seq, "operator", f"$ {event.command}\n{event.printed}")
        case events.EscalationAnswered() if event.text:
            yield SearchText(event.seq, "operator", event.text)
        case events.ReplyFinished():
            if event.text:
                yield SearchText(event.seq, "model", event.text)
            for call in event.calls:
                yield SearchText(event.seq, "model", f"{call.name} {call.arguments}")
        case events.ToolFailed():
            yield SearchText(event.seq, "error", f"{event.tool}: {event.failure.message}")
        case events.ModelFaulted():
            yield SearchText(event.seq, "error", event.fault.message)
        case events.RunFinished() if event.answer:
            yield SearchText(event.seq, "model", event.answer)
        case events.TitleChanged():
            yield SearchText(event.seq, "title", event.title)
        case _:
            return


# All others are skipped without being parsed.
_READ = frozenset(
    {
        *(
            "session_started",
            "run_started",
            "setting_changed",
            "title_changed",
            "run_finished",
            "operator_spoke",
            "own_command_ended",
        ),
        *("iteration_finished", "reply_finished", "tool_succeeded", "tool_failed", "model_faulted"),
        *("reply_rejected", "escalation_raised", "escalation_answered"),
        *("model_call_started", "coherence_repaired", "lane_event"),
    }
)
