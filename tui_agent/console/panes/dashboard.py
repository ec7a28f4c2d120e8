"""Layout of the panes, in three forms: the conversation with the incident strip, with the recovery panes at its side as
well, or the recovery panes over the whole screen.

The same dashboard stands in the live screen and in the replay; both give it a state and a time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

from textual import events
from textual.app import ComposeResult
from textual.containers import Container, Horizontal, Vertical
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.widget import Widget

from tui_agent.console import panes
from tui_agent.console.cards.card_host import LOW, CardHost
from tui_agent.console.looks.splash import (
    LOW_HEIGHT,
    TINY_HEIGHT,
    UNFOLDED_HEIGHT,
    UNFOLDED_WIDTH,
    WIDE_WIDTH,
)
from tui_agent.console.panes import pane_sizes
from tui_agent.console.panes.density import Density
from tui_agent.console.panes.pane import LinePane
from tui_agent.console.panes.pane_sizes import Layout, PaneSizes
from tui_agent.core.evolve import evolve

if TYPE_CHECKING:
    from tui_agent.console.looks.welcome import Welcome
    from tui_agent.core.state import RunState

_logger = logging.getLogger(__name__)

TALL_HEIGHT = 36
HIGH_HEIGHT = 52
"""Rows from which each failure of the error ring has two at the conversation's side."""


class PaneForm(StrEnum):
    """How much of the screen the recovery panes take."""

    STRIP = "strip"
    SIDE = "side"
    FULL = "full"


def narrow(size: Size) -> bool:
    """There is no room for panes at the conversation's side."""
    return size.width < UNFOLDED_WIDTH or size.height < UNFOLDED_HEIGHT


class ConversationFrame(Vertical):
    """The conversation's border: the transcript, and the cards at its end."""

    DEFAULT_CSS = """
    ConversationFrame {
        width: 1fr;
        border: round $border-blurred;
        border-title-color: $foreground;
        border-subtitle-color: $foreground;
        &:focus-within { border: round $border; }
        ConversationPane { height: 1fr; min-height: 2; border: none; &:focus { border: none; } }
        &.-bare { border: none; }
    }
    """

    class Resized(Message):
        """The frame has another size."""

    def on_resize(self) -> None:
        self.post_message(self.Resized())


class RecoveryColumn(Container):
    """The five panes of recovery, in a column, or in a grid where there is room, or where there is little."""

    DEFAULT_CSS = """
    RecoveryColumn {
        width: 38%; min-width: 46; max-width: 64; layout: vertical;
        ConfidencePane, NotePane { height: 7; }
        AttemptsPane { height: 6; }
        &.-short RingPane, &.-short NotePane { height: 5; }
        &.-short AttemptsPane { height: 4; }
        &.-short ConfidencePane { height: 5; }
        &.-wide { width: 50%; max-width: 108; layout: grid; grid-size: 2 3; grid-rows: 9 14 1fr; }
        &.-wide.-high { grid-rows: 12 14 1fr; }
        &.-wide LinePane { height: 1fr; }
        &.-wide TimelinePane { column-span: 2; }
        TrendsPane { display: none; }
        &.-full { width: 1fr; max-width: 100%; layout: grid; grid-size: 2 3; grid-rows: 1fr; }
        &.-full.-tall { grid-rows: 2fr 2fr 3fr; }
        &.-full LinePane { height: 1fr; }
        &.-full TrendsPane { display: block; }
        &.-full TimelinePane { column-span: 1; }
        &.-strip { display: none; }
    }
    """

    class Resized(Message):
        """The column has another size."""

    def on_resize(self) -> None:
        self.post_message(self.Resized())


