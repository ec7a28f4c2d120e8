"""The escalation card: what is asked, the call it is about, what was tried, and what can be chosen.

A free-text answer is the first thing at hand; the choices stand below it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from textual import events
from textual.app import ComposeResult
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input

from tui_agent.console.cards.answer_field import AnswerField
from tui_agent.console.cards.card import WAY_BACK, Card
from tui_agent.console.cards.card_body import CardBody
from tui_agent.console.cards.choices import Choices
from tui_agent.console.cards.editor import ArgumentsEditor
from tui_agent.console.looks.hints import key_line
from tui_agent.console.panes.pane import Asked
from tui_agent.core.names import ABOUT_PLAN
from tui_agent.frontend.commands.registry import is_command
from tui_agent.frontend.lines.escalation import Detail, EarlierFailure, choices_for, folds, subject, title_of
from tui_agent.frontend.lines.passages import Choice
from tui_agent.runtime.operator import Choice as Verb
from tui_agent.runtime.operator import EscalationReply

if TYPE_CHECKING:
    from tui_agent.frontend.operator import EscalationQuestion


PATIENCE = 0.35
"""Seconds in which a second character makes the beginning of an answer of what was a choice's key,"""

PATIENCE_AT_END = 1.2
"""where the choice ends the run: nobody who begins an answer with "please" may lose it."""

_ENDS = frozenset({"partial", "stop"})


def patience(choices: Iterable[Choice]) -> dict[str, float]:
    """For each key the seconds in which it may still begin an answer."""
    return {choice.key: PATIENCE_AT_END if choice.value in _ENDS else PATIENCE for choice in choices}


class EscalationCard(Card):
    """Enter sends the answer; a shown key takes its choice while no answer was begun; ↓ and Tab go to the choices."""

    DEFAULT_CSS = """
    EscalationCard {
        border: round $error 60%;
        border-title-color: $error;
        &.-armed:focus-within { border: round $error; }
        &.-bare { border-top: round $error; }
        & Input { margin-top: 1; background: $background; }
        &.-bare Input { display: none; }
        &.-bare.-answering Input { display: block; }
        &.-bare.-answering Choices { display: none; }
        &.-editing CardBody, &.-editing Choices, &.-editing Input { display: none; }
    }
    """

    @dataclass
    class Commanded(Message):
        """A command of the console was typed where an answer could be; the question still waits."""

        line: str

    question: EscalationQuestion
    fixed_rows = 1

    def __init__(self, question: EscalationQuestion, attempts: Sequence[EarlierFailure]) -> None:
        super().__init__(question, title_of(question.asked), question.asked.rule)
        self._attempts = attempts
        self._detail: Detail = "around"

    def compose(self) -> ComposeResult:
        asked = self.question.asked
        yield CardBody(list(subject(asked, self._attempts, self._detail)))
        choices = choices_for(asked)
        if folds(self._attempts):
            choices.append(Choice("t", "whole error", "whole"))
        yield AnswerField(
            _PLACEHOLDERS.get(asked.source, "Say what to do, or press a key below"),
            patience(choices),
        )
        yield Choices(choices)
        if asked.tool:
            yield ArgumentsEditor(asked.input)

    def entrance(self) -> Widget:
        """The editor where it is open, else the answer."""
        if self.has_class("-editing"):
            return self.query_one(ArgumentsEditor).entrance()
        return self.query_one(AnswerField) if self.query_one(AnswerField).display else self.query_one(Choices)

    def picked(self, value: str) -> None:
        """An option of the model, or one of the other choices."""
        text = self._text
        kind, _, rest = value.partition(":")
        match kind:
            case "option":
                option = self.question.asked.options[int(rest)]
                self._reply("answer", option)
            case "why":
                self.post_message(Asked(self.question.asked.seq))
            case "whole":
                self._detail = "around" if self._detail == "whole" else "whole"
                body = self.query_one(CardBody)
                body.rewrite(subject(self.question.asked, self._attempts, self._detail))
                body.redraw()
                body.refresh(layout=True)
            case "edit":
                self.add_class("-editing")
                self.query_one(ArgumentsEditor).open()
            case "retry" | "wait" | "skip" | "partial" | "stop":
                self._reply(kind, text)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Send the answer; an empty one goes to the choices, and a command is none."""
        event.stop()
        text = event.value.strip()
        if is_command(text):
            event.input.value = ""
            self.post_message(self.Commanded(text))
        elif text:
            self._reply("answer", text)
        else:
            self.query_one(Choices).focus()

    def on_arguments_editor_accepted(self, event: ArgumentsEditor.Accepted) -> None:
        """The call is to be made again with these arguments."""
        event.stop()
        self._reply("edit", self._text, event.arguments)

    def on_arguments_editor_left(self, event: ArgumentsEditor.Left) -> None:
        event.stop()
        self.remove_class("-editing")
        self.entrance().focus()

    def on_choices_beyond(self, event: Choices.Beyond) -> None:
        """Up from the choices is the answer."""
        if event.step < 0 and self.query_one(AnswerField).display:
            event.stop()
            event.prevent_default()
            self.query_one(AnswerField).focus()

    def on_choices_stray(self, event: Choices.Stray) -> None:
        """Typing here is answering."""
        event.stop()
        event.prevent_default()
        self.add_class("-answering")
        field = self.query_one(AnswerField)
        field.focus()
        field.write(event.text)

    def on_answer_field_key(self, event: AnswerField.Key) -> None:
        """The choice stands out, and is taken where nothing more is typed."""
        event.stop()
        choices = self.query_one(Choices)
        choices.show_as_chosen(event.key)
        chosen = choices.choices[choices.chosen]
        if event.final and self.armed and chosen.key == event.key:
            self.picked(chosen.value)
        elif not event.final and chosen.value in _ENDS:
            self.hint(key_line(("Enter", chosen.label), ("type on", "an answer")))

    def on_input_changed(self, event: Input.Changed) -> None:
        """What is more than a key, or taken back, is an answer."""
        if len(event.value) != 1 and self.has_focus_within:
            self.query_one(Choices).marked = False
            self.hint(WAY_BACK)

    def on_key(self, event: events.Key) -> None:
        """Down from the answer is the choices; Home and End are the answer's where there is one."""
        field = self.query_one(AnswerField)
        if event.key == "down" and field.has_focus:
            event.stop()
            event.prevent_default()
            self.remove_class("-answering")
            self.query_one(Choices).focus()
        elif event.key in {"home", "end"} and field.value:
            event.prevent_default()

    @property
    def _text(self) -> str:
        return self.query_one(AnswerField).value.strip()

    def _reply(self, choice: Verb, text: str, arguments: dict[str, Any] | None = None) -> None:
        self.settle(EscalationReply(choice, text, arguments))


_PLACEHOLDERS = {
    "model": "Name another model, or press a key below",
    "ask_operator": "Your answer, or press a key below",
    "budget": "Another limit, or press a key below",
    ABOUT_PLAN: "What should be different? Or press a key below",
}
