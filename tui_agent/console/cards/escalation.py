"""The escalation card: what is asked, the call it is about, what was tried, and what can be chosen.

A free-text answer is the first thing at hand; the choices stand below it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.message import Message
from textual.widgets import Input

from tui_agent.call_names import main_argument, of_lane, short_input
from tui_agent.console.cards.answer_field import AnswerField
from tui_agent.console.cards.card import Card
from tui_agent.console.cards.card_body import GAP, CardBody, Passage
from tui_agent.console.cards.choices import Choice, Choices
from tui_agent.console.cards.editor import ArgumentsEditor
from tui_agent.console.commands import is_command
from tui_agent.console.panes.pane import Asked
from tui_agent.core.names import ABOUT_PLAN, OF_NO_FAILURE
from tui_agent.core.recovery.signature import normalise
from tui_agent.headline import headline, innermost

if TYPE_CHECKING:
    from textual import events
    from textual.widget import Widget

    from tui_agent.console.operator import EscalationQuestion
    from tui_agent.core.events import EscalationRaised
    from tui_agent.core.state import RunState
    from tui_agent.runtime.operator import Choice as Verb

LOOKED_BACK = 60
"""Closed entries that are searched for what was tried: constant work however long the session is."""

_OF_NO_CALL = OF_NO_FAILURE | {"model"}
"""Sources of questions that no failed call led to."""

ATTEMPTS_SHOWN = 5
LONGEST_CHOICE = 30
"""Cells of an option that still stands among the choices."""

SHORT = 2
"""Lines of an error that is shown whole at once where it begins with what is wrong; else that line comes first."""


class Attempt(NamedTuple):
    """One failure that led here: which call or model, and the error in full."""

    what: str
    error: str
    changed: tuple[str, ...] = ()
    """Files that were changed between the failure before and this one."""


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

    def __init__(self, question: EscalationQuestion, attempts: Sequence[Attempt]) -> None:
        super().__init__(question, title_of(question.asked), question.asked.rule)
        self._attempts = attempts
        self._detail: Detail = "around"

    def compose(self) -> ComposeResult:
        asked = self.question.asked
        yield CardBody(list(subject(asked, self._attempts, self._detail)))
        choices = choices_for(asked)
        if _folds(self._attempts):
            choices.append(Choice("t", "whole error", "whole"))
        yield AnswerField(
            _PLACEHOLDERS.get(asked.source, "Say what to do, or take a key below"),
            {choice.key for choice in choices},
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
            case "retry" | "skip" | "partial" | "stop":
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
        self.add_class("-answering")
        field = self.query_one(AnswerField)
        field.focus()
        field.insert_text_at_cursor(event.character)

    def on_answer_field_key(self, event: AnswerField.Key) -> None:
        """The choice stands out, and is taken where nothing more is typed."""
        event.stop()
        choices = self.query_one(Choices)
        choices.show_as_chosen(event.key)
        chosen = choices.choices[choices.chosen]
        if event.final and self.armed and chosen.key == event.key:
            self.picked(chosen.value)

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
        from tui_agent.runtime.operator import EscalationReply

        self.settle(EscalationReply(choice, text, arguments))


_PLACEHOLDERS = {
    "model": "Name another model, or take a key below",
    "ask_operator": "Your answer, or take a key below",
    "budget": "Another limit, or take a key below",
    ABOUT_PLAN: "What should be otherwise? Or take a key below",
}


def title_of(asked: EscalationRaised) -> str:
    """The card's title, by who asks."""
    titles = {
        "ask_operator": "The agent asks",
        "model": "The model cannot be used",
        "budget": "A budget is used up",
        ABOUT_PLAN: "Carry out this plan?",
    }
    return of_lane(titles.get(asked.source, "The agent needs you"), asked.lane)


def choices_for(asked: EscalationRaised) -> list[Choice]:
    """The model's own options by number, then the choices that make sense for this question."""
    said = not _long(asked.options)
    options = [
        Choice(str(place + 1), option if said else "", f"option:{place}")
        for place, option in enumerate(asked.options)
    ]
    retry = Choice("r", "retry once", "retry")
    edit = Choice("e", "edit and retry", "edit")
    skip = Choice("s", "skip", "skip")
    ends = [
        Choice("p", "partial answer", "partial"),
        Choice("x", "stop", "stop"),
        *([] if asked.source == "ask_operator" else [Choice("w", "why?", "why")]),
    ]
    if asked.source == "ask_operator":
        return [*options, skip._replace(label="skip, decide yourself"), *ends]
    if asked.source == "budget":
        return [*options, *ends]
    if asked.source == ABOUT_PLAN:
        return [*options, Choice("s", "keep it as the answer", "skip")]
    if asked.source == "model":
        return [*options, retry, *ends]
    if asked.tool:
        return [retry, edit, skip, *ends]
    return [retry, skip, *ends]


