"""Confidence: what can be said of the next step, its course over the run, the badge and what is still open.

The value is the one that the policy goes by: FunnelCanary's confidence on a gauge, or the chance that the
next step succeeds in a sentence. The chance has a number only if it holds for strong and weak models alike.
The badge is the run's (`core.badge`). The detectors' counts stand in *Why* (`console.why`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tui_agent.console.looks.pane_facts import PaneFacts
from tui_agent.console.panes.pane import StatePane, newest_rule, not_used
from tui_agent.core.badge import badge_of
from tui_agent.frontend.lines.glyphs import BADGES, SPARKS
from tui_agent.frontend.lines.outlook import OUTLOOKS, confidence_role, trend
from tui_agent.frontend.lines.styled import Line, Span, clip, fit, justified, wrap
from tui_agent.headline import headline
from tui_agent.terminal_text import one_line

if TYPE_CHECKING:
    from tui_agent.core.recovery.engine import RecoveryState
    from tui_agent.core.state import RunState

_WIDEST, _HIGHEST = 3, 4
"""Cells that one point of the course may take, and rows of the whole."""


def _unresolved(state: RunState) -> Iterator[str]:
    """Open problems, each with its cause if that is known."""
    from tui_agent.core.recovery.cognition import CognitiveState, tool_failed_line

    causes = {incident.tool: incident for incident in state.metrics.incidents.open.values()}
    for line in state.recovery.of(CognitiveState).uncertainties:
        tool = line.rpartition(": ")[2]
        incident = causes.get(tool)
        if line != tool_failed_line(tool):
            yield line
        elif incident is None:
            yield f"{tool} failed and has not worked since"
        else:
            yield f"{tool} failed: {headline(incident.newest.message)}"


def gauge(value: float, width: int, thresholds: tuple[float, ...]) -> Line:
    """A bar of `width` cells for a value in [0, 1], with the thresholds marked on it."""
    filled = round(value * width)
    marks = {min(width - 1, round(threshold * width)) for threshold in thresholds}
    role = confidence_role(value)
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


class ConfidencePane(StatePane):
    """The outlook or the gauge, its course, open uncertainties, breakers that are not closed."""

    facts = PaneFacts(
        "confidence",
        "Confidence",
        "Whether the next step is likely to succeed, estimated from recorded runs (or the policy's confidence), its "
        "trend, and where the run stands. A ? is open: a tool that has failed and not worked since, a fault of the "
        "model. {why} shows the counts.",
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
        self._rule = ""
        self._badge = ""
        self._open: tuple[str, ...] = ()

    def show(self, state: RunState, now: float) -> None:
        """Show cognition and breakers of `state`."""
        recovery, rule, badge = state.recovery, newest_rule(state, "cognition"), badge_of(state)
        known = self._recovery is not None and _parts(self._recovery) == _parts(recovery)
        if known and (rule, badge) == (self._rule, self._badge):
            return
        self._recovery, self._rule, self._badge = recovery, rule, badge
        self._open = tuple(_unresolved(state))
        self.redraw()

    def redraw(self) -> None:
        """Draw again; the border names the rule, or says that the policy does not go by this."""
        super().redraw()
        if self._recovery is not None:
            policy = self._recovery.policy
            self.say_below("", unused=not_used(policy, policy.cognition == "off"), rule=self._rule)

    def rows_at_most(self, *, calm: bool) -> int:
        """Rows for the value and its course, with a few for what is open if something fails."""
        return 3 if calm else 6

    def draw(self, width: int, height: int) -> list[Line]:
        """Most important first: what can be said of the next step, its course, what is open."""
        from tui_agent.core.recovery.cognition import CognitiveState

        recovery = self._recovery
        if recovery is None:
            return []
        cognition, chance = recovery.of(CognitiveState), recovery.policy.cognition == "chance"
        history = [] if chance else [recovery.policy.confidence_start]
        history += [value for _, value in cognition.history]
        lines = (_outlook if chance else _headline)(recovery, self._badge, history, width)
        if len(lines) > height:  # a sentence stands whole, or not at all
            del lines[1:]
        open_lines = [*_open_lines(self._open, width, height - len(lines) - 1), *_breakers(recovery, width)]
        rows = min(_HIGHEST, height - len(lines) - len(open_lines))
        if rows > 0 and history:
            lines.extend(_course(history, width, rows))
        return [*lines, *open_lines]


def _parts(recovery: RecoveryState) -> tuple[int, ...]:
    """The parts of the state that the pane shows, compared by identity: states never change."""
    from tui_agent.core.recovery.cognition import CognitiveState
    from tui_agent.core.recovery.tool_breaker import ToolBreakers

    parts = (recovery.of(CognitiveState), recovery.of(ToolBreakers), recovery.policy)
    return tuple(map(id, parts))


def _outlook(recovery: RecoveryState, badge: str, history: list[float], width: int) -> list[Line]:
    """The outlook in a word, its trend, and the badge; below them the sentence."""
    from tui_agent.core.recovery.cognition import CognitiveState

    step = recovery.of(CognitiveState).next_step
    worn = Span(f" {badge} ", f"{BADGES[badge]} reverse bold")
    if step.chance is None:
        return [justified((Span("no step yet", "muted bold"),), (worn,), width)]
    word = Span(f"{step.outlook} {trend(history, step.chance)}", f"{OUTLOOKS[step.outlook]} bold")
    return [justified((word,), (worn,), width), *((Span(row),) for row in wrap(step.words, width))]


def _headline(recovery: RecoveryState, badge: str, history: list[float], width: int) -> list[Line]:
    """FunnelCanary's confidence, its gauge and the badge; below the gauge's marks what they stand for."""
    from tui_agent.core.recovery.cognition import CognitiveState

    cognition, policy = recovery.of(CognitiveState), recovery.policy
    worn = Span(f" {badge} ", f"{BADGES[badge]} reverse bold")
    value = cognition.shown(policy)
    number = Span(f"{value:.2f} {trend(history, value)} ", f"{confidence_role(value)} bold")
    room = width - len(number.text) - len(worn.text) - 1
    if room < 10:
        return [clip((number, worn), width)]
    thresholds = policy.degrade_threshold, policy.confidence_threshold
    scale = Span(" " * len(number.text) + _scale(thresholds, room), "muted")
    return [(number, *gauge(value, room, thresholds), Span(" "), worn), (scale,)]


def _scale(thresholds: tuple[float, ...], width: int) -> str:
    cells = [" "] * width
    for threshold in thresholds:
        place = min(width - 1, round(threshold * width))
        label = f"{threshold:.2f}".rstrip("0").rstrip(".")
        start = max(0, min(place - 1, width - len(label)))
        cells[start : start + len(label)] = label
    return "".join(cells)


def _open_lines(unresolved: tuple[str, ...], width: int, rows: int) -> list[Line]:
    """Open problems: whole if there are rows for that, else a line each."""
    whole = [wrap(one_line(text), width - 2) for text in unresolved]
    if sum(map(len, whole)) > rows:
        whole = [[fit(one_line(text), width - 2)] for text in unresolved]
    return [
        (Span("  " if number else "? ", "warn bold"), Span(piece))
        for pieces in whole
        for number, piece in enumerate(pieces)
    ]


def _course(history: list[float], width: int, rows: int) -> list[Line]:
    label = "trend " if width >= 24 else ""
    drawn = chart(history, width - len(label), rows)
    blank = " " * len(label)
    return [
        (Span(blank if below else label, "muted"), *line)
        for below, line in zip(range(len(drawn) - 1, -1, -1), drawn, strict=True)
    ]


def _breakers(recovery: RecoveryState, width: int) -> Iterator[Line]:
    """Those that are not closed."""
    from tui_agent.core.recovery.tool_breaker import ToolBreakers

    for tool, breaker in recovery.of(ToolBreakers).states.items():
        phase = str(breaker.phase).replace("_", "-")
        if phase != "closed":
            said = Span(f"{one_line(tool)} breaker {phase}", "blocked")
            yield clip((Span("⊘ ", "blocked bold"), said), width)
