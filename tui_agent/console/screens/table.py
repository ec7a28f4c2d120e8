"""A table of the user's configuration file, edited as the TOML text that it is; checked before it is kept."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.widgets import Static, TextArea

from tui_agent.config.user_file import TableError
from tui_agent.console.looks.command_keys import bindings
from tui_agent.console.prompt.fields import TextField
from tui_agent.console.screens.framed import FramedScreen
from tui_agent.terminal_text import reveal


class TableScreen(FramedScreen[bool]):
    """Dismissed with True once `take` has taken the text; what it refuses is shown, with the cursor at the line."""

    DEFAULT_CSS = """
    TableScreen {
        & > Vertical { width: 96%; max-width: 110; height: 80%; }
        & TextArea { height: 1fr; border: none; padding: 0; margin: 1 0; background: $background; }
        & Static { max-height: 5; color: $text-muted; }
        & .-wrong { color: $error; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings("table")

    def __init__(self, title: str, about: str, text: str, take: Callable[[str], Awaitable[None]]) -> None:
        """`take` raises `TableError` for a text that is not to be kept."""
        super().__init__(title, ("^S", "keep it"), ("Esc", "cancel"))
        self._about, self._text, self._take = about, text, take
        self._warned = False
        self._message = Static(markup=False)

    def inside(self) -> ComposeResult:
        yield Static(Content(self._about))
        yield TextField(self._text, show_line_numbers=True, compact=True)
        yield self._message

    def on_mount(self) -> None:
        self.query_one(TextArea).focus()

    def on_text_area_changed(self) -> None:
        """The remark was about the text before."""
        self._warned = False
        self._say("")

    def _say(self, text: str, *, wrong: bool = False) -> None:
        self._message.update(Content(text))
        self._message.set_class(wrong, "-wrong")

    @work(exclusive=True, group="take")
    async def action_accept(self) -> None:
        """Keep the text if it is right."""
        field = self.query_one(TextField)
        try:
            await self._take(field.whole_text)
        except TableError as error:
            place = f"Line {error.line}: " if error.line else ""
            self._say(f"{place}{reveal(str(error))}", wrong=True)
            if error.line and field.cursor_location[0] != error.line - 1:
                field.move_cursor((error.line - 1, 0))
        else:
            self.dismiss(True)

    def action_leave(self) -> None:
        """Leave the file as it is; a text that was changed is dropped by a second Esc."""
        if self.query_one(TextField).whole_text == self._text or self._warned:
            self.dismiss(False)
            return
        self._warned = True
        self._say("The text was changed: ^S keeps it, Esc again drops the changes.")
