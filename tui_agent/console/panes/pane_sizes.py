"""How much room the operator gave to the recovery panes at the conversation's side: the column's share of the width,
and the rows of the panes in it. They are kept as words between starts, and fitted into the terminal of now.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

NARROWEST, WIDEST = 20, 75
"""Shares of the width, in percent."""
COLUMN, CONVERSATION = 30, 40
"""Cells that each of them keeps."""
TWO_ABREAST = 2 * COLUMN
"""Cells of the column from which on two panes stand side by side."""
LOWEST = 3
"""Rows of a pane, its frame among them."""

Layout = Literal["column", "grid"]
"""Panes below each other, or two side by side."""


@dataclass(frozen=True)
class PaneSizes:
    """The chosen sizes; empty: as the layout has it. `column` and `grid`: heights of all rows of panes but
    the last.
    """

    share: int | None = None
    column: tuple[int, ...] = ()
    grid: tuple[int, ...] = ()

    @classmethod
    def of(cls, remembered: Mapping[str, str]) -> PaneSizes:
        """As `words` gave them; what is not understood counts as not chosen."""
        share = share_of(f"{remembered.get('side_share', '')}%")
        column, grid = (_numbers(remembered.get(f"side_{name}", "")) for name in ("column", "grid"))
        return cls(share, column, grid)

    def words(self) -> dict[str, str]:
        """Names and values to be remembered."""
        rows = {f"side_{name}": ",".join(map(str, rows)) for name, rows in self._rows().items()}
        return {"side_share": "" if self.share is None else str(self.share), **rows}

    def rows(self, layout: Layout) -> tuple[int, ...]:
        """The rows that were chosen for this layout."""
        return self._rows()[layout]

    def _rows(self) -> dict[Layout, tuple[int, ...]]:
        return {"column": self.column, "grid": self.grid}


def share_of(text: str) -> int | None:
    """A share of the width as it is typed, `45%`; None for any other text, or beyond the limits."""
    found = re.fullmatch(r"([0-9]{1,3})%", text.strip())
    share = int(found[1]) if found else 0
    return share if NARROWEST <= share <= WIDEST else None


def cells(share: int, width: int) -> int:
    """Cells of the column in a terminal of this width; both sides keep what they need."""
    return min(max(COLUMN, round(width * share / 100)), max(COLUMN, width - CONVERSATION))


def moved(rows: Sequence[int], place: int, by: int, room: int) -> tuple[int, ...]:
    """The rows after the edge below row `place` moved down by `by`; the last row of panes keeps its lowest height."""
    changed = list(rows)
    most = room - LOWEST - (sum(rows) - rows[place])
    changed[place] = max(LOWEST, min(rows[place] + by, most))
    return tuple(changed)


def fitted(rows: Sequence[int], room: int) -> tuple[int, ...]:
    """The rows in a column of `room` rows: the highest give way until the last row of panes has its lowest height."""
    changed = [max(LOWEST, each) for each in rows]
    while changed and sum(changed) > max(room - LOWEST, LOWEST * len(changed)):
        changed[changed.index(max(changed))] -= 1
    return tuple(changed)


def _numbers(text: str) -> tuple[int, ...]:
    parts = text.split(",") if re.fullmatch(r"[0-9]{1,3}(,[0-9]{1,3})*", text) else []
    return tuple(map(int, parts))
