"""The last line of the screen: the keys that matter now, as many as fit, each clickable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from textual import events
from textual.content import Content
from textual.widget import Widget

_KEY_NAMES = {"↑↓": "Up/Down", "←→": "Left/Right", "↑": "Up", "⇧": "Shift+"}

MARK = "▸"
"""Stands before what Enter does because its letter was typed."""

_in_force: dict[str, str] = {}
"""Names of signs in the labels of keys. There is one console in a process."""


def name_keys(*, wanted: bool) -> None:
    """Write arrows and Shift by name, or not: as signs of ASCII, `^v` and `^Enter`, they would read as other keys."""
    _in_force.clear()
    if wanted:
        _in_force.update(_KEY_NAMES)


def _named(label: str) -> str:
    for sign, name in _in_force.items():
        label = label.replace(sign, name)
    return label


class Hint(NamedTuple):
    """A key, a word, and the key that a click presses."""

    label: str
    word: str
    key: str

    @property
    def width(self) -> int:
        """Cells that it takes."""
        return len(_named(self.label)) + 1 + len(self.word)


def key_line(*hints: tuple[str, str]) -> Content:
    """Keys, each with its word, as they look wherever they are shown."""
    parts = (Content.assemble((_named(key), "bold $accent"), (f" {word}", "$muted")) for key, word in hints)
    return Content("  ").join(parts)


def mode_line(mode: str) -> Content:
    """Give a mode of approvals and the key that changes it."""
    role = {"plan": "$text-accent", "all": "$text-warning"}.get(mode, "$muted")
    return Content.assemble((mode, role), " ", (_named("⇧Tab"), "$muted"))


class KeyHints(Widget):
    """Hints by importance: if the line is too short, the last ones are left out; the way out stays."""

    DEFAULT_CSS = """
    KeyHints { height: 1; padding: 0 1; background: $panel; }
    """

    def __init__(self, hints: Sequence[Hint]) -> None:
        super().__init__(id="hints")
        self._hints = tuple(hints)
        self._shown: list[tuple[int, int, str]] = []

    def show(self, hints: Sequence[Hint]) -> None:
        """Show these from now on."""
        self._hints = tuple(hints)
        self.refresh()

    def render(self) -> Content:
        """As many hints as fit, two spaces apart."""
        fitting = list(self._hints)
        while fitting and sum(hint.width + 2 for hint in fitting) - 2 > self.size.width:
            fitting.remove(next((hint for hint in reversed(fitting) if hint.key != "escape"), fitting[0]))
        self._shown = []
        column = 0
        for hint in fitting:
            self._shown.append((column, column + hint.width, hint.key))
            column += hint.width + 2
        return key_line(*((hint.label, hint.word) for hint in fitting))

    def on_click(self, event: events.Click) -> None:
        """A click on a hint is its key."""
        for start, end, key in self._shown:
            if start <= event.x - self.styles.padding.left < end:
                self.app.simulate_key(key)
