"""The session as one line: marks of errors, verdicts and escalations, the course of the confidence, and the
place that is shown. A click or a drag goes there.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual import events
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from tui_agent.console.panes.strips import Palette, to_strip
from tui_agent.core.names import Level
from tui_agent.frontend.lines.glyphs import LEVELS, MODES, SPARKS
from tui_agent.frontend.lines.outlook import confidence_role
from tui_agent.frontend.lines.styled import Line, Span, clip, justified
from tui_agent.terminal_text import one_line

if TYPE_CHECKING:
    from tui_agent.session.player import Player
    from tui_agent.session.replay import Marks

READING = "reading…"
TALL = 24
"""Rows of the terminal from which the presets have one."""
PRESET_WORDS: Mapping[Level, str] = {
    Level.CONTINUE: "nothing",
    Level.GUIDE: "guide",
    Level.PIVOT: "pivot",
    Level.ESCALATE: "asks",
    Level.RESTART: "anew",
    Level.DEGRADE: "partial",
    Level.STOP: "stop",
}
"""What a preset does, by its verdict."""


class Scrubber(Widget):
    """Rows: what one sees and how fast it plays, the marks on the line, the confidence below it, and, in a tall
    terminal, what each preset says here.
    """

    DEFAULT_CSS = """
    Scrubber { height: 3; padding: 0 1; background: $panel; color: $foreground; }
    Scrubber.-tall { height: 4; }
    """

    @dataclass
    class Sought(Message):
        """A place was clicked; positions as in `Player`."""

        position: int

    def __init__(self) -> None:
        super().__init__(id="scrubber")
        self._length = 0
        self._position = 0
        self._head: tuple[Line, Line] = ((Span(READING, "muted"),), ())
        self._marks: list[tuple[str, str]] = []
        self._curve: list[tuple[str, str]] = []
        self._presets: Line = ()
        self._whole = False
        """The marks are those of the whole session; none are shown before."""
        self._width = 0

    def show(self, player: Player) -> None:
        """Show where the player is, and what the presets say there."""
        self.set_class(self.app.size.height >= TALL, "-tall")
        self._presets = preset_words(None if player.presets is None else player.presets.at(player.position))
        width = self.content_region.width
        ready = player.replay.ready
        if ready != self._whole or width != self._width or player.replay.length != self._length:
            self._whole, self._length, self._width = ready, player.replay.length, width
            marks = player.replay.marks() if ready else None
            self._marks = _marks(marks, self._length, width)
            self._curve = _curve(marks, self._length, width)
        self._position = player.position
        sign = "▶" if player.playing else MODES["PAUSED"].glyph
        kind = player.replay.kind(player.position).replace("_", " ") or "before the first event"
        left = (
            Span(f"{sign} ", "accent bold"),
            Span(f"event {player.position}/{self._length} "),
            Span(kind, "muted"),
            Span(_question(player) if player.there else "", "operator"),
        )
        reading = "" if ready else f"{READING} {player.replay.reached / player.replay.length:.0%}  "
        right = (
            Span(reading, "muted"),
            Span(f"×{player.speed:g}", "accent bold"),
        )
        self._head = (left, right)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """A row."""
        width = self.content_region.width
        if y == 0:
            line: Line = justified(*self._head, width)
        elif y == 3:
            line = clip(self._presets, width)
        else:
            here = self._column(self._position)
            cells = self._marks if y == 1 else self._curve
            line = tuple(
                Span("┃" if y == 1 else glyph, "accent bold" if column == here else style)
                if column == here
                else Span(glyph, style)
                for column, (glyph, style) in enumerate(cells)
            )
        return to_strip(line, Palette.of(self.app), self.rich_style, width)

    def _column(self, position: int) -> int:
        return column_of(position, self._length, self._width)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Go to the place under the mouse."""
        self.capture_mouse()
        self._seek(event)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Drag."""
        if event.button and self.app.mouse_captured is self:
            self._seek(event)

    def on_mouse_up(self, event: events.MouseUp) -> None:
        """Let go."""
        self.release_mouse()

    def _seek(self, event: events.MouseEvent) -> None:
        column = max(0, min(self._width - 1, event.x - self.styles.padding.left))
        if self._width > 1:
            self.post_message(self.Sought(round(column * self._length / (self._width - 1))))


def preset_words(presets: Mapping[str, Level] | None) -> Line:
    """Write what each preset says: `forge guide · gigi asks · …`."""
    if presets is None:
        return (Span("the presets have not judged this yet", "muted"),)
    spans: list[Span] = []
    for name, level in presets.items():
        if spans:
            spans.append(Span(" · ", "faint"))
        sign = LEVELS[str(level)]
        spans += [Span(f"{name} ", "muted"), Span(PRESET_WORDS[level], sign.role)]
    return tuple(spans)


def _question(player: Player) -> str:
    """The open question at this point; empty: none."""
    asked = player.state.asked
    if asked is None:
        return ""
    words = asked.in_words if asked.type == "escalation_raised" else f"may {asked.tool} run?"
    return "  " + one_line(words)


def column_of(position: int, length: int, width: int) -> int:
    """The column of a position: 0 is the first, `length` the last."""
    return 0 if not length or width < 2 else round(position * (width - 1) / length)


def _marks(marks: Marks | None, length: int, width: int) -> list[tuple[str, str]]:
    """The line; of several marks on a column the gravest is shown. No marks: not read yet."""
    cells: list[tuple[str, str]] = [("─", "faint")] * width
    if marks is None:
        return cells
    for positions, glyph, style in (
        (marks.iterations, "┬", "faint"),
        ([mark.position for mark in marks.verdicts], "▽", "note"),
        (marks.errors, "✗", "warn"),
        (marks.escalations, "▲", "operator bold"),
        (marks.runs, "├", "accent"),
    ):
        for position in positions:
            column = column_of(position, length, width)
            if 0 <= column < width:
                cells[column] = (glyph, style)
    return cells


def _curve(marks: Marks | None, length: int, width: int) -> list[tuple[str, str]]:
    """The confidence at each column."""
    points = () if marks is None else marks.confidence
    starts = [point.position for point in points]
    cells: list[tuple[str, str]] = []
    for column in range(width):
        position = round(column * length / max(1, width - 1))
        place = bisect_right(starts, position) - 1
        if place < 0:
            cells.append((" ", ""))
            continue
        value = points[place].confidence
        glyph = SPARKS[min(len(SPARKS) - 1, int(value * len(SPARKS)))]
        cells.append((glyph, confidence_role(value)))
    return cells
