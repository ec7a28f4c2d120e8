"""Facts of a pane: they stand on its widget, and the screens derive from them what they say of it. The conversation's
stand here, since the first paint draws its outline before any pane is imported.
"""

from __future__ import annotations

from typing import NamedTuple


class PaneFacts(NamedTuple):
    """Facts about a pane for the dashboard, jump mode, the help and the commands."""

    name: str
    """Id of the widget; `/jump` takes it."""
    title: str
    help: str
    """The content of the pane, in words. `{name}` stands for the key of the command of that name."""
    letter: str = ""
    """Goes to the pane in jump mode; empty: it never has the keys."""
    row: int = 0
    column: int = 0
    """Place among the recovery panes, when two of them stand side by side."""
    columns: int | None = 26
    """Cells that a line needs beside the conversation; None: the pane stands in the full form alone."""


CONVERSATION = PaneFacts(
    "conversation",
    "Conversation",
    "What was said and done. A call that succeeded is one line, and so are several that only look, one after the "
    "other; failures stay open, muted while they may still be recovered. Enter opens a block, o all of them, c copies "
    "it, w says why, Backspace goes back to the timeline. /view shows more or less.",
    "c",
)

UNFOLDED_WIDTH, UNFOLDED_HEIGHT = 100, 24
"""Columns and rows of the terminal from which the recovery panes stand at the conversation's side."""
SLIM_WIDTH = 34
"""Columns of the side while nothing fails."""
