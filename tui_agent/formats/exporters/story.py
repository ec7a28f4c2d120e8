"""A session for readers: runs, their entries in order, the curve of confidence, and the sums.

Exports for people fold the events here and nowhere else; Markdown and HTML only draw the result.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from tui_agent.core import events
from tui_agent.core.fold import apply
from tui_agent.core.projections.entries import Entry, NoteEntry, OperatorEntry, OutcomeEntry
from tui_agent.core.projections.metrics import Metrics, Usage
from tui_agent.core.projections.timeline import TimelineLine
from tui_agent.core.recovery.cognition import CognitiveState
from tui_agent.core.state import RunState
from tui_agent.formats.exporters.wording import rate, without_repeats


@dataclass(frozen=True)
class NoteItem:
    """The recovery note for the next model call, sent or only prepared."""

    seq: int
    text: str
    edited: bool
    rules: tuple[str, ...] = ()


@dataclass(frozen=True)
class VerdictItem:
    """A verdict above `continue`."""

    seq: int
    iteration: int
    level: events.Level
    detector: str
    rule: str
    reason: str
    others: tuple[events.VerdictRecord, ...]


@dataclass(frozen=True)
class IterationItem:
    """An iteration begins."""

    seq: int
    number: int


Item = Entry | NoteItem | VerdictItem | IterationItem


@dataclass(frozen=True)
class Sample:
    """Cognition after an iteration, and the events in it (for the marks on the curve)."""

    step: int
    """Iterations of the whole session, from 1."""
    run: int
    iteration: int
    shown: float
    """The confidence, in [0, 1]."""
    level: events.Level
    failed: bool


@dataclass
class RunStory:
    """One run, from the operator's message to its outcome."""

    number: int
    policy: str
    model: str
    at: float
    task: str = ""
    items: list[Item] = field(default_factory=list)
    outcome: OutcomeEntry | None = None
    iterations: int = 0
    metrics: Metrics = field(default_factory=Metrics)
    duration: float = 0.0
    """In seconds."""

    @property
    def state(self) -> str:
        """The outcome's name; `open` if there is none."""
        return str(self.outcome.outcome) if self.outcome else "open"


@dataclass
class Story:
    """The session."""

    state: RunState
    before: list[Item]
    """The entries before the first run."""
    runs: list[RunStory]
    samples: list[Sample]
    timeline: list[TimelineLine]
    iterations: int
    """Over all runs."""

    def total(self, name: str) -> int:
        """The sum of a counter over all runs."""
        return sum(getattr(run.metrics, name) for run in self.runs)

    @property
    def title(self) -> str:
        """The session's title, or its id."""
        return self.state.session.title or self.state.session.id or "Session"


def story_of(recorded: Iterable[events.Event]) -> Story:
    """Fold the events once and keep what a reader wants to see."""
    builder = _StoryBuilder()
    for event in recorded:
        builder.take(event)
    return Story(
        builder.state,
        builder.before,
        builder.runs,
        builder.samples,
        without_repeats(builder.state.timeline.lines),
        builder.step,
    )


class _StoryBuilder:
    """Entries of the conversation as they close, with verdicts and notes at their places."""

    def __init__(self) -> None:
        self.state = RunState()
        self.before: list[Item] = []
        self.runs: list[RunStory] = []
        self.samples: list[Sample] = []
        self.taken = 0
        self.failed = False
        self.step = 0

    def take(self, event: events.Event) -> None:
        self.state = apply(self.state, event)
        if isinstance(event, events.RunStarted):
            self.runs.append(RunStory(event.run, event.policy, event.model, event.at))
        items = self.runs[-1].items if self.runs else self.before
        self._entries(event, items)
        match event:
            case events.IterationStarted():
                items.append(IterationItem(event.seq, event.iteration))
                self.step += 1
                self.failed = False
            case events.ToolFailed() | events.ReplyRejected() | events.ModelFaulted():
                self.failed = self.failed or self._fails(event)
            case events.VerdictReached():
                self._verdict(event, items)
            case events.NotePrepared() if event.text:
                items.append(NoteItem(event.seq, event.text, event.edited, event.rules))
            case events.RunFinished() if self.runs:
                self._finished(event)

    def _fails(self, event: events.ToolFailed | events.ReplyRejected | events.ModelFaulted) -> bool:
        sent_back = isinstance(event, events.ReplyRejected) and event.unverified
        return not sent_back and not self.state.metrics.incidents.answer(event)

    def _entries(self, event: events.Event, items: list[Item]) -> None:
        """Entries that closed with this event. The task opens its run and is not repeated in it."""
        log = self.state.conversation.entries
        new = log.tail(self.taken)
        self.taken = len(log)
        for entry in new:
            if isinstance(entry, OutcomeEntry) and self.runs:
                self.runs[-1].outcome = entry
            elif isinstance(entry, NoteEntry):
                continue  # The note stands at the place of its writing.
            elif isinstance(event, events.RunStarted) and isinstance(entry, OperatorEntry):
                self.runs[-1].task = entry.said
            else:
                items.append(entry)

    def _verdict(self, event: events.VerdictReached, items: list[Item]) -> None:
        shown = self.state.recovery.of(CognitiveState).confidence
        run = self.runs[-1].number if self.runs else 0
        self.samples.append(Sample(self.step, run, event.iteration, shown, event.level, self.failed))
        if event.level is events.Level.CONTINUE:
            return
        others = tuple(
            record
            for record in event.verdicts
            if record.level is not events.Level.CONTINUE and record.detector != event.detector
        )
        items.append(
            VerdictItem(
                event.seq, event.iteration, event.level, event.detector, event.rule, event.reason, others
            )
        )

    def _finished(self, event: events.RunFinished) -> None:
        run = self.runs[-1]
        run.iterations = self.state.run.iteration
        run.metrics = self.state.metrics
        run.duration = max(event.at - run.at, 0.0)


def _cached(usage: Usage) -> str:
    """The share of the prompts that the providers' caches held."""
    parts = [
        f"{count:,} {how}"
        for count, how in ((usage.cached_tokens, "from cache"), (usage.cache_write_tokens, "written to it"))
        if count
    ]
    return f" ({', '.join(parts)})" if parts else ""


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
        ("Tool calls", story.total("tool_calls")),
        ("Failed calls", rate(story.total("tool_errors"), story.total("tool_calls"))),
        ("Failures", story.total("failures")),
        ("Recovered by the same call", story.total("recovered_same_call")),
        ("Worked round", story.total("recovered_worked_round")),
        ("Recovery rate", rate(story.total("recoveries"), story.total("failures"))),
        ("Partial answers", sum(run.state == "partial" for run in story.runs)),
        ("Model retries", story.total("model_retries")),
        ("Repairs of requests", story.total("coherence_violations")),
    ]
    if usage.prompt_tokens or usage.completion_tokens:
        rows.append(
            ("Tokens", f"{usage.prompt_tokens:,} in{_cached(usage)}, {usage.completion_tokens:,} out")
        )
        rows.append(("Cost", "unknown" if usage.cost is None else f"{usage.cost:.4f} USD"))
    if state.session.parent is not None:
        parent = state.session.parent
        rows.append(("Forked from", f"{parent.session_id} at event {parent.seq}"))
    return [(name, str(value)) for name, value in rows if value != ""]
