"""A choice between a few values, all of them in sight, by arrows or a click."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from textual import events
from textual.content import Content
from textual.message import Message
from textual.widget import Widget

from tui_agent.console.looks.chips import ChipPlace, flow, height, joined
from tui_agent.terminal_text import one_line

if TYPE_CHECKING:
    from textual.geometry import Size


class Option(NamedTuple):
    """A value and its label; `key` is shown before it if one takes it."""

    value: str
    label: str
    key: str = ""


class OptionRow(Widget, can_focus=True):
    """Options side by side, on more lines if one is too short; exactly one is chosen."""

    DEFAULT_CSS = """
    OptionRow { height: auto; width: 1fr; }
    """

    @dataclass
    class Changed(Message):
        """Another value was chosen."""

        value: str

    def __init__(self, options: Sequence[Option], chosen: str) -> None:
        super().__init__()
        self.options = tuple(option._replace(label=one_line(option.label, 100)) for option in options)
        self.value = chosen
        self._off: frozenset[str] = frozenset()

    def put(self, value: str, off: frozenset[str] = frozenset()) -> None:
        """Show this value as chosen; those in `off` cannot be chosen now."""
        if (value, off) != (self.value, self._off):
            self.value, self._off = value, off
            self.refresh()

    def move(self, step: int) -> None:
        """The next value that can be chosen, round the ends."""
        able = [option.value for option in self.options if option.value not in self._off]
        if able:
            place = able.index(self.value) if self.value in able else 0
            self.choose(able[(place + step) % len(able)])

    def choose(self, value: str) -> None:
        if value not in self._off and value != self.value:
            self.put(value, self._off)
            self.post_message(self.Changed(value))

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return height(self._places(width))

    def _places(self, width: int) -> list[ChipPlace]:
        return flow((_chip(option).cell_length for option in self.options), width)

    def render(self) -> Content:
        """The chosen one stands out, more so with the focus."""
        lit = self.has_focus or not self.can_focus
        ground = "$primary" if lit else f"$surface-active {self._emphasis}"
        chosen = {self.value} - self._off
        styles = (f"bold $text on {ground}" if each.value in chosen else "$muted" for each in self.options)
        chips = (_chip(option).stylize(style) for option, style in zip(self.options, styles, strict=True))
        return joined(chips, self._places(self.size.width))

    @property
    def _emphasis(self) -> str:
        """Stands in for a ground if there are no colours for one."""
        style = self.app.theme_variables["cursor-background-text-style"]
        return "" if style == "none" else style

    def watch_has_focus(self, _has_focus: bool) -> None:
        """The chosen one stands out more here."""
        super().watch_has_focus(_has_focus)
        self.refresh()

    def on_key(self, event: events.Key) -> None:
        step = {"left": -1, "right": 1}.get(event.key)
        if step is not None:
            event.stop()
            event.prevent_default()
            self.move(step)

    def on_click(self, event: events.Click) -> None:
        """A click chooses what is under it."""
        for option, place in zip(self.options, self._places(self.size.width), strict=True):
            if place.holds(event):
                event.stop()
                self.choose(option.value)


def _chip(option: Option) -> Content:
    return Content(f" {option.key} {option.label} " if option.key else f" {option.label} ")
