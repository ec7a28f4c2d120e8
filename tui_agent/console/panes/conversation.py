"""Conversation: everything that was said and done, drawn line by line so that length costs nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from tui_agent.console.panes.ink import Line, Span, wrap
from tui_agent.console.panes.pane import LinePane
from tui_agent.console.sanitize import sanitize

if TYPE_CHECKING:
    from tui_agent.state import RunState


class ConversationPane(LinePane):
    """The run's transcript."""

    BORDER_TITLE: ClassVar[str] = "Conversation"

    _state: RunState | None = None

    def show(self, state: RunState, now: float) -> None:
        """Show the conversation of `state`."""
        self._state = state
        self.redraw()

    def draw(self, width: int, height: int) -> list[Line]:
        """The texts in order."""
        if self._state is None:
            return []
        texts = [str(getattr(entry, "text", "") or getattr(entry, "content", "")) for entry in self._state.conversation.entries]
        return [(Span(line),) for text in texts for line in wrap(sanitize(text), width)]

    def go_to(self, seq: int) -> None:
        """Bring the block of the event `seq` into view."""

    def follow(self) -> None:
        """Go to the end and stay there."""
        self.scroll_end(animate=False)
