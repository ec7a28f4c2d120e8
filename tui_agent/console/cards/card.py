"""What all cards share: a subject that never changes, a short delay before they can be answered, one answer.

A card is *armed* by the card host once nobody is typing any more; until then it takes neither keys nor clicks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from textual.containers import Vertical
from textual.content import Content
from textual.message import Message

from tui_agent.console.cards.card_body import CardBody
from tui_agent.console.cards.choices import Choices
from tui_agent.terminal_text import one_line

if TYPE_CHECKING:
    from textual import events
    from textual.widget import Widget

    from tui_agent.console.operator import AnyQuestion


TIGHT = 16
"""Rows below which a card goes without empty lines."""


class Card(Vertical):
    """A question with its choices."""

    DEFAULT_CSS = """
    Card {
        height: auto;
        border: round $warning 50%;
        border-title-color: $warning;
        border-title-style: bold;
        border-subtitle-color: $text-muted;
        padding: 0 1;
        background: $surface;
        color: $text;
        &.-armed:focus-within { border: round $warning; }
        & > .card--hint { color: $text-muted; height: auto; }
        &.-tight Choices, &.-tight Input { margin-top: 0; }
    }
    """

    fixed_rows = 0
    """Lines of a field or remark that the card shows beside its subject and choices."""
    wants_focus = True
    """Whether the card is answered by keys that the prompt would take too."""

    @dataclass
    class Settled(Message):
        """The operator decided. `answer` fits the question."""

        question: AnyQuestion
        answer: Any

    @dataclass
    class TypedOn(Message):
        """A character was typed that was meant for the prompt."""

        character: str

    def __init__(self, question: AnyQuestion, title: str, rule: str = "") -> None:
        """`rule`: id of the rule that asks, shown behind the title."""
        super().__init__()
        self.question = question
        self.armed = False
        self._title = title
        self._rule = one_line(rule, 60)

    def place(self, position: int, count: int) -> None:
        """Show in the title which of how many questions this is."""
        title = f"{self._title} · {position} of {count}" if count > 1 else self._title
        rule = f" · {self._rule}" if self._rule else ""
        self.border_title = Content.assemble(title, (rule, "$muted not bold"))

    def arm(self) -> None:
        """From now on the card can be answered."""
        self.armed = True
        self.add_class("-armed")

    def hint(self, text: str) -> None:
        """Show at the lower edge how to get to the card."""
        self.border_subtitle = Content(text) if text else None

    def entrance(self) -> Widget:
        """The widget that takes the focus when the card is entered."""
        return self.query_one(Choices)

    def fit(self, rows: int) -> None:
        """Give the subject the rows that fields and choices leave of `rows`; it scrolls."""
        tight = rows < TIGHT
        self.set_class(tight, "-tight")
        width = self.content_region.width
        choices = self.query_one(Choices)
        fixed = 2 + self.fixed_rows + choices.get_content_height(self.size, self.size, width)
        fixed += 0 if tight else 1 + self.fixed_rows
        self.query_one(CardBody).styles.max_height = max(2, rows - fixed)

    async def update_subject(self) -> None:
        """Show what the operator himself changed in the subject; nothing else in it ever changes."""

    def settle(self, answer: object) -> None:
        """Give the answer, once the card is armed."""
        if self.armed:
            self.post_message(self.Settled(self.question, answer))

    def on_choices_picked(self, event: Choices.Picked) -> None:
        """A choice was taken, by key or by mouse."""
        event.stop()
        if self.armed:
            self.picked(event.value)

    def picked(self, value: str) -> None:
        raise NotImplementedError

    def on_choices_stray(self, event: Choices.Stray) -> None:
        """The operator began to type: the prompt gets it."""
        event.stop()
        self.post_message(self.TypedOn(event.character))

    def on_key(self, event: events.Key) -> None:
        """Page keys move through the subject wherever the focus is in the card."""
        card_body = self.query_one(CardBody)
        moves = {
            "pageup": card_body.scroll_page_up,
            "pagedown": card_body.scroll_page_down,
            "ctrl+home": card_body.scroll_home,
            "ctrl+end": card_body.scroll_end,
        }
        move = moves.get(event.key)
        if move is not None:
            event.stop()
            event.prevent_default()
            move(animate=False)
