"""The incident strip: what fails now as one story, in three lines; one calm line when nothing fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_agent.console.panes.rows import Rows
from tui_agent.frontend.lines.incident import ROOMY, incident_lines
from tui_agent.frontend.lines.styled import Line

if TYPE_CHECKING:
    from tui_agent.core.state import RunState


class IncidentStrip(Rows):
    """The open incident that failed last, or one line."""

    stands_alone = False
    """The recovery panes are not in sight."""

    def draw(self, state: RunState, now: float, width: int) -> list[Line]:
        return incident_lines(state, width, roomy=self.app.size.height >= ROOMY, alone=self.stands_alone)
