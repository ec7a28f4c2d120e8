"""All actions with their keys: Enter and another key gives it to an action, in the user's own file."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from textual import events, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.widgets import Static

from tui_agent.config.errors import ConfigError
from tui_agent.config.keys import ESCAPE, key_problem, written
from tui_agent.console.looks.command_keys import bindings
from tui_agent.console.looks.hints import Hint
from tui_agent.console.panes.cursor_list import CursorList
from tui_agent.console.screens.catalog import Catalog
from tui_agent.console.screens.framed import FramedScreen
from tui_agent.console.screens.rules import short
from tui_agent.frontend.commands.command import key_label
from tui_agent.frontend.commands.registry import BINDABLE, AnyCommand
from tui_agent.frontend.lines.styled import Line, Span, fit, pad

if TYPE_CHECKING:
    from tui_agent.config.settings import Settings
    from tui_agent.config.user_file import UserFile

PROMPT_EDITS = frozenset(f"ctrl+{letter}" for letter in "adefkuvwxyz")
"""Keys that edit the prompt's text, if no action has them."""


class KeyList(CursorList[AnyCommand]):
    """Actions; a key of one's own stands out."""

    def draw_row(self, row: AnyCommand, width: int, *, current: bool) -> Line:
        own = row.pressed != row.key
        name = min(18, width // 3)
        key = 12
        return (
            Span(pad(key_label(row.pressed) or "–", key), "accent bold" if own else "bold"),
            Span(pad(fit(row.title, name - 1), name)),
            Span(fit(row.help, max(1, width - key - name)), "muted"),
        )


class KeyCapture(FramedScreen["str | None"]):
    """Waits for a key. Dismissed with it; with None if Esc was pressed."""

    DEFAULT_CSS = """
    KeyCapture {
        & > Vertical { width: 64; }
        & Static { min-height: 2; }
        & .-wrong { color: $text-warning; }
    }
    """

    def __init__(self, command: AnyCommand, check: Callable[[str], tuple[str, bool]]) -> None:
        """`check` says what there is to say about a key, and whether it can be had all the same."""
        super().__init__(f"A key for {command.title}", ("Esc", "cancel"))
        self._command, self._check = command, check
        self._pressed = ""

    def inside(self) -> ComposeResult:
        yield Static(Content(f"{self._command.help}.\nPress the key."), markup=False)

    def on_key(self, event: events.Key) -> None:
        """Take the key; one that has another meaning only when it is pressed again."""
        event.stop()
        event.prevent_default()
        key = written(event.key)
        if key == ESCAPE:
            self.dismiss(None)
            return
        says, can = self._check(key)
        if can and (not says or self._pressed == key):
            self.dismiss(key)
            return
        self._pressed = key
        again = f"\nPress {key_label(key)} again to give it to {self._command.title}." if can else ""
        line = self.query_one(Static)
        line.update(Content(f"{says}{again}"))
        line.add_class("-wrong")


class KeysScreen(Catalog[AnyCommand, None]):
    """The typed text is looked for in names, keys and meanings."""

    DEFAULT_CSS = """
    KeysScreen > Vertical { max-width: 160; }
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings("keys")

    def __init__(
        self, file: UserFile, applied: Callable[[str, Settings], str], taken: frozenset[str] = frozenset()
    ) -> None:
        """`applied` lets the keys of changed settings be in force; `taken`: keys that are no action's."""
        super().__init__(
            "Keys",
            "Look for an action; keys of cards, lists and panes are fixed",
            KeyList(),
            (
                Hint("Enter", "another key", "enter"),
                Hint("^R", "default", "ctrl+r"),
                Hint("^D", "no key", "ctrl+d"),
            ),
        )
        self._file, self._applied, self._taken = file, applied, taken
        self._typed = ""

    def on_mount(self) -> None:
        self.say(short(str(self._file.path)))

    def typed(self, text: str) -> None:
        again, self._typed = text == self._typed, text
        rows = [
            command
            for command in BINDABLE
            if all(
                word
                in f"{command.title} {key_label(command.pressed)} {command.pressed} {command.help}".lower()
                for word in text.lower().split()
            )
        ]
        self.put(rows, None if again else 0)

    def about(self, row: AnyCommand) -> Content:
        default = f"default {key_label(row.key)}" if row.key else "no key by default"
        return Content.assemble(
            (row.title, "bold"),
            f"  {row.help}.\n",
            (f"{key_label(row.pressed) or 'no key'} · {default}", "$muted"),
        )

    def check(self, command: AnyCommand, key: str) -> tuple[str, bool]:
        """Words about a key for an action, and a mark if the action can have it."""
        problem = key_problem(key, command.name)
        if problem:
            return f"{problem[0].upper()}{problem[1:]}.", False
        if key in self._taken:
            return f"{key_label(key)} has a fixed meaning on this screen.", False
        other = next((each for each in BINDABLE if each.pressed == key and each is not command), None)
        if other is not None:
            return f"{key_label(key)} is the key of {other.title}, which would lose it.", True
        if key in PROMPT_EDITS and command.slash:
            return f"{key_label(key)} edits the prompt's text, and would not any more.", True
        return "", True

    def action_take(self) -> None:
        """Ask for another key for the action under the cursor."""
        if self.list.chosen is not None:
            self._ask(self.list.chosen)

    @work(group="change")
    async def _ask(self, command: AnyCommand) -> None:
        key = await self.app.push_screen_wait(KeyCapture(command, lambda key: self.check(command, key)))
        if key is not None:
            await self._put(command, key)

    @work(group="change")
    async def action_reset(self) -> None:
        """The action under the cursor has its default key again."""
        if self.list.chosen is not None:
            await self._put(self.list.chosen, None)

    @work(group="change")
    async def action_none(self) -> None:
        """The action under the cursor has no key."""
        if self.list.chosen is not None:
            await self._put(self.list.chosen, "")

    async def _put(self, command: AnyCommand, key: str | None) -> None:
        """Give the action a key, "" for none, None for its default; whatever chose that key has its default again."""
        wanted = command.key if key is None else key
        losers = [
            each for each in BINDABLE if each.pressed == wanted != each.key and each is not command and wanted
        ]
        given = None if wanted == command.key else key
        try:
            for loser in losers:
                await asyncio.to_thread(self._file.set, f"keys.{loser.name}", None)
            settings = await asyncio.to_thread(self._file.set, f"keys.{command.name}", given)
        except ConfigError as error:
            self.notify(error.message, severity="error", markup=False)
        else:
            self._applied("keys", settings)
            self.typed(self._typed)
