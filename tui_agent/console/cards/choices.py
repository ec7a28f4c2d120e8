"""A row of choices, each taken by its letter, by arrows and Enter, or by a click."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from textual import events
from textual.content import Content
from textual.message import Message
from textual.widget import Widget

from tui_agent.terminal_text import one_line

if TYPE_CHECKING:
    from textual.geometry import Size


class Choice(NamedTuple):
    """A choice: the key that takes it, its label, and its value."""

    key: str
    label: str
    value: str


class Choices(Widget, can_focus=True):
    """Choices side by side, on more lines where they do not fit on one."""

    DEFAULT_CSS = """
    Choices { height: auto; width: 1fr; margin-top: 1; }
    """

    @dataclass
    class Picked(Message):
        """A choice was taken."""

        value: str

    @dataclass
    class Stray(Message):
        """A character was typed that takes no choice: it was meant for a text."""

        character: str

    class Above(Message):
        """The cursor left the choices by their upper edge."""

    def __init__(self, choices: Sequence[Choice]) -> None:
        super().__init__()
        self.choices = tuple(Choice(key, one_line(label, 200), value) for key, label, value in choices)
        self.chosen = 0
        self._places: list[tuple[int, int, int]] = []

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return self._laid_out(width)[-1][0] + 1 if self.choices else 0

    def _laid_out(self, width: int) -> list[tuple[int, int, int]]:
        """Line, first and last column of each choice."""
        places: list[tuple[int, int, int]] = []
        line = column = 0
        for choice in self.choices:
            length = min(width, Content(self._label(choice)).cell_length + 2)
            if column and column + length > width:
                line, column = line + 1, 0
            places.append((line, column, column + length))
            column += length + 1
        return places

    @staticmethod
    def _label(choice: Choice) -> str:
        return f"{choice.key} {choice.label}"

    def render(self) -> Content:
        """The choices; the chosen one stands out while the card can be answered."""
        self._places = self._laid_out(self.size.width)
        lines: list[Content] = []
        for number, (choice, (line, start, end)) in enumerate(zip(self.choices, self._places, strict=True)):
            while len(lines) <= line:
                lines.append(Content(""))
            current = number == self.chosen and self.has_focus
            ground = "on $primary" if current else "on $surface-active"
            words = "bold $text" if current else "$foreground"
            key = "bold $text" if current else "bold $accent"
            label = Content.assemble(
                (f" {choice.key}", f"{key} {ground}"), (f" {choice.label} ", f"{words} {ground}")
            )
            gap = " " * (start - lines[line].cell_length)
            lines[line] = Content.assemble(lines[line], gap, label.truncate(end - start, ellipsis=True))
        return Content("\n").join(lines)

    def watch_has_focus(self, _has_focus: bool) -> None:
        """The chosen one stands out only here."""
        super().watch_has_focus(_has_focus)
        self.refresh()

    def on_key(self, event: events.Key) -> None:
        """Arrows move, Enter takes, a letter takes its choice, any other character goes to the text."""
        step = {"left": -1, "right": 1}.get(event.key)
        by_key = next((choice for choice in self.choices if choice.key == event.character), None)
        if step is not None:
            self.chosen = (self.chosen + step) % len(self.choices)
            self.refresh()
        elif event.key in {"up", "down"}:
            self._move_line(-1 if event.key == "up" else 1)
        elif event.key == "enter":
            self.post_message(self.Picked(self.choices[self.chosen].value))
        elif by_key is not None:
            self.post_message(self.Picked(by_key.value))
        elif event.is_printable and event.character is not None:
            self.post_message(self.Stray(event.character))
        else:
            return
        event.stop()
        event.prevent_default()

    def _move_line(self, step: int) -> None:
        line, start, _ = self._laid_out(self.size.width)[self.chosen]
        there = [
            (abs(column - start), number)
            for number, (other, column, _) in enumerate(self._laid_out(self.size.width))
            if other == line + step
        ]
        if there:
            self.chosen = min(there)[1]
            self.refresh()
        elif step < 0:
            self.post_message(self.Above())

    def on_click(self, event: events.Click) -> None:
        """A click takes the choice under it."""
        for choice, (line, start, end) in zip(self.choices, self._places, strict=True):
            if event.y == line and start <= event.x < end:
                event.stop()
                self.post_message(self.Picked(choice.value))
