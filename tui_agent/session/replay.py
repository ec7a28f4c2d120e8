"""Replay: the state of a saved session at any event, in milliseconds wherever that is.

The session is folded through once, at opening or behind a first picture, keeping a snapshot of the state every few
hundred events; snapshots share their logs (`append_log`), so they cost little, and a seek folds from the one before.
Nothing here draws, and no clock is read: the player asks how long to wait.
"""

from __future__ import annotations

import threading
from array import array
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from tui_agent.core.events import RESULT_TYPES, Event, LaneEvent, Level, VerdictReached
from tui_agent.core.fold import apply
from tui_agent.core.recovery.cognition import CognitiveState
from tui_agent.core.state import RunState
from tui_agent.session.rewind import KeptCheckpoint, kept_then
from tui_agent.store.errors import JournalError
from tui_agent.store.journal_index import EventList, EventSource, JournalIndex
from tui_agent.store.no_collection import no_collection

SPACING = 400
"""Events between snapshots, at least: a seek folds about this many in the worst case."""

_RECENT = 8
"""States kept behind the last snapshot."""
LONGEST_DELAY = 2.0
"""Seconds that an idle time is shortened to."""


class StopAt(StrEnum):
    """Kinds of places to jump to."""

    ERROR = "error"
    """A failed call, a rejected reply, a model fault."""
    VERDICT = "verdict"
    """Any verdict stronger than `continue`."""
    ESCALATION = "escalation"
    """A question to the operator, of the run or of a sub-agent: a verdict's, an approval, a server's."""
    ITERATION = "iteration"
    RUN = "run"


class VerdictMark(NamedTuple):
    """A verdict on the scrubber."""

    position: int
    level: Level


class ConfidencePoint(NamedTuple):
    """The confidence from `position` on."""

    position: int
    confidence: float


@dataclass(frozen=True)
class Marks:
    """Marks of the scrubber along the session; positions count events from 1."""

    errors: Sequence[int] = ()
    escalations: Sequence[int] = ()
    iterations: Sequence[int] = ()
    runs: Sequence[int] = ()
    verdicts: tuple[VerdictMark, ...] = ()
    confidence: tuple[ConfidencePoint, ...] = ()


_STOPS: dict[str, StopAt] = {
    "tool_failed": StopAt.ERROR,
    "reply_rejected": StopAt.ERROR,
    "model_faulted": StopAt.ERROR,
    "escalation_raised": StopAt.ESCALATION,
    "approval_asked": StopAt.ESCALATION,
    "server_asked": StopAt.ESCALATION,
    "iteration_started": StopAt.ITERATION,
    "run_started": StopAt.RUN,
}

_QUESTIONS = frozenset(kind for kind, stop in _STOPS.items() if stop is StopAt.ESCALATION)

_SNAPSHOT_AFTER = frozenset({"note_prepared", "iteration_finished", "run_finished", "run_started"})
# Events between which a reply may stream; a delta matters to later states only if no whole reply takes its
# place. A snapshot holds what has streamed up to it.
_REPLY_BOUNDS = _SNAPSHOT_AFTER | {
    "model_call_started",
    "reply_finished",
    "model_faulted",
    "iteration_started",
    "rewound",
}
# Positions of marks for the scrubber: a stop, a verdict, or (the others) a change of the confidence.
_COLLECTED = frozenset(
    {
        *_STOPS,
        "session_started",
        "verdict_reached",
        "iteration_finished",
        "reply_finished",
        "escalation_answered",
        "lane_event",
    }
)


@dataclass
class _Collected:
    """The findings of one pass over the session."""

    stops: dict[StopAt, array[int]] = field(default_factory=lambda: {stop: array("L") for stop in StopAt})
    verdicts: list[VerdictMark] = field(default_factory=list)
    confidence: list[ConfidencePoint] = field(default_factory=list)

    def forget(self, position: int) -> None:
        """Nothing was found behind this position."""
        for places in self.stops.values():
            del places[bisect_right(places, position) :]
        for marks in (self.verdicts, self.confidence):
            del marks[bisect_right(marks, position, key=_position) :]


def _position(mark: VerdictMark | ConfidencePoint) -> int:
    return mark.position


