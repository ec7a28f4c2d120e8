"""One session in a row: what the list shows of it, and what the search finds in it.

Read from the journal, event by event, without building the whole state: a list of thousands of sessions is made of
these. Where they are kept is `session_index`'s business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from tui_agent import events as e
from tui_agent.evolve import evolve
from tui_agent.folds.metrics import Metrics
from tui_agent.sessions.errors import SessionError
from tui_agent.sessions.journal import JOURNAL_NAME
from tui_agent.sessions.journal_index import EventSource, JournalIndex
from tui_agent.state import title_of


class Passage(NamedTuple):
    """Text that the search finds. `role`: operator, model, error or title."""

    seq: int
    role: str
    text: str


@dataclass(frozen=True)
class SessionRow:
    """What the list shows. Times in seconds since the epoch, `cost` in USD (None: not known), `size` in bytes."""

    id: str
    title: str = ""
    workspace: str = ""
    model: str = ""
    policy: str = ""
    source: str = ""
    outcome: str = ""
    """Of the newest run; empty while it goes on or was never finished."""
    runs: int = 0
    iterations: int = 0
    tool_calls: int = 0
    errors: int = 0
    """Failed tool calls."""
    failures: int = 0
    """Those, rejected replies and faults of the model."""
    recoveries: int = 0
    """How many of the failures were made good."""
    escalations: int = 0
    cost: float | None = 0.0
    tokens: int = 0
    started_at: float = 0.0
    ended_at: float = 0.0
    """Of the last event."""
    events: int = 0
    size: int = 0
    changed_ns: int = 0
    """The journal's time of change: tells whether this row is up to date."""
    parent: str = ""
    parent_seq: int = 0
    problem: str = ""
    """Why the journal cannot be read, where it cannot."""


class _Counts(NamedTuple):
    """What is summed over the runs of a session."""

    tool_calls: int = 0
    errors: int = 0
    failures: int = 0
    recoveries: int = 0
    escalations: int = 0

    def plus(self, run: Metrics) -> _Counts:
        """These and one more run's."""
        return _Counts(
            self.tool_calls + run.tool_calls,
            self.errors + run.tool_errors,
            self.failures + run.failures,
            self.recoveries + run.recoveries,
            self.escalations + run.escalations,
        )


@dataclass(frozen=True)
class _Sums:
    """A row that grows, and the counters of the run that goes on."""

    row: SessionRow
    run: Metrics = field(default_factory=Metrics)
    before: _Counts = field(default_factory=_Counts)
    """Of the finished runs."""


def summarise(folder: Path) -> tuple[SessionRow, list[Passage]]:
    """The row and the passages of the session in `folder`; one that cannot be read gets a row that says why."""
    path = folder / JOURNAL_NAME
    try:
        found = path.stat()
    except OSError as fault:
        return SessionRow(folder.name, problem=f"there is no journal ({fault.strerror})"), []
    blank = SessionRow(
        folder.name, size=found.st_size, changed_ns=found.st_mtime_ns, ended_at=found.st_mtime_ns / 1e9
    )
    passages: list[Passage] = []
    try:
        source = JournalIndex(path)
        row = _summed(source, blank, passages)
    except SessionError as error:
        return evolve(blank, problem=str(error)), passages
    return row, passages


def _summed(source: EventSource, row: SessionRow, passages: list[Passage]) -> SessionRow:
    sums = _Sums(row)
    for number, kind in enumerate(source.kinds, 1):
        if kind not in _READ:
            continue
        event = source.event(number)
        passages.extend(_passages(event))
        run = sums.run.apply(event)
        handler = _HANDLERS.get(type(event))
        changes = {} if handler is None else handler(sums.row, event)
        before = sums.before
        if kind == "run_started":
            before = before.plus(sums.run)
        sums = _Sums(evolve(sums.row, **changes) if changes else sums.row, run, before)
    usage = sums.run.session_usage
    return evolve(
        sums.row,
        **sums.before.plus(sums.run)._asdict(),
        cost=usage.cost,
        tokens=usage.prompt_tokens + usage.completion_tokens,
        events=len(source),
        ended_at=source.at(len(source)),
    )


Changes = dict[str, Any]


def _session_started(row: SessionRow, event: e.SessionStarted) -> Changes:
    changes: Changes = {
        "title": event.title,
        "workspace": event.workspace,
        "source": event.source,
        "started_at": event.at,
    }
    if event.parent is not None:
        changes |= {"parent": event.parent.session_id, "parent_seq": event.parent.seq}
    return changes


def _run_started(row: SessionRow, event: e.RunStarted) -> Changes:
    return {
        "runs": row.runs + 1,
        "policy": event.policy,
        "model": event.model,
        "outcome": "",
        "title": row.title or title_of(event.task),
    }


def _setting_changed(row: SessionRow, event: e.SettingChanged) -> Changes:
    return {event.setting: event.value} if event.setting in {"policy", "model"} else {}


_HANDLERS: dict[type[e.Event], Callable[[SessionRow, Any], Changes]] = {
    e.SessionStarted: _session_started,
    e.RunStarted: _run_started,
    e.SettingChanged: _setting_changed,
    e.TitleChanged: lambda _, event: {"title": event.title},
    e.RunFinished: lambda _, event: {"outcome": event.outcome.value},
    e.IterationFinished: lambda row, _: {"iterations": row.iterations + 1},
}


def _passages(event: e.Event) -> Iterator[Passage]:
    match event:
        case e.RunStarted():
            yield Passage(event.seq, "operator", event.task)
        case e.OperatorSpoke():
            yield Passage(event.seq, "operator", event.text)
        case e.EscalationAnswered() if event.text:
            yield Passage(event.seq, "operator", event.text)
        case e.ReplyFinished():
            if event.text:
                yield Passage(event.seq, "model", event.text)
            for call in event.calls:
                yield Passage(event.seq, "model", f"{call.name} {call.arguments}")
        case e.ToolFailed():
            yield Passage(event.seq, "error", f"{event.tool}: {event.failure.message}")
        case e.ModelFaulted():
            yield Passage(event.seq, "error", event.fault.message)
        case e.RunFinished() if event.answer:
            yield Passage(event.seq, "model", event.answer)
        case e.TitleChanged():
            yield Passage(event.seq, "title", event.title)
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
        ),
        *("iteration_finished", "reply_finished", "tool_succeeded", "tool_failed", "model_faulted"),
        *("reply_rejected", "escalation_raised", "escalation_answered"),
    }
)