class Dashboard(Vertical):
    """All panes; `show` gives each its state."""

    DEFAULT_CSS = """
    Dashboard { height: 1fr; }
    Dashboard #body { height: 1fr; }
    Dashboard ConversationFrame.-behind { display: none; }
    """

    class Sized(Message):
        """The operator gave the panes at the side other sizes."""

    def __init__(self, size: Size) -> None:
        super().__init__(id="dashboard")
        self._frame = ConversationFrame()
        self._card_host: CardHost | None = None
        self._frame.border_title = Content("Conversation")
        self._column = RecoveryColumn(id="recovery")
        self._panes: list[LinePane] = []
        self.conversation: panes.ConversationPane | None = None
        self._strip: panes.IncidentStrip | None = None
        self.plan: panes.PlanLine | None = None
        self._came_from = 0
        self._density = Density.NORMAL
        self.chosen = self._before = PaneForm.SIDE
        """The form that the operator wants; `form` is the one that is shown."""
        self.sizes = PaneSizes()
        """What the operator made of the panes at the side."""
        self._given: tuple[Layout, int | None, tuple[int, ...]] = ("column", None, ())
        """The layout, the cells of the side and the rows that the panes have of it."""
        self._dragged: int | None = None
        """The edge that the mouse moves: of the row of panes at this place, or of the side (-1)."""
        self._room = size
        self.fit(size)

    def compose(self) -> ComposeResult:
        """The conversation and the recovery column, empty as yet."""
        with Horizontal(id="body"):
            yield self._frame
            yield self._column

    async def fill_conversation(self, card_host: CardHost | None = None) -> None:
        """Mount the conversation; `card_host` stands at its end."""
        self.conversation = panes.ConversationPane(id="conversation")
        self._card_host = card_host
        await self._frame.mount(self.conversation, *([card_host] if card_host is not None else []))
        self._panes = [self.conversation]

    async def fill_column(self) -> None:
        """Mount the recovery panes and their summary."""
        for pane in (
            panes.RingPane(id="ring"),
            panes.ConfidencePane(id="confidence"),
            panes.AttemptsPane(id="attempts"),
            panes.NotePane(id="note"),
            panes.TimelinePane(id="timeline"),
            panes.TrendsPane(id="trends"),
        ):
            # One at a time: keys are answered in between.
            await self._column.mount(pane)
            await asyncio.sleep(0)
            self._panes.append(pane)
        self._strip = panes.IncidentStrip()
        self.plan = panes.PlanLine()
        await self.mount(self._strip, self.plan)
        self.fit(self.app.size)

    def use(self, remembered: Mapping[str, str]) -> None:
        """Take up forms, sizes and density that were remembered of earlier starts."""
        for form in (remembered.get("panes_before", ""), remembered.get("panes", "")):
            if form in list(PaneForm):
                self.choose(PaneForm(form))
        self.use_sizes(PaneSizes.of(remembered))
        if (density := remembered.get("view", "")) in list(Density):
            self.use_density(Density(density))

    @property
    def density(self) -> Density:
        """How densely the conversation is drawn."""
        return self._density

    def use_density(self, density: Density) -> None:
        """Draw the conversation so densely."""
        self._density = density
        if self.conversation is not None:
            self.conversation.use_density(density)

    def greet(self, welcome: Welcome) -> None:
        """Show this as long as nothing was said."""
        if self.conversation is not None:
            self.conversation.welcome = welcome.lines
            self.conversation.refresh()

    @property
    def form(self) -> PaneForm:
        """The form that is shown: the one chosen, unless it covers a question or has no room at the side."""
        chosen = self._before if self.chosen is PaneForm.FULL and self.asking else self.chosen
        return PaneForm.STRIP if chosen is PaneForm.SIDE and narrow(self._room) else chosen

    @property
    def covers_conversation(self) -> bool:
        """The conversation, and a card with it, cannot be seen."""
        return self.form is PaneForm.FULL

    def choose(self, form: PaneForm) -> None:
        """Show this form from now on, as far as there is room for it."""
        if form is PaneForm.FULL and self.chosen is not PaneForm.FULL:
            self._before = self.chosen
        self.chosen = form
        self.fit(self.app.size)

    @property
    def before(self) -> PaneForm:
        """The form that one that covers the conversation is left for."""
        return self._before if self.chosen is PaneForm.FULL else self.chosen

    def next_form(self) -> PaneForm:
        """The form after the one that is shown, round and round; without room at the side, to and fro."""
        if self.chosen is PaneForm.FULL and narrow(self._room):
            return self._before
        forms = [form for form in PaneForm if form is not PaneForm.SIDE or not narrow(self._room)]
        here = self.form if self.chosen is PaneForm.SIDE else self.chosen
        return forms[(forms.index(here) + 1) % len(forms)]

    def show_conversation(self) -> None:
        """Leave the form that covers the conversation, for the one before it."""
        if self.covers_conversation:
            self.choose(self._before)

    def show(
        self, state: RunState, now: float, *, still: bool = False, questions: bool | None = None
    ) -> None:
        """Draw all panes. `now` in seconds since the epoch; `still`: time does not go on; `questions`: an open one
        stands in the conversation, because no card puts it (None: where time does not go on).

        A failure counts in all of them as it comes, before its step has ended and is judged. A pane that raises does
        not keep the others from being drawn: their faults come as one `ExceptionGroup`.
        """
        recovery = state.recovery.so_far(state.run.iteration, state.seq, state.at)
        if recovery is not state.recovery:
            state = evolve(state, recovery=recovery)
        faults = []
        if self.conversation is not None:
            self.conversation.still = still
            self.conversation.puts_questions = still if questions is None else questions
        shown: list[LinePane | panes.IncidentStrip | panes.PlanLine] = [*self._panes]
        shown += [row for row in (self._strip, self.plan) if row is not None]
        for pane in shown:
            try:
                pane.show(state, now)
            except Exception as error:
                _logger.debug("A pane could not be drawn", exc_info=True)
                error.add_note(f"in the pane {pane.id}")
                faults.append(error)
        self._close_up()
        if faults:
            raise ExceptionGroup("panes could not be drawn", faults)

    def show_end(self, state: RunState) -> None:
        """Draw all panes for a session of which the beginning is to come, and in which nobody is at work."""
        if self.conversation is not None:
            self.conversation.show_end(state)
        self.show(state, state.at, still=True)

    def has_pane(self, widget: Widget | None) -> bool:
        """Whether the widget is one of the panes."""
        return widget in self._panes

    def pane(self, name: str) -> LinePane | None:
        """Make a pane visible and return it; None before the panes are mounted."""
        if name == "conversation":
            self.show_conversation()
        elif self.form is PaneForm.STRIP or name == "trends":
            self.choose(PaneForm.FULL if narrow(self._room) or name == "trends" else PaneForm.SIDE)
        return next((pane for pane in self._panes if pane.id == name), None)

    def page_conversation(self, step: int) -> None:
        """Where it is shown: read the conversation on by a page, back by one (-1), or follow its end (0)."""
        if self.conversation is None or self.covers_conversation:
            return
        if step:
            self.conversation.action_page(step)
        else:
            self.conversation.follow()

    def on_resize(self) -> None:
        self.fit(self.app.size)

    def on_timeline_pane_selected(self, event: panes.TimelinePane.Selected) -> None:
        """Show the place of the timeline's line in the conversation."""
        event.stop()
        self._came_from = event.seq
        self.show_conversation()
        if self.conversation is not None:
            if self.screen.focused is not None and self.screen.focused.id == "timeline":
                self.conversation.focus()
            self.conversation.go_to(event.seq)

    def go_to(self, seq: int, words: Sequence[str]) -> None:
        """Show the place of an event in the conversation, and there the line that has the most of the words."""
        self.show_conversation()
        if self.conversation is not None:
            self.conversation.go_to(seq, words)

    def on_conversation_pane_back(self) -> None:
        """Go back to the line of the timeline from which a jump came."""
        pane = self.pane("timeline")
        if isinstance(pane, panes.TimelinePane) and self._came_from:
            seq, self._came_from = self._came_from, 0
            self.call_after_refresh(pane.focus)
            self.call_after_refresh(pane.return_to, seq)

    def on_card_host_changed(self) -> None:
        """A question comes before the panes where there is no room for both."""
        self.fit(self.app.size)
        # The frame may keep its size, and then says nothing.
        self.call_after_refresh(self._fit_card_host)

    def on_conversation_frame_resized(self) -> None:
        self._fit_card_host()

    def on_card_host_resized(self) -> None:
        self._close_up()

    def on_recovery_column_resized(self) -> None:
        self._give_sizes(self.app.size)

    @property
    def asking(self) -> bool:
        """A card is on the screen, or about to be."""
        return self._card_host is not None and self._card_host.card is not None

    def fit(self, size: Size) -> None:
        """Show what there is room for in a terminal of this size."""
        self._room = size
        form = self.form
        self._column.set_class(form is PaneForm.STRIP, "-strip")
        self._column.set_class(form is PaneForm.FULL, "-full")
        self._column.set_class(form is PaneForm.SIDE and size.height < TALL_HEIGHT, "-short")
        self._column.set_class(size.height >= TALL_HEIGHT, "-tall")
        self._column.set_class(size.height >= HIGH_HEIGHT, "-high")
        self._frame.set_class(form is PaneForm.FULL, "-behind")
        self._frame.set_class(size.height < TINY_HEIGHT, "-bare")
        if self._strip is not None:
            self._strip.display = size.height >= LOW_HEIGHT
        self._give_sizes(size)

    # --- the sizes of the panes at the side -----------------------------------------------------------------

    @property
    def _layout(self) -> Layout:
        return "grid" if self._column.has_class("-wide") else "column"

    def _panes_by_row(self) -> list[list[LinePane]]:
        """The panes at the side, those beside each other together."""
        ids = (
            (("ring", "confidence"), ("attempts", "note"), ("timeline",))
            if self._layout == "grid"
            else (("ring",), ("confidence",), ("attempts",), ("note",), ("timeline",))
        )
        by_id = {pane.id: pane for pane in self._panes}
        return [[by_id[name] for name in row if name in by_id] for row in ids]

    def _give_sizes(self, size: Size) -> None:
        """Lay the side out as the operator wants it, or as its form has it."""
        side, share = self.form is PaneForm.SIDE, self.sizes.share
        width = pane_sizes.cells(share, size.width) if side and share is not None else None
        roomy = width is None or width >= pane_sizes.TWO_ABREAST
        self._column.set_class(side and size.width >= WIDE_WIDTH and roomy, "-wide")
        rows = self._panes_by_row()
        chosen = self.sizes.rows(self._layout) if side and all(rows) else ()
        chosen = pane_sizes.fitted(chosen, self._column.size.height) if len(chosen) == len(rows) - 1 else ()
        wanted = (self._layout, width, chosen)
        if wanted == self._given:
            return
        self._given = wanted
        styles = self._column.styles
        for rule in ("width", "min_width", "max_width", "grid_rows"):
            styles.clear_rule(rule)
        if width is not None:
            styles.width = styles.min_width = styles.max_width = width
        for pane in self._panes:
            pane.styles.clear_rule("height")
        if self._layout == "grid" and chosen:
            styles.grid_rows = " ".join([*map(str, chosen), "1fr"])
        elif chosen:
            for (pane,), height in zip(rows[:-1], chosen, strict=True):
                pane.styles.height = height
        self._column.refresh(layout=True)  # a rule that is cleared lays nothing out

    def use_sizes(self, sizes: PaneSizes) -> None:
        """Give the panes at the side these sizes from now on."""
        if sizes != self.sizes:
            self.sizes = sizes
            self._give_sizes(self.app.size)
            self.post_message(self.Sized())

    def widen_side(self, by: int) -> None:
        """Give the side so many hundredths of the width more (fewer, below 0)."""
        if self.form is PaneForm.SIDE:
            share = self.sizes.share or round(100 * self._column.size.width / max(1, self.app.size.width))
            share = min(max(share + by, pane_sizes.NARROWEST), pane_sizes.WIDEST)
            self.use_sizes(evolve(self.sizes, share=share))

    def heighten(self, name: str, by: int) -> None:
        """Give the row of the pane with this id more rows (fewer, below 0); the last one takes them from that above."""
        rows = self._panes_by_row()
        place = next((at for at, row in enumerate(rows) if any(pane.id == name for pane in row)), None)
        if place is not None:
            last = place == len(rows) - 1
            self._move_edge(place - last, -by if last else by)

    def _move_edge(self, place: int, by: int) -> None:
        """Move the edge below a row of panes down by `by` rows."""
        rows = self._panes_by_row()
        if self.form is PaneForm.SIDE and all(rows):
            # Keys come faster than layouts: what was given counts before what is on the screen.
            now = self._given[2] or [row[0].outer_size.height for row in rows[:-1]]
            moved = pane_sizes.moved(now, place, by, self._column.size.height)
            sizes = (
                evolve(self.sizes, column=moved)
                if self._layout == "column"
                else evolve(self.sizes, grid=moved)
            )
            self.use_sizes(sizes)

    def edge_at(self, x: int, y: int) -> int | None:
        """The edge that the mouse can take there: of the side (-1), or below the row of panes at a place."""
        column = self._column.region
        if self.form is not PaneForm.SIDE or not column.y <= y < column.bottom:
            return None
        if x in (column.x - 1, column.x):
            return -1
        for place, row in enumerate(self._panes_by_row()[1:]):
            if any(pane.region.y == y and pane.region.x <= x < pane.region.right for pane in row):
                return place
        return None

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Take an edge."""
        self._dragged = self.edge_at(event.screen_x, event.screen_y)
        if self._dragged is not None:
            event.stop()
            self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Draw the edge along."""
        if self._dragged is None:
            return
        if self._dragged < 0:
            width = self.app.size.width
            share = round(100 * (width - event.screen_x) / max(1, width))
            self.use_sizes(evolve(self.sizes, share=min(max(share, pane_sizes.NARROWEST), pane_sizes.WIDEST)))
        else:
            below = self._panes_by_row()[self._dragged + 1][0]
            self._move_edge(self._dragged, event.screen_y - below.region.y)

    def on_mouse_up(self) -> None:
        """Let the edge go."""
        if self._dragged is not None:
            self._dragged = None
            self.release_mouse()

    def _fit_card_host(self) -> None:
        room = self._frame.content_region
        if self._card_host is not None and room.height:
            self._card_host.fit(room.height, room.width)

    def _close_up(self) -> None:
        """Let a card stand right below a conversation that does not fill its frame."""
        conversation, card_host = self.conversation, self._card_host
        if conversation is None or card_host is None:
            return
        conversation.display = not self.asking or self._frame.content_region.height > LOW
        lines = conversation.virtual_size.height
        room = self._frame.content_region.height - card_host.size.height
        conversation.styles.height = lines if card_host.has_class("-open") and 0 < lines < room else "1fr"
