"""A session retold for readers: runs, their entries in order, the curve of confidence, and the sums.

The one place where exports for people fold the events; Markdown and HTML only draw what is here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tui_agent import events as e
from tui_agent.folds.conversation import CallEntry, Entry, NoticeEntry, OperatorEntry, OutcomeEntry
from tui_agent.sessions.export.plain import arguments_text
from tui_agent.state import RunState, apply

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tui_agent.folds.timeline import TimelineLine


@dataclass(frozen=True)
class NoteItem:
    """What the model was told, or would have been told, before the next call."""

    seq: int
    text: str
    edited: bool


@dataclass(frozen=True)
class VerdictItem:
    """A verdict above `continue`."""

    seq: int
    iteration: int
    level: e.Level
    detector: str
    reason: str
    others: tuple[e.VerdictRecord, ...]


@dataclass(frozen=True)
class IterationItem:
    """An iteration begins."""

    seq: int
    number: int


Item = Entry | NoteItem | VerdictItem | IterationItem


@dataclass(frozen=True)
class Sample:
    """Confidence after an iteration, and what happened in it (for the marks on the curve)."""

    step: int
    """Iterations of the whole session, from 1."""
    run: int
    iteration: int
    confidence: float
    level: e.Level
    failed: bool


@dataclass
class RunStory:
    """One run, from the operator's message to its outcome."""

    number: int
    task: str
    policy: str
    model: str
    at: float
    items: list[Item] = field(default_factory=list)
    outcome: OutcomeEntry | None = None
    iterations: int = 0
    model_calls: int = 0
    tool_calls: int = 0
    failures: int = 0
    """Of tools, of replies and of the model."""
    recoveries: int = 0
    escalations: int = 0
    duration: float = 0.0


@dataclass
class Story:
    """The session."""

    state: RunState
    before: list[Item]
    """What stands before the first run."""
    runs: list[RunStory]
    samples: list[Sample]
    timeline: list[TimelineLine]
    iterations: int
    """Over all runs."""

    @property
    def title(self) -> str:
        """The session's title, or its id."""
        return self.state.session.title or self.state.session.id or "Session"


def tell(events: Iterable[e.Event]) -> Story:
    """Fold the events once and keep what a reader wants to see."""
    teller = _Teller()
    for event in events:
        teller.take(event)
    return Story(
        teller.state,
        teller.before,
        teller.runs,
        teller.samples,
        told_once(teller.state.timeline.lines),
        teller.step,
    )


def told_once(lines: Iterable[TimelineLine]) -> list[TimelineLine]:
    """The timeline without remarks that go on unchanged: `continue` is told when it begins, not in every
    iteration.
    """
    told: list[TimelineLine] = []
    calm = False
    for line in lines:
        if line.level is not None:
            was_calm, calm = calm, line.level is e.Level.CONTINUE
            if was_calm and calm:
                continue
        told.append(line)
    return told


class _Teller:
    """Entries of the conversation as they close, with verdicts and notes where they were made."""

    def __init__(self) -> None:
        self.state = RunState()
        self.before: list[Item] = []
        self.runs: list[RunStory] = []
        self.samples: list[Sample] = []
        self.taken = 0
        self.failed = False
        self.step = 0

    def take(self, event: e.Event) -> None:
        self.state = apply(self.state, event)
        if isinstance(event, e.RunStarted):
            self.runs.append(RunStory(event.run, event.task, event.policy, event.model, event.at))
        items = self.runs[-1].items if self.runs else self.before
        self._entries(items)
        match event:
            case e.IterationStarted():
                items.append(IterationItem(event.seq, event.iteration))
                self.step += 1
                self.failed = False
            case e.ToolFailed() | e.ReplyRejected() | e.ModelFaulted():
                self.failed = True
            case e.VerdictReached():
                self._verdict(event, items)
            case e.NotePrepared() if event.text:
                items.append(NoteItem(event.seq, event.text, event.edited))
            case e.RunFinished() if self.runs:
                self._finished(event)

    def _entries(self, items: list[Item]) -> None:
        """Entries that closed with this event. The task opens its run and is not repeated in it."""
        log = self.state.conversation.entries
        new = log.tail(self.taken)
        self.taken = len(log)
        for entry in new:
            if isinstance(entry, OutcomeEntry) and self.runs:
                self.runs[-1].outcome = entry
            elif not (isinstance(entry, OperatorEntry) and entry.iteration == 0 and self._is_task(entry)):
                items.append(entry)

    def _is_task(self, entry: OperatorEntry) -> bool:
        return bool(self.runs) and not self.runs[-1].items and entry.text == self.runs[-1].task

    def _verdict(self, event: e.VerdictReached, items: list[Item]) -> None:
        confidence = float(self.state.recovery.cognition.confidence)
        run = self.runs[-1].number if self.runs else 0
        self.samples.append(Sample(self.step, run, event.iteration, confidence, event.level, self.failed))
        if event.level is e.Level.CONTINUE:
            return
        others = tuple(
            record
            for record in event.verdicts
            if record.level is not e.Level.CONTINUE and record.detector != event.detector
        )
        items.append(
            VerdictItem(event.seq, event.iteration, event.level, event.detector, event.reason, others)
        )

    def _finished(self, event: e.RunFinished) -> None:
        run, metrics = self.runs[-1], self.state.metrics
        run.iterations = self.state.run.iteration
        run.model_calls = metrics.model_calls
        run.tool_calls = metrics.tool_calls
        run.failures = metrics.failures
        run.recoveries = metrics.recoveries
        run.escalations = metrics.escalations
        run.duration = max(event.at - run.at, 0.0)


def call_state(call: CallEntry) -> str:
    """A call's end in one word, for people."""
    return {"denied": "denied", "blocked": call.refusal or "blocked"}.get(str(call.state), str(call.state))


_SUBJECTS = (
    "command",
    "cmd",
    "file_path",
    "path",
    "pattern",
    "query",
    "url",
    "question",
    "arguments",
    "lines",
)


def subject(call: CallEntry) -> str:
    """What a call is about, for one line: its command, path or the like, else its whole input."""
    for name in _SUBJECTS:
        value = call.input.get(name)
        if isinstance(value, str) and value:
            return value
    return arguments_text(call.input) if call.input else call.arguments


def facts(story: Story) -> list[tuple[str, str]]:
    """The session's head: names and values, in the order in which they are shown."""
    state = story.state
    usage = state.metrics.session_usage
    rows: list[tuple[str, Any]] = [
        ("Session", state.session.id),
        ("Source", state.session.source),
        ("Workspace", state.session.workspace),
        ("Model", state.run.model),
        ("Policy", state.run.policy),
        ("Runs", len(story.runs)),
        ("Tool calls", sum(run.tool_calls for run in story.runs)),
        ("Failures", sum(run.failures for run in story.runs)),
        ("Recovered", sum(run.recoveries for run in story.runs)),
    ]
    if usage.prompt_tokens or usage.completion_tokens:
        rows.append(("Tokens", f"{usage.prompt_tokens:,} in, {usage.completion_tokens:,} out"))
        rows.append(("Cost", "unknown" if usage.cost is None else f"{usage.cost:.4f} USD"))
    if state.session.parent is not None:
        parent = state.session.parent
        rows.append(("Forked from", f"{parent.session_id} at event {parent.seq}"))
    return [(name, str(value)) for name, value in rows if value != ""]


def notices(items: Iterable[Item]) -> list[NoticeEntry]:
    """The notices among `items`."""
    return [item for item in items if isinstance(item, NoticeEntry)]
