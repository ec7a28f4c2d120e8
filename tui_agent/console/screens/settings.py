"""Every setting with its value, its source, its meaning and the values that are allowed; edited into the
user's own file, whose comments and order stay.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from textual import work
from textual.content import Content

from tui_agent.config.errors import ConfigError
from tui_agent.config.setting_rows import (
    ELSEWHERE,
    EXAMPLES,
    SettingError,
    SettingRow,
    setting_rows,
    toml_value,
)
from tui_agent.config.settings import Settings
from tui_agent.config.user_file import UserFile
from tui_agent.console.looks.hints import Hint
from tui_agent.console.looks.option_row import Option
from tui_agent.console.panes.cursor_list import CursorList
from tui_agent.console.screens.catalog import Catalog
from tui_agent.console.screens.field import FieldScreen, Judged, Selection, Values
from tui_agent.console.screens.rules import short
from tui_agent.console.screens.table import TableScreen
from tui_agent.frontend.lines.styled import Line, Span, fit, pad
from tui_agent.terminal_text import one_line, reveal

WIDE = 74
"""Cells of a row from which on the group has a column."""
UNSET = "(default)"

Applied = Callable[[str, "Settings"], str]
"""Takes a changed setting over; says from when on it holds."""


class SettingList(CursorList[SettingRow]):
    """Settings by group; those that are set stand out."""

    def draw_row(self, row: SettingRow, width: int, *, current: bool) -> Line:
        group = 14 if width >= WIDE else 0
        origin = min(26, width // 4)
        name = min(30, (width - group - origin) // 2)
        place = self.rows.index(row)
        first = not place or self.rows[place - 1].group != row.group
        value = max(4, width - group - name - origin)
        said = one_line(short(row.value)) or "–"
        return (
            Span(pad(row.group if first else "", group), "accent"),
            Span(pad(fit(row.key, name - 1), name), "bold" if row.is_set else ""),
            Span(pad(fit(said, value - 1), value), "bold" if row.is_set else "muted"),
            Span(fit(where(row.origin), origin - 1), "muted"),
        )


def where(origin: str) -> str:
    """An origin in a few cells: of a path its name."""
    return one_line(Path(origin).name if origin.startswith("/") else "" if origin == "default" else origin)


class SettingsScreen(Catalog[SettingRow, None]):
    """The typed text is looked for in names, meanings and groups."""

    def __init__(self, file: UserFile, applied: Applied, open_elsewhere: Callable[[str], None]) -> None:
        """`open_elsewhere` opens the screen of a key that has one of its own."""
        super().__init__("Settings", "Look for a setting", SettingList(), (Hint("Enter", "change", "enter"),))
        self._file, self._applied = file, applied
        self._open_elsewhere = open_elsewhere
        self._all: Sequence[SettingRow] = ()
        self._typed = ""

    def on_mount(self) -> None:
        self.say(short(str(self._file.path)))
        self._read()

    @work(group="read", exclusive=True)
    async def _read(self) -> None:
        try:
            self._all = await asyncio.to_thread(lambda: list(setting_rows(self._file.read())))
        except ConfigError as error:
            self.notify(error.message, severity="error", markup=False)
        self.typed(self._typed)

    def typed(self, text: str) -> None:
        """List what has all the words in its name, group or meaning."""
        again, self._typed = text == self._typed, text
        words = text.lower().split()
        rows = [
            row
            for row in self._all
            if all(word in f"{row.group} {row.key} {row.note}".lower() for word in words)
        ]
        self.put(rows, None if again else 0)

    def about(self, row: SettingRow) -> Content:
        parts = [
            Content.assemble((row.key, "bold"), f"  {reveal(short(row.value)) or '–'}"),
            Content(row.note),
        ]
        if row.choices:
            parts.append(Content(f"One of {', '.join(row.choices)}."))
        origin = "not set" if not row.is_set else f"from {short(row.origin)}"
        default = f"default {short(row.default)}" if row.default else "no default"
        last = " · ".join(part for part in (origin, default, row.edited) if part)
        return Content("\n").join(
            [*(part for part in parts if part.plain), Content.assemble((last, "$muted"))]
        )

    def action_take(self) -> None:
        """Change the setting under the cursor."""
        row = self.list.chosen
        if row is None:
            return
        if row.key in ELSEWHERE:
            self.dismiss()
            self._open_elsewhere(row.key)
        elif row.is_table:
            self._edit_table(row)
        else:
            self._edit(row)

    @work(group="change")
    async def _edit(self, row: SettingRow) -> None:
        def judge(values: Values) -> Judged:
            try:
                value = toml_value(row.key, values[0].replace(UNSET, ""))
            except SettingError as error:
                return Judged(reveal(str(error)), right=False)
            if value is None:
                return Judged(f"The default holds: {short(row.default) or 'none'}.")
            return Judged("")

        async def take(values: Values) -> str:
            return await self._save(row, values[0].replace(UNSET, ""))

        about = (
            f"{row.note}\nEmpty: the default ({short(row.default) or 'none'})."
            if not row.choices
            else row.note
        )
        own = row.value if row.is_set else ""
        selections = []
        if row.choices:
            options = [Option("" if each == UNSET else each, each) for each in (UNSET, *row.choices)]
            selections = [Selection("", options, own if own in row.choices else "")]
        await self.app.push_screen_wait(
            FieldScreen(
                row.key, about, None if row.choices else own, selections, judge, take, short(row.default)
            )
        )
        self._read()

    @work(group="change")
    async def _edit_table(self, row: SettingRow) -> None:
        async def take(text: str) -> None:
            settings = await asyncio.to_thread(self._file.set_table, row.key, text)
            self.notify(f"{row.key}: {self._holds(row, settings)}", markup=False)

        try:
            text = await asyncio.to_thread(self._file.table_text, row.key)
        except ConfigError as error:
            self.notify(error.message, severity="error", markup=False)
            return
        example = "".join(f"# {line}\n" for line in EXAMPLES[row.key].splitlines())
        title = f"[{row.key}] in {short(str(self._file.path))}"
        if await self.app.push_screen_wait(TableScreen(title, row.note, text or example, take)):
            self._read()

    def _holds(self, row: SettingRow, settings: Settings) -> str:
        """From when on a value that was kept holds."""
        origin = settings.origin(row.key)
        if origin not in {"default", str(self._file.path)}:
            return f"Saved; {where(origin)} outweighs it here."
        return self._applied(row.key, settings)

    async def _save(self, row: SettingRow, text: str) -> str:
        """The fault; empty: it is in the file."""
        try:
            settings = await asyncio.to_thread(lambda: self._file.set(row.key, toml_value(row.key, text)))
        except (ConfigError, SettingError) as error:
            return str(error)
        self.notify(f"{row.key}: {self._holds(row, settings)}", markup=False)
        return ""