class Replay:
    """A session as far as it was when it was opened, or `read_on`. Positions run from 0 (nothing) to `length`."""

    def __init__(self, source: EventSource) -> None:
        self._source = source
        self.length = len(source)
        self.dropped_bytes = source.dropped_bytes
        self._skipped = self._superseded()
        self._places = [0]
        self._snapshots = [RunState()]
        self._found = _Collected()
        self._here = (0, self._snapshots[0])
        self._recent: deque[tuple[int, RunState]] = deque(maxlen=_RECENT)
        """The newest places of which a snapshot could be made: what grows is gone on with from there."""
        self._front = (0, self._snapshots[0])
        """The position up to which the session was folded; exact only at snapshots."""
        self.damage: JournalError | None = None
        self._lock = threading.RLock()

    @classmethod
    def open(
        cls, path: Path, progress: Callable[[float], None] | None = None, *, prepare: bool = True
    ) -> Replay:
        """A session folder or journal file. `progress` is called with parts of 1. Raises `JournalError`.

        Without `prepare` the first state is there sooner, and a first look far ahead takes longer: call `prepare`
        in a thread then, while the first picture is on the screen.
        """
        replay = cls(JournalIndex(path))
        if prepare:
            replay.prepare(progress)
        return replay

    @classmethod
    def of(cls, events: Sequence[Event]) -> Replay:
        """Events that are in memory, numbered from 1 without gaps (an imported transcript)."""
        replay = cls(EventList(events))
        replay.prepare()
        return replay

    # --- looking ---------------------------------------------------------------------------------------------

    def read_on(self) -> bool:
        """Take up what was written since; whether there was anything. Raises `JournalError`."""
        with self._lock:
            if not self._source.read_on():
                return False
            self.length = len(self._source)
            self._skipped = self._superseded()
            return True

    def event(self, position: int) -> Event:
        """The event that leads from `position - 1` to `position`. Raises `IndexError` outside 1..length."""
        if not 1 <= position <= self.length:
            raise IndexError(f"event {position} of {self.length}")
        return self._source.event(position)

    def kind(self, position: int) -> str:
        """The type of the event that leads to `position`; empty for position 0."""
        return self._source.kinds[position - 1] if position else ""

    @property
    def reached(self) -> int:
        """The position up to which any seek is quick; beyond it, the events between are folded first."""
        return self._front[0]

    @property
    def ready(self) -> bool:
        """The whole session was folded through."""
        return self._front[0] >= self.length

    def state_at(self, position: int) -> RunState:
        """The state after `position` events; positions outside the session are brought inside.

        Up to `reached` it does not wait for a `prepare` in another thread. Called from one thread only.
        Raises `JournalError` if a line turns out to be damaged (see `end_before`).
        """
        position = min(max(position, 0), self.length)
        if self._front[0] < position:
            with self._lock:
                self._fold_to(position)
        return self._state_at(position)

    def kept_then(self, position: int) -> KeptCheckpoint | None:
        """The checkpoint that shows the workspace as it was at `position`; None if none was kept."""
        return kept_then(self._source, position)

    def follow(self, source: EventList, stand: int, new: Sequence[Event]) -> None:
        """The source has other events behind the first `stand`. Safe while another thread prepares."""
        with self._lock:
            source.follow(stand, new)
            while len(self._places) > 1 and self._places[-1] > stand:
                self._places.pop()
                self._snapshots.pop()
            while self._recent and self._recent[-1][0] > stand:
                self._recent.pop()
            exact = self._recent[-1] if self._recent else (self._places[-1], self._snapshots[-1])
            if self._front[0] > stand:
                self._front = exact
                self._found.forget(exact[0])
            if self._here[0] > stand:
                self._here = exact
            self.length = len(self._source)
            self._skipped[stand + 1 :] = bytes(self.length - stand)

    def end_before(self, damage: JournalError) -> None:
        """Leave out the damaged event and all that follows it; `damage.line` is its number."""
        with self._lock:
            self.length = min(self.length, max(0, damage.line - 1))
            self.damage = damage

    def _state_at(self, position: int) -> RunState:
        place = bisect_right(self._places, position) - 1
        start, state = self._places[place], self._snapshots[place]
        here, here_state = self._here
        if start <= here <= position:
            start, state = here, here_state
        for number in range(start + 1, position + 1):
            state = apply(state, self._source.event(number))
        self._here = (position, state)
        return state

    def next(self, position: int, stop: StopAt, *, back: bool = False) -> int | None:
        """The nearest place of this kind after `position` (before it, with `back`); None if there is none.

        Folds the whole session through if the answer needs it (see `can_tell`).
        """
        if not self.can_tell(position, stop, back=back):
            self.prepare()
        return self._nearest(position, stop, back)

    def can_tell(self, position: int, stop: StopAt, *, back: bool = False) -> bool:
        """True if `next` answers at once."""
        if back or self.ready:
            return position <= self.reached
        return self._nearest(position, stop, back) is not None

    def _nearest(self, position: int, stop: StopAt, back: bool) -> int | None:
        places = self._found.stops[stop]
        if back:
            index = bisect_left(places, position) - 1
            return places[index] if index >= 0 else None
        index = bisect_right(places, position)
        return places[index] if index < len(places) and places[index] <= self.length else None

    def marks(self) -> Marks:
        """Everything for the scrubber."""
        self.prepare()
        found = self._found
        return Marks(
            errors=found.stops[StopAt.ERROR],
            escalations=found.stops[StopAt.ESCALATION],
            iterations=found.stops[StopAt.ITERATION],
            runs=found.stops[StopAt.RUN],
            verdicts=tuple(found.verdicts),
            confidence=tuple(found.confidence),
        )

    def at(self, position: int) -> float:
        """When the event at `position` happened, in seconds since the epoch; for 0, the first event."""
        return self._source.at(max(position, 1))

    def delay(self, position: int, longest: float = LONGEST_DELAY) -> float:
        """Seconds between this position and the next event as recorded, shortened to `longest`; 0 at the end."""
        if not 1 <= position < self.length:
            return 0.0
        return min(max(self._source.at(position + 1) - self._source.at(position), 0.0), longest)

    # --- opening ---------------------------------------------------------------------------------------------

    def prepare(self, progress: Callable[[float], None] | None = None) -> None:
        """Fold the whole session through, so that any seek is quick. May run in a thread of its own.

        What `progress` raises ends it; so does the `JournalError` of a damaged line. It can be called again.
        """
        if self._front[0] >= self.length:
            return
        with no_collection():
            while (done := self._front[0]) < self.length:
                with self._lock:
                    self._fold_to(min(done + SPACING, self.length))
                if progress is not None:
                    progress(self._front[0] / self.length)

    def _fold_to(self, position: int) -> None:
        source, skipped = self._source, self._skipped
        front, state = self._front
        try:
            for number in range(front + 1, position + 1):
                if not skipped[number]:
                    kind = source.kinds[number - 1]
                    event = source.event(number)
                    state = apply(state, event)
                    if kind in _COLLECTED:
                        self._collect(number, kind, event, state)
                    if kind in _SNAPSHOT_AFTER:
                        self._recent.append((number, state))
                        if number - self._places[-1] >= SPACING:
                            # In this order: a seek in another thread looks for the place first.
                            self._snapshots.append(state)
                            self._places.append(number)
                front = number
        finally:
            self._front = (front, state)

    def _superseded(self) -> bytearray:
        """Which events can be left out while folding through: pieces of replies and outputs that arrived whole.

        After the `ReplyFinished`, or the call's result, that follows, the state is the same with and without them;
        that is when the next snapshot may be taken at the earliest.
        """
        skipped = bytearray(self.length + 1)
        deltas: list[int] = []
        outputs: dict[object, list[int]] = {}
        streaming = False
        for number, kind in enumerate(self._source.kinds, 1):
            if kind == "reply_delta":
                deltas.append(number)
            elif kind == "tool_progress":
                outputs.setdefault(self._source.call_id(number), []).append(number)
            elif kind in RESULT_TYPES:
                arrived = outputs.pop(self._source.call_id(number), ()) if outputs else ()
                # What an interrupted call had written stands nowhere else.
                for piece in arrived if kind != "tool_cancelled" else ():
                    skipped[piece] = 1
            elif kind in _REPLY_BOUNDS:
                if streaming and kind == "reply_finished":
                    for delta in deltas:
                        skipped[delta] = 1
                deltas.clear()
                outputs.clear()
                streaming = kind == "model_call_started"
        return skipped

    def _collect(self, number: int, kind: str, event: Event, state: RunState) -> None:
        if isinstance(event, LaneEvent):
            kind = event.event.type
            stop = _STOPS.get(kind) if kind in _QUESTIONS else None
        else:
            stop = None if state.metrics.incidents.answer(event) else _STOPS.get(kind)
        if stop is not None:
            self._found.stops[stop].append(number)
        elif isinstance(event, VerdictReached) and event.level is not Level.CONTINUE:
            self._found.stops[StopAt.VERDICT].append(number)
            self._found.verdicts.append(VerdictMark(number, event.level))
        curve = self._found.confidence
        confidence = state.recovery.of(CognitiveState).confidence
        if not curve or curve[-1].confidence != confidence:
            curve.append(ConfidencePoint(number, confidence))
