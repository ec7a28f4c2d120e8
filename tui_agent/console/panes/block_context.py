"""Values that the drawing of a block depends on beside its entry."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tui_agent.console.panes.density import Density
from tui_agent.frontend.lines.styled import Line

if TYPE_CHECKING:
    from tui_agent.core.projections.entries import AnyEntry


@dataclass(frozen=True)
class BlockContext:
    """The surroundings of one block."""

    previous: AnyEntry | None = None
    """The entry before it."""
    expanded: bool = False
    """The operator opened it."""
    limit: int = 0
    """Attempts that a call has before the operator is asked; 0: the policy does not count them."""
    final: bool = False
    """Its failure stands: the run ended by it, or the call is out of attempts."""
    recovered: bool = False
    """The same call succeeded later."""
    density: Density = Density.FULL
    room: int = 0
    """Rows of the pane in which it stands."""
    open: bool = False
    """It may still change."""
    waiting: bool = False
    """The wait before another try goes on."""
    now: float = 0.0
    """Seconds since the epoch, for what moves."""
    frame: str = "⠿"
    """The spinner's sign."""
    prose: list[Line] | None = field(default=None, compare=False)
    """A reply's lines if they were drawn already, while it came in."""
