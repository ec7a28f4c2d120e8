"""Jump mode: a letter over every pane that can be reached; the letter goes there."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.geometry import Offset
from textual.screen import ModalScreen, Screen
from textual.widgets import Static

from tui_agent.console.cards.card import Card
from tui_agent.console.looks.command_keys import bindings, closing
from tui_agent.console.panes import pane_facts

OTHERS = {"card": "q", "prompt": "p"}
"""Letters of what is no pane."""


class Target(NamedTuple):
    """A place to go to: its name, its letter, its title, and the position of the title."""

    name: str
    letter: str
    label: str
    offset: Offset


def targets_of(screen: Screen[None]) -> list[Target]:
    """Find the panes that can be seen, and list those that are folded away at the edge. A label covers the title in its
    pane's edge, and says the same.
    """
    targets: list[Target] = []
    hidden = 0
    called = [(facts.name, facts.title, facts.letter) for facts in pane_facts()]
    called += [(name, name, letter) for name, letter in OTHERS.items()]
    for name, label, letter in called:
        selector = Card if name == "card" else f"#{name}"
        widget = next(iter(screen.query(selector)), None)
        if widget is None:
            continue
        if widget.region.area:
            place = Offset(widget.region.x + 1, widget.region.y)
        else:
            place = Offset(max(0, screen.size.width - 18), 1 + 2 * hidden)
            hidden += 1
        targets.append(Target(name, letter, label, place))
    return targets


class JumpScreen(ModalScreen["str | None"]):
    """Dismissed with the target's name, or None."""

    DEFAULT_CSS = """
    JumpScreen {
        background: $background 60%;
        align: left top;
        & Static {
            position: absolute;
            width: auto;
            height: 1;
            background: $accent;
            color: $background;
            text-style: bold;
        }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("jump"), closing("jump")]

    def __init__(self, targets: list[Target]) -> None:
        super().__init__()
        self._targets = targets

    def compose(self) -> ComposeResult:
        for target in self._targets:
            label = Static(Content(f" {target.letter} {target.label} "))
            label.styles.offset = target.offset
            yield label

    def on_mount(self) -> None:
        """Each letter stands at its pane's present place."""
        self._drawn_for = self.app.size

    def on_resize(self, event: events.Resize) -> None:
        """In a terminal of another size they would stand elsewhere."""
        if self.is_current and event.size != self._drawn_for:
            self.dismiss(None)

    def on_key(self, event: events.Key) -> None:
        """A letter goes to its target; any other closes."""
        for target in self._targets:
            if event.character == target.letter:
                event.stop()
                self.dismiss(target.name)
                return
        if event.is_printable:
            event.stop()
            self.dismiss(None)
