"""Receipts of an answer in lines, as every screen, file and report shows them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tui_agent.core.values import Receipt, Standing

_MOST = 5
"""Files that are named in one line."""


def listed(shown: Sequence[Receipt]) -> Iterator[tuple[Standing, str]]:
    """Put receipts in lines, each with how its claim stands; written files share one, and so do those left behind."""
    for one in shown:
        if one.kind not in {"file", "stray"} or one.standing == "missing":
            yield one.standing, one.in_words
    for kind, words in (("file", "written"), ("stray", "left behind")):
        names = [one.claim for one in shown if one.kind == kind and one.standing != "missing"]
        if names:
            more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
            yield "stray" if kind == "stray" else "shown", f"{words}: {', '.join(names[:_MOST])}{more}"
