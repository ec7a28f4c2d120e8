"""The escalation card: what is asked, the call it is about, what was tried, and what can be chosen.

A free-text answer is the first thing at hand; the choices stand below it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from textual import events
from textual.app import ComposeResult
from textual.content import Content
from textual.message import Message
from textual.widget import Widget

from tui_agent.console.cards.answer_field import AnswerField
from tui_agent.console.cards.card import Card
from tui_agent.console.cards.card_body import CardBody
from tui_agent.console.cards.choices import Choices
from tui_agent.console.cards.editor import ArgumentsEditor
from tui_agent.console.looks.hints import key_line
from tui_agent.console.panes.pane import Asked
from tui_agent.core.names import ABOUT_BUDGET, ABOUT_PLAN, ABOUT_STEPS, OF_NO_FAILURE
from tui_agent.frontend.commands.dispatch import is_command
from tui_agent.frontend.lines.escalation import Detail, EarlierFailure, choices_for, folds, subject, title_of
from tui_agent.frontend.lines.passages import Choice
from tui_agent.runtime.operator import Choice as Verb
from tui_agent.runtime.operator import EscalationReply

if TYPE_CHECKING:
    from tui_agent.frontend.operator import EscalationQuestion


class EscalationCard(Card):
    """Enter sends the answer, or takes the choice whose key stands alone in it; ↓ and Tab go to the choices."""

    DEFAULT_CSS = """
    EscalationCard {
        border: round $error 60%;
        border-title-color: $error;
        &.-armed:focus-within { border: round $error; }
        &.-bare { border-top: round $error; }
        &.-calm { border: round $accent 60%; border-title-color: $accent; }
        &.-calm.-armed:focus-within { border: round $accent; }
        &.-calm.-bare { border: none; border-top: round $accent; }
        & AnswerField { margin-top: 1; background: $background; }
        &.-bare AnswerField { display: none; }
        &.-bare.-answering AnswerField { display: block; }
        &.-bare.-answering Choices { display: none; }
        &.-editing CardBody, &.-editing Choices, &.-editing AnswerField { display: none; }
    }
    """

    @dataclass
    class Commanded(Message):
        """A command of the console was typed in place of an answer; the question still waits."""

        line: str

    question: EscalationQuestion
    fixed_rows = 1
    typing_on = "an answer"

    def __init__(self, question: EscalationQuestion, attempts: Sequence[EarlierFailure]) -> None:
        super().__init__(question, title_of(question.asked), question.asked.rule)
        self.set_class(question.asked.source in OF_NO_FAILURE, "-calm")
        self._attempts = attempts
        self._detail: Detail = "around"

    def compose(self) -> ComposeResult:
        asked = self.question.asked
        yield CardBody(list(subject(asked, self._attempts, self._detail, plan=False)))
        choices = choices_for(asked)
        if folds(self._attempts):
            choices.append(Choice("t", "whole error", "whole", short="error"))
        yield AnswerField(
            _PLACEHOLDERS.get(asked.source, "Say what to do, or press a key below"),
            [choice.key for choice in choices],
        )
        yield Choices(choices)
        if asked.tool:
            yield ArgumentsEditor(asked.input)

    def way_back(self) -> Content:
        if self.question.asked.source == ABOUT_PLAN:
            return key_line(("PgUp", "read the plan"), ("Esc", "prompt"), ("^C", "interrupt"))
        return super().way_back()

    def entrance(self) -> Widget:
        """The editor if it is open, else the answer."""
        if self.has_class("-editing"):
            return self.query_one(ArgumentsEditor).entrance()
        return self.query_one(AnswerField) if self.query_one(AnswerField).display else self.query_one(Choices)

    def picked(self, value: str) -> None:
        """An option of the model, or one of the other choices."""
        self.query_one(AnswerField).take_mark()
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
            case "retry" | "wait" | "skip" | "keep" | "fresh_start" | "partial" | "stop":
                self._reply(kind, text)

    def on_answer_field_submitted(self, event: AnswerField.Submitted) -> None:
        """Send the answer; an empty one goes to the choices, and a command is none."""
        event.stop()
        text = event.value.strip()
        if is_command(text):
            self.query_one(AnswerField).value = ""
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
        field.take_mark()  # it is the beginning of the text
        field.focus()
        field.write(event.text)

    def on_choices_entered(self, event: Choices.Entered) -> None:
        """Enter behind it, before the field has the keys."""
        event.stop()
        self.query_one(AnswerField).enter()

    def on_answer_field_marked(self, event: AnswerField.Marked) -> None:
        """The choice stands out, and Enter takes it; or what was typed is an answer."""
        event.stop()
        self.query_one(Choices).mark(event.key)

    def on_answer_field_confirmed(self, event: AnswerField.Confirmed) -> None:
        event.stop()
        choices = self.query_one(Choices)
        choices.mark("")
        choice = next(choice for choice in choices.choices if choice.key == event.key)
        if self.armed:
            self.picked(choice.value)
        else:
            self.query_one(AnswerField).write(event.key)

    def on_key(self, event: events.Key) -> None:
        """The choices are below the answer; Home and End are the answer's if there is one."""
        field = self.query_one(AnswerField)
        if event.key == "down" and field.has_focus:
            event.stop()
            event.prevent_default()
            self.remove_class("-answering")
            key, choices = field.take_mark(), self.query_one(Choices)
            choices.focus()
            if key:
                choices.mark(key)
        elif event.key in {"home", "end"} and field.value:
            event.prevent_default()

    def take_back(self) -> bool:
        return bool(self.query_one(AnswerField).take_mark()) | super().take_back()

    @property
    def _text(self) -> str:
        return self.query_one(AnswerField).value.strip()

    def _reply(self, choice: Verb, text: str, arguments: dict[str, Any] | None = None) -> None:
        self.settle(EscalationReply(choice, text, arguments))


_PLACEHOLDERS = {
    "model": "Name another model, or press a key below",
    "ask_operator": "Your answer, or press a key below",
    ABOUT_BUDGET: "Another limit, or press a key below",
    ABOUT_STEPS: "How many more steps, or press a key below",
    ABOUT_PLAN: "What should be different? Or press a key below",
}
