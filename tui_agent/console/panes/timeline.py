"""Timeline: verdicts and events of the run in lines, newest at the bottom, each with who said it and why."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType
from textual.geometry import Size
from textual.message import Message
from textual.selection import Selection
from textual.strip import Strip

from tui_agent.console.looks.command_keys import bindings
from tui_agent.console.looks.pane_facts import PaneFacts
from tui_agent.console.panes.pane import Asked, StatePane, nothing
from tui_agent.console.panes.strips import Palette, to_strip
from tui_agent.frontend.lines.glyphs import LEVELS, OUTCOMES, TIMELINE, Sign
from tui_agent.frontend.lines.styled import (
    Line,
    Span,
    clip,
    justified,
    pad,
    pad_left,
    text_of,
    width_of,
    wrap_spans,
)
from tui_agent.terminal_text import one_line

if TYPE_CHECKING:
    from textual.events import Click

    from tui_agent.core.append_log import AppendLog
    from tui_agent.core.projections.timeline import TimelineLine
    from tui_agent.core.state import RunState

_BADGE = 9
_DETAIL_ROWS = 6
_WITH_WORDS, _WITH_TIMES = 34, 52
"""Cells from which a line has its step and its kind in a word beside the sign, and from which it has its time."""


class TimelinePane(StatePane):
    """One row a line; the row under the cursor opens to its whole text. Only visible rows are ever drawn."""

    facts = PaneFacts(
        "timeline",
        "Timeline",
        "Every verdict with its detector and reason. Enter on a line goes to its place in the conversation.",
        "t",
        row=2,
        column=0,
    )

    DEFAULT_CSS = """
    TimelinePane { height: 1fr; min-height: 3; }
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings("timeline")

    @dataclass
    class Selected(Message):
        """The operator chose a line; `seq` is its event."""

        seq: int

    def __init__(self) -> None:
        super().__init__()
        self._log: AppendLog[TimelineLine] | tuple[()] = ()
        self._follow = True
        self._cursor: int | None = None
        self._detail: list[Line] = []

    def show(self, state: RunState, now: float) -> None:
        """Show the lines of `state`; only their number is looked at unless the past was rewritten."""
        log, old = state.timeline.lines, self._log
        if log is old:
            return
        size, before = len(log), len(old)
        rewritten = size < before or (before > 0 and log[before - 1] is not old[before - 1])
        self._log = log
        if rewritten:
            self._strips.clear()
            self._cursor = None
            self._detail = []
        self._resize_content()
        if self._follow and self._cursor is None:
            self._scroll_to_row(size)
        self.refresh()

    def draw(self, width: int, height: int) -> list[Line]:
        """Not used: rows are drawn one by one as they become visible."""
        return []

    def redraw(self) -> None:
        """The size or the theme changed."""
        self._strips.clear()
        self._open_detail()
        self._resize_content()
        if self._follow:
            self._scroll_to_row(self._rows)
        self.refresh()

    @property
    def _rows(self) -> int:
        return len(self._log) + len(self._detail)

    def _resize_content(self) -> None:
        self.virtual_size = Size(self.content_width, max(1, self._rows))

    def _scroll_to_row(self, row: int) -> None:
        """Bring a row into view; a row beyond the end: the end."""
        height = self.scrollable_content_region.height
        top = self.scroll_offset.y
        if row >= self._rows or row + len(self._detail) >= top + height:
            top = max(0, min(row + len(self._detail) + 1, self._rows) - height)
        elif row < top:
            top = row
        self.scroll_to(y=top, animate=False, force=True, immediate=True)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Follow the newest line only while the end is in view."""
        super().watch_scroll_y(old_value, new_value)
        self._follow = new_value >= self.max_scroll_y

    def _at(self, row: int) -> tuple[int, int]:
        """The line at a row, and which row of its detail that is (0: the line itself)."""
        cursor = self._cursor
        if cursor is None or row <= cursor:
            return row, 0
        if row <= cursor + len(self._detail):
            return cursor, row - cursor
        return row - len(self._detail), 0

    def _line(self, row: int) -> Line:
        index, detail = self._at(row)
        if detail:
            return self._detail[detail - 1]
        if index >= len(self._log):
            return ()
        return self._row(self._log[index], self.content_width, index == self._cursor)

    def _row(self, line: TimelineLine, width: int, current: bool) -> Line:
        sign = _sign(line)
        spans: list[Span] = []
        if width >= _WITH_WORDS:
            iteration = str(line.iteration) if line.iteration else ""
            spans.append(Span(pad_left(iteration, 3) + " ", "muted"))
        if width >= _WITH_TIMES:
            spans.append(Span(pad_left(_when(line), 7) + " ", "muted"))
        spans.append(Span(f"{sign.glyph} ", f"{sign.role} bold"))
        if width >= _WITH_WORDS:
            spans.append(Span(pad(sign.word, _BADGE) + " ", sign.role))
        loud = line.kind == "outcome" or (line.level is not None and line.level.rank >= 3)
        spans.append(Span(line.in_a_line, "bold" if loud else ""))
        # The reason goes first: if both do not fit, the speaker stands in the opened line.
        by = (Span(_by(line), "muted"),) if _by(line) else ()
        fits = by and width_of(spans) + width_of(by) + 2 <= width
        drawn = justified(spans, by, width) if fits else clip(spans, width)
        if not current:
            return drawn
        return (
            *(Span(span.text, f"{span.style} on:cursor-background") for span in drawn),
            Span("", "on:cursor-background"),
        )

    def _open_detail(self) -> None:
        """The whole text of the line under the cursor, in as many rows as it needs (up to a few)."""
        self._detail = []
        if self._cursor is None or not self._log or not self.content_width:
            return
        line = self._log[self._cursor]
        width = self.content_width
        row = self._row(line, width, False)
        if not text_of(row).endswith("…") and text_of(row).endswith(_by(line)):
            return
        spans = [Span(one_line(line.text, 2_000)), Span(f"  {_by(line)}".rstrip(), "muted")]
        rows = wrap_spans(spans, max(8, width - 4))[:_DETAIL_ROWS]
        self._detail = [clip((Span("  │ ", "faint"), *row), width) for row in rows]

    def _move_to(self, index: int) -> None:
        if not self._log:
            return
        self._cursor = max(0, min(len(self._log) - 1, index))
        self._strips.clear()
        self._open_detail()
        self._resize_content()
        self._scroll_to_row(self._cursor)
        self.refresh()

    def _leave(self) -> None:
        self._cursor = None
        self._detail = []
        self._strips.clear()
        self._resize_content()
        self.refresh()

    def on_blur(self) -> None:
        """Drop the cursor with the focus."""
        self._leave()
        if self._follow:
            self._scroll_to_row(self._rows)

    def action_move(self, step: int) -> None:
        """Move the cursor; the first step puts it on the newest line."""
        self._move_to(len(self._log) - 1 if self._cursor is None else self._cursor + step)

    def action_page(self, step: int) -> None:
        """Move the cursor by what is visible."""
        start = len(self._log) - 1 if self._cursor is None else self._cursor
        self._move_to(start + step * max(1, self.scrollable_content_region.height - 1))

    def action_edge(self, last: int) -> None:
        """Go to the first line, or to the newest and follow again."""
        if not last:
            self._move_to(0)
            return
        self._leave()
        self._scroll_to_row(self._rows)

    def subject(self) -> Asked | None:
        """The line under the cursor, else the newest."""
        if not self._log:
            return None
        return Asked(self._log[len(self._log) - 1 if self._cursor is None else self._cursor].seq)

    def return_to(self, seq: int) -> None:
        """Put the cursor back on the line of the event `seq`, or the one before it."""
        index = len(self._log) - 1
        while index > 0 and self._log[index].seq > seq:
            index -= 1
        self._move_to(index)

    def action_select(self) -> None:
        """Show the line's event in the conversation."""
        if self._cursor is not None and self._log:
            self.post_message(self.Selected(self._log[self._cursor].seq))

    def on_click(self, event: Click) -> None:
        """A click chooses its line."""
        offset = event.get_content_offset(self)
        if offset is None or not self._log:
            return
        index, _ = self._at(offset.y + self.scroll_offset.y)
        if index < len(self._log):
            self._move_to(index)
            self.post_message(self.Selected(self._log[index].seq))

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        return selection.extract(
            "\n".join(text_of(self._line(row)).rstrip() for row in range(self._rows))
        ), "\n"

    def render_line(self, y: int) -> Strip:
        width = self.content_width
        row = y + self.scroll_offset.y
        if not self._log:
            about = "Failures, verdicts, recoveries and answers come here; Enter goes to their place."
            lines = nothing("nothing has happened yet", about, width, self.size.height)
            return to_strip(lines[y] if y < len(lines) else (), Palette.of(self.app), self.rich_style, width)
        if row >= self._rows:
            return Strip.blank(max(0, width), self.rich_style)
        strip = self._strips.get(row)
        if strip is None:
            if len(self._strips) > 1_000:
                self._strips.clear()
            line = self._line(row)
            strip = to_strip(line, Palette.of(self.app), self.rich_style, width)
            strip = self._selected(strip, row, line).apply_offsets(0, row)
            self._strips[row] = strip
        return strip


def _sign(line: TimelineLine) -> Sign:
    if line.level is not None:
        return LEVELS.get(str(line.level), LEVELS["continue"])
    if line.kind == "outcome":
        sign = OUTCOMES.get(line.text.partition(":")[0].replace(" ", "_"))
        return Sign(sign.glyph, "outcome", sign.role) if sign else TIMELINE["outcome"]
    return TIMELINE.get(line.kind, TIMELINE["notice"])


def _by(line: TimelineLine) -> str:
    """The speaker: the rule, whose id names the detector; the detector alone if no rule is known."""
    return one_line(line.rule or line.detector, 60)


def _when(line: TimelineLine) -> str:
    """The time within its run; of a run's beginning, and outside of runs, the time of day."""
    if not line.began or line.kind == "run":
        return time.strftime("%H:%M", time.localtime(line.at))
    whole = int(max(0.0, line.at - line.began))
    if whole < 3600:
        return f"+{whole // 60}:{whole % 60:02d}"
    return f"+{whole // 3600}h{whole % 3600 // 60:02d}"
