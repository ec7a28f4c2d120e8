"""A position in a saved session that moves: by hand, or by itself at a speed. It draws nothing and has no timer;
its screen asks how long to wait.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tui_agent.core.state import RunState
    from tui_agent.session.replay import Replay, StopAt
    from tui_agent.session.side_by_side import SideBySide

SPEEDS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 64.0)
FRAME = 1 / 25
"""Events closer than this (in seconds of watching) are shown together."""


@dataclass
class Player:
    """Positions run from 0 (nothing has happened) to the replay's length."""

    replay: Replay
    position: int = 0
    speed: float = 1.0
    playing: bool = False
    presets: SideBySide | None = None
    """What each preset says; None: it has not been judged."""

    def __post_init__(self) -> None:
        self.position = self._inside(self.position)

    @property
    def state(self) -> RunState:
        """The state at the position."""
        return self.replay.state_at(self.position)

    @property
    def there(self) -> bool:
        """True if the session was read up to the position, so that its state is there at once."""
        return self.position <= self.replay.reached

    @property
    def at_end(self) -> bool:
        """True if nothing comes after the position."""
        return self.position >= self.replay.length

    @property
    def now(self) -> float:
        """The session's own time at the position."""
        return self.replay.at(self.position) if self.replay.length else 0.0

    def toggle(self) -> None:
        """Play or pause; at the end, play from the beginning."""
        if not self.playing and self.at_end:
            self.position = 0
        self.playing = not self.playing and self.replay.length > 0

    def wait(self) -> float:
        """Seconds until the next step, at this speed; idle times are shortened."""
        return self.replay.delay(self.position) / self.speed

    def advance(self) -> float:
        """Go on by what belongs to one frame; the seconds until the next. Stops at the end."""
        waited = 0.0
        while not self.at_end:
            self.position += 1
            waited += self.wait()
            if waited >= FRAME:
                return waited
        self.playing = False
        return 0.0

    def step(self, events: int) -> None:
        """Go by single events; a step by hand pauses."""
        self.playing = False
        self.position = self._inside(self.position + events)

    def seek(self, position: int) -> None:
        """Go to a position; playing goes on from there."""
        self.position = self._inside(position)

    def jump(self, stop: StopAt, *, back: bool = False) -> bool:
        """Go to the next place of this kind; False if there is none."""
        place = self.replay.next(self.position, stop, back=back)
        if place is None:
            return False
        self.playing = False
        self.position = place
        return True

    def change_speed(self, step: int) -> None:
        """Faster or slower, along `SPEEDS`."""
        nearest = min(range(len(SPEEDS)), key=lambda place: abs(SPEEDS[place] - self.speed))
        self.speed = SPEEDS[max(0, min(len(SPEEDS) - 1, nearest + step))]

    def _inside(self, position: int) -> int:
        return max(0, min(self.replay.length, position))
