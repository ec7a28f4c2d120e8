"""The presets side by side over a recorded session: what each of them says at any event of it.

One pass in a thread judges the facts by all presets at once; a look is a search in what was found. Nothing here draws.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tui_agent.core.events import Event, Level, RunStarted, VerdictReached
from tui_agent.core.recovery.policy import PRESETS

if TYPE_CHECKING:
    from tui_agent.session.replay import Replay

MOST_FACTS = 20_000
"""Facts that are judged, from the first on: a longer session is not judged to its end."""

_PIECES = frozenset({"reply_delta", "tool_progress"})


class LeftError(Exception):
    """Nobody looks any more."""


@dataclass
class SideBySide:
    """Levels by preset, at the positions from which they hold. They may be read while another thread judges."""

    found: dict[str, list[tuple[int, Level]]] = field(default_factory=lambda: {name: [] for name in PRESETS})
    reached: int = 0
    """The position up to which the levels are known."""

    def judge(self, replay: Replay, wanted: Callable[[], bool] = lambda: True) -> None:
        """Judge the session. Ends early when it is no longer `wanted`. Raises `JournalError` for a damaged line."""
        from tui_agent.formats.importers.judgement import Judge, judge_by

        numbers = [at for at in range(1, replay.length + 1) if replay.kind(at) not in _PIECES][:MOST_FACTS]
        facts = [replay.event(number) for number in numbers]
        try:
            judge_by([Judge(name, self._taker(name, wanted)) for name in PRESETS], facts)
        except LeftError:
            return
        self.reached = replay.length if len(numbers) < MOST_FACTS else numbers[-1]

    def at(self, position: int) -> dict[str, Level] | None:
        """Give what each preset says after `position` events; None if that is not known (yet)."""
        if position > self.reached:
            return None
        return {name: _level(levels, position) for name, levels in self.found.items()}

    def _taker(self, name: str, wanted: Callable[[], bool]) -> Callable[[Event], None]:
        levels, last = self.found[name], name == list(self.found)[-1]

        def take(event: Event) -> None:
            if not wanted():
                raise LeftError
            if isinstance(event, VerdictReached):
                levels.append((event.seq, event.level))
            elif isinstance(event, RunStarted):
                levels.append((event.seq, Level.CONTINUE))
            if last:
                self.reached = max(self.reached, event.seq - 1)

        return take


def _level(levels: list[tuple[int, Level]], position: int) -> Level:
    place = bisect_right(levels, position, key=lambda found: found[0]) - 1
    return levels[place][1] if place >= 0 else Level.CONTINUE
