"""Trends: the course of the run, blocks for each figure, a column for each step; larger if there is room."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tui_agent.console.looks.pane_facts import PaneFacts
from tui_agent.console.panes.pane import StatePane, nothing
from tui_agent.frontend.lines.glyphs import SPARKS
from tui_agent.frontend.lines.outlook import confidence_role
from tui_agent.frontend.lines.styled import Line, Span, clip, justified, pad
from tui_agent.quantities import compact, dollars, seconds

if TYPE_CHECKING:
    from tui_agent.core.state import RunState


_WIDEST, _HIGHEST = 4, 3
"""Cells that a step may take, and rows of a figure."""

_LABEL = 11
"""Cells of the figures' names."""


class Trend(NamedTuple):
    """One figure over the steps; None: not known for that step."""

    label: str
    values: Sequence[float | None]
    said: Callable[[float], str]
    role: Callable[[float], str]
    """Of a value's column."""
    highest: float = 0.0
    """The top of the scale; 0: the highest value."""


class TrendsPane(StatePane):
    """Failures, confidence, tokens, latency and cost, step by step."""

    facts = PaneFacts(
        "trends",
        "Trends",
        "Failures, confidence, tokens, latency and cost, a column for each step.",
        "d",
        row=2,
        column=1,
        columns=None,
    )

    DEFAULT_CSS = """
    TrendsPane { height: 1fr; min-height: 3; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._parts: tuple[object, object] = (None, None)
        self._trends: list[Trend] = []

    def show(self, state: RunState, now: float) -> None:
        """Show the steps of the run that have ended, and the confidence as it stands."""
        from tui_agent.core.recovery.cognition import CognitiveState

        course, cognition = state.metrics.course, state.recovery.of(CognitiveState)
        if (course, cognition) == self._parts and self.lines:
            return
        self._parts = (course, cognition)
        self._trends = [
            Trend(
                "failures",
                [point.failures for point in course],
                lambda value: f"{value:.0f}",
                _always("error"),
            ),
            Trend(
                "confidence",
                _confidence(state),
                lambda value: f"{value:.2f}",
                confidence_role,
                highest=1.0,
            ),
            # Recordings may keep neither: no reply is made without tokens and in no time.
            Trend("tokens", [point.tokens or None for point in course], _tokens, _always("model")),
            Trend("latency", [point.latency or None for point in course], seconds, _always("accent")),
            Trend("cost", [point.cost for point in course], dollars, _always("note")),
        ]
        self.redraw()

    def draw(self, width: int, height: int) -> list[Line]:
        """As many rows for each figure as there is room for, with its newest and its highest value."""
        if not any(trend.values for trend in self._trends):
            about = "A column for each step: failures, confidence, tokens, latency, cost."
            return nothing("no step has ended yet", about, width, height)
        rows = max(1, min(_HIGHEST, height // len(self._trends)))
        room = max(0, width - _LABEL - (9 if rows == 1 else 13))
        steps = max(len(trend.values) for trend in self._trends)
        stretch = max(1, min(_WIDEST, room // steps))
        charts = [_chart(trend, width, rows, room, stretch) for trend in self._trends]
        gap = [()] if len(charts) * (rows + 1) <= height + 1 else []
        return [line for number, chart in enumerate(charts) for line in (*(gap if number else ()), *chart)]


def _always(role: str) -> Callable[[float], str]:
    """The same role for every value."""
    return lambda _: role


def _tokens(value: float) -> str:
    return compact(int(value))


def _confidence(state: RunState) -> list[float | None]:
    """List the confidence after each step of the course and in the open one; a step that changes nothing leaves it."""
    from tui_agent.core.recovery.cognition import CognitiveState

    cognition = state.recovery.of(CognitiveState)
    after = dict(cognition.history)
    value = None if after else cognition.confidence
    steps = dict.fromkeys([point.iteration for point in state.metrics.course])
    return [value := after.get(step, value) for step in steps | dict.fromkeys(after)]


def _chart(trend: Trend, width: int, rows: int, room: int, stretch: int) -> list[Line]:
    """The newest steps that have room, `stretch` cells each, on `rows` lines."""
    label = Span(pad(trend.label, _LABEL), "muted")
    known = [value for value in trend.values if value is not None]
    if not known:
        return [*[()] * (rows - 1), clip((label, Span("unknown", "muted")), width)]
    newest, highest = trend.said(known[-1]), trend.said(max(known))
    values = trend.values[-room:] if room else []
    top = trend.highest or max(known)
    lines = []
    for row in range(rows - 1, -1, -1):
        marks = [
            Span(_bar(_block(value, top, row, rows), stretch), "" if value is None else trend.role(value))
            for value in values
        ]
        left = Span(" " * _LABEL) if row else label
        right = [Span(newest, "bold"), Span(f"max {highest}", "muted")][row : row + 1]
        lines.append(justified((left, *marks), right, width))
    return lines


def _bar(block: str, width: int) -> str:
    """A step's cells in a row; wide ones stand apart."""
    return block if width == 1 else block * (width - 1) + " "


def _block(value: float | None, top: float, row: int, rows: int) -> str:
    """The part of a column in a row, counted from below. The highest leaves an eighth free for the figure
    above.
    """
    if value is None or (row and value <= 0):
        return " "
    if value <= 0 or top <= 0:
        return "·"
    eighths = max(1, round(value / top * (8 * rows - 1))) - 8 * row
    return SPARKS[min(8, eighths) - 1] if eighths > 0 else " "
