"""A list to pick from, narrowed by what is typed: earlier prompts, models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from tui_agent.console.fields import LineField
from tui_agent.console.screens.framed import FramedScreen
from tui_agent.terminal_text import one_line

SHOWN = 200
"""Rows that are listed; more letters find the others."""


WIDEST_NAME = 40
"""Columns up to which what is said about the rows stands in one column."""


class Row(NamedTuple):
    """What can be picked: how it is shown, what is said about it, and what the screen is dismissed with."""

    text: str
    about: str
    value: Any


class PickScreen(FramedScreen[Any]):
    """Dismissed with the value of a row, or None."""

    DEFAULT_CSS = """
    PickScreen {
        & > Vertical { width: 100; max-width: 98%; }
        & OptionList {
            height: auto; max-height: 16; background: $surface; border: none; padding: 0;
            text-wrap: nowrap; text-overflow: ellipsis;
            & > .option-list--option-highlighted { text-style: $cursor-background-text-style; }
            &:nocolor > .option-list--option-highlighted { background: $primary; }
        }
        & Input { margin-bottom: 1; }
        & Static { margin-bottom: 1; color: $text-muted; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "Back", show=False, priority=True),
        Binding("down,ctrl+r", "move(1)", "Down", show=False, priority=True),
        Binding("up", "move(-1)", "Up", show=False, priority=True),
    ]

    def __init__(
        self,
        title: str,
        rows: Sequence[Row],
        remark: str = "",
        written: Callable[[str], Row | None] | None = None,
    ) -> None:
        """`remark` stands above the list; `written` makes a last row of what is typed, where that is a choice."""
        super().__init__(title, ("Enter", "take"), ("Esc", "close"), ("↑↓", "choose"))
        self._rows = rows
        self._remark = remark or ("" if rows else "There is nothing yet.")
        self._written = written
        self._found: list[Row] = []

    def inside(self) -> ComposeResult:
        if self._remark:
            yield Static(Content(self._remark))
        search = "Type to search" if self._written is None else "Type to search, or write a name"
        yield LineField(placeholder=search, compact=True)
        yield OptionList(markup=False)

    def on_mount(self) -> None:
        """Everything is offered at first."""
        self._search("")
        self.query_one(Input).focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        self._search(event.value)

    def on_input_submitted(self) -> None:
        """Take the row that is marked."""
        place = self.query_one(OptionList).highlighted
        if place is not None and self._found:
            self.dismiss(self._found[place].value)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """A click takes a row."""
        self.dismiss(self._found[event.option_index].value)

    def action_move(self, step: int) -> None:
        options = self.query_one(OptionList)
        if options.highlighted is not None:
            options.highlighted = (options.highlighted + step) % len(self._found)

    def _search(self, typed: str) -> None:
        words = typed.lower().split()
        matching = (
            row for row in self._rows if all(word in f"{row.text} {row.about}".lower() for word in words)
        )
        self._found = list(matching)[:SHOWN]
        own = None if self._written is None else self._written(typed.strip())
        if own is not None and all(row.text != own.text for row in self._found):
            self._found.append(own)
        options = self.query_one(OptionList)
        options.clear_options()
        widest = max((len(row.text) for row in self._found if row.about), default=0)
        options.add_options(
            Option(
                Content.assemble(
                    one_line(row.text, 200).ljust(min(widest, WIDEST_NAME)),
                    (f"  {one_line(row.about, 120)}" if row.about else "", "$muted"),
                )
            )
            for row in self._found
        )
        options.highlighted = 0 if self._found else None
