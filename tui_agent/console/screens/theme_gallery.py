"""The themes: the whole console wears the one under the cursor; Enter keeps it for good, Esc brings the former back."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from textual import work
from textual.content import Content

from tui_agent.config.errors import ConfigError
from tui_agent.console.looks.hints import Hint
from tui_agent.console.looks.themes import user_theme_folder
from tui_agent.console.panes.cursor_list import CursorList
from tui_agent.console.screens.catalog import Catalog
from tui_agent.console.screens.rules import short
from tui_agent.frontend.lines.styled import Line, Span, fit, pad
from tui_agent.terminal_text import one_line

if TYPE_CHECKING:
    from textual.timer import Timer

    from tui_agent.config.user_file import UserFile

PAUSE = 0.06
"""Seconds without a move before the theme under the cursor is shown: a switch lays everything out anew."""


class ThemeRow(NamedTuple):
    """A theme, and its source: agent-tui, yours, Textual."""

    name: str
    source: str
    kind: str


class ThemeList(CursorList[ThemeRow]):
    """Names, sources, dark or light."""

    def draw_row(self, row: ThemeRow, width: int, *, current: bool) -> Line:
        name = max(8, width - 10 - 9)
        return (
            Span(pad(fit(one_line(row.name), name - 1), name), "bold" if current else ""),
            Span(pad(row.source, 10) + row.kind, "muted"),
        )


class ThemeGallery(Catalog[ThemeRow, None]):
    """At the side, so that the console is seen behind it."""

    DEFAULT_CSS = """
    ThemeGallery { align: right middle; background: transparent; }
    ThemeGallery > Vertical { width: 50; max-width: 90%; height: 100%; }
    ThemeGallery.-low > Vertical { width: 50; max-width: 90%; }
    """

    def __init__(self, file: UserFile) -> None:
        super().__init__("Themes", "Look for a theme", ThemeList(), (Hint("Enter", "keep", "enter"),))
        self._file = file
        self._former = ""
        self._waiting: Timer | None = None

    def on_mount(self) -> None:
        """A theme of your own is a file in the folder that is named."""
        self._former = self.app.theme
        self.say(f"yours: {short(str(user_theme_folder()))}")

    def typed(self, text: str) -> None:
        themes = self.app.available_themes
        rows = []
        for name in self.app.theme_names:
            theme = themes[name]
            kind = "terminal" if theme.ansi else "dark" if theme.dark else "light"
            row = ThemeRow(name, self.app.theme_sources.get(name, "Textual"), kind)
            if all(word in " ".join(row).lower() for word in text.lower().split()):
                rows.append(row)
        names = [row.name for row in rows]
        self.put(rows, names.index(self.app.theme) if not text and self.app.theme in names else 0)
        if text:
            self._preview_soon()

    def about(self, row: ThemeRow) -> Content:
        return Content.assemble(
            ("✓ succeeded  ", "$ok"),
            ("● may recover  ", "$warn"),
            ("✗ failed\n", "$error"),
            ("agent  ", "$model"),
            ("you  ", "$operator"),
            ("note  ", "$note"),
            ("secondary  ", "$muted"),
            ("def ", "$syntax-keyword"),
            ("total", "$syntax-name"),
            ("\n+ added  ", "$diff-add"),
            ("- removed", "$diff-remove"),
        )

    def on_cursor_list_moved(self, _: CursorList.Moved) -> None:
        self._preview_soon()

    def _preview_soon(self) -> None:
        if self._waiting is not None:
            self._waiting.stop()
        self._waiting = self.set_timer(PAUSE, self._preview)

    def _preview(self) -> None:
        self._waiting = None
        if self.list.chosen is not None:
            self.app.theme = self.list.chosen.name

    def action_take(self) -> None:
        """Keep the theme under the cursor, and remember it."""
        if self.list.chosen is not None:
            self._preview()
            self._former = self.app.theme
            self._keep(self._former)

    @work(group="keep")
    async def _keep(self, name: str) -> None:
        try:
            settings = await asyncio.to_thread(self._file.set, "theme", name)
        except ConfigError as error:
            self.notify(f"{name} holds until you leave. {error.message}", severity="warning", markup=False)
        else:
            origin = settings.origin("theme")
            weaker = origin not in {"default", str(self._file.path)}
            says = (
                f"{name} is kept; {origin} outweighs it at the next start." if weaker else f"{name} is kept."
            )
            self.notify(says, markup=False)
        self.dismiss()

    def on_unmount(self) -> None:
        """However it was left: what was not kept is over."""
        if self._waiting is not None:
            self._waiting.stop()
        if self.app.theme != self._former:
            self.app.theme = self._former
