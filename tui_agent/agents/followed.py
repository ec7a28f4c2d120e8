"""The session that an agent writes while it runs here: found among its files, judged as if nobody were there to ask."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeGuard

from pydantic import BaseModel

from tui_agent.agents.dialects import DIALECTS
from tui_agent.config.profiles import Price
from tui_agent.core import events
from tui_agent.core.recovery.model_faults import ModelFaults
from tui_agent.core.recovery.policy import RecoveryPolicy
from tui_agent.formats.importers.normalise import RECORDING_ENDS
from tui_agent.formats.importers.transcript import TranscriptError
from tui_agent.models.catalogue import known
from tui_agent.models.usage import cost
from tui_agent.watch.places import sessions_of
from tui_agent.watch.watched import QUIET, Watched

_SEARCH = 1.0
"""Seconds between two searches for the session."""
_COARSE = 2.0
"""Seconds by which the time of a file may lag behind."""


class Lost(BaseModel, frozen=True):
    """A sub-agent that died. `told`: the agent that started it knows, by the failure of its call."""

    lane: str
    name: str
    why: str
    told: bool = False


class Followed:
    """The sessions of an agent in a workspace, one for each attempt. Blocking."""

    def __init__(self, agent: str, workspace: Path, policy: RecoveryPolicy) -> None:
        self._agent = agent
        self._workspace = workspace
        self._policy = policy
        self._begun = self._clock = 0.0
        self._search_at = 0.0
        self._others: set[Path] = set()
        self._known: dict[Path, Watched] = {}
        self.session: Watched | None = None

    def begin(self, *, goes_on: bool) -> None:
        """An attempt begins, which `goes_on` with a session or has one of its own."""
        self._begun = self._clock = time.time()
        self._search_at, self.session = 0.0, None
        self._others = set() if goes_on else {one.path for one in sessions_of(self._agent, Path())}

    def look(self, *, settled: bool = False) -> list[events.VerdictReached | events.ToolSucceeded]:
        """New verdicts, without those about the model, and new successes. `settled`: nothing more will be
        written.
        """
        self._look_at_clock()
        if self.session is None:
            self.session = self._found()
        if self.session is None:
            return []
        with suppress(TranscriptError, OSError):
            stand = self.session.update(time.time() + (QUIET if settled else 0.0))
            if stand is not None:
                new = self._since_begun(stand)
                return [event for event in new if _tells(event)]
        return []

    def _look_at_clock(self) -> None:
        """The attempt began earlier by a clock that was put back."""
        now = time.time()
        self._begun -= max(0.0, self._clock - now)
        self._clock = now

    def end(self) -> None:
        """The attempt is over: what it wrote last is read."""
        self._search_at = 0.0
        self.look(settled=True)

    def _found(self) -> Watched | None:
        now = time.monotonic()
        if now < self._search_at:
            return None
        self._search_at = now + _SEARCH
        for found in sessions_of(self._agent, Path()):
            if found.modified < self._begun - _COARSE:
                break
            if found.path not in self._others and found.works_in(self._workspace):
                made = Watched(found.path, self._policy, operator_present=False, within=found.within)
                return self._known.setdefault(found.path, made)
        return None

    def _since_begun(self, first: int = 0, *, lanes: bool = True) -> Iterator[events.Event]:
        """Events of this attempt from `first` on, those of sub-agents with them."""
        for event in self._of_attempt(first):
            if not isinstance(event, events.LaneEvent):
                yield event
            elif lanes:
                yield event.event

    def _of_attempt(self, first: int = 0) -> Iterator[events.Event]:
        for event in self.session.events[first:] if self.session is not None else ():
            if event.at >= self._begun - _COARSE:
                yield event

    def lost(self) -> tuple[Lost, ...]:
        """Sub-agents of this attempt that died of a fault of the model. An agent may be told of it as of a success."""
        died: dict[str, Lost] = {}
        for event in self._of_attempt():
            match event:
                case events.LaneEvent(event=events.ModelFaulted(fault=fault)):
                    died[event.lane] = Lost(lane=event.lane, name=event.name, why=fault.message)
                case events.LaneEvent(event=events.ReplyFinished()):
                    died.pop(event.lane, None)
                case events.ToolFailed() if event.call_id in died:
                    died[event.call_id] = died[event.call_id].model_copy(update={"told": True})
        return tuple(died.values())

    def fault(self) -> events.Fault | None:
        """The failed call of the model with which the attempt ends; one of a sub-agent is none."""
        fault = None
        for event in self._since_begun(lanes=False):
            match event:
                case events.ModelFaulted():
                    fault = event.fault
                case events.ReplyFinished() | events.RunStarted() | events.OperatorSpoke():
                    fault = None
        return fault

    def unanswered(self) -> str:
        """The words of the call that failed last, if the attempt ends with it and no answer came; else empty."""
        failure = ""
        for event in self._since_begun(lanes=False):
            match event:
                case events.ToolFailed() | events.ToolRefused():
                    failure = event.content or "without words"
                case (
                    events.ToolResult()
                    | events.ReplyFinished()
                    | events.RunStarted()
                    | events.OperatorSpoke()
                ):
                    failure = ""
        return failure

    def size(self) -> int:
        """Bytes of the session's file; 0 if there is none."""
        with suppress(OSError):
            return self.session.path.stat().st_size if self.session is not None else 0
        return 0

    def stopped(self) -> bool:
        """The record says that a person stopped the agent."""
        stopped = False
        for event in self._since_begun():
            match event:
                case events.RunFinished():
                    ended = event.outcome is events.Outcome.INTERRUPTED
                    stopped = ended and event.reason != RECORDING_ENDS
                case events.RunStarted() | events.OperatorSpoke():
                    stopped = False
        return stopped

    def replied(self) -> bool:
        """The model has replied in this attempt."""
        return any(isinstance(event, events.ReplyFinished) for event in self._since_begun())

    def calls(self) -> tuple[int, int]:
        """Calls of all attempts, and those of them that failed."""
        return ended_calls(event for one in self._known.values() for event in one.events)

    def tokens(self) -> int | None:
        """Tokens of all attempts, read and written; None if they are not known."""
        told = [event for one in self._known.values() for event in one.events]
        inner = [event.event if isinstance(event, events.LaneEvent) else event for event in told]
        counts = [
            one.prompt_tokens + one.completion_tokens
            for one in inner
            if isinstance(one, events.ReplyFinished)
            and one.prompt_tokens is not None
            and one.completion_tokens is not None
        ]
        return sum(counts) if counts else None

    def window(self) -> float | None:
        """The share of its window of use, in percent, that is used up; None if its records do not say."""
        headless = DIALECTS[self._agent].headless
        if self.session is None or headless is None or headless.window is None:
            return None
        return headless.window(str(self.session.path), time.time())

    def spent(self) -> float | None:
        """The cost of this session in USD, by its own figure or by its tokens; None if that is not known."""
        if self.session is None:
            return None
        told = [
            event.event if isinstance(event, events.LaneEvent) else event for event in self.session.events
        ]
        costs = [_cost(event) for event in told if isinstance(event, events.ReplyFinished)]
        known_costs = [one for one in costs if one is not None]
        return sum(known_costs) if len(known_costs) == len(costs) else None


def ended_calls(told: Iterable[events.Event]) -> tuple[int, int]:
    """Calls that ended, and those of them that failed; those of sub-agents too."""
    inner = [event.event if isinstance(event, events.LaneEvent) else event for event in told]
    ended = [event for event in inner if isinstance(event, events.ToolResult)]
    return len(ended), sum(isinstance(event, events.ToolFailed) for event in ended)


def _tells(event: events.Event) -> TypeGuard[events.VerdictReached | events.ToolSucceeded]:
    verdict = isinstance(event, events.VerdictReached) and event.detector != ModelFaults.name
    return verdict or isinstance(event, events.ToolSucceeded)


def _cost(reply: events.ReplyFinished) -> float | None:
    model = known(reply.model)
    if reply.cost is not None or model.input is None or model.output is None:
        return reply.cost
    price = Price(prompt=model.input, completion=model.output, cached=model.cached)
    return cost(price, reply.prompt_tokens, reply.completion_tokens, reply.cached_tokens)
