"""A session that somebody else writes, as events of ours: followed line by line, judged, sub-agents as lanes.

The newest events may still change: a reply that looked like the end goes on, a call gets its result, the operator goes
back. Whoever shows them is told how many stand. Nothing here waits or reads a clock.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args

from tui_agent.core import events
from tui_agent.core.events.lanes import LaneStep
from tui_agent.core.recovery.policy import RecoveryPolicy
from tui_agent.formats.importers.growing import Growing
from tui_agent.formats.importers.judgement import GrowingJudgement, is_judgement
from tui_agent.formats.importers.load import DEFAULT_POLICY
from tui_agent.formats.importers.normalise import GrowingFacts
from tui_agent.formats.importers.own import OwnSession
from tui_agent.formats.importers.step_reader import Format
from tui_agent.formats.importers.transcript import Remarked, Transcript, TranscriptError
from tui_agent.store.no_collection import no_collection

POLL = 0.05
"""Seconds between two looks at a session's files."""
QUIET = 1.0
"""Seconds without news after which a reply without calls is taken for an answer."""
_LANE_STEPS: tuple[type[events.Event], ...] = get_args(get_args(LaneStep)[0])


@dataclass
class _Lane:
    """One conversation of the session."""

    transcript: Transcript
    facts: GrowingFacts
    judgement: GrowingJudgement
    placed: list[int] = field(default_factory=list)
    """The index of each of its events among those of the session, from 0."""
    stand: int = 0

    def read(self, *, settled: bool) -> None:
        self.stand = self.facts.update(settled=settled)

    def judge(self) -> None:
        self.stand = self.judgement.update(self.facts.events, self.stand)


