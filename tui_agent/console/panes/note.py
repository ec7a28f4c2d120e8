"""Recovery note: what goes to the model with its next call, word for word, or what went with the last."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_agent.console.looks.pane_facts import PaneFacts
from tui_agent.console.panes.pane import MOST_ROWS, StatePane, nothing
from tui_agent.frontend.lines.styled import Line, Span, fit, wrap
from tui_agent.terminal_text import sanitize

if TYPE_CHECKING:
    from tui_agent.core.state import RunState


class NotePane(StatePane):
    """The pending note in full, dimmed once it was sent."""

    facts = PaneFacts(
        "note",
        "Recovery note",
        "What the model reads next, word for word, and only then. {note} edits it while it waits.",
        "n",
        row=1,
        column=1,
    )

    DEFAULT_CSS = """
    NotePane { height: 9; min-height: 3; }
    """

    _pending: str | None = None
    _sent: str | None = None
    _edited = False
    _live = False
    _recorded = False

    def show(self, state: RunState, now: float) -> None:
        shown = state.note is not None or state.sent_note is not None
        self.say_below(rule=", ".join(state.note_rules) if shown else "")
        part = (state.note, state.sent_note, state.note_edited, state.running, state.session.recorded)
        if part == (self._pending, self._sent, self._edited, self._live, self._recorded) and self.lines:
            return
        if state.note != self._pending:
            self.scroll_home(animate=False, immediate=True)
        self._pending, self._sent, self._edited, self._live, self._recorded = part
        self.redraw()

    @property
    def speaks(self) -> bool:
        return self._pending is not None or self._sent is not None

    def rows_at_most(self, *, calm: bool) -> int:
        """Rows for all of a note that waits to be sent, whatever happened before."""
        return MOST_ROWS if self._pending is not None else super().rows_at_most(calm=calm)

    def draw(self, width: int, height: int) -> list[Line]:
        """A line that says when the note is sent, then its text."""
        if self._pending is not None:
            heading = "→ the model reads this next"
            if self._edited:
                heading = "✎ edited by you: the model reads this next"
            elif self._recorded:
                heading = "→ the policy would send this"
            role, text = "note bold", self._pending
        elif self._edited:
            return [(Span(fit("✎ dropped by you: nothing will be sent", width), "note bold"),)]
        elif self._sent is not None:
            heading, role, text = "✓ the model has read this", "muted", self._sent
        else:
            about = "After a failure: what the model will read with its next call."
            return nothing("nothing pending", about, width, height)
        body = "" if self._pending is not None else "muted"
        lines: list[Line] = [(Span(fit(heading, width), role),)]
        lines.extend((Span(line, body),) for line in wrap(sanitize(text).strip("\n"), width))
        return lines
