"""The card of an MCP server: whether it may be started, or what it asks the operator for, field by field.

What a server asks for is its own wording, shown as it is; the values go to that server alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from textual import events
from textual.app import ComposeResult
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from tui_agent.console.cards.answer_field import AnswerField
from tui_agent.console.cards.card import Card
from tui_agent.console.cards.card_body import CardBody
from tui_agent.console.cards.choices import Choices
from tui_agent.console.looks.hints import key_line
from tui_agent.frontend.lines.server_question import (
    FORM,
    OPEN,
    TRUST,
    FieldError,
    describe,
    field_of,
    read_value,
    shown_value,
    subject,
)
from tui_agent.runtime.operator import ServerReply
from tui_agent.terminal_text import one_line, reveal

if TYPE_CHECKING:
    from tui_agent.frontend.operator import ServerQuestion


class ServerCard(Card):
    """Fields are asked one after another: Enter takes the value, Esc goes back; the choices stand below."""

    DEFAULT_CSS = """
    ServerCard {
        & AnswerField { display: none; margin-top: 1; background: $background; }
        & .card--field { display: none; color: $text-muted; height: auto; margin-top: 1; }
        &.-tight .card--field { margin-top: 0; }
        &.-asking AnswerField, &.-asking .card--field { display: block; }
        &.-asking Choices { display: none; }
    }
    """

    question: ServerQuestion
    fixed_rows = 1

    def __init__(self, question: ServerQuestion) -> None:
        asked = question.asked
        name = one_line(asked.server, 40)
        title = f"Start {name}?" if asked.purpose == "trust" else f"{name} asks"
        super().__init__(question, title)
        self._names = list(asked.fields)
        self._place = 0
        self._values: dict[str, Any] = {}
        self._drafts: dict[str, str] = {}
        """Texts of fields that were left before they were taken."""

    def compose(self) -> ComposeResult:
        asked = self.question.asked
        yield CardBody(list(subject(asked)))
        yield Choices(TRUST if asked.purpose == "trust" else OPEN if asked.url else FORM)
        yield Static("", classes="card--field", markup=False)
        yield AnswerField()

    def way_back(self) -> Content:
        if not self.has_class("-asking"):
            return super().way_back()
        last = self._place + 1 == len(self._names)
        return key_line(("Enter", "send" if last else "next"), ("Esc", "back"), ("^C", "interrupt"))

    def entrance(self) -> Widget:
        """The field that is being asked, else the choices."""
        return self.query_one(AnswerField if self.has_class("-asking") else Choices)

    def picked(self, value: str) -> None:
        if value == "accept" and not self.shows_all():
            return
        if value == "accept" and self._names:
            self._ask(0)
        else:
            self._reply(value)

    def on_answer_field_submitted(self, event: AnswerField.Submitted) -> None:
        """Take the value; after the last field the answer goes out."""
        event.stop()
        name = self._names[self._place]
        try:
            value = read_value(self.question.asked, name, event.value)
        except FieldError as error:
            self._say(str(error))
            return
        self._values.pop(name, None)
        if value is not None:
            self._values[name] = value
        if self._place + 1 < len(self._names):
            self._ask(self._place + 1)
        else:
            self._reply("accept", self._values)

    def on_key(self, event: events.Key) -> None:
        """Esc goes back a field, and from the first one to the choices."""
        if event.key == "escape" and self.has_class("-asking"):
            event.stop()
            event.prevent_default()
            self._drafts[self._names[self._place]] = self.query_one(AnswerField).value
            if self._place:
                self._ask(self._place - 1)
            else:
                self.remove_class("-asking")
                self.query_one(Choices).focus()

    def _ask(self, place: int) -> None:
        self._place = place
        name = self._names[place]
        field = field_of(self.question.asked, name)
        given = self._values.get(name, field.get("default", ""))
        entry, draft = self.query_one(AnswerField), self._drafts.pop(name, None)
        entry.value = draft if draft is not None else "" if given == "" else shown_value(given)
        self.add_class("-asking")
        self._say(describe(self.question.asked, name, place, len(self._names)))
        self._show_hint()
        entry.focus()
        entry.select_all()  # what is typed replaces the default, or the draft

    def _say(self, text: str) -> None:
        self.query_one(".card--field", Static).update(reveal(text))

    def _reply(self, decision: str, content: dict[str, Any] | None = None) -> None:
        match decision:
            case "accept" | "decline" | "cancel":
                self.settle(ServerReply(decision, content))
            case _:
                raise ValueError(decision)
