"""A value that is asked for: a line of text, choices, or both; what is wrong with it is said while it is written."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import ClassVar, NamedTuple

from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.widgets import Label, Static

from tui_agent.console.looks.command_keys import bindings
from tui_agent.console.looks.option_row import Option, OptionRow
from tui_agent.console.prompt.fields import LineField
from tui_agent.console.screens.framed import FramedScreen


class Selection(NamedTuple):
    """Choices under a label, and which of them is chosen."""

    label: str
    options: Sequence[Option]
    chosen: str


class Judged(NamedTuple):
    """Words about the present values, and a mark if they may be taken."""

    text: str
    right: bool = True


Values = tuple[str, ...]
"""The line of text if there is one, then the choices."""


class FieldScreen(FramedScreen[bool]):
    """Dismissed with True once `take` has taken the values; what it refuses is shown, and nothing typed is lost."""

    DEFAULT_CSS = """
    FieldScreen {
        & > Vertical { width: 84; }
        & Input { margin: 1 0; }
        & Label { color: $text-muted; }
        & OptionRow { margin: 1 0; }
        & .field--about { color: $text-muted; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings("field")

    def __init__(
        self,
        title: str,
        about: str,
        value: str | None,
        selections: Sequence[Selection],
        judge: Callable[[Values], Judged],
        take: Callable[[Values], Awaitable[str]],
        placeholder: str = "",
        *,
        masked: bool = False,
    ) -> None:
        """`value` None: there is no line of text; `masked`: it is not shown. `take` gives what is wrong; "": taken."""
        keys = [("Enter", "take it"), ("Esc", "cancel")]
        if len(selections) + (value is not None) > 1:
            keys.append(("Tab", "next"))
        if selections:
            keys.append(("←→", "choose"))
        super().__init__(title, *keys)
        self._about, self._value, self._selections = about, value, selections
        self._judge, self._take = judge, take
        self._placeholder, self._masked = placeholder, masked
        self._message = Static(markup=False)

    def inside(self) -> ComposeResult:
        yield Static(Content(self._about), classes="field--about")
        if self._value is not None:
            yield LineField(
                self._value,
                placeholder=self._placeholder,
                password=self._masked,
                compact=True,
                select_on_focus=False,
            )
        for selection in self._selections:
            if selection.label:
                yield Label(Content(selection.label))
            yield OptionRow(selection.options, selection.chosen)
        yield self._message

    def on_mount(self) -> None:
        """Words about the present values; an empty field is no fault."""
        self._show()
        self._message.remove_class("-wrong")

    @property
    def values(self) -> Values:
        """As they stand now."""
        texts = [field.whole_text for field in self.query(LineField)]
        return (*texts, *(row.value for row in self.query(OptionRow)))

    def _show(self, judged: Judged | None = None) -> None:
        judged = self._judge(self.values) if judged is None else judged
        self._message.update(Content(judged.text))
        self._message.set_class(not judged.right, "-wrong")

    def on_input_changed(self) -> None:
        self._show()

    def on_option_row_changed(self) -> None:
        self._show()

    @work(exclusive=True, group="take")
    async def action_accept(self) -> None:
        """Take the values if they are right."""
        if not self._judge(self.values).right:
            self._show()
            return
        wrong = await self._take(self.values)
        if wrong:
            self._show(Judged(wrong, right=False))
        else:
            self.dismiss(True)
