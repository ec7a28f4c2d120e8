"""A row of choices, each taken by a click, or marked by its letter or the arrows and taken by Enter.

A letter takes nothing by itself: what is typed behind it makes a text of both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.cells import cell_len
from textual import events
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

from tui_agent.console.looks.chips import ChipPlace, flow, height, joined
from tui_agent.console.looks.hints import MARK
from tui_agent.console.terminal.keys_in_order import is_text
from tui_agent.frontend.lines.passages import Choice
from tui_agent.terminal_text import one_line

if TYPE_CHECKING:
    from textual.geometry import Size


class Choices(Widget, can_focus=True):
    """Choices side by side, on more lines if they do not fit on one."""

    DEFAULT_CSS = """
    Choices { height: auto; width: 1fr; margin-top: 1; }
    """

    @dataclass
    class Picked(Message):
        """A choice was taken."""

        value: str

    @dataclass
    class Marked(Message):
        """The letter of a choice was typed, and Enter would take it; None: no more."""

        choice: Choice | None

    @dataclass
    class Stray(Message):
        """Typed or pasted text takes no choice: it was meant for a text."""

        text: str

    class Entered(Message):
        """Enter behind such a text, or behind a choice that acted at once, before another field has the keys."""

    @dataclass
    class Beyond(Message):
        """The cursor left the choices by their upper (-1) or lower (+1) edge."""

        step: int

    dim: reactive[bool] = reactive(False)
    """Its keys take nothing yet, and do not look as if they did."""

    marked: reactive[bool] = reactive(False)
    """The chosen one stands out, wherever the focus is: its letter was typed."""

    def __init__(
        self,
        choices: Sequence[Choice],
        *,
        beside_text: bool = True,
        at_once: Callable[[str], bool] = lambda _: False,
    ) -> None:
        """`beside_text`: what is typed behind a letter is a text elsewhere; else what is typed takes nothing until a
        choice is marked by the arrows. `at_once`: whether a letter takes its choice now although it could begin a text.
        """
        super().__init__()
        self._beside_text = beside_text
        self._at_once = at_once
        self._off = False
        """Something was typed here that is no choice."""
        self.choices = tuple(_safe(choice) for choice in choices)
        self.chosen = 0
        self._typed_on = False
        """A text was begun here: until the focus is back, every further key belongs to it."""
        self._letter = ""
        """It marks its choice, and is the beginning of a text if more is typed."""
        self._rows = 0
        self._room = 0
        self._places: list[ChipPlace] = []

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return height(self._laid_out(width)[1])

    def fit(self, rows: int, width: int, room: int = 0) -> int:
        """Take at most so many rows if that can be: labels are shortened, then left out. Gives the rows that
        are needed. `room`: rows that nothing else needs, on which labels are long if no choice is rare.
        """
        self._rows, self._room = rows, room
        self.refresh(layout=True)
        return height(self._laid_out(width)[1])

    @property
    def current(self) -> Choice:
        """The one that Enter takes."""
        return self.choices[self.chosen]

    def mark(self, key: str) -> None:
        """Mark the choice of this key, as if it had been typed here; "": none."""
        if not (key or self.marked):
            return
        self._letter = key
        self.marked = bool(key)
        self.chosen = next((n for n, choice in enumerate(self.choices) if choice.key == key), self.chosen)
        self.refresh()
        self.post_message(self.Marked(self.current if key else None))

    def listen(self) -> None:
        """Take the next key for a choice: the last one took none after all."""
        self._typed_on = False

    def rename(self, choices: Sequence[Choice]) -> None:
        """Give the choices other words; their keys stay, but for some at the end."""
        self.choices = tuple(_safe(choice) for choice in choices)
        self.chosen = min(self.chosen, len(self.choices) - 1)
        self.refresh(layout=True)

    def whole(self, key: str) -> bool:
        """Tell whether all words of a choice are on the screen."""
        labels, places = self._laid_out(self.size.width)
        return any(
            choice.key == key and place.end - place.start == cell_len(f" {key} {label} ")
            for choice, label, place in zip(self.choices, labels, places, strict=True)
        )

    def step(self, step: int) -> None:
        """Go to the choice before or behind this one."""
        self._off = False
        self.mark("")
        places = self._laid_out(self.size.width)[1]
        there = [number for number, place in enumerate(places) if place.end > place.start]
        self.chosen = min(
            there, key=lambda number: (number - self.chosen) * step % len(places) or len(places)
        )
        self.refresh()

    def _laid_out(self, width: int) -> tuple[list[str], list[ChipPlace]]:
        """Give labels and places: long labels where there is room, else on as few lines as can be. Then labels are
        short, the rare ones are left out, and if the rows are too few, labels are cut, then left out.
        """
        long = [choice.label for choice in self.choices]
        short = [choice.short or choice.label for choice in self.choices]
        brief = self._lengths(short, width)
        usual = [0 if choice.rare else length for choice, length in zip(self.choices, brief, strict=True)]
        full = flow(self._lengths(long, width), width)
        if height(full) <= self._room and not any(choice.rare for choice in self.choices):
            return long, full
        tried = [(long, full), (short, flow(brief, width)), (short, flow(usual, width))]
        best = min(tried, key=lambda one: height(one[1]))
        if not self._rows or height(best[1]) <= self._rows:
            return best
        bare = flow([cell_len(choice.key) + 2 for choice in self.choices], width)
        cut = (
            flow([min(length, max(6, most)) for length in usual], width)
            for most in (width // 3, (width + 2) // 4)
        )
        return short, next((places for places in cut if height(places) <= self._rows), bare)

    def _lengths(self, labels: Sequence[str], width: int) -> list[int]:
        """Count the cells of the choices with these labels."""
        chips = (f" {choice.key} {label} " for choice, label in zip(self.choices, labels, strict=True))
        return [min(width, cell_len(chip)) for chip in chips]

    def render(self) -> Content:
        """The choices; the chosen one stands out while the card can be answered."""
        labels, self._places = self._laid_out(self.size.width)
        chips: list[Content] = []
        laid_out = zip(self.choices, labels, self._places, strict=True)
        for number, (choice, words_of, place) in enumerate(laid_out):
            current = number == self.chosen and (self.has_focus or self.marked)
            sign = MARK if current and self.marked else " "
            ground = "on $primary" if current else "" if self.dim else "on $surface-active"
            words = "bold $text" if current else "$muted" if self.dim else "$foreground"
            key = "bold $text" if current else "$muted" if self.dim else "bold $accent"
            room = place.end - place.start - cell_len(choice.key) - 1
            if room < 0:
                chips.append(Content(""))
                continue
            label = Content(f" {words_of} " if room > 1 else " ").truncate(room, ellipsis=True)
            chips.append(
                Content.assemble(
                    (f"{sign}{choice.key}", f"{key} {ground}"), label.stylize(f"{words} {ground}")
                )
            )
        return joined(chips, self._places)

    def watch_has_focus(self, _has_focus: bool) -> None:
        """The chosen one stands out only here."""
        super().watch_has_focus(_has_focus)
        self._typed_on = False
        self.refresh()

    def on_key(self, event: events.Key) -> None:
        """A letter marks its choice, Enter takes the chosen one, arrows move, other characters are a text's."""
        step = {"left": -1, "right": 1}.get(event.key)
        if (is_text(event) and self._typed(event)) or self._typed_on:
            # Keys behind a text that was begun here belong to it.
            if event.key == "enter":
                self.post_message(self.Entered())
        elif event.key == "backspace" and (self._letter or self._off):
            self._off = False
            self.mark("")
        elif step is not None:
            self.step(step)
        elif event.key in {"up", "down"}:
            self._off = False
            self.mark("")
            self._move_line(-1 if event.key == "up" else 1)
        elif event.key == "enter":
            if not self._off:
                self._pick(self.current)
        else:
            return
        event.stop()
        event.prevent_default()

    def _typed(self, event: events.Key) -> bool:
        """Take a character; False: it means nothing here."""
        character = event.character
        if character is None:
            return False
        # Alt and a letter may be an Esc and the first letter of a text.
        key = "" if "alt+" in event.key else character
        choice = next((choice for choice in self.choices if choice.key == key), None)
        if not self._beside_text:
            self._off = self._off or choice is None
            self.mark("" if self._off else key)
            return choice is not None
        if choice is None or self._letter or self._typed_on:
            self._stray(character)
        elif self._at_once(key):
            self._typed_on = True
            self._pick(choice)
        else:
            self.mark(key)
        return True

    def _pick(self, choice: Choice) -> None:
        self.mark("")
        self.post_message(self.Picked(choice.value))

    def _stray(self, text: str) -> None:
        """The typed keys are a text, with the letter that marked a choice."""
        letter = self._letter
        self._typed_on = True
        self.mark("")
        self.post_message(self.Stray(letter + text))

    def on_paste(self, event: events.Paste) -> None:
        """A paste is text."""
        event.stop()
        if self._beside_text:
            self._stray(event.text)
        else:
            self._off = True
            self.mark("")

    def _move_line(self, step: int) -> None:
        _, places = self._laid_out(self.size.width)
        line, start, _ = places[self.chosen]
        there = [
            (abs(column - start), number)
            for number, (other, column, end) in enumerate(places)
            if other == line + step and end > column
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


def _safe(choice: Choice) -> Choice:
    return choice._replace(label=one_line(choice.label, 200), short=one_line(choice.short, 200))
