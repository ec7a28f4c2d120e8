"""Confidence: cognition's gauge, its course over the run, the strategy and what is still open.

The value is the one that the policy goes by: FunnelCanary's confidence, or the chance that the next step succeeds, with
the number of recorded steps it rests on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from tui_agent.console.panes.glyphs import FALLING, LEVEL, RISING, SPARKS, STRATEGIES
from tui_agent.console.panes.headline import headline
from tui_agent.console.panes.pane import LinePane, newest_rule, not_used, subtitle
from tui_agent.console.panes.styled_line import Line, Span, clip, width_of, wrap
from tui_agent.quantities import counted
from tui_agent.terminal_text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from textual.events import Resize

    from tui_agent.core.state import RunState

_WORDS_FROM = 6
"""Rows from which the estimate is also said in words."""

_WIDEST, _HIGHEST = 3, 4
"""Cells that one point of the course may take, and rows of the whole."""

_COUNTERS = (
    (("no progress", "failing steps", "unresolved"), " of "),
    (("no progress", "failing", "open"), "/"),
    (("idle", "failing", "open"), "/"),
)
"""What the counters are called, and what stands before their limits: the first that has room."""

LOW, HIGH = 0.3, 0.7
"""Defaults of the policy: below LOW a stall degrades, from HIGH on (nothing open) an answer is due."""


def confidence_role(value: float, low: float = LOW, high: float = HIGH) -> str:
    """The role of a confidence in [0, 1]."""
    return "error" if value < low else "warn" if value < high else "ok"


def trend(history: list[float]) -> str:
    """A sign for the direction of the newest value."""
    if len(history) < 2 or history[-1] == history[-2]:
        return LEVEL
    return RISING if history[-1] > history[-2] else FALLING


def next_step(state: RunState) -> tuple[Span, ...]:
    """The figure that the policy goes by, in words: the chance of the next step, or the confidence."""
    cognition, policy = state.recovery.cognition, state.recovery.policy
    if policy.cognition == "chance" and cognition.next_step.chance is None:
        return (Span("next step: no estimate yet", "muted"),)
    value = cognition.shown(policy)
    direction = trend([value for _, value in cognition.history[-2:]])
    if policy.cognition == "chance":
        role = confidence_role(value, policy.pivot_chance, policy.pivot_chance)
        return (Span("next step ", "muted"), Span(f"{value:.0%} likely to succeed {direction}", role))
    return (Span("confidence ", "muted"), Span(f"{value:.2f} {direction}", confidence_role(value)))


def _unresolved(state: RunState) -> Iterator[str]:
    """What is still open, each with its cause where that is known."""
    causes = {incident.tool: incident for incident in state.metrics.incidents.open.values()}
    for line in state.recovery.cognition.uncertainties:
        tool = line.removeprefix("Tool execution failed: ")
        incident = causes.get(tool) if tool != line else None
        yield line if incident is None else f"{tool} failed: {headline(incident.newest.message)}"


def gauge(value: float, width: int, low: float = LOW, high: float = HIGH) -> Line:
    """A bar of `width` cells for a value in [0, 1], with the two thresholds marked on it."""
    filled = round(value * width)
    marks = {min(width - 1, round(threshold * width)) for threshold in (low, high)}
    role = confidence_role(value, low, high)
    spans: list[Span] = []
    for cell in range(width):
        full = cell < filled
        glyph = ("╋" if full else "┼") if cell in marks else ("━" if full else "─")
        style = role if full else "muted" if cell in marks else "faint"
        if spans and spans[-1].style == style:
            spans[-1] = Span(spans[-1].text + glyph, style)
        else:
            spans.append(Span(glyph, style))
    return tuple(spans)


def chart(history: list[float], width: int, rows: int) -> list[Line]:
    """The newest values as blocks, `rows` high, each cell in the role of its value; a few are drawn wide."""
    stretch = max(1, min(_WIDEST, width // max(1, len(history))))
    values = [value for value in history[-width:] for _ in range(stretch)]
    lines: list[Line] = []
    for row in range(rows - 1, -1, -1):
        spans: list[Span] = []
        for value in values:
            eighths = round(value * rows * 8) - row * 8
            glyph = " " if eighths <= 0 and row else SPARKS[min(7, max(0, eighths - 1))]
            style = confidence_role(value)
            if spans and spans[-1].style == style:
                spans[-1] = Span(spans[-1].text + glyph, style)
            else:
                spans.append(Span(glyph, style))
        if row == 0 or any(span.text.strip() for span in spans):
            lines.append(tuple(spans))
    return lines


class ConfidencePane(LinePane):
    """Gauge, history, strategy, stall, streak and open uncertainties."""

    BORDER_TITLE: ClassVar[str] = "Confidence"

    DEFAULT_CSS = """
    ConfidencePane { height: 8; min-height: 3; }
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._parts: tuple[object, ...] = ()
        self._rule = ""
        self._value = 0.0
        self._history: list[float] = []
        self._open: tuple[str, ...] = ()
        self._strategy = ""
        self._low, self._high = LOW, HIGH
        self._known = False
        self._words = ""
        self._samples, self._unused = 0, ""
        self._stall_limit, self._open_limit = 3, 5
        self._stall = self._streak = 0
        self._streak_limit = 3
        self._breakers: list[tuple[str, str]] = []

    def show(self, state: RunState, now: float) -> None:
        """Show cognition, streak and breakers of `state`."""
        recovery = state.recovery
        rule = newest_rule(state, "cognition")
        parts = (recovery.cognition, recovery.streak, recovery.breakers, recovery.policy)
        same = all(new is old for new, old in zip(parts, self._parts, strict=False))
        if self._parts and same and rule == self._rule:
            return
        self._rule = rule
        self._parts = parts
        cognition = recovery.cognition
        policy = recovery.policy
        chance = policy.cognition == "chance"
        self._low, self._high = policy.degrade_threshold, policy.confidence_threshold
        if chance:
            self._low = self._high = policy.pivot_chance
        self._known = not chance or cognition.next_step.chance is not None
        self._words = cognition.next_step.words if chance else ""
        self._stall_limit, self._open_limit = policy.stall_threshold, policy.uncertainty_limit
        self._value = cognition.shown(policy) if self._known else 0.0
        start = [] if chance else [policy.confidence_start]
        self._history = [*start, *(value for _, value in cognition.history)]
        self._breakers = [
            (tool, str(breaker.phase).replace("_", "-"))
            for tool, breaker in recovery.breakers.states.items()
            if str(breaker.phase) != "closed"
        ]
        self._samples = cognition.next_step.samples if chance else 0
        self._unused = not_used(policy, policy.cognition == "off")
        self._say_samples()
        self._open = tuple(_unresolved(state))
        self._strategy = str(cognition.strategy).upper()
        self._stall = cognition.stall
        self._streak, self._streak_limit = recovery.streak.count, recovery.streak.limit
        self.redraw()

    def _say_samples(self) -> None:
        """The number of samples at the border, where there is no room for the sentence that gives it."""
        said = f"from {counted(self._samples, 'recorded step')}"
        short = self._samples and self.size.height < _WORDS_FROM
        self.border_subtitle = subtitle(said if short else "", unused=self._unused, rule=self._rule)

    def on_resize(self, _: Resize) -> None:
        """There may be room for the sentence now, or none any more."""
        if self._parts:
            self._say_samples()

    def draw(self, width: int, height: int) -> list[Line]:
        """Most important first: the gauge, then counters, history, open uncertainties."""
        lines = [self._headline(width)]
        if height >= 5:
            lines.append(self._scale(width))
        lines.append(self._counters(width))
        if self._words and height >= _WORDS_FROM:
            lines.extend((Span(row, "muted"),) for row in wrap(self._words, width))
        open_lines = self._uncertainties(width)
        rows = min(_HIGHEST, height - len(lines) - len(open_lines))
        if rows > 0 and self._history:
            lines.extend(self._course(width, rows))
        return [*lines, *open_lines]

    def _headline(self, width: int) -> Line:
        role = confidence_role(self._value, self._low, self._high)
        value = f"{self._value:.2f} {trend(self._history)}" if self._known else "no step yet"
        number = Span(f"{value} ", f"{role if self._known else 'muted'} bold")
        badge = Span(f" {self._strategy or '–'} ", f"{STRATEGIES.get(self._strategy, 'muted')} reverse bold")
        room = width - len(number.text) - len(badge.text) - 1
        if room < 10:
            return clip((number, badge), width)
        return (number, *gauge(self._value, room, self._low, self._high), Span(" "), badge)

    def _scale(self, width: int) -> Line:
        room = width - 7 - len(self._strategy or "–") - 3
        if room < 10:
            return ()
        cells = [" "] * room
        for threshold in dict.fromkeys((self._low, self._high)):
            place = min(room - 1, round(threshold * room))
            label = f"{threshold:.2f}".rstrip("0").rstrip(".")
            start = max(0, min(place - 1, room - len(label)))
            cells[start : start + len(label)] = label
        return (Span(" " * 7), Span("".join(cells), "muted"))

    def _counters(self, width: int) -> Line:
        over = self._streak > self._streak_limit
        stalled = self._stall >= self._stall_limit
        counts = (
            (self._stall, self._stall_limit, "warn bold" if stalled else "warn"),
            (self._streak, self._streak_limit, "error bold" if over else "warn"),
            (len(self._open), self._open_limit, "warn"),
        )
        spans: list[Span] = []
        for labels, of in _COUNTERS:
            spans = []
            for label, (count, limit, role) in zip(labels, counts, strict=True):
                spans.append(Span(f"{' · ' if spans else ''}{label} ", "muted"))
                spans.append(Span(f"{count}{of}{limit}", role if count else ""))
            if width_of(spans) <= width:
                break
        return clip(spans, width)

    def _course(self, width: int, rows: int) -> list[Line]:
        label = "trend " if width >= 24 else ""
        lines = []
        for number, line in enumerate(chart(self._history, width - len(label), rows)):
            head = label if not number else " " * len(label)
            lines.append((Span(head, "muted"), *line))
        return lines

    def _uncertainties(self, width: int) -> list[Line]:
        lines = [clip((Span("? ", "warn bold"), Span(one_line(text))), width) for text in self._open]
        for tool, phase in self._breakers:
            lines.append(
                clip(
                    (Span("⊘ ", "blocked bold"), Span(f"{one_line(tool)} breaker {phase}", "blocked")), width
                )
            )
        return lines
