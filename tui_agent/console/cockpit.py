"""The panes in their places: conversation on the left, recovery on the right, or folded into one line.

The same cockpit stands in the live screen and in the replay; both give it a state and a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Container, Horizontal, Vertical
from textual.content import Content
from textual.widget import Widget

from tui_agent.console.panes import (
    AttemptsPane,
    ConfidencePane,
    ConversationPane,
    NotePane,
    RecoverySummary,
    RingPane,
    TimelinePane,
)
from tui_agent.console.panes.pane import LinePane

if TYPE_CHECKING:
    from textual import events
    from textual.geometry import Size

    from tui_agent.state import RunState

UNFOLDED_WIDTH = 108
UNFOLDED_HEIGHT = 28
"""Below either, the recovery panes fold into the summary line."""
WIDE_WIDTH = 170
TALL_HEIGHT = 36

RECOVERY_PANES = (RingPane, AttemptsPane, ConfidencePane, NotePane, TimelinePane)
PANE_NAMES = ("conversation", "ring", "attempts", "confidence", "note", "timeline")


def layout_classes(size: Size) -> dict[str, bool]:
    """Which layout holds for a terminal of this size, as classes of the cockpit."""
    folded = size.width < UNFOLDED_WIDTH or size.height < UNFOLDED_HEIGHT
    return {
        "-folded": folded,
        "-wide": not folded and size.width >= WIDE_WIDTH,
        "-short": not folded and size.height < TALL_HEIGHT,
    }


class Talk(Vertical):
    """The conversation's frame: the transcript, and the cards at its end."""


class Cockpit(Widget):
    """All panes; `show` gives each its state. `tray` stands at the end of the conversation."""

    DEFAULT_CSS = """
    Cockpit {
        height: 1fr;
        layout: vertical;

        & #body { height: 1fr; }
        & Talk {
            width: 1fr;
            border: round $border-blurred;
            border-title-color: $foreground;
            border-subtitle-color: $foreground;
            &:focus-within { border: round $border; }
        }
        & Talk ConversationPane { height: 1fr; min-height: 2; border: none; &:focus { border: none; } }
        & #recovery { width: 38%; min-width: 46; max-width: 64; layout: vertical; }
        & RecoverySummary { display: none; }

        & ConfidencePane, & NotePane { height: 7; }
        & AttemptsPane { height: 6; }
        &.-short RingPane, &.-short NotePane { height: 5; }
        &.-short AttemptsPane { height: 4; }
        &.-short ConfidencePane { height: 5; }

        &.-wide #recovery {
            width: 50%; max-width: 108; layout: grid;
            grid-size: 2 3; grid-rows: 9 14 1fr;
        }
        &.-wide #recovery LinePane { height: 1fr; }
        &.-wide #recovery TimelinePane { column-span: 2; }

        &.-folded RecoverySummary { display: block; }
        &.-folded #recovery { display: none; }
        &.-folded.-panes Talk { display: none; }
        &.-folded.-panes #recovery {
            display: block; width: 1fr; max-width: 100%; layout: grid;
            grid-size: 2 3; grid-rows: 1fr 1fr 1fr;
        }
        &.-folded.-panes #recovery LinePane { height: 1fr; }
        &.-folded.-panes #recovery TimelinePane { column-span: 2; }

        &.-hidden #recovery { display: none; }
        &.-hidden RecoverySummary { display: block; }
    }
    """

    def __init__(self, size: Size, tray: Widget | None = None) -> None:
        super().__init__(id="cockpit")
        self._tray = tray
        self._fit(size)

    def compose(self) -> ComposeResult:
        """Conversation and tray, recovery panes, the summary line."""
        with Horizontal(id="body"):
            with Talk() as talk:
                talk.border_title = Content(ConversationPane.BORDER_TITLE)
                yield ConversationPane(id="conversation")
                if self._tray is not None:
                    yield self._tray
            with Container(id="recovery"):
                yield RingPane(id="ring")
                yield ConfidencePane(id="confidence")
                yield AttemptsPane(id="attempts")
                yield NotePane(id="note")
                yield TimelinePane(id="timeline")
        yield RecoverySummary()

    @property
    def folded(self) -> bool:
        """The recovery panes have no place of their own."""
        return self.has_class("-folded")

    @property
    def panes_shown(self) -> bool:
        """The recovery panes can be seen."""
        return self.has_class("-panes") if self.folded else not self.has_class("-hidden")

    def show(self, state: RunState, now: float) -> None:
        """Draw all panes. `now` in seconds since the epoch."""
        for pane in self.query(LinePane):
            pane.show(state, now)
        self.query_one(RecoverySummary).show(state, now)

    def show_panes(self, shown: bool) -> None:
        """Show or hide the recovery panes, whichever layout holds."""
        if self.folded:
            self.set_class(shown, "-panes")
        else:
            self.set_class(not shown, "-hidden")

    def pane(self, name: str) -> LinePane:
        """A pane by its name; it can be seen after that."""
        if name != "conversation":
            self.show_panes(True)
        elif self.folded:
            self.show_panes(False)
        return self.query_one(f"#{name}", LinePane)

    def on_resize(self, event: events.Resize) -> None:
        """Fold or unfold."""
        self._fit(self.app.size)

    def on_timeline_pane_selected(self, event: TimelinePane.Selected) -> None:
        """A line of the timeline leads to its place in the conversation."""
        event.stop()
        if self.folded:
            self.show_panes(False)
        self.query_one(ConversationPane).go_to(event.seq)

    def _fit(self, size: Size) -> None:
        for name, holds in layout_classes(size).items():
            self.set_class(holds, name)
