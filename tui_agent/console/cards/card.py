"""The common part of all cards: a subject that never changes, a short delay before they can be answered, one
answer.

A card is *armed* by the card host once nobody is typing any more; until then it takes neither keys nor clicks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from textual import events
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widget import Widget

from tui_agent.console.cards.answer_field import MOST_ROWS, AnswerField
from tui_agent.console.cards.card_body import CardBody
from tui_agent.console.cards.choices import Choices
from tui_agent.console.cards.editor import ArgumentsEditor
from tui_agent.console.looks.hints import MARK, key_line
from tui_agent.console.prompt.prompt import Prompt
from tui_agent.frontend.commands.registry import shown_key
from tui_agent.frontend.lines.passages import Choice
from tui_agent.quantities import counted
from tui_agent.terminal_text import one_line

if TYPE_CHECKING:
    from tui_agent.frontend.operator import AnyQuestion


TIGHT = 16
"""Rows below which a card goes without empty lines."""

BARE = 7
"""Rows below which a card goes without its frame, and the choices without words."""

WAY_BACK = key_line(("Esc", "prompt"), ("^C", "interrupt"))
_READING = key_line(("PgDn", "read on"), ("End", "last"))
_PAGES = {"pageup": -1, "pagedown": 1}
"""Keys that move through the subject, and through the conversation above if nothing of the subject is left."""
_LABEL, _EDGE = 28, 4
"""Cells of a choice's words at the lower edge, and those of the edge that no words take."""


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
        & AnswerField:focus { background-tint: $background 0%; }
        & > .card--hint { color: $text-muted; height: auto; }
        &.-tight Choices, &.-tight AnswerField { margin-top: 0; }
        &.-bare { border: none; border-top: round $warning; padding: 0; }
    }
    """

    fixed_rows = 0
    """Lines of a field or remark that the card shows beside its subject and choices."""
    wants_focus = True
    """True if the card is answered by keys that the prompt would take too."""
    typing_on = "a message"
    """The meaning of a text that is typed here."""

    @dataclass
    class Settled(Message):
        """The operator decided. `answer` fits the question."""

        question: AnyQuestion
        answer: Any

    class Left(Message):
        """The operator goes back to the prompt; the question stays."""

    @dataclass
    class TypedOn(Message):
        """Text that was typed or pasted was meant for the prompt."""

        text: str

    def __init__(self, question: AnyQuestion, title: str, rule: str = "") -> None:
        """`rule`: id of the rule that asks, shown behind the title."""
        super().__init__()
        self.question = question
        self.armed = False
        self._title = title
        self._hint = Content("")
        self._marked: Choice | None = None
        self.stood_quiet: Callable[[], bool] = lambda: False
        """True if it has been on the screen for a while in which nothing was typed; set by the card host."""
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

    def disarm(self) -> None:
        """Until it is armed again the card takes no answer."""
        self.armed = False
        self.remove_class("-armed")

    def hint(self, keys: Content) -> None:
        """Show at the lower edge how to get to the card, or out of it."""
        self._hint = keys
        self._show_hint()

    def _show_hint(self) -> None:
        if self._marked is not None and self.has_focus_within:
            self.border_subtitle = self._mark_hint(self._marked)
            return
        left = next((body.below for body in self.query(CardBody) if body.display), 0)
        hint = self.way_back() if self._hint is WAY_BACK else self._hint
        if left:
            more = Content.styled(f"↓ {counted(left, 'more line')}  ", "$muted")
            hint = more + (
                _READING if self.has_focus_within else hint or key_line((shown_key("card"), "read on"))
            )
        self.border_subtitle = hint or None

    def _mark_hint(self, choice: Choice) -> Content:
        label = one_line(choice.label, _LABEL)
        what = Content.styled(f"{MARK} {f'{choice.key} {label}'.strip()} · ", "bold")
        whole = what + key_line(("Enter", "does it"), ("type on", f"for {self.typing_on}"))
        return (
            whole if whole.cell_length <= self.size.width - _EDGE else what + key_line(("Enter", "does it"))
        )

    def on_choices_marked(self, event: Choices.Marked) -> None:
        """Say at the lower edge what Enter would do."""
        event.stop()
        self._marked = event.choice
        self._show_hint()

    def take_back(self) -> bool:
        """Esc takes back what was marked before it leads away; False: nothing was."""
        choices = self.query_one(Choices)
        marked = choices.marked
        choices.mark("")
        return marked

    def way_back(self) -> Content:
        """The keys that lead out of the card; a field that is open has keys of its own."""
        return key_line(("^C", "interrupt")) if self.has_class("-editing") else WAY_BACK

    def on_mount(self) -> None:
        """Until the focus is here, keys go to the prompt."""
        self._focus_moved()

    def on_descendant_focus(self) -> None:
        self._focus_moved()

    def on_descendant_blur(self) -> None:
        self._focus_moved()

    def _focus_moved(self) -> None:
        self._show_hint()
        for choices in self.query(Choices):
            choices.dim = self.wants_focus and not self.has_focus_within

    def on_card_body_scrolled(self) -> None:
        self._show_hint()

    def entrance(self) -> Widget:
        """The widget that takes the focus when the card is entered."""
        return self.query_one(Choices)

    def fit(self, rows: int, width: int) -> int:
        """Give the subject the rows that fields and choices leave of `rows`; it scrolls. Gives the rows of the whole
        card.

        `width`: of the card with its frame, which has none of its own in a tab that is not shown.
        """
        tight, bare = rows < TIGHT, rows < BARE
        self.set_class(tight, "-tight")
        self.set_class(bare, "-bare")
        fixed = (1 if bare else 2 + self.fixed_rows) + (0 if tight else 1 + self.fixed_rows)
        inner = max(1, width - (0 if bare else 4))
        body = self.query_one(CardBody)
        # Beside a short subject the choices may have their words in full.
        room = rows - fixed - body.get_content_height(self.size, self.size, inner)
        fixed += self.query_one(Choices).fit(
            1 if bare else max(1, rows // 4, room), inner, 0 if bare else room
        )
        for field in self.query(AnswerField):
            field.styles.max_height = most = max(1, min(MOST_ROWS, rows // 4))
            fixed += min(most, field.rows) - 1 if field.display else 0
        body.space_out(not tight)
        taken = fixed + body.allow(max(1, rows - fixed), inner)
        for editor in self.query(ArgumentsEditor):
            editor.fit(rows - (1 if bare else 2))
        self._show_hint()
        self.call_after_refresh(self._show_hint)
        return taken

    def update_subject(self) -> bool:
        """Show what the operator himself changed in the subject, if he did; nothing else in it ever changes."""
        return False

    def settle(self, answer: object) -> None:
        """Give the answer, once the card is armed."""
        if self.armed:
            self.post_message(self.Settled(self.question, answer))

    def on_choices_picked(self, event: Choices.Picked) -> None:
        """A choice was taken, by key or by mouse."""
        event.stop()
        if self.armed:
            self.picked(event.value)

    def on_choices_beyond(self, event: Choices.Beyond) -> None:
        """The subject scrolls if there is no other line of choices."""
        event.stop()
        self.query_one(CardBody).scroll_relative(y=event.step, animate=False)

    def picked(self, value: str) -> None:
        raise NotImplementedError

    def shows_all(self, *, subject_alone: bool = True) -> bool:
        """True if the end of the subject (or of the remarks too) has been on the screen; if not, go towards
        it.
        """
        body = self.query_one(CardBody)
        if not (body.subject_unseen if subject_alone else body.unseen):
            return True
        body.scroll_page_down(animate=False)
        self.app.notify(
            "You have not seen all of it yet: PgDn reads on, End goes to its end.",
            timeout=4,
            markup=False,
        )
        return False

    def on_choices_stray(self, event: Choices.Stray) -> None:
        """The operator began to type: the prompt gets it."""
        event.stop()
        self.post_message(self.TypedOn(event.text))

    def on_key(self, event: events.Key) -> None:
        """Page keys move through the subject, or what stands above it, wherever the focus is in the card; Esc takes a
        mark back, then leads to the prompt.
        """
        card_body = self.query_one(CardBody)
        moves = {
            "pageup": card_body.scroll_page_up,
            "pagedown": card_body.scroll_page_down,
            "home": card_body.scroll_home,
            "ctrl+home": card_body.scroll_home,
            "end": card_body.scroll_end,
            "ctrl+end": card_body.scroll_end,
        }
        move = moves.get(event.key)
        if event.key in _PAGES and not card_body.max_scroll_y:
            self.post_message(Prompt.Paged(_PAGES[event.key]))
        elif move is not None:
            move(animate=False)
        elif event.key == "escape":
            if not self.take_back():
                self.post_message(self.Left())
        else:
            return
        event.stop()
        event.prevent_default()
