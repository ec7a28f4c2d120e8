"""The foot of the conversation's frame, as the dashboard knows it: cards, of which it knows no more."""

from __future__ import annotations

from textual.containers import Vertical

LOW = 10
"""Rows of the frame up to which the conversation gives up all of them for a question."""


class Foot(Vertical):
    """A widget that takes rows from the conversation above it."""

    @property
    def asking(self) -> bool:
        """Something is asked here."""
        raise NotImplementedError

    def fit(self, rows: int, width: int) -> int:
        """Fit into `rows`, which it shares with the conversation. Gives the rows that it takes."""
        raise NotImplementedError
