"""Following a watched session in a loop, for whoever has no screen: what is new, in lines, and whether it is stuck.

Clock and waiting are the caller's, so that tests and a supervisor bring their own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from tui_agent.core import events
from tui_agent.event_lines import GLYPHS, event_line
from tui_agent.formats.importers.transcript import TranscriptError
from tui_agent.terminal_text import one_line
from tui_agent.watch.watched import POLL, QUIET, Watched

STUCK = {
    events.Level.ESCALATE: 5,
    events.Level.RESTART: 4,
    events.Level.DEGRADE: 4,
    events.Level.STOP: 4,
}
"""Verdicts with which a run does not go on as it did, and the exit codes for them: it would ask, begin anew, stop."""


def follow(
    watched: Watched,
    clock: Callable[[], float] = time.time,
    wait: Callable[[float], object] = time.sleep,
) -> Iterator[int | None]:
    """Yield at each look how many of the events stand, or None if nothing is new. It never ends. Raises
    `TranscriptError`.

    `clock`: in seconds since the epoch.
    """
    while True:
        stand = watched.update(clock())
        yield stand
        if stand is None:
            wait(POLL)


def stuck_in(new: Iterable[events.Event]) -> events.VerdictReached | None:
    """The first verdict among these events with which the policy would ask or stop, also of a sub-agent's."""
    for event in new:
        inner = event.event if isinstance(event, events.LaneEvent) else event
        if isinstance(inner, events.VerdictReached) and inner.level in STUCK:
            return inner
    return None


def stuck_now(told: Sequence[events.Event]) -> events.VerdictReached | None:
    """The verdict of the newest step if it makes the policy ask or stop and the run has no answer yet."""
    for event in reversed(told):
        match event:
            case events.VerdictReached():
                return event if event.level in STUCK else None
            case events.RunStarted() | events.RunFinished(outcome=events.Outcome.ANSWERED):
                return None
            case events.IterationFinished():
                return None
    return None


def ended(told: Sequence[events.Event]) -> bool:
    """The session's run has come to an end, and nothing followed."""
    return any(isinstance(event, events.RunFinished) for event in told[-1:])


def has_ended(path: Path) -> bool:
    """True if the session's run is over as far as is known now. One that cannot be read may go on."""
    watched = Watched(path)
    with suppress(TranscriptError):
        watched.update(time.time() + QUIET)
    return ended(watched.events)


class Lines:
    """Events as lines for a log. What was printed stays: of events that changed only what is new is printed."""

    def __init__(self, write: Callable[[str], object], mask: Callable[[events.Event], events.Event]) -> None:
        """`write` gets each line without its end; `mask` takes secrets out."""
        self._write = write
        self._mask = mask
        self._printed: list[str] = []
        """A line, or an empty text, for each event."""

    def show(self, told: Sequence[events.Event], stand: int) -> None:
        """Print what is new from event `stand` on."""
        gone = self._printed[stand:]
        del self._printed[stand:]
        for event in told[stand:]:
            line = log_line(self._mask(event))
            self._printed.append(line)
            if line in gone:
                gone.remove(line)
            elif line:
                self._write(line)


def log_line(event: events.Event) -> str:
    """The event in one safe line behind its time; empty if it needs none."""
    match event:
        case events.SessionStarted():
            return ""
        case events.RunStarted(task=said):
            said = f"» {one_line(said, 200)}"
        case events.OperatorSpoke(text=said):
            said = f"» {one_line(said, 200)}"
        case events.ReplyFinished(text=said):
            said = one_line(said, 200)
        case events.RunFinished():
            reason = f": {one_line(event.reason, 200)}" if event.reason else ""
            said = f"■ {event.outcome.in_words}{reason}"
        case _:
            said = event_line(event, GLYPHS)
    return f"{time.strftime('%H:%M:%S', time.localtime(event.at))} {said}" if said else ""
