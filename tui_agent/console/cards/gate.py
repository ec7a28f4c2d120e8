"""The card of the next request before it goes out: what it holds, and the note that may still be edited or dropped.

It never takes a letter key, so it needs no grace: F10 lets one iteration go, F5 all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Static, TextArea

from tui_agent.console.cards.card import Card
from tui_agent.console.cards.card_body import CardBody
from tui_agent.console.cards.choices import Choices
from tui_agent.console.looks.command_keys import bindings
from tui_agent.console.looks.hints import key_line
from tui_agent.console.prompt.fields import TextField
from tui_agent.frontend.commands.registry import shown_key
from tui_agent.frontend.lines.outline import outline_line
from tui_agent.frontend.lines.passages import Choice, Passage
from tui_agent.terminal_text import reveal

if TYPE_CHECKING:
    from tui_agent.frontend.operator import GateQuestion

CHOICES = (
    ("step", "send it", "step"),
    ("auto", "go on by itself", "auto"),
    ("note", "edit the note", "edit"),
)
"""Commands, whose keys are shown, what they do here, and the value."""
DROP = Choice("⌫", "drop the note", "drop")


class GateCard(Card):
    """The outline of the next request, while the run waits in STEP or PAUSED."""

    DEFAULT_CSS = """
    GateCard {
        border: round $primary 50%;
        border-title-color: $primary;
        &.-armed:focus-within { border: round $primary; }
        & TextArea {
            display: none; height: auto; min-height: 3; max-height: 30vh;
            border: none; padding: 0; background: $background;
        }
        & CardBody { max-height: 24vh; }
        &.-editing TextArea { display: block; }
        &.-editing CardBody, &.-editing Choices { display: none; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings("note-card")

    @dataclass
    class Go(Message):
        """Send the request; `command` is `step` or `auto`."""

        command: str

    @dataclass
    class NoteChanged(Message):
        """The note was edited, or dropped (None)."""

        note: str | None

    question: GateQuestion
    fixed_rows = 1
    wants_focus = False

    def __init__(self, question: GateQuestion) -> None:
        super().__init__(question, "Next request")
        self._shown_note = question.note

    def compose(self) -> ComposeResult:
        yield Static(outline_line(self.question.asked), classes="card--hint", markup=False)
        yield CardBody(self._passages)
        yield Choices(self._choices)
        yield TextField(
            self._text,
            compact=True,
            soft_wrap=True,
            show_line_numbers=False,
            placeholder="Empty: no note goes with the request.",
        )

    @property
    def _passages(self) -> list[Passage]:
        note = self.question.note
        return [Passage(note, "note") if note else Passage("No recovery note goes with it.", "muted")]

    @property
    def _choices(self) -> list[Choice]:
        choices = [Choice(shown_key(name), label, value) for name, label, value in CHOICES]
        return [*choices, DROP] if self.question.note else choices

    @property
    def _text(self) -> str:
        return reveal(self.question.note or "")

    def update_subject(self) -> bool:
        """Show the note as the operator has changed it, in the parts that are there: a key may come at any time."""
        if self.question.note == self._shown_note:
            return False
        self._shown_note = self.question.note
        body, field = self.query_one(CardBody), self.query_one(TextField)
        body.rewrite(self._passages)
        body.redraw()
        body.refresh(layout=True)
        self.query_one(Choices).rename(self._choices)
        field.load_text(self._text)
        field.move_cursor(field.document.end)
        if self.has_class("-editing"):
            self._close()
        return True

    def edit(self) -> None:
        """Open the note for editing."""
        self.add_class("-editing")
        self.hint(key_line(("^S", "keep it"), ("Esc", "leave it as it was")))
        self.query_one(TextArea).focus()

    @property
    def edited(self) -> str | None:
        """The note as it stands in the open editor; else as it was."""
        return (
            self.query_one(TextField).whole_text.strip() or None
            if self.has_class("-editing")
            else self.question.note
        )

    def entrance(self) -> Widget:
        """The note while it is edited, else the choices."""
        return self.query_one(TextArea if self.has_class("-editing") else Choices)

    def picked(self, value: str) -> None:
        """Run the choice's command, or edit or drop the note."""
        match value:
            case "edit":
                self.edit()
            case "drop":
                self.post_message(self.NoteChanged(None))
            case _:
                self.post_message(self.Go(value))

    def action_keep(self) -> None:
        """Take the note as it stands in the editor."""
        if self.has_class("-editing"):
            note = self.edited
            self._close()
            self.post_message(self.NoteChanged(note))

    def on_key(self, event: events.Key) -> None:
        """Esc leaves the note as it was; backspace on the choices drops it."""
        if event.key == "escape" and self.has_class("-editing"):
            event.stop()
            event.prevent_default()
            self._close()
        elif event.key == "backspace" and self.query_one(Choices).has_focus and self.question.note:
            event.stop()
            self.post_message(self.NoteChanged(None))

    def _close(self) -> None:
        had_focus = self.has_focus_within
        self.remove_class("-editing")
        self.hint(Content(""))
        if had_focus:
            # Else Textual gives it to a pane, from which the next card would not take it.
            self.query_one(Choices).focus()
