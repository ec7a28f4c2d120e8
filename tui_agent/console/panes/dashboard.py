"""Layout of the panes: the conversation alone above the incident strip, with the recovery panes at its side, or the
recovery panes over the whole screen. At the side they are slim until something fails.

The same dashboard stands in the live screen and in the replay; both give it a state and a time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
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
from tui_agent.console.looks.pane_facts import CONVERSATION, SLIM_WIDTH, UNFOLDED_HEIGHT, UNFOLDED_WIDTH
from tui_agent.console.looks.splash import LOW_HEIGHT, TINY_HEIGHT
from tui_agent.console.panes import pane_sizes
from tui_agent.console.panes.density import Density
from tui_agent.console.panes.foot import LOW, Foot
from tui_agent.console.panes.pane import StatePane
from tui_agent.console.panes.pane_sizes import Layout, PaneSizes
from tui_agent.core.evolve import evolve
from tui_agent.frontend.lines.incident import is_calm

if TYPE_CHECKING:
    from tui_agent.console.looks.welcome import Welcome
    from tui_agent.core.state import RunState

_logger = logging.getLogger(__name__)

TALL_HEIGHT = 36
"""Rows of the terminal from which the lower row of panes in the full form is higher than those above it."""
GRID_WIDTH = 170
"""Columns of the terminal from which two panes stand side by side at the conversation's side."""
WIDE_SHARE, WIDE_LEAST, WIDE_MOST = 38, 46, 64
"""Percent of the width that a wide side takes, and the cells that it has at least and at most."""
GRID_SHARE, GRID_MOST = 50, 108
"""The same of a side with two panes in a row: percent, and cells at most."""
FRAME = 4
"""Cells of a pane's width that its lines do not have: edges, a margin, the scrollbar."""


class PaneForm(StrEnum):
    """Room that the operator gives to the recovery panes. With `auto` they are slim until something fails."""

    LINE = "line"
    AUTO = "auto"
    WIDE = "wide"
    FULL = "full"


class Look(StrEnum):
    """How much of the screen the recovery panes have now."""

    LINE = "line"
    SLIM = "slim"
    WIDE = "wide"
    FULL = "full"


BESIDE = (Look.SLIM, Look.WIDE)
"""The looks in which the panes stand at the conversation's side."""
FORMER = {"strip": PaneForm.LINE, "side": PaneForm.AUTO}
"""Names of forms that earlier starts remembered."""


def form_named(name: str) -> PaneForm | None:
    """Find the form of that name, or of the name that it had before; None: there is none."""
    return FORMER.get(name) or next((form for form in PaneForm if form == name), None)


