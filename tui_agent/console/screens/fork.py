"""The fork screen: the point, and what goes differently from there. What is left empty stays as it was.

It makes no fork: it is dismissed with the point and the changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static, TextArea

from tui_agent.console.cards.card_body import CardBody
from tui_agent.console.looks.command_keys import bindings
from tui_agent.console.looks.hints import Hint, KeyHints
from tui_agent.console.looks.option_row import Option, OptionRow
from tui_agent.console.prompt.fields import LineField, TextField, WholeText
from tui_agent.console.prompt.pasted import PASTED
from tui_agent.console.screens.framed import FramedScreen
from tui_agent.core.names import POLICIES
from tui_agent.frontend.lines.passages import Passage
from tui_agent.frontend.lines.rewind import MARKS
from tui_agent.quantities import time_of_day
from tui_agent.session.fork import DROP, ForkChoice, fork_choice
from tui_agent.session.fork_point import ForkPoint
from tui_agent.store.file_changes import FileChange
from tui_agent.terminal_text import one_line

HINTS = (
    Hint("Enter", "fork and open it", "enter"),
    Hint("Esc", "cancel", "escape"),
    Hint("Tab", "next field", "tab"),
)
CHOOSE = Hint("←→", "choose", "right")
NEW_LINE = Hint("⇧Enter", "new line", "shift+enter")
SCROLLS = Hint("PgDn", "read on", "pagedown")

AROUND, AROUND_LOW = 24, 17
"""Rows of the terminal that everything but the question and the note needs, with and without its empty lines."""

BELOW = 3
"""Rows of the frame around the fields, with the keys."""


class ForkField(TextField):
    """A text of up to four lines in sight. Enter is the screen's."""

    DEFAULT_CSS = """
    ForkField {
        height: auto; min-height: 1; max-height: 4; border: none; padding: 0;
        background: $surface;
        & .text-area--cursor-line { background: transparent; }
    }
    """

    longest = PASTED
    BINDINGS: ClassVar[list[BindingType]] = bindings("fork-text")

    def __init__(self, name: str, placeholder: str) -> None:
        super().__init__(
            placeholder=Content(placeholder),
            highlight_cursor_line=False,
            soft_wrap=True,
            compact=True,
            id=name,
        )

    def action_newline(self) -> None:
        self.insert("\n")


