"""A tab as the app and the inbox know it: a screen around one session, and how it stands."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from textual.screen import Screen

from tui_agent.console.compositor import SparingCompositor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.geometry import Size

    from tui_agent.config.settings import Settings
    from tui_agent.console.arguments import ConsoleArguments
    from tui_agent.console.operator import AnyQuestion
    from tui_agent.console.startup import Opened


class Standing(NamedTuple):
    """How a tab stands: its title, the sign of its mode with its role, and how many questions wait for the operator."""

    title: str
    glyph: str
    role: str
    waits: int = 0


class Tab(Screen[None]):
    """The screen at the bottom of a mode; its id is the mode's name."""

    def __init__(self, arguments: ConsoleArguments, mode: str) -> None:
        super().__init__(id=mode)
        self._compositor = SparingCompositor()
        self._laying_out = False
        self._paint_due = False
        self.arguments = arguments
        self.opened: Opened | None = None
        """The live session of this tab, from when it is open until it is closed."""

    # --- painting -------------------------------------------------------------------------------------------

    def _screen_resized(self, size: Size) -> None:
        """Lay out for another size; Textual tells a screen of each twice."""
        if size != self._compositor.size:
            super()._screen_resized(size)

    def _refresh_layout(self, size: Size | None = None, scroll: bool = False) -> None:
        """Lay out; what has changed by that is painted with the frame, together with what the widgets draw anew."""
        self._laying_out = self.app._dom_ready
        super()._refresh_layout(size, scroll)
        self._laying_out = False
        if self._paint_due:
            self._update_timer.resume()

    def _compositor_refresh(self) -> None:
        """Paint what has changed; right after a layout only say that there is something."""
        self._paint_due = self._laying_out
        if not self._laying_out:
            super()._compositor_refresh()

    def _on_timer_update(self) -> None:
        """A frame: lay out and paint, each once at most."""
        super()._on_timer_update()
        if self._paint_due and self.is_current:
            self._compositor_refresh()

    @property
    def settings(self) -> Settings | None:
        """The settings, once they have been read."""
        raise NotImplementedError

    @property
    def session_id(self) -> str:
        """The session that is open; empty: none."""
        return ""

    @property
    def hidden(self) -> bool:
        """Another tab is shown."""
        return self.app.current_mode != self.id

    @property
    def can_draw(self) -> bool:
        """All that it takes to draw has been imported and mounted."""
        raise NotImplementedError

    @property
    def questions(self) -> Sequence[AnyQuestion]:
        """What waits for the operator here."""
        return ()

    @property
    def running(self) -> bool:
        """A run is under way."""
        return False

    @property
    def unused(self) -> bool:
        """Nothing was said here yet, and nothing is about to be: another session may take the place."""
        return False

    @property
    def rows_for_remarks(self) -> int:
        """Rows at the top that remarks may cover."""
        return self.size.height // 2

    def standing(self) -> Standing:
        """How the tab stands, for the row of tabs."""
        raise NotImplementedError

    def show_tabs(self, standings: Sequence[Standing], shown: int) -> None:
        """Show how all tabs stand."""
        raise NotImplementedError

    def came_to_front(self) -> None:
        """The tab is shown from now on."""
        raise NotImplementedError

    def show_event(self, seq: int, words: Sequence[str]) -> None:
        """Go to the line of an event's text that has the most of these words; 0: stay."""

    def go_to_question(self, question: AnyQuestion) -> None:
        """Give the keys to the card of this question, after the grace in which it takes none."""

    def draw_failed(self, error: Exception) -> None:
        """Say that something could not be drawn."""
        raise NotImplementedError