Detail = Literal["line", "around", "whole"]
"""How much of the last error is shown below the line that says what is wrong: nothing, what stands around the innermost
place, all of it."""


def subject(
    asked: EscalationRaised, attempts: Sequence[Attempt], detail: Detail = "around"
) -> Iterable[Passage]:
    """The question; the call; the attempts, the last one with its error in this detail."""
    yield Passage(asked.question, "" if asked.source == ABOUT_PLAN else "bold")
    if asked.tool and asked.source != "ask_operator":
        yield GAP
        main = main_argument(asked.tool, asked.input)
        yield Passage(f"{asked.tool} {asked.input.get(main, '')}".rstrip(), "code", verbatim=True)
        for name, value in asked.input.items():
            if name != main:
                said = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
                yield Passage(f"{name}: {said}", "code", indent=2, verbatim=True)
    if _long(asked.options):
        yield GAP
        for place, option in enumerate(asked.options, 1):
            yield Passage(option, number=str(place))
    if attempts:
        yield GAP
        yield from tried(attempts, detail)


def _long(options: Sequence[str]) -> bool:
    """Whether the options stand in the subject, because a row of choices would cut them."""
    return any(cell_len(option) > LONGEST_CHOICE for option in options)


def _folds(attempts: Sequence[Attempt]) -> bool:
    """Whether the last error is longer than what is shown of it."""
    return bool(attempts) and attempts[-1].error.strip("\n").count("\n") > len(innermost(attempts[-1].error))


def tried(attempts: Sequence[Attempt], detail: Detail = "around") -> Iterable[Passage]:
    """The attempts with the line that says what is wrong, once for those in a row that failed in the same way, and what
    was changed in between; the last with its error in this detail.
    """
    yield Passage("Tried:", "muted")
    number, last = 0, len(attempts) if detail != "line" else -1
    for _, group in groupby(attempts, key=lambda attempt: normalise(attempt.error)):
        alike = list(group)
        first, number = number + 1, number + len(alike)
        which, how = (f"{first}–{number}", ": the same error") if len(alike) > 1 else (str(number), "")
        what = ", ".join(dict.fromkeys(attempt.what for attempt in alike))
        changed = ", ".join(dict.fromkeys(name for attempt in alike for name in attempt.changed))
        between = f" · changed in between: {changed}" if changed else ""
        yield Passage(f"{which}. {what}{how}{between}", "muted", indent=1)
        error, said = alike[-1].error.rstrip("\n"), headline(alike[-1].error)
        if number == last and error.count("\n") < SHORT and error.startswith(said):
            yield Passage(error, "error", indent=4, squeezed=True)
            continue
        yield Passage(said, "error", indent=4)
        if number == last:
            shown = error.split("\n") if detail == "whole" else innermost(error)
            yield from [Passage("\n".join(shown), "muted", indent=4, squeezed=True)] if shown else []


def attempts_before(state: RunState, asked: EscalationRaised) -> list[Attempt]:
    """The failures that led to the question, oldest first: of the same call where it is about one, of a model call
    its tries.
    """
    from tui_agent.core.projections.entries import CallEntry, FaultEntry, OperatorEntry
    from tui_agent.core.projections.lane import CallState

    conversation = state.asker(asked).conversation
    skipped = max(0, len(conversation.entries) - LOOKED_BACK)
    entries = [*conversation.entries.tail(skipped), *conversation.calls]
    found: list[Attempt] = []
    changed: dict[str, None] = {}
    for entry in reversed(entries):
        if isinstance(entry, CallEntry) and entry.changed and found:
            changed.update(dict.fromkeys(reversed(entry.changed)))
        match entry:
            case OperatorEntry(iteration=0):
                break
            case CallEntry(state=CallState.FAILED | CallState.FOUND) if asked.source not in _OF_NO_CALL:
                same = entry.tool == asked.tool and entry.input == asked.input
                if same if asked.tool else entry.state is CallState.FAILED:
                    called = f"{entry.tool} {short_input(entry.tool, entry.input)}".strip()
                    what = f"step {entry.iteration}" if asked.tool else called
                    if found:
                        found[-1] = found[-1]._replace(changed=tuple(reversed(changed)))
                    changed = {}
                    found.append(Attempt(what, entry.failure.message if entry.failure else entry.content))
            case FaultEntry() if asked.source == "model":
                tries = [*entry.earlier, entry][-ATTEMPTS_SHOWN:]
                return [Attempt(f"{one.model}, try {one.attempt}", one.fault.message) for one in tries]
            case _:
                pass
        if len(found) == ATTEMPTS_SHOWN:
            break
    return found[::-1]