class ForkScreen(FramedScreen[ForkChoice | None]):
    """Dismissed with what is to be forked, or None."""

    DEFAULT_CSS = """
    ForkScreen {
        & > Vertical { width: 100; background: $background; }
        & VerticalScroll { height: auto; scrollbar-size-vertical: 1; }
        & .fork--label { color: $accent; text-style: bold; margin-top: 1; }
        & .fork--hint { color: $text-muted; }
        & Input { background: $surface; }
        & KeyHints { margin-top: 1; }
        &.-low .fork--label, &.-low KeyHints { margin-top: 0; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings("fork")

    low = 30

    def __init__(self, point: ForkPoint, changed: Sequence[FileChange] = ()) -> None:
        """`changed`: what bringing the workspace back to how it was then would do."""
        super().__init__("Fork: what if …")
        self._point = point
        self._changed = changed
        self._policy = OptionRow(policy_options(point.policy), point.policy)
        self._files = OptionRow([Option("", "stay as they are"), Option("back", "as they were then")], "")

    def inside(self) -> ComposeResult:
        """The point, then a field for each thing that can be different there."""
        point = self._point
        with VerticalScroll(can_focus=False):
            yield Static(self._place(), id="place")
            yield Static(
                Content("This session stays as it is. A field that you leave empty keeps what it had."),
                classes="fork--hint",
            )
            yield label("Policy")
            yield self._policy
            yield label("Model")
            yield LineField(placeholder=one_line(point.model) or "as configured", compact=True, id="model")
            yield from self._answer_field()
            yield from self._note_field()
            if self._changed:
                yield label("Files of the workspace")
                yield self._files
                names = ", ".join(f"{MARKS[change.action][0]} {change.path}" for change in self._changed)
                yield Static(Content(f"Going back: {one_line(names, 200)}"), classes="fork--hint")
        yield KeyHints(self._hints)

    def _answer_field(self) -> ComposeResult:
        point = self._point
        if point.question is not None:
            yield label("Your answer to")
            yield CardBody([Passage(point.question)]).set_class(True, "of-answer")
            yield ForkField(
                "answer",
                "left open; the agent goes on without it"
                if point.answer is None
                else f"as it was: {one_line(point.answer, 70)}",
            )
        elif point.open:
            yield label("A message to the agent")
            yield ForkField("answer", "none")

    def _note_field(self) -> ComposeResult:
        point = self._point
        if point.open:
            yield label("Recovery note with the next model call")
            if point.note is not None:
                yield CardBody([Passage(point.note, "note")]).set_class(True, "of-note")
            yield ForkField("note", "none" if point.note is None else f"as it is; {DROP}: send none")

    def on_resize(self, event: events.Resize) -> None:
        """The question and the note have the rows that are left, three at least."""
        height = event.size.height
        beside = BELOW if height < self.low else BELOW + 1
        self.query_one(VerticalScroll).styles.max_height = height * 96 // 100 - beside
        room = height - (AROUND_LOW if height < self.low else AROUND) - (4 if self._changed else 0)
        bodies = self.query(CardBody)
        for body in bodies:
            body.styles.max_height = max(3, room // len(bodies))

    def on_mount(self) -> None:
        """Focus the first field; no notification covers it."""
        self.app.clear_notifications()
        self._policy.focus()
        for body in self.query(CardBody):
            self.watch(body, "show_vertical_scrollbar", self._name_keys)

    @property
    def _hints(self) -> list[Hint]:
        """Keys that do something here."""
        scrolls = any(body.show_vertical_scrollbar for body in self.query(CardBody))
        return [*HINTS, *([SCROLLS] if scrolls else []), CHOOSE, *([NEW_LINE] if self._point.open else [])]

    def _name_keys(self) -> None:
        self.query_one(KeyHints).show(self._hints)

    def _place(self) -> Content:
        point = self._point
        seq = fork_choice(point, answer=self._text("answer") if self.is_mounted else "").seq
        what = "the question is open" if seq != point.seq else one_line(point.kind, 60)
        iteration = f" · step {point.iteration}" if point.iteration else ""
        when = "" if seq != point.seq else f" · {time_of_day(point.at)}"
        return Content.assemble(
            ("After event ", "$text"),
            (f"{seq}", "bold $accent"),
            f" of {point.total}{iteration} · {what}{when}",
        )

    def _text(self, name: str) -> str:
        fields = self.query(f"#{name}").results(WholeText)
        return next((field.whole_text.strip() for field in fields), "")

    def on_text_area_changed(self, _: TextArea.Changed) -> None:
        """Another answer moves the point to the event at which the question is open."""
        self.query_one("#place", Static).update(self._place())

    def action_read(self, pages: int) -> None:
        """Scroll the question or note that the focused field is about, else the note."""
        field = self.focused.id if self.focused is not None else None
        for card_body in self.query(".of-answer" if field == "answer" else ".of-note"):
            if pages < 0:
                card_body.scroll_page_up(animate=False)
            else:
                card_body.scroll_page_down(animate=False)

    def action_confirm(self) -> None:
        """Dismiss the screen with what was entered."""
        self.dismiss(
            fork_choice(
                self._point,
                policy=self._policy.value,
                model=self._text("model"),
                answer=self._text("answer"),
                note=self._text("note"),
                files=bool(self._files.value),
            )
        )


def label(text: str) -> Static:
    return Static(Content(text), classes="fork--label")


def policy_options(now: str) -> list[Option]:
    """The five, the present one marked; a session that has none yet may go without a choice."""
    options = [Option(name, f"{name} (as it is)" if name == now else name) for name in POLICIES]
    return options if now in POLICIES else [Option(now, "as configured"), *options]
