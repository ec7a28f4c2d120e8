"""Trends: the course of the run, a line of blocks for each figure, a column for each step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from tui_agent.console.panes.glyphs import SPARKS
from tui_agent.console.panes.pane import LinePane
from tui_agent.console.panes.styled_line import Line, Span, clip, fit, justified, pad
from tui_agent.quantities import compact, dollars, seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tui_agent.core.state import RunState


class Trend(NamedTuple):
    """One figure over the steps; None: not known for that step."""

    label: str
    values: Sequence[float | None]
    said: Callable[[float], str]
    role: str
    highest: float = 0.0
    """The top of the scale; 0: the highest value."""


class TrendsPane(LinePane):
    """Failures, the chance of the next step, tokens, latency and cost, step by step."""

    BORDER_TITLE: ClassVar[str] = "Trends"

    DEFAULT_CSS = """
    TrendsPane { height: 1fr; min-height: 3; }
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._parts: tuple[object, object] = (None, None)
        self._trends: list[Trend] = []

    def show(self, state: RunState, now: float) -> None:
        """Show the steps of the run that have ended, and the estimate as it stands."""
        course, history = state.metrics.course, state.recovery.cognition.history
        if (course, history) == self._parts and self._lines:
            return
        self._parts = (course, history)
        self._trends = [
            Trend("failures", [point.failures for point in course], lambda value: f"{value:.0f}", "error"),
            Trend(
                "next step", [value for _, value in history], lambda value: f"{value:.0%}", "ok", highest=1.0
            ),
            Trend("tokens", [point.tokens for point in course], lambda value: compact(int(value)), "model"),
            Trend("latency", [point.latency for point in course], seconds, "accent"),
            Trend("cost", [point.cost for point in course], dollars, "note"),
        ]
        self.redraw()

    def draw(self, width: int, height: int) -> list[Line]:
        """A row for each figure, with its newest value."""
        if not any(trend.values for trend in self._trends):
            return [(Span(fit("○ no step has ended yet", width), "muted"),)]
        return [_row(trend, width) for trend in self._trends]


def _row(trend: Trend, width: int) -> Line:
    known = [value for value in trend.values if value is not None]
    label = (Span(pad(trend.label, 10), "muted"),)
    if not known:
        return clip((*label, Span("unknown", "muted")), width)
    right = (Span(trend.said(known[-1]), "bold"),)
    room = max(0, width - 10 - 9)
    top = trend.highest or max(known)
    marks = "".join(" " if value is None else _block(value, top) for value in trend.values[-room:])
    return justified((*label, Span(marks if room else "", trend.role)), right, width)


def _block(value: float, top: float) -> str:
    if value <= 0 or top <= 0:
        return "·"
    return SPARKS[min(len(SPARKS) - 1, int(value / top * len(SPARKS) - 0.001))]