class Watched:
    """One session. `update` is asked again and again; `events` are numbered from 1 without gaps."""

    def __init__(
        self,
        path: Path,
        policy: str | RecoveryPolicy = DEFAULT_POLICY,
        *,
        rejudge: bool = False,
        operator_present: bool | None = None,
        within: Path | None = None,
        on_facts: Callable[[Sequence[events.Event]], object] | None = None,
    ) -> None:
        """`rejudge`: sessions of ours too, which otherwise keep the verdicts that they had. `operator_present`: whether
        somebody is there to ask; None: as the session says. `within`: the folder that no link may lead out of.
        `on_facts` gets what is there when a session is begun, before it is judged, which takes longest.
        """
        self.path = path
        self.policy = policy
        self.rejudge = rejudge
        self.operator_present = operator_present
        self.on_facts = on_facts
        self.events: list[events.Event] = []
        self._growing = Growing(path, within)
        self._reader: Format | None = None
        self._lanes: list[_Lane] = []
        self._own: GrowingJudgement | None = None
        self._own_facts: list[events.Event] = []
        self._taken = 0
        self._changed = 0.0
        self._settled = False

    @property
    def agent(self) -> str:
        """Whose session it is; empty: not known yet."""
        return "" if self._reader is None else self._reader.name

    @property
    def is_own(self) -> bool:
        """It is a session of ours, or one that our hooks keep."""
        return isinstance(self._reader, OwnSession)

    @property
    def session_id(self) -> str:
        """As its agent calls it."""
        if self._reader is None:
            return ""
        if isinstance(self._reader, OwnSession) and isinstance(
            first := self._reader.events[0], events.SessionStarted
        ):
            return first.session_id
        return self._reader.transcript.id

    @property
    def title(self) -> str:
        """As its agent calls it, else the first task."""
        if self._reader is not None and self._reader.lanes and (title := self._reader.lanes[0].title):
            return title
        return next((event.task for event in self.events[:50] if isinstance(event, events.RunStarted)), "")

    @property
    def fault(self) -> TranscriptError | None:
        """Why nothing can be shown yet."""
        return self._growing.fault

    def update(self, now: float) -> int | None:
        """Read on, and give how many of the events stand as they were, or None if there is nothing new.
        `now`: in seconds since the epoch. Raises `TranscriptError`.
        """
        news = self._growing.read()
        reader = self._growing.reader
        if reader is None:
            return None
        if news:
            self._changed = now if self._reader is reader else self._growing.modified
        settled = now - self._changed >= QUIET
        if not news and (settled == self._settled or self.is_own):
            return None
        self._settled = settled
        begun = reader is not self._reader
        self._reader = reader
        if begun:
            self._begin()
        with no_collection() if begun else nullcontext():
            stand = self._own_events(reader) if isinstance(reader, OwnSession) else self._foreign(reader)
        return 0 if begun else stand

    def _begin(self) -> None:
        self.events.clear()
        self._lanes.clear()
        self._own_facts.clear()
        self._taken = 0
        self._own = GrowingJudgement(self.policy, self.operator_present) if self.rejudge else None

    def _own_events(self, reader: OwnSession) -> int:
        new = reader.events[self._taken :]
        self._tell(new, begun=not self._taken)
        self._taken = len(reader.events)
        if self._own is None:
            stand = len(self.events)
            self.events += new
            return stand
        known = len(self._own_facts)
        self._own_facts += [event for event in new if not is_judgement(event)]
        stand = self._own.update(self._own_facts, known)
        self.events[stand:] = self._own.events[stand:]
        return stand

    def _foreign(self, reader: Format) -> int:
        runs = [one for one in reader.lanes if not one.subagent]
        main = runs[-1] if runs else reader.transcript
        if self._lanes and self._lanes[0].transcript is not main:
            self._begin()
        known = {id(lane.transcript) for lane in self._lanes}
        followed = [main, *(one for one in reader.lanes if one.subagent)]
        self._lanes += [self._lane(one, reader) for one in followed if id(one) not in known]
        self._say_loss(main)
        for lane in self._lanes:
            lane.read(settled=self._settled)
        self._tell(self._lanes[0].facts.events, begun=not self.events)
        for lane in self._lanes:
            lane.judge()
        return self._place()

    def _tell(self, facts: Sequence[events.Event], *, begun: bool) -> None:
        if begun and self.on_facts is not None:
            self.on_facts(facts)

    @property
    def loss(self) -> str:
        """A sentence about what is not read or not known of it, if that is too much; else ""."""
        return "" if self._reader is None else self._reader.report.loss

    def _say_loss(self, main: Transcript) -> None:
        if not (self._settled and self.loss):
            return
        if not any(isinstance(step, Remarked) and step.severity == "warning" for step in main.steps):
            main.steps.append(Remarked(self.loss, severity="warning"))

    def _lane(self, transcript: Transcript, reader: Format) -> _Lane:
        facts = GrowingFacts(
            transcript,
            session_id=transcript.id or self.path.stem,
            source=reader.name,
            base_at=self._growing.modified,
        )
        present = self.operator_present
        if present is None and transcript.subagent:
            present = reader.transcript.operator_present
        return _Lane(transcript, facts, GrowingJudgement(self.policy, present, asks=True))

    def _place(self) -> int:
        """Put what is new in the lanes behind what stands, in the order of time; how many events stand."""
        cut = len(self.events)
        for lane in self._lanes:
            cut = min([cut, *lane.placed[lane.stand : lane.stand + 1]])
        del self.events[cut:]
        waiting = []
        for place, lane in enumerate(self._lanes):
            while lane.placed and lane.placed[-1] >= cut:
                lane.placed.pop()
            waiting.append(self._waiting(lane, place))
        for _, place, event in heapq.merge(*waiting, key=lambda one: one[:2]):
            lane = self._lanes[place]
            lane.placed.append(len(self.events))
            if place == 0:
                number = len(self.events) + 1
                self.events.append(event if event.seq == number else event.stamped(number, event.at))
            elif isinstance(event, _LANE_STEPS):
                self.events.append(self._in_lane(lane.transcript, event))
        return cut

    @staticmethod
    def _waiting(lane: _Lane, place: int) -> Iterator[tuple[float, int, events.Event]]:
        return ((event.at, place, event) for event in lane.judgement.events[len(lane.placed) :])

    def _in_lane(self, transcript: Transcript, event: events.Event) -> events.LaneEvent:
        name = transcript.title.removeprefix("subagent: ") or transcript.lane
        at = max(event.at, self.events[-1].at if self.events else 0.0)
        wrapped = {"lane": transcript.lane, "name": name, "event": event}
        return events.LaneEvent.model_validate({"seq": len(self.events) + 1, "at": at, **wrapped})