def narrow(size: Size) -> bool:
    """Say that there is no room for panes at the conversation's side."""
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
    """The recovery panes, below each other, or two side by side if there is room. The dashboard gives their sizes."""

    DEFAULT_CSS = """
    RecoveryColumn {
        layout: vertical;
        &.-grid, &.-full { layout: grid; grid-size: 2; StatePane { height: 1fr; } }
        &.-grid .-across { column-span: 2; }
        &.-full { width: 1fr; grid-rows: 1fr; }
        &.-full.-tall { grid-rows: 2fr 2fr 3fr; }
        &.-line { display: none; }
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
        self._card_host: Foot | None = None
        self._frame.border_title = Content(CONVERSATION.title)
        self._column = RecoveryColumn(id="recovery")
        self._panes: list[StatePane] = []
        self.conversation: panes.ConversationPane | None = None
        self._strip: panes.IncidentStrip | None = None
        self.plan: panes.PlanLine | None = None
        self._came_from = 0
        self._density = Density.NORMAL
        self.chosen = self._before = PaneForm.AUTO
        """The form that the operator wants; `look` is what is shown of it."""
        self.types: Callable[[], bool] = lambda: False
        """Tells whether the operator writes; set by the screen."""
        self._calm = True
        """Nothing has failed lately, as far as the panes were laid out for it."""
        self.sizes = PaneSizes()
        """The operator's choices for the panes at the side."""
        self._given: tuple[Look, Layout, int, tuple[int, ...]] = (Look.LINE, "column", 0, ())
        """The look, the layout, the cells of the side and the rows that the panes have of it."""
        self._dragged: int | None = None
        """The edge that the mouse moves: of the row of panes at this place, or of the side (-1)."""
        self._room = size
        self.fit(size)

    def compose(self) -> ComposeResult:
        """The conversation and the recovery column, empty as yet."""
        with Horizontal(id="body"):
            yield self._frame
            yield self._column

    async def fill_conversation(self, card_host: Foot | None = None) -> None:
        """Mount the conversation; `card_host` stands at its end."""
        self.conversation = panes.ConversationPane()
        self._card_host = card_host
        await self._frame.mount(self.conversation, *([card_host] if card_host is not None else []))
        self._panes = [self.conversation]

    async def fill_column(self) -> None:
        """Mount the recovery panes and their summary."""
        for kind in sorted(panes.RECOVERY_PANES, key=lambda kind: (kind.facts.row, kind.facts.column)):
            # One at a time: keys are answered in between.
            pane = kind()
            await self._column.mount(pane)
            await asyncio.sleep(0)
            self._panes.append(pane)
        self._strip = panes.IncidentStrip()
        self.plan = panes.PlanLine()
        await self.mount(self._strip, self.plan)
        self.fit(self.app.size)

    def use(self, remembered: Mapping[str, str]) -> None:
        """Take up forms, sizes and density that were remembered of earlier starts."""
        for name in (remembered.get("panes_before", ""), remembered.get("panes", "")):
            if (form := form_named(name)) is not None:
                self.choose(form)
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
    def look(self) -> Look:
        """The form that is shown: the chosen one, unless it covers a question or has no room at the side."""
        return self._look_of(self._before if self.chosen is PaneForm.FULL and self.asking else self.chosen)

    def _look_of(self, form: PaneForm) -> Look:
        match form:
            case PaneForm.FULL:
                return Look.FULL
            case PaneForm.AUTO | PaneForm.WIDE if narrow(self._room):
                return Look.LINE
            case PaneForm.AUTO if self._calm:
                return Look.SLIM
            case PaneForm.AUTO | PaneForm.WIDE:
                return Look.WIDE
        return Look.LINE

    @property
    def covers_conversation(self) -> bool:
        """The conversation, and a card with it, cannot be seen."""
        return self.look is Look.FULL

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
        """Find the next form that looks otherwise, round and round; without room at the side, to and fro."""
        if self.chosen is PaneForm.FULL and narrow(self._room):
            return self._before
        forms, here = list(PaneForm), self._look_of(self.chosen)
        after = forms.index(self.chosen) + 1
        return next(form for form in (*forms[after:], *forms) if self._look_of(form) is not here)

    def show_conversation(self) -> None:
        """Leave the form that covers the conversation, for the one before it."""
        if self.covers_conversation:
            self.choose(self._before)

    def show(
        self, state: RunState, now: float, *, still: bool = False, questions: bool | None = None
    ) -> None:
        """Draw all panes. `now` in seconds since the epoch; `still`: time does not go on; `questions`: an
        open one stands in the conversation, because no card puts it (None: time does not go on).

        A failure counts in all of them as it comes, before its step has ended and is judged. A pane that raises does
        not keep the others from being drawn: their faults come as one `ExceptionGroup`.
        """
        from tui_agent.core.recovery.folding import so_far

        recovery = so_far(state.recovery, state.run.iteration, state.seq, state.at)
        if recovery is not state.recovery:
            state = evolve(state, recovery=recovery)
        faults = []
        if self.conversation is not None:
            self.conversation.still = still
            self.conversation.puts_questions = still if questions is None else questions
        shown: list[StatePane | panes.IncidentStrip | panes.PlanLine] = [*self._panes]
        shown += [row for row in (self._strip, self.plan) if row is not None]
        for pane in shown:
            try:
                pane.show(state, now)
            except Exception as error:
                _logger.debug("A pane could not be drawn", exc_info=True)
                error.add_note(f"in the pane {pane.id}")
                faults.append(error)
        self._open_what_speaks(state)
        self._close_up()
        if faults:
            raise ExceptionGroup("panes could not be drawn", faults)

    def _open_what_speaks(self, state: RunState) -> None:
        """Make room for what the panes have to say, and take it back 10 steps after the last open failure; not while
        somebody reads or writes.
        """
        if self._held:
            return
        calm = is_calm(state)
        if calm != self._calm:
            self._calm = calm
            self.fit(self._room)
        else:
            self._give_sizes(self._room)

    @property
    def _held(self) -> bool:
        """Somebody reads, in the conversation or in a pane, or writes: nothing may move under their eyes."""
        conversation = self.conversation
        reads = conversation is not None and not conversation.follows and not self.covers_conversation
        return reads or self._column.has_focus_within or self.types()

    def show_end(self, state: RunState) -> None:
        """Draw all panes for a session of which the beginning is to come, and in which nobody is at work."""
        if self.conversation is not None:
            self.conversation.show_end(state)
        self.show(state, state.at, still=True)

    def has_pane(self, widget: Widget | None) -> bool:
        """Say whether the widget is one of the panes."""
        return widget in self._panes

    def pane(self, name: str) -> StatePane | None:
        """Make a pane visible and return it; None before the panes are mounted."""
        pane = next((pane for pane in self._panes if pane.id == name), None)
        if pane is None or pane is self.conversation:
            self.show_conversation()
        elif self.look is Look.LINE or not pane.display:
            beside = not narrow(self._room) and pane.facts.columns is not None
            self.choose(PaneForm.AUTO if beside else PaneForm.FULL)
        return pane

    def page_conversation(self, step: int) -> None:
        """If it is shown: read the conversation on by a page, back by one (-1), or follow its end (0)."""
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
        """A question comes before the panes if there is no room for both."""
        self.fit(self.app.size)
        # Its first frame has the card whole and in its place.
        self._close_up(self._fit_card_host())
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
        return self._card_host is not None and self._card_host.asking

    def fit(self, size: Size) -> None:
        """Show what there is room for in a terminal of this size."""
        self._room = size
        look = self.look
        self._column.set_class(look is Look.LINE, "-line")
        self._column.set_class(look is Look.FULL, "-full")
        self._column.set_class(size.height >= TALL_HEIGHT, "-tall")
        self._frame.set_class(look is Look.FULL, "-behind")
        self._frame.set_class(size.height < TINY_HEIGHT, "-bare")
        if self._strip is not None:
            self._strip.display = size.height >= LOW_HEIGHT
            self._strip.stands_alone = look is Look.LINE
        self._give_sizes(size)

    # --- the sizes of the panes at the side -----------------------------------------------------------------

    def _side(self, size: Size) -> tuple[Layout, int]:
        """Find the layout of the panes at the side, and the cells that the side takes."""
        if self.look is Look.SLIM:
            return "column", SLIM_WIDTH
        if (share := self.sizes.share) is not None:
            width = pane_sizes.cells(share, size.width)
            return (
                "grid" if size.width >= GRID_WIDTH and width >= pane_sizes.TWO_ABREAST else "column"
            ), width
        if size.width >= GRID_WIDTH:
            return "grid", min(GRID_MOST, size.width * GRID_SHARE // 100)
        return "column", max(WIDE_LEAST, min(WIDE_MOST, size.width * WIDE_SHARE // 100))

    def _panes_by_row(self) -> list[list[StatePane]]:
        """List the panes at the side, those beside each other together."""
        beside = [
            pane for pane in self._panes if pane.facts.columns is not None and pane is not self.conversation
        ]
        if self._given[1] == "column":
            return [[pane] for pane in beside]
        rows: dict[int, list[StatePane]] = {}
        for pane in beside:
            rows.setdefault(pane.facts.row, []).append(pane)
        return list(rows.values())

    def _give_sizes(self, size: Size) -> None:
        """Lay the side out as the operator wants it, else so that each pane has the rows for what it says."""
        look = self.look
        layout, width = self._side(size) if look in BESIDE else (self._given[1], 0)
        before, self._given = self._given, (look, layout, width, ())
        rows = self._panes_by_row()
        if look in BESIDE and len(rows) > 1:
            self._given = (look, layout, width, self._heights(rows, look, layout, width))
        if self._given == before:
            return
        styles = self._column.styles
        for rule in ("width", "grid_rows"):
            styles.clear_rule(rule)
        if look in BESIDE:
            styles.width = width
        heights = self._given[3]
        self._column.set_class(look in BESIDE and layout == "grid", "-grid")
        for pane in self._column.query_children(StatePane):
            pane.styles.clear_rule("height")
            pane.display = look is Look.FULL or pane.facts.columns is not None
        for row, height in zip(rows, [*map(str, heights), "1fr"], strict=False):
            row[0].set_class(len(row) == 1, "-across")
            if layout == "column" and look in BESIDE:
                row[0].styles.height = height
        if layout == "grid" and heights and look in BESIDE:
            styles.grid_rows = " ".join([*map(str, heights), "1fr"])
        self._column.refresh(layout=True)  # a rule that is cleared lays nothing out

    def _heights(
        self, rows: Sequence[Sequence[StatePane]], look: Look, layout: Layout, width: int
    ) -> tuple[int, ...]:
        """Find the height of each row of panes but the last, which has the rest."""
        room = self._column.size.height or self._room.height
        chosen = self.sizes.rows(layout)
        if look is Look.WIDE and len(chosen) == len(rows) - 1:
            return pane_sizes.fitted(chosen, room)
        cells = (width // 2 if layout == "grid" else width) - FRAME
        heights = [2 + max(pane.wants(cells, calm=self._calm) for pane in row) for row in rows[:-1]]
        return pane_sizes.fitted(heights, room - min(pane_sizes.LOWEST, room // 8))

    def use_sizes(self, sizes: PaneSizes) -> None:
        """Give the panes at the side these sizes from now on."""
        if sizes != self.sizes:
            self.sizes = sizes
            if self.chosen is PaneForm.AUTO and sizes != PaneSizes():
                self.choose(PaneForm.WIDE)
            self._give_sizes(self.app.size)
            self.post_message(self.Sized())

    def widen_side(self, by: int) -> None:
        """Give the side so many hundredths of the width more (fewer, below 0)."""
        if self.look in BESIDE:
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
        if self.look in BESIDE and self._given[3]:
            # Keys come faster than layouts: what was given counts, not what is on the screen.
            moved = pane_sizes.moved(self._given[3], place, by, self._column.size.height)
            in_a_column = self._given[1] == "column"
            self.use_sizes(
                evolve(self.sizes, column=moved) if in_a_column else evolve(self.sizes, grid=moved)
            )

    def edge_at(self, x: int, y: int) -> int | None:
        """The edge that the mouse can take there: of the side (-1), or below the row of panes at a place."""
        column = self._column.region
        if self.look not in BESIDE or not column.y <= y < column.bottom:
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

    def _fit_card_host(self) -> int:
        room = self._frame.content_region
        if self._card_host is None or not room.height:
            return 0
        return self._card_host.fit(room.height, room.width)

    def _close_up(self, rows: int = 0) -> None:
        """Let a card stand right below a conversation that does not fill its frame; it has no size yet, but `rows`."""
        conversation, card_host = self.conversation, self._card_host
        if conversation is None or card_host is None:
            return
        conversation.display = not self.asking or self._frame.content_region.height > LOW
        lines = conversation.virtual_size.height
        room = self._frame.content_region.height - (rows or card_host.size.height)
        conversation.styles.height = lines if card_host.has_class("-open") and 0 < lines < room else "1fr"
