"""The screen that answers "why?" about one failure, verdict or outcome."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType

from tui_agent.console.screens.report import ReportScreen
from tui_agent.frontend.lines.why import why_lines

if TYPE_CHECKING:
    from tui_agent.frontend.why import Why


class WhyScreen(ReportScreen):
    """Closed by w and F9 too."""

    DEFAULT_CSS = """
    WhyScreen ReportPane { width: 110; max-width: 98%; max-height: 92%; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("w,f9", "dismiss(None)", "Back", show=False, priority=True),
    ]

    def __init__(self, why: Why) -> None:
        super().__init__("Why?", lambda width: why_lines(why, width))
