"""A row of choices, each taken by its letter, by arrows and Enter, or by a click."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.cells import cell_len
from textual import events
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

from tui_agent.console.looks.chips import ChipPlace, flow, height, joined
from tui_agent.console.terminal.timers import Quiet
from tui_agent.frontend.lines.passages import Choice
from tui_agent.terminal_text import one_line

if TYPE_CHECKING:
    from textual.geometry import Size


PAUSE = 0.2
"""Seconds in which no letter may follow the one whose choice lasts: whoever types on meant a text."""


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
        """What was typed or pasted takes no choice: it was meant for a text."""

        text: str

    @dataclass
    class Beyond(Message):
        """The cursor left the choices by their upper (-1) or lower (+1) edge."""

        step: int

    dim: reactive[bool] = reactive(False)
    """Its keys take nothing yet, and do not look as if they did."""

    marked: reactive[bool] = reactive(False)
    """The chosen one stands out although the focus is elsewhere."""

    def __init__(self, choices: Sequence[Choice], *, beside_text: bool = True) -> None:
        """`beside_text`: a letter that takes no choice begins a text elsewhere; else it does nothing."""
        super().__init__()
        self._beside_text = beside_text
        self.choices = tuple(choice._replace(label=one_line(choice.label, 200)) for choice in choices)
        self.chosen = 0
        self._typed_on = False
        """A text was begun here: until the focus is back, every further key belongs to it."""
        self._held: Choice | None = None
        """Its letter was typed, and it is taken unless another follows at once."""
        self._rows = 0
        self._places: list[ChipPlace] = []

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return height(self._laid_out(width))

    def fit(self, rows: int, width: int) -> int:
        """Take at most so many rows where that can be: labels are shortened, then left out. The rows needed."""
        self._rows = rows
        self.refresh(layout=True)
        return height(self._laid_out(width))

    def show_as_chosen(self, key: str) -> None:
        """Let the choice of this key stand out, wherever the focus is."""
        self.chosen = next((n for n, choice in enumerate(self.choices) if choice.key == key), self.chosen)
        self.marked = True
        self.refresh()

    def _laid_out(self, width: int) -> list[ChipPlace]:
        full = [min(width, cell_len(f" {choice.key} {choice.label} ")) for choice in self.choices]
        short = [min(length, max(6, width // 3)) for length in full]
        bare = [cell_len(choice.key) + 2 for choice in self.choices]
        places = flow(full, width)
        for lengths in (short, bare):
            if self._rows and height(places) > self._rows:
                places = flow(lengths, width)
        return places

    def render(self) -> Content:
        """The choices; the chosen one stands out while the card can be answered."""
        self._places = self._laid_out(self.size.width)
        chips: list[Content] = []
        for number, (choice, place) in enumerate(zip(self.choices, self._places, strict=True)):
            current = number == self.chosen and (self.has_focus or self.marked)
            ground = "on $primary" if current else "" if self.dim else "on $surface-active"
            words = "bold $text" if current else "$muted" if self.dim else "$foreground"
            key = "bold $text" if current else "$muted" if self.dim else "bold $accent"
            room = place.end - place.start - cell_len(choice.key) - 1
            label = Content(f" {choice.label} " if room > 1 else " ").truncate(room, ellipsis=True)
            chips.append(
                Content.assemble((f" {choice.key}", f"{key} {ground}"), label.stylize(f"{words} {ground}"))
            )
        return joined(chips, self._places)

    def watch_has_focus(self, _has_focus: bool) -> None:
        """The chosen one stands out only here."""
        super().watch_has_focus(_has_focus)
        self._typed_on = False
        self.refresh()

    def on_key(self, event: events.Key) -> None:
        """Arrows move, Enter takes, a letter takes its choice, any other character goes to the text."""
        step = {"left": -1, "right": 1}.get(event.key)
        # Alt and a letter may be an Esc and the first letter of a text.
        character = None if "alt+" in event.key else event.character
        by_key = next((choice for choice in self.choices if choice.key == character), None)
        held, self._held = self._held, None
        if held is not None and held is not by_key and event.is_printable:
            self._typed_on = True
            self.post_message(self.Stray(held.key))
        if self._typed_on:
            if event.is_printable and event.character is not None:
                self.post_message(self.Stray(event.character))
        elif step is not None:
            self.chosen = (self.chosen + step) % len(self.choices)
            self.refresh()
        elif event.key in {"up", "down"}:
            self._move_line(-1 if event.key == "up" else 1)
        elif event.key == "enter":
            self.post_message(self.Picked((held or self.choices[self.chosen]).value))
        elif by_key is not None and by_key.lasting and by_key is not held and self._beside_text:
            self._held = by_key
            Quiet(self, PAUSE, self._take_held)
        elif by_key is not None:
            self.post_message(self.Picked(by_key.value))
        elif self._beside_text and event.is_printable and event.character is not None:
            self._typed_on = True
            self.post_message(self.Stray(event.character))
        else:
            return
        event.stop()
        event.prevent_default()

    def on_paste(self, event: events.Paste) -> None:
        """A paste is text."""
        if self._beside_text:
            event.stop()
            held, self._held = self._held, None
            self._typed_on = True
            self.post_message(self.Stray(("" if held is None else held.key) + event.text))

    def _take_held(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            self.post_message(self.Picked(held.value))

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
        else:
            self.post_message(self.Beyond(step))

    def on_click(self, event: events.Click) -> None:
        """A click takes the choice under it."""
        for choice, place in zip(self.choices, self._places, strict=True):
            if place.holds(event):
                event.stop()
                self.post_message(self.Picked(choice.value))
