"""The board: a line a run, with its state, its failures, its cost and its question."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from tui_agent.console.panes.cursor_list import CursorList
from tui_agent.core.names import RING_SLOTS
from tui_agent.frontend.lines.glyphs import BADGES, EMPTY, FULL, OUTCOMES
from tui_agent.frontend.lines.outlook import confidence_role
from tui_agent.frontend.lines.styled import Line, Span, clip, pad, pad_left
from tui_agent.quantities import dollars
from tui_agent.terminal_text import one_line

if TYPE_CHECKING:
    from pathlib import Path

    from tui_agent.fleet.row import RunRow

NARROW, ROOMY, WIDE = 76, 100, 112
"""Cells from which on cost and confidence have a column, names get the room that they need, and the model has one."""
NAME, LONGEST_NAME = 10, 20
"""Cells of the names of runs."""


class BoardRun(Protocol):
    """A run as the board shows it."""

    @property
    def name(self) -> str: ...
    @property
    def row(self) -> RunRow: ...
    @property
    def outcome(self) -> str:
        """Its end in one word, or its stage if it has not ended."""

    @property
    def over(self) -> bool: ...
    @property
    def folder(self) -> Path | None:
        """Its session; None while there is none."""

    @property
    def why(self) -> str:
        """The reason why it could not be carried out; empty if it could."""


class _Column(NamedTuple):
    title: str
    width: int
    from_width: int = 0
    """Cells of the board below which it is left out."""
    number: bool = False

    def cell(self, text: str, name: int) -> str:
        """A text at its width, if names take so many cells."""
        width = self.width or name
        return pad_left(text, width) if self.number else pad(text, width)


COLUMNS = (
    _Column("run", 0),
    _Column("state", 12),
    _Column("step", 6, number=True),
    _Column("ring", RING_SLOTS),
    _Column("fails", 5),
    _Column("conf.", 6, NARROW, number=True),
    _Column("cost", 7, NARROW, number=True),
    _Column("asks", 4),
    _Column("model", 18, WIDE),
    _Column("task", 8),
)


def board_head(width: int, name: int) -> str:
    """The columns' titles, in a board of so many cells, of which names take `name`."""
    shown = [column for column in COLUMNS if width >= column.from_width]
    return "  " + " ".join(column.cell(column.title, name) for column in shown).rstrip()


def _cells(run: BoardRun) -> tuple[Span, ...]:
    row = run.row
    state = (row.badge if row.badge and not run.over else run.outcome).replace("_", " ")
    sign = OUTCOMES.get(run.outcome) if run.over else None
    role = sign.role if sign else "error" if run.why else BADGES.get(row.badge, "muted")
    worst = max(row.ring, default=0)
    ring = FULL * len(row.ring) + EMPTY * (RING_SLOTS - len(row.ring))
    fails = f"×{row.attempts}" if row.attempts else ""
    return (
        Span(one_line(run.name, 40), "bold"),
        Span(state, role),
        Span(f"{row.step}/{row.last_step}" if row.last_step and not run.over else str(row.step or ""), ""),
        Span(ring, "error" if worst >= RING_SLOTS else "warn" if row.ring else "faint"),
        Span(f"{fails}{'⊘' * bool(row.blocked)}", "blocked" if row.blocked else "warn"),
        Span("", "")
        if row.confidence is None
        else Span(f"{row.confidence:.2f}", confidence_role(row.confidence)),
        Span("?" if row.cost is None and row.step else dollars(row.cost) if row.cost else "", "muted"),
        Span(f"? {row.asks}" if row.asks else "", "operator bold"),
        Span(row.model, "model"),
        Span(run.why or row.task, "error" if run.why else ""),
    )


class BoardList(CursorList[BoardRun]):
    """The runs, in the order of their file. Only rows that can be seen and look otherwise are drawn and painted."""

    def __init__(self) -> None:
        super().__init__()
        self._painted: dict[int, tuple[object, ...]] = {}
        """By place: what the row was drawn from."""
        self._laid_out = (0, 0, 0)
        """Width and number of the rows, and width of the names."""

    @property
    def name_width(self) -> int:
        """Cells that names take."""
        return self._laid_out[2]

    def show_runs(self, runs: list[BoardRun]) -> None:
        """Show these; the cursor stays in its place."""
        self.rows = runs
        self.cursor = min(self.cursor, max(0, len(runs) - 1))
        self.redraw()

    def move(self, step: int) -> None:
        """Move the cursor, and draw the two rows alone that look otherwise by that: a key does not wait for others."""
        before = self.cursor
        self.cursor = max(0, min(len(self.rows) - 1, before + step))
        if self.cursor != before:
            self.lines = self.draw(self.content_width, 0)
            self._paint(before)
            self._paint(self.cursor)
        self.follow()

    def redraw(self) -> None:
        """Paint the lines that look otherwise."""
        longest = max((len(run.name) for run in self.rows), default=0)
        name = max(NAME, min(longest, LONGEST_NAME)) if self.content_width >= ROOMY else NAME
        laid_out = self.content_width, len(self.rows), name
        if laid_out != self._laid_out:
            self._laid_out = laid_out
            self._painted.clear()
            super().redraw()
            return
        self.lines = self.draw(self.content_width, 0)
        top, height = self.scroll_offset.y, self.scrollable_content_region.height
        seen = range(top, min(top + height, len(self.rows)))
        for place in [place for place in self._strips if place not in seen]:
            del self._strips[place]
        for place in seen:
            self._paint(place)

    def _paint(self, place: int) -> None:
        run = self.rows[place]
        stands = run.row, run.outcome, run.why, place == self.cursor
        if self._painted.get(place) != stands:
            self._painted[place] = stands
            self._strips.pop(place, None)
            self.refresh_lines(place)

    def draw_row(self, row: BoardRun, width: int, *, current: bool) -> Line:
        spans = []
        for column, cell in zip(COLUMNS, _cells(row), strict=True):
            if self.size.width < column.from_width:
                continue
            text = cell.text if column is COLUMNS[-1] else column.cell(cell.text, self.name_width)
            spans.append(Span(text + " ", cell.style))
        return clip(spans, width)
