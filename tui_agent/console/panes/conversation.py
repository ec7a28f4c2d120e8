"""The conversation pane: everything that was said and done, drawn line by line so that its length costs nothing.

The widget scrolls, follows the end, and holds the operator's cursor among the blocks. `blocks` draws a block,
`transcript` knows which block is at which row.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from rich.segment import Segment
from textual.binding import BindingType
from textual.geometry import Offset, Size
from textual.message import Message
from textual.selection import Selection
from textual.strip import Strip

from tui_agent.console.looks.command_keys import bindings
from tui_agent.console.looks.pane_facts import CONVERSATION
from tui_agent.console.panes.blocks import said_already
from tui_agent.console.panes.call_block import BEYOND, FOLD, IN_FILE
from tui_agent.console.panes.density import Density
from tui_agent.console.panes.found import Match, best, matches, pattern_of
from tui_agent.console.panes.pane import Asked, StatePane, highlighted
from tui_agent.console.panes.strips import Palette, to_strip
from tui_agent.console.panes.transcript import ConversationRows
from tui_agent.core.names import ABOUT_PLAN, Phase
from tui_agent.frontend.lines.glyphs import SPINNER
from tui_agent.frontend.lines.styled import Line, Span, clip, text_of

if TYPE_CHECKING:
    from textual.events import Click, Resize
    from textual.timer import Timer

    from tui_agent.core.projections.conversation import Conversation
    from tui_agent.core.projections.entries import Entry
    from tui_agent.core.state import RunState

_BARS = frozenset("│┊▎▏")
_SIGNS = frozenset({"  ", "◆ ", "» ", "∴ ", "→ ", "i ", "! ", "✗ ", "≈ "})
_HINTS = "|".join(map(re.escape, (FOLD, BEYOND, IN_FILE)))
_DRAWN = re.compile(rf"[\s─━┈┼┄╌▌]*|.*({_HINTS})\s*|[\s▌]*── (?:step )?\d+ ─*\s*")

_FRAME_SECONDS = 0.1
_MARGIN = 1
"""Gutter in which the cursor stands, in cells."""


class ConversationPane(StatePane):
    """The transcript. Follows its end until the operator scrolls up; Enter or a click opens a block."""

    facts = CONVERSATION

    DEFAULT_CSS = """
    ConversationPane { height: 1fr; min-height: 2; padding: 0; }
    """

    @dataclass
    class Copied(Message):
        """A block is to be copied."""

        text: str

    BINDINGS: ClassVar[list[BindingType]] = bindings("conversation")

    @dataclass
    class WaitEnded(Message):
        """The wait before the model's next try is to end: by trying now (`skip`), or by pausing the run."""

        skip: bool

    class Unmarked(Message):
        """The operator has gone through the matches."""

    class Back(Message):
        """The operator goes back to the place that a jump came from."""

    def __init__(self) -> None:
        super().__init__()
        self.welcome: Callable[[int], Sequence[Line]] = lambda _: ((Span(" ○ nothing said yet", "muted"),),)
        """The welcome before anything was said, in so many rows."""
        self.transcript = ConversationRows()
        self._conversation: Conversation | None = None
        self.still = False
        """Nobody works on it: a paused replay, a run that an earlier process left open."""
        self.puts_questions = False
        """An open question stands here: no card puts it."""
        self._lacks_beginning = False
        """`show` brings the beginning next."""
        self._stands = (Phase.IDLE, False)
        """The phase, and whether nobody is at work."""
        self._now = 0.0
        self._following = True
        self._settling = False
        self._anchor = (0, 0)
        self._unseen = 0
        self._cursor: int | None = None
        self._density = self.transcript.density
        """The one that was chosen; a look at all of it is not."""
        self._wanted: tuple[int, Sequence[str]] | None = None
        """The place to go to once there is a layout."""
        self._sought: re.Pattern[str] | None = None
        """The words that are marked in all places."""
        self._match = 0
        """The match in the cursor's block that was gone to."""
        self._no_more = False
        """There is no match beyond that one."""
        self._matches: dict[int, tuple[object, list[Match]]] = {}
        """By block, as it was drawn."""
        self._frame = 0
        self._timer: Timer | None = None
        self._width = self._height = 0
        self._tail_strips: dict[int, tuple[Line, Strip]] = {}

    @property
    def follows(self) -> bool:
        """The end is in view and stays there: nobody reads further up."""
        return self._following

    # --- showing ---------------------------------------------------------------------------------------------

    def show(self, state: RunState, now: float) -> None:
        """Show the conversation of `state`; waits and running calls count to `now` (seconds since the epoch)."""
        conversation = state.conversation
        stands = state.phase, self.still
        if (
            conversation is self._conversation
            and stands == self._stands
            and (now == self._now or not self.transcript.moving)
        ):
            self._now = now
            return
        policy = state.recovery.policy
        limit = 0 if policy.attempts == "off" else policy.attempts_limit
        first = self._conversation is None
        begins_with = self.transcript.entry(0) if self._lacks_beginning else None
        self._conversation, self._stands, self._now = conversation, stands, now
        question = conversation.question
        if question is not None and not self.puts_questions:
            last = conversation.entries[-1] if conversation.entries else None
            plan = question.source == ABOUT_PLAN and not said_already(question.question, last)
            question = question if plan else None
        closed = self.transcript.update(conversation, limit, self._waits, question)
        if begins_with is not None:
            closed -= self._make_room(begins_with.seq)
        if not self._following and closed > 0 and not first:
            self._unseen += closed
        self._advance()

    @property
    def empty_rows(self) -> int:
        """Rows below the last block."""
        return max(0, self._height - self.transcript.rows)

    @property
    def _waits(self) -> bool:
        """A failed call of the model waits for its next try."""
        return self._stands == (Phase.BACKOFF, False)

    def show_end(self, state: RunState) -> None:
        """Show a conversation whose beginning comes with the next `show`, and in which nobody is at work."""
        self.still = self.puts_questions = True
        self.show(state, state.at)
        self._lacks_beginning = True

    def _make_room(self, seq: int) -> int:
        """The beginning has come: keep the place. Returns how many blocks stand before that of event `seq` now."""
        self._lacks_beginning = False
        before = self.transcript.find(seq) or 0
        self._anchor = (self._anchor[0] + before, self._anchor[1])
        if self._cursor is not None:
            self._cursor += before
        return before

    def _advance(self) -> None:
        if self._cursor is not None:
            self._cursor = self.transcript.shown(self._cursor)
        self.transcript.advance(self._now, SPINNER[self._frame % len(SPINNER)])
        self._settle()
        self._spin(self.transcript.moving and not self.still)
        self.refresh()

    def _spin(self, moving: bool) -> None:
        """Run the spinner's timer only while something moves and animations are wanted."""
        if moving and self._timer is None and self.is_mounted and self.app.animation_level != "none":
            self._timer = self.set_interval(_FRAME_SECONDS, self._turn)
        elif not moving and self._timer is not None:
            self._timer.stop()
            self._timer = None

    def _turn(self) -> None:
        self._frame += 1
        self.transcript.advance(self._now, SPINNER[self._frame % len(SPINNER)])
        self.refresh()

    def _settle(self) -> None:
        """Draw what is in view and a page around it, so that its heights are true, and keep the place."""
        transcript, height = self.transcript, self._height
        if height <= 0 or transcript.width <= 0:
            return
        if self._following:
            index, rows = len(transcript) - 1, 0
            while index >= 0 and rows < 2 * height:
                rows += transcript.measure(index)
                index = transcript.before(index)
            target = transcript.rows
        else:
            index, inner = self._anchor
            index = min(index, max(0, len(transcript) - 1))
            self._measure_around(index, inner, height)
            target = transcript.offset(index) + inner if len(transcript) else 0
        self.virtual_size = Size(self._width, max(1, transcript.rows))
        self._go(target)
        if self._following:
            self._unseen = 0

    def _measure_around(self, index: int, inner: int, height: int) -> None:
        transcript = self.transcript
        rows, before = 0, transcript.before(index)
        while before >= 0 and rows < height:
            rows += transcript.measure(before)
            before = transcript.before(before)
        rows = -inner
        while index < len(transcript) and rows < 2 * height:
            rows += transcript.measure(index)
            index = transcript.after(index)

    def _go(self, row: int) -> None:
        """Scroll at once; `row` is brought into the possible range."""
        row = max(0, min(row, self.transcript.rows - self._height))
        if row == self.scroll_offset.y:
            return
        self._settling = True
        try:
            super().scroll_to(y=row, animate=False, force=True)
        finally:
            self._settling = False

    def _hint(self) -> str:
        """Text of the last row while matches are marked, or the end is out of view."""
        if self._sought is not None:
            return f" {'no further match · ' if self._no_more else ''}n next · N previous · Esc "
        if self._following:
            return ""
        return f" ↓ {self._unseen} new · End " if self._unseen else " ↓ End "

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """The operator scrolled: remember the place, follow again at the end."""
        super().watch_scroll_y(old_value, new_value)
        if self._settling or not self.transcript.width:
            return
        if self.scrollable_content_region.height != self._height:
            # Not the operator: a taller frame shows more of the end. `on_resize` settles the place.
            return
        row = round(new_value)
        self._following = row >= self.transcript.rows - self._height
        self._anchor = self.transcript.locate(row) or (max(0, len(self.transcript) - 1), 0)
        self._settle()

    def scroll_to(self, x: float | None = None, y: float | None = None, **options: Any) -> None:
        """Scroll without animation: rows become exact as they are reached, a moving target would be missed."""
        options["animate"] = False
        super().scroll_to(x, y, **options)

    def on_resize(self, _: Resize) -> None:
        """Another width: blocks are drawn anew as they are looked at, the place is kept."""
        self._width, self._height = self.scrollable_content_region.size
        self._tail_strips.clear()
        index, inner = self._anchor
        before = (
            self.transcript.measure(index) if index < len(self.transcript) and self.transcript.width else 0
        )
        self.transcript.room = self._height
        self.transcript.resize(max(0, self._width - _MARGIN))
        if before and self.transcript.width and index < len(self.transcript):
            self._anchor = (index, inner * self.transcript.measure(index) // before)
        self._advance()
        if self._wanted is not None and self.transcript.width > 0:
            wanted, self._wanted = self._wanted, None
            self.go_to(*wanted)

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._tail_strips.clear()
        self.transcript.repaint()

    # --- lines -----------------------------------------------------------------------------------------------

    def draw(self, width: int, height: int) -> list[Line]:
        """Not used: rows are drawn one by one as they become visible."""
        return []

    def redraw(self) -> None:
        self.transcript.repaint()
        self._advance()

    def render_line(self, y: int) -> Strip:
        """One visible row; the last one says what is out of view below it."""
        strip = self._row_strip(y)
        hint = self._hint() if y == self._height - 1 else ""
        if not hint or len(hint) + 8 > self._width:
            return strip
        style = Palette.of(self.app).style("accent reverse bold")
        room = self._width - len(hint) - 1
        return Strip.join(
            [
                strip.crop(0, room),
                Strip([Segment(hint, self.rich_style + style)]),
                strip.crop(self._width - 1),
            ]
        )

    def _row_strip(self, y: int) -> Strip:
        row = y + self.scroll_offset.y
        width = self._width
        base = self.rich_style
        place = self.transcript.locate(row)
        if place is None:
            welcome = () if len(self.transcript) else self.welcome(self.size.height)
            if y < len(welcome):
                return to_strip(clip(welcome[y], width), Palette.of(self.app), base, width)
            return Strip.blank(max(0, width), base)
        index, number = place
        selection = self.text_selection
        strip = self._strip_of(index, number, row)
        if self._sought is not None:
            strip = self._marked(strip, index, number)
        if selection is not None and (span := selection.get_span(row)) is not None:
            text = text_of(self._with_margin(index, number))
            start, end = span
            strip = highlighted(strip, text, start, len(text) if end == -1 else end, self.selection_style)
        return strip.apply_offsets(0, row)

    def _marked(self, strip: Strip, index: int, number: int) -> Strip:
        """The strip with what is sought in another style, the match that was gone to in a third."""
        palette = Palette.of(self.app)
        text = text_of(self._with_margin(index, number))
        for place, match in enumerate(self._matches_in(index)):
            here = index == self._cursor and place == self._match
            style = palette.style("accent reverse bold" if here else "warn reverse")
            for part in match.parts:
                if part.line == number:
                    strip = highlighted(strip, text, part.start, part.end, style)
        return strip

    def _matches_in(self, index: int) -> list[Match]:
        """Places of the sought words in a block, as it is drawn."""
        if self._sought is None:
            return []
        drawn = self.transcript.drawn(index) if index < self.transcript.closed else None
        known = self._matches.get(index)
        if known is not None and known[0] is drawn is not None:
            return known[1]
        lines = (self._with_margin(index, number) for number in range(self.transcript.measure(index)))
        sources = ((0, "") if is_decoration(line) else (margin_of(line), text_of(line)) for line in lines)
        found = matches(sources, self._sought)
        self._matches[index] = drawn, found
        return found

    def _strip_of(self, index: int, number: int, row: int) -> Strip:
        """The strip of a line: kept with its block, or for an open block for as long as the line stays the same."""
        if index < self.transcript.closed:
            kept = self.transcript.drawn(index).strips
            current = index == self._cursor
            strip = kept.get((number, current))
            if strip is None:
                strip = kept[number, current] = self._made(self._with_margin(index, number))
            return strip
        line = self._with_margin(index, number)
        known = self._tail_strips.get(row)
        if known is not None and known[0] == line:
            return known[1]
        if len(self._tail_strips) > 4 * self._height:
            self._tail_strips.clear()
        strip = self._made(line)
        self._tail_strips[row] = (line, strip)
        return strip

    def _made(self, line: Line) -> Strip:
        return to_strip(line, Palette.of(self.app), self.rich_style, self._width)

    def _with_margin(self, index: int, number: int) -> Line:
        line = self.transcript.line(index, number)
        if index == self._cursor and number >= self.transcript.head(index):
            return (Span("▌", "accent bold"), *line)
        return (Span(" "), *line)

    def selection_updated(self, selection: Selection | None) -> None:
        self.refresh()

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The selected text; only the rows that are selected are drawn."""
        last = max(0, self.transcript.rows - 1)
        start = selection.start or Offset(0, 0)
        end = selection.end or Offset(10_000, last)
        texts: list[str] = []
        for row in range(start.y, min(end.y, last) + 1):
            place = self.transcript.locate(row)
            line = self._with_margin(*place) if place else ()
            if is_decoration(line):
                continue
            first = max(start.x if row == start.y else 0, margin_of(line))
            texts.append(text_of(line)[first : end.x if row == end.y else None].rstrip())
        return "\n".join(texts), "\n"

    # --- keys and mouse --------------------------------------------------------------------------------------

    def go_to(self, seq: int, words: Sequence[str] = ()) -> None:
        """Bring the block of the event `seq` into view and put the cursor on it.

        With `words`: open it, mark them wherever they stand, and bring the line into view that has the most of them.
        Before the first layout this waits for it.
        """
        if self.transcript.width <= 0:
            self._wanted = (seq, words)
            return
        index = self.transcript.find(seq)
        if index is None:
            return
        self.transcript.unfold(index)
        self._mark(pattern_of(words))
        if self._sought is None:
            self._put_cursor(index, self._height // 3)
        else:
            index = self.transcript.with_words(index, self._sought)
            self.transcript.open(index)
            self._show_match(index, best(self._matches_in(index)))

    def _mark(self, sought: re.Pattern[str] | None) -> None:
        """Mark what is found by this, or nothing."""
        self._sought, self._no_more = sought, False
        self._matches.clear()
        self.refresh()

    def _show_match(self, index: int, place: int) -> None:
        """Bring a match of a block into view, and put the cursor on the block."""
        found = self._matches_in(index)
        self._match, self._no_more = place, False
        line = found[place].parts[0].line if found else 0
        self._put_cursor(index, self._height // 3 - line)

    def action_next_match(self, step: int) -> None:
        """Go to the next match below, or above: in this block, else in the nearest that has one."""
        if self._sought is None:
            return
        index = self._cursor
        if index is None:
            first, last = self._visible()
            index = first - 1 if step > 0 else last + 1
        elif 0 <= self._match + step < len(self._matches_in(index)):
            self._show_match(index, self._match + step)
            return
        while 0 <= (index := index + step) < len(self.transcript):
            if not self._sought.search(self.transcript.text(index)):
                continue
            self.transcript.open(index)
            if found := self._matches_in(index):
                self._show_match(index, 0 if step > 0 else len(found) - 1)
                return
        self._no_more = True
        self.refresh()

    def action_unmark(self) -> None:
        """Mark no match any more, and leave the pane."""
        self._mark(None)
        self.post_message(self.Unmarked())

    def follow(self) -> None:
        """Go to the end and stay there."""
        self._following = True
        self._cursor = None
        self._settle()
        self.refresh()

    def _put_cursor(self, index: int, above: int) -> None:
        self._cursor = index
        self._following = False
        self.transcript.measure(index)
        row = max(0, self.transcript.offset(index) - above)
        self._anchor = self.transcript.locate(row) or (index, 0)
        self._settle()
        self._following = self.scroll_offset.y >= self.transcript.rows - self._height
        self.refresh()

    def on_blur(self) -> None:
        """Drop the cursor and what is marked with the focus."""
        self._mark(None)
        if self._cursor is not None:
            self._cursor = None
            self.refresh()

    def _visible(self) -> tuple[int, int]:
        """First and last block in view."""
        top = self.scroll_offset.y
        first = self.transcript.locate(top)
        last = self.transcript.locate(min(top + self._height, self.transcript.rows) - 1)
        return (first or (0, 0))[0], (last or (len(self.transcript) - 1, 0))[0]

    def action_move(self, step: int) -> None:
        """Move the cursor by a block; within a block that is higher than the pane, scroll first."""
        if not len(self.transcript):
            return
        first, last = self._visible()
        if self._cursor is None or not first <= self._cursor <= last:
            self._show_block(last if step < 0 else first)
            return
        top = self.scroll_offset.y
        begin = self.transcript.offset(self._cursor)
        end = begin + self.transcript.measure(self._cursor)
        if step > 0 and end > top + self._height:
            self.scroll_to(y=min(end - self._height, top + self._height // 2))
        elif step < 0 and begin < top:
            self.scroll_to(y=max(begin, top - self._height // 2))
        else:
            moved = (self.transcript.after if step > 0 else self.transcript.before)(self._cursor)
            self._show_block(moved if 0 <= moved < len(self.transcript) else self._cursor)

    def _show_block(self, index: int) -> None:
        """Put the cursor on a block and scroll as little as is needed to see it."""
        height = self.transcript.measure(index)
        begin, top = self.transcript.offset(index), self.scroll_offset.y
        if begin < top or height >= self._height:
            above = 0
        elif begin + height > top + self._height:
            above = self._height - height
        else:
            above = begin - top
        self._put_cursor(index, above)

    def action_open_block(self) -> None:
        """Open or fold the block under the cursor."""
        if self._cursor is not None and self._cursor < len(self.transcript):
            self._toggle(self._cursor)

    def _toggle(self, index: int) -> None:
        above = max(0, self.transcript.offset(index) - self.scroll_offset.y)
        if self.transcript.toggle(index):
            # What was opened is shown as far as it fits.
            self._put_cursor(index, min(above, max(0, self._height - self.transcript.measure(index))))

    def use_density(self, density: Density) -> None:
        """Draw so densely from now on, at the same place."""
        self._density = density
        self.transcript.use_density(density)
        self._advance()

    def action_open_all(self) -> None:
        """Show all in full, or as densely as before; for a look, nothing is remembered."""
        opened = self.transcript.density is Density.FULL
        self.transcript.use_density(self._density if opened else Density.FULL)
        self._advance()

    def action_copy_block(self) -> None:
        """The whole text of the block under the cursor to the clipboard, made safe; a try that waits is cancelled."""
        entry = self.transcript.entry(self._cursor) if self._cursor is not None else None
        if self._waits and (entry is None or self._cursor == len(self.transcript) - 1):
            self.post_message(self.WaitEnded(skip=False))
        if entry is None or self._waits:
            return
        hidden = self.transcript.hidden_by(self._cursor or 0)
        self.post_message(self.Copied("\n\n".join(map(_copied, hidden or [entry]))))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """A wait can be skipped while there is one; matches are gone through while they are marked."""
        if action in {"next_match", "unmark"}:
            return self._sought is not None
        return self._waits if action == "skip_wait" else super().check_action(action, parameters)

    def action_skip_wait(self) -> None:
        """Make the model's next try now."""
        self.post_message(self.WaitEnded(skip=True))

    def subject(self) -> Asked | None:
        """The block under the cursor."""
        entry = self.transcript.entry(self._cursor) if self._cursor is not None else None
        return None if entry is None else Asked(entry.seq, entry.call_id if entry.kind == "call" else "")

    def action_back(self) -> None:
        """Go back to the place that a jump came from."""
        self.post_message(self.Back())

    def action_page(self, step: int) -> None:
        self._cursor = None
        self.scroll_to(y=self.scroll_offset.y + step * max(1, self._height - 2))

    def action_top(self) -> None:
        self._cursor = None
        self.scroll_to(y=0)

    def action_follow(self) -> None:
        """Go to the end and follow."""
        self.follow()

    def on_click(self, event: Click) -> None:
        """A click on a block's headline or fold opens or folds it."""
        offset = event.get_content_offset(self)
        if offset is None or event.chain != 1 or self.screen.get_selected_text():
            return
        if self._hint() and offset.y == self._height - 1 and offset.x >= self._width - len(self._hint()) - 1:
            self.follow()
            return
        place = self.transcript.locate(offset.y + self.scroll_offset.y)
        if place is None:
            return
        text = text_of(self.transcript.line(*place))
        if FOLD in text or not text.startswith("  "):
            self._toggle(place[0])
            if not self.has_focus:
                self._cursor = None


def _copied(entry: Entry) -> str:
    """The text of a block."""
    names = ("text", "content", "printed", "progress", "question", "answer", "reason")
    return next((value for name in names if (value := getattr(entry, name, ""))), "")


def is_decoration(line: Line) -> bool:
    """True if the line was drawn only: a rule, a fold. An empty line of the text is none."""
    text = text_of(line)
    return bool(text.strip()) and _DRAWN.fullmatch(text) is not None


def margin_of(line: Line) -> int:
    """Characters before the text: the cursor's gutter, the block's sign, a bar."""
    spans = [span.text for span in line[1:4]]
    margin = len(line[0].text) if line else 0
    if spans and spans[0] in _SIGNS:
        margin += len(spans.pop(0))
    if spans and spans[0].strip() in _BARS:
        margin += len(spans[0])
    return margin
