"""The approval card: it shows the whole of what a call would do, and for how long and how much an answer allows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from textual import events
from textual.app import ComposeResult
from textual.content import Content
from textual.widget import Widget

from tui_agent.call_names import of_lane
from tui_agent.console.cards.answer_field import AnswerField
from tui_agent.console.cards.card import Card
from tui_agent.console.cards.card_body import CardBody
from tui_agent.console.cards.choices import Choices
from tui_agent.console.cards.editor import ArgumentsEditor
from tui_agent.console.looks.hints import key_line
from tui_agent.frontend.lines.approval import about, choices, is_dangerous, small_print, subject
from tui_agent.runtime.operator import ApprovalReply
from tui_agent.terminal_text import reveal

if TYPE_CHECKING:
    from tui_agent.frontend.operator import ApprovalQuestion

LASTING = frozenset({"session", "always", "everywhere"})
_AT_ONCE = frozenset("yn")


class ApprovalCard(Card):
    """The ways to answer are named by `choices`; `n` asks for a reason, `e` edits first, `c` takes another rule."""

    DEFAULT_CSS = """
    ApprovalCard {
        & AnswerField { display: none; margin-top: 1; background: $background; }
        &.-denying AnswerField { display: block; }
        &.-danger, &.-danger.-armed:focus-within { border: round $error; border-title-color: $error; }
        &.-editing CardBody, &.-editing Choices, &.-denying Choices { display: none; }
    }
    """

    question: ApprovalQuestion

    def __init__(self, question: ApprovalQuestion) -> None:
        asked = question.asked
        super().__init__(question, of_lane(f"Allow {reveal(asked.tool)}?", asked.lane))
        self._offers = (asked.rules, *asked.others)
        self._offer = 0
        self._begun = ""
        """The letter that acted at once."""
        self._opened = False
        """The small print stands below the subject."""
        self.set_class(is_dangerous(asked), "-danger")

    def compose(self) -> ComposeResult:
        """What, where and what it reaches, the choices; the fields that two of them open."""
        asked = self.question.asked
        yield CardBody([*subject(asked.preview, asked.input), *about(asked)])
        yield Choices(list(choices(asked, asked.rules)), at_once=self._may_act_at_once)
        yield AnswerField("Why not? The model reads it.")
        yield ArgumentsEditor(asked.input)

    def _may_act_at_once(self, key: str) -> bool:
        """Yes and no, if nobody can be in the middle of a text. No is the first letter of its reason, too."""
        acts = key in _AT_ONCE and self.armed and self.stood_quiet()
        self._begun = key if acts else ""
        return acts

    def _open(self) -> None:
        """Show the small print below the subject, once that was read."""
        if not self.shows_all():
            return
        self._opened = True
        self._choose(self._offer)
        self._show_rules()

    def _next_offer(self) -> None:
        """Show another rule for the lasting choices, once the subject was read."""
        if not self.shows_all(subject_alone=True):
            return
        self._opened = True
        self._choose((self._offer + 1) % len(self._offers))
        self._show_rules()

    def _choose(self, offer: int) -> None:
        self._offer = offer
        asked, rules = self.question.asked, self._offers[offer]
        offered = [choice._replace(rare=choice.rare and not self._opened) for choice in choices(asked, rules)]
        self.query_one(Choices).rename(offered)
        body = self.query_one(CardBody)
        body.remark(list(small_print(asked, rules, offer)) if self._opened else [])
        body.redraw()
        body.refresh(layout=True)

    def picked(self, value: str) -> None:
        if value == "other":
            self._next_offer()
        elif value == "deny":
            self.add_class("-denying")
            field = self.query_one(AnswerField)
            field.focus()
            if self._begun:
                field.begin_with(self._begun)
                self._begun = ""
            self._show_hint()
        elif value == "edit":
            self.add_class("-editing")
            self.query_one(ArgumentsEditor).open()
        elif value == "more" or (
            value in LASTING and not (self._opened or self.query_one(Choices).whole("a"))
        ):
            self._open()
        elif self.shows_all(subject_alone=value not in LASTING):
            self._reply(value)
        else:
            self.query_one(Choices).listen()

    def on_choices_stray(self, event: Choices.Stray) -> None:
        """What is typed behind a no that acted at once is its reason, also before its field has the keys."""
        if self.has_class("-denying"):
            event.stop()
            event.prevent_default()
            self.query_one(AnswerField).write(event.text)

    def on_choices_entered(self, event: Choices.Entered) -> None:
        """Enter behind it, before its field has the keys."""
        event.stop()
        if self.has_class("-denying"):
            self.query_one(AnswerField).enter()

    def on_answer_field_marked(self, event: AnswerField.Marked) -> None:
        """Text that was typed behind the letter is the reason, with the letter."""
        event.stop()
        self._show_hint()

    def on_answer_field_confirmed(self, event: AnswerField.Confirmed) -> None:
        """Deny without a reason."""
        event.stop()
        self._reply("deny")

    def on_answer_field_submitted(self, event: AnswerField.Submitted) -> None:
        """Deny, with the reason as typed."""
        event.stop()
        self._reply("deny", reason=event.value.strip())

    def on_arguments_editor_accepted(self, event: ArgumentsEditor.Accepted) -> None:
        """Run the call once, as edited."""
        event.stop()
        changed = event.arguments != self.question.asked.input
        self._reply("once", arguments=event.arguments if changed else None)

    def on_arguments_editor_left(self, event: ArgumentsEditor.Left) -> None:
        event.stop()
        self._back()

    def on_key(self, event: events.Key) -> None:
        """Esc in the reason goes back to the choices."""
        if event.key == "escape" and self.has_class("-denying"):
            event.stop()
            event.prevent_default()
            self._back()
        elif event.key in {"home", "end"} and self.has_class("-denying"):
            event.prevent_default()

    def take_back(self) -> bool:
        """Esc takes back the rule that was chosen, and the small print, too."""
        chosen = bool(self._offer) or self._opened
        self._opened = False
        self._choose(0)
        return super().take_back() | chosen

    def on_choices_beyond(self, event: Choices.Beyond) -> None:
        """Below the choices is the list of rules, if it is open. With nothing else to move through, the arrows go from
        choice to choice; while there is more to read, it scrolls.
        """
        offer = self._offer + event.step
        body = self.query_one(CardBody)
        if self._opened and 0 <= offer < len(self._offers) and not self._subject_unseen:
            self._choose(offer)
            self._show_rules()
        elif not body.max_scroll_y:
            self.query_one(Choices).step(event.step)
        else:
            return
        event.stop()
        event.prevent_default()

    @property
    def _subject_unseen(self) -> int:
        return self.query_one(CardBody).subject_unseen

    def _show_rules(self) -> None:
        body = self.query_one(CardBody)
        self.call_after_refresh(lambda: body.scroll_to(y=body.subject_lines, animate=False))

    def way_back(self) -> Content:
        if self.has_class("-denying"):
            marked = self.query_one(AnswerField).marking
            more = [("type on", f"{marked}…")] if marked else []
            return key_line(("Enter", "deny"), *more, ("Esc", "back"), ("^C", "interrupt"))
        return super().way_back()

    def entrance(self) -> Widget:
        """The operator's place: in the reason, in the editor, or at the choices."""
        if self.has_class("-denying"):
            return self.query_one(AnswerField)
        if self.has_class("-editing"):
            return self.query_one(ArgumentsEditor).entrance()
        return self.query_one(Choices)

    def _back(self) -> None:
        self._opened = False
        self._choose(0)
        self.query_one(AnswerField).take_mark()
        self.remove_class("-denying", "-editing")
        self.query_one(Choices).focus()

    def _reply(self, decision: str, *, reason: str = "", arguments: dict[str, Any] | None = None) -> None:
        match decision:
            case "session" | "always" | "everywhere":
                self.settle(ApprovalReply(decision, rules=self._offers[self._offer] if self._offer else ()))
            case "once" | "deny":
                self.settle(ApprovalReply(decision, reason=reason, input=arguments))
            case _:
                raise ValueError(decision)
