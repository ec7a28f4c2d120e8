"""The first frame: outlines in the place of the dashboard and the prompt for the first tenth of a second. They are
cheap widgets on a screen of their own, which waits for nothing else.
"""

from __future__ import annotations

from typing import ClassVar

from rich.segment import Segment
from textual.app import ComposeResult
from textual.content import Content
from textual.screen import Screen
from textual.strip import Strip
from textual.style import Style
from textual.widget import Widget

from tui_agent.console.looks.pane_facts import (
    CONVERSATION,
    SLIM_WIDTH,
    UNFOLDED_HEIGHT,
    UNFOLDED_WIDTH,
)

TITLE = f" {CONVERSATION.title} "
PLACEHOLDER = "Give the agent a task, or type / for commands"

LOW_HEIGHT = 16
"""Rows of the terminal below which the summary and the hints go."""
TINY_HEIGHT = 12
"""Rows of the terminal below which the frames go, too."""


class Splash(Widget):
    """The conversation's border in its later place; the recovery panes' place stays empty."""

    DEFAULT_CSS = """
    Splash { height: 1fr; background: $background; color: $border-blurred; }
    """

    _outline: tuple[Strip, Strip, Strip] | None = None
    """The first line, those between, the last: drawn once for a size and a style."""

    def render_line(self, y: int) -> Strip:
        """One line of the outline."""
        if self._outline is None:
            self._outline = self._drawn()
        first, between, last = self._outline
        return first if y == 0 else last if y == self.size.height - 1 else between

    def _drawn(self) -> tuple[Strip, Strip, Strip]:
        inner = conversation_width(*self.app.size) - 2
        style = self.rich_style

        def line(text: str) -> Strip:
            return Strip([Segment(text, style)], inner + 2).adjust_cell_length(self.size.width, style)

        return (
            line(f"╭─{TITLE}{'─' * (inner - len(TITLE) - 1)}╮"),
            line(f"│{' ' * inner}│"),
            line(f"╰{'─' * inner}╯"),
        )

    def notify_style_update(self) -> None:
        """A line of the styles before is not drawn again."""
        super().notify_style_update()
        self._outline = None

    def on_resize(self) -> None:
        self._outline = None


class PromptOutline(Widget):
    """The empty prompt with the focus, as `Prompt` draws it."""

    DEFAULT_CSS = """
    PromptOutline {
        height: 3;
        border: round $accent;
        padding: 0 1;
        color: $text-muted;
        background: $background;
        & .cursor {
            color: $input-cursor-foreground;
            background: $input-cursor-background;
            text-style: $input-cursor-text-style;
        }
        &:ansi { text-style: dim; }
        &:ansi .cursor { text-style: reverse; }
        &:light .cursor { color: $text 90%; background: $foreground 85%; }
    }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {"cursor"}

    def render(self) -> Content:
        """The placeholder with the cursor on it."""
        cursor = Style.from_rich_style(self.get_component_rich_style("cursor"))
        return Content(PLACEHOLDER).stylize(cursor, 0, 1)


class FirstFrame(Screen[None]):
    """The screen that is painted first. The first tab takes its place, and brings the line of keys."""

    DEFAULT_CSS = """
    FirstFrame {
        layout: vertical; background: $background;
        &.-high { padding-bottom: 1; }
        &.-tiny PromptOutline { border: none; height: 1; padding: 0; }
    }
    """

    VERTICAL_BREAKPOINTS = [(0, "-tiny"), (TINY_HEIGHT, "-low"), (LOW_HEIGHT, "-high")]

    def __init__(self, *, with_prompt: bool) -> None:
        super().__init__()
        self._with_prompt = with_prompt

    def compose(self) -> ComposeResult:
        yield Splash()
        if self._with_prompt:
            yield PromptOutline()


def conversation_width(width: int, height: int) -> int:
    """Count the columns that the conversation takes in a terminal of this size, before anything has failed."""
    folded = width < UNFOLDED_WIDTH or height < UNFOLDED_HEIGHT
    return width if folded else width - SLIM_WIDTH
