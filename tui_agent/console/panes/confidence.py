"""Confidence: a gauge with its marks, its course and the badge; below them what speaks against and for, and at the end
what is proven.

The figure and the words are those of every place (`frontend.lines.outlook`), the badge is the run's (`core.badge`).
What the detectors count stands in *Why* (`frontend.why`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.cells import cell_len

from tui_agent.console.looks.pane_facts import PaneFacts
from tui_agent.console.panes.pane import StatePane, newest_rule, not_used
from tui_agent.core.badge import badge_of
from tui_agent.frontend.lines import outlook
from tui_agent.frontend.lines.glyphs import BADGES, SPARKS
from tui_agent.frontend.lines.outlook import confidence_role
from tui_agent.frontend.lines.styled import ELLIPSIS, Line, Span, breaks, clip, fit, justified, width_of
from tui_agent.terminal_text import one_line

if TYPE_CHECKING:
    from tui_agent.core.recovery.engine import RecoveryState
    from tui_agent.core.state import RunState

_WIDEST, _HIGHEST = 3, 4
"""Cells that one point of the course may take, and rows of the whole."""
_LEAST_GAUGE = 10
"""Cells that a gauge needs."""
_BEFORE_ANY_STEP = "up with each step that works"
_INDENT = 2
"""Cells before the further rows of a ground."""
_CLAUSE, _KEPT = re.compile("[,:;] "), 0.7
"""The end of a clause, and the share of the room that a ground must keep to be cut there."""


def chart(history: list[float], width: int, rows: int) -> list[Line]:
    """Draw the newest values as blocks, `rows` high, each cell in the role of its value; a few are drawn wide."""
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


class ConfidencePane(StatePane):
    """The gauge, its course, what speaks against and for, breakers that are not closed."""

    facts = PaneFacts(
        "confidence",
        "Confidence",
        "How well the run goes, from 0 to 1: up a tenth with each step that works, down a tenth with each that fails. "
        "Below it what speaks against (-) and for (+) the next step; at the end what is proven. {why} shows counts.",
        "f",
        row=0,
        column=1,
    )

    DEFAULT_CSS = """
    ConfidencePane { height: 8; min-height: 3; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._recovery: RecoveryState | None = None
        self._parts: tuple[object, ...] = ()
        self._rule = ""
        self._badge = ""
        self._grounds: tuple[tuple[Span, str], ...] = ()

    def show(self, state: RunState, now: float) -> None:
        """Show cognition and breakers of `state`."""
        badge, rule, grounds = badge_of(state), newest_rule(state, "cognition"), tuple(_grounds(state))
        parts = (badge, rule, grounds, _parts(state.recovery))
        if parts == self._parts:
            return
        self._parts, self._recovery = parts, state.recovery
        self._badge, self._rule, self._grounds = badge, rule, grounds
        self.redraw()

    def redraw(self) -> None:
        """Draw again; the border names the rule, or says that the policy does not go by this."""
        super().redraw()
        if self._recovery is not None:
            policy = self._recovery.policy
            self.say_below("", unused=not_used(policy, policy.cognition == "off"), rule=self._rule)

    def rows_at_most(self, *, calm: bool) -> int:
        """Rows for the gauge and its course, with a few for the grounds if something fails."""
        return 3 if calm else 6

    def draw(self, width: int, height: int) -> list[Line]:
        """Draw the most important first: the gauge, what speaks against and for, the course."""
        recovery = self._recovery
        if recovery is None:
            return []
        lines = _gauge(recovery, self._badge, width)
        breakers = list(_breakers(recovery, width))
        room = height - len(lines) - len(breakers)
        grounds = _ground_lines(self._grounds, width, max(1, room))
        if len(lines) > 1 and len(grounds) >= height - 1:  # what is said comes before what the marks mean
            del lines[1:]
        history = outlook.course(recovery)
        rows = min(_HIGHEST, height - len(lines) - len(breakers) - len(grounds))
        drawn = _course(history, width, rows) if rows > 0 and len(history) > 1 else []
        return [*lines, *grounds, *breakers, *drawn]


def _parts(recovery: RecoveryState) -> tuple[int, ...]:
    """Identify what the pane goes by: states never change."""
    from tui_agent.core.recovery.cognition import CognitiveState
    from tui_agent.core.recovery.tool_breaker import ToolBreakers

    parts = (recovery.of(CognitiveState), recovery.of(ToolBreakers), recovery.policy)
    return tuple(map(id, parts))


def _grounds(state: RunState) -> Iterator[tuple[Span, str]]:
    """List what speaks against and for, with their signs; at the end what is proven comes first."""
    if state.run.outcome is not None:
        for shown, text in outlook.proven(state):
            yield Span("✓ proven: " if shown else "? not proven: ", "ok" if shown else "warn"), text
    for text in outlook.against(state):
        yield Span("- ", "error bold"), text
    for text in outlook.in_favour(state):
        yield Span("+ ", "ok bold"), text


def _ground_lines(grounds: tuple[tuple[Span, str], ...], width: int, rows: int) -> list[Line]:
    """Draw each ground in a line; rows that are left go to the longer ones, the gravest first."""
    lines: list[Line] = []
    spare = max(0, rows - len(grounds))
    for sign, text in grounds:
        drawn = _ground(sign, one_line(text), width, 1 + spare)
        spare -= len(drawn) - 1
        lines += drawn
    return lines


def _ground(sign: Span, text: str, width: int, rows: int) -> list[Line]:
    """Draw a ground in at most so many rows, those after the first indented."""
    whole = sign.text + text
    later = width - _INDENT
    pieces = [whole[start:end] for start, end in breaks(whole, width, later)]
    if len(pieces) > rows:
        start = breaks(whole, width, later)[rows - 1][0]
        pieces[rows - 1 :] = [_cut(whole[start:], width if rows == 1 else later)]
    first, *others = pieces
    return [
        (sign, Span(first[len(sign.text) :])),
        *((Span(" " * _INDENT), Span(piece)) for piece in others),
    ]


def _cut(text: str, width: int) -> str:
    """Cut a text at the end of a clause if that keeps most of the room, else at any letter."""
    ends = [clause.start() for clause in _CLAUSE.finditer(text) if cell_len(text[: clause.start()]) < width]
    kept = text[: ends[-1]] if ends else ""
    return f"{kept}{ELLIPSIS}" if cell_len(kept) >= _KEPT * width else fit(text, width)


def _gauge(recovery: RecoveryState, badge: str, width: int) -> list[Line]:
    """Draw the figure, its gauge and the badge; below them what the marks stand for, before any step what moves it."""
    figure, policy = outlook.figure(recovery), recovery.policy
    worn = Span(f" {badge} ", f"{BADGES[badge]} reverse bold")
    number = Span(f"{figure.span.text} ", f"{figure.span.style} bold")
    room = width - width_of((number, worn)) - 1
    if room < _LEAST_GAUGE:
        return [justified((number,), (worn,), width)]
    bar = outlook.gauge(figure.value, room, [at for at, _ in outlook.marks(policy)])
    begun = len(outlook.course(recovery)) > 1
    below = " " * len(number.text) + outlook.scale(policy, room) if begun else fit(_BEFORE_ANY_STEP, width)
    return [(number, *bar, Span(" "), worn), (Span(below, "muted"),)]


def _course(history: list[float], width: int, rows: int) -> list[Line]:
    label = "trend " if width >= 24 else ""
    drawn = chart(history, width - len(label), rows)
    blank = " " * len(label)
    return [
        (Span(blank if below else label, "muted"), *line)
        for below, line in zip(range(len(drawn) - 1, -1, -1), drawn, strict=True)
    ]


def _breakers(recovery: RecoveryState, width: int) -> Iterator[Line]:
    """Name those that are not closed."""
    from tui_agent.core.recovery.tool_breaker import ToolBreakers

    for tool, breaker in recovery.of(ToolBreakers).states.items():
        phase = str(breaker.phase).replace("_", "-")
        if phase != "closed":
            said = Span(f"{one_line(tool)} breaker {phase}", "blocked")
            yield clip((Span("⊘ ", "blocked bold"), said), width)
