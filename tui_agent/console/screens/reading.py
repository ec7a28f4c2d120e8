"""The frame of screens with choices below a text: the choices stay in sight, and the text scrolls by keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.content import Content

from tui_agent.console.cards.choices import Choices
from tui_agent.console.looks.command_keys import bindings
from tui_agent.console.looks.hints import key_line
from tui_agent.console.screens.framed import FramedScreen, Result
from tui_agent.frontend.lines.passages import Choice

if TYPE_CHECKING:
    from textual.geometry import Size


AROUND = 11
"""Rows of the terminal that the frame and the choices need beside the text."""


class ScrolledText(VerticalScroll, can_focus=False):
    """As high as its text is beside the scroll bar, whether that is shown or not."""

    DEFAULT_CSS = """
    ScrolledText { height: auto; scrollbar-size: 0 1; scrollbar-gutter: stable; }
    """

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return super().get_content_height(container, viewport, width - self.scrollbar_size_vertical)


class ReadingScreen(FramedScreen[Result]):
    """The lines of `text`, above `choices`."""

    DEFAULT_CSS = """
    ReadingScreen {
        & > Vertical { padding: 1 2; }
        & Choices { margin-top: 1; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings("reading")

    _reads_on: Content | None = None

    def inside(self) -> ComposeResult:
        with ScrolledText():
            yield from self.text()
        yield Choices(self.choices(), beside_text=False)

    def text(self) -> ComposeResult:
        """The widgets that scroll."""
        raise NotImplementedError

    def choices(self) -> list[Choice]:
        raise NotImplementedError

    def on_mount(self) -> None:
        """The choices have the keys."""
        self.query_one(Choices).focus()
        self.watch(self.query_one(ScrolledText), "show_vertical_scrollbar", self._name_keys)

    def _name_keys(self, scrolls: bool) -> None:
        self._reads_on = key_line(("PgDn", "read on")) if scrolls else None
        self.frame.border_subtitle = self._reads_on

    def on_key(self, event: events.Key) -> None:
        """Esc takes a mark back before it leads away."""
        choices = self.query_one(Choices)
        if event.key == "escape" and choices.marked:
            choices.mark("")
            event.stop()
            event.prevent_default()

    def on_choices_marked(self, event: Choices.Marked) -> None:
        """Say at the lower edge what Enter would do."""
        choice = event.choice
        marked = None if choice is None else key_line(("Enter", choice.label), ("Esc", "back"))
        self.frame.border_subtitle = marked or self._reads_on

    def on_resize(self, event: events.Resize) -> None:
        """The choices stay on the screen; the text scrolls."""
        self.query_one(ScrolledText).styles.max_height = max(1, event.size.height - AROUND)

    def action_read(self, pages: int) -> None:
        """Scroll a long text."""
        text = self.query_one(ScrolledText)
        text.scroll_relative(y=pages * max(1, text.size.height - 1), animate=False)
