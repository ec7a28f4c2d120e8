"""Confidence: cognition's gauge, its course over the run, the badge and what is still open.

The value is the one that the policy goes by: FunnelCanary's confidence, or the chance that the next step succeeds. That
is a number only where it holds for strong and weak models alike; elsewhere words say what is known. The badge is the
run's (`core.badge`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from tui_agent.console.panes.glyphs import BADGES, FALLING, LEVEL, RISING, SPARKS
from tui_agent.console.panes.pane import LinePane, newest_rule, not_used
from tui_agent.console.panes.styled_line import Line, Span, clip, fit, width_of, wrap
from tui_agent.headline import headline
from tui_agent.quantities import counted
from tui_agent.terminal_text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tui_agent.core.recovery.engine import RecoveryState
    from tui_agent.core.recovery.policy import RecoveryPolicy
    from tui_agent.core.state import RunState

_WORDY = 32
"""Columns from which the samples are called what they are."""

_WORDS_FROM = 6
"""Rows from which the estimate is also said in words."""

_WIDEST, _HIGHEST = 3, 4
"""Cells that one point of the course may take, and rows of the whole."""

_COUNTERS = (
    (("no progress", "failing steps", "unresolved"), " of ", " · "),
    (("no progress", "failing", "unresolved"), "/", " · "),
    (("no progress", "failing", "unresolved"), "/", " "),
    (("idle", "failing", "unresolved"), "/", " "),
    (("idle", "fail", "?"), "/", " "),
)
"""What the counters are called, what stands before their limits and between them: the first that has room. What the
last one counts is listed below, with its `?`.
"""

OUTLOOKS: dict[str, str] = {"likely": "ok", "open": "warn", "unlikely": "error"}
"""Role by outlook."""

LOW, HIGH = 0.3, 0.7
"""FunnelCanary's thresholds, and the grades of every value: bad below LOW, good from HIGH on."""


def confidence_role(value: float) -> str:
    """The role of a confidence or a chance in [0, 1]: the same wherever it is shown."""
    return "error" if value < LOW else "warn" if value < HIGH else "ok"


PLACES = 6
"""Decimals that the history keeps of its values."""


def trend(history: Sequence[float], value: float) -> str:
    """A sign for the direction that led to `value`; the newest of the history may be that value, or the one before."""
    now = round(value, PLACES)
    before = [round(each, PLACES) for each in history[-2:]]
    if before and before[-1] == now:
        before.pop()
    if not before or before[-1] == now:
        return LEVEL
    return RISING if now > before[-1] else FALLING


def next_step(state: RunState) -> tuple[Span, ...]:
    """The figure that the policy goes by, in words: the chance of the next step, or the confidence."""
    cognition, policy = state.recovery.cognition, state.recovery.policy
    value = cognition.shown(policy)
    direction = trend([each for _, each in cognition.history[-2:]], value)
    if policy.cognition == "chance":
        step = cognition.next_step
        if step.chance is None:
            return (Span("next step: no estimate yet", "muted"),)
        percent = f" to succeed, {value:.0%}" if step.outlook == "unlikely" else ""
        return (
            Span("next step ", "muted"),
            Span(f"{step.outlook}{percent} {direction}", OUTLOOKS[step.outlook]),
        )
    return (Span("confidence ", "muted"), Span(f"{value:.2f} {direction}", confidence_role(value)))


def _unresolved(state: RunState) -> Iterator[str]:
    """What is still open, each with its cause where that is known."""
    from tui_agent.core.recovery.cognition import tool_failed_line

    causes = {incident.tool: incident for incident in state.metrics.incidents.open.values()}
    for line in state.recovery.cognition.uncertainties:
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


class ConfidencePane(LinePane):
    """Gauge, history, strategy, stall, streak and open uncertainties."""

    BORDER_TITLE: ClassVar[str] = "Confidence"

    DEFAULT_CSS = """
    ConfidencePane { height: 8; min-height: 3; }
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._recovery: RecoveryState | None = None
        self._rule = ""
        self._badge = ""
        self._open: tuple[str, ...] = ()

    def show(self, state: RunState, now: float) -> None:
        """Show cognition, streak and breakers of `state`."""
        from tui_agent.core.badge import badge_of

        recovery, rule, badge = state.recovery, newest_rule(state, "cognition"), badge_of(state)
        known = self._recovery is not None and _parts(self._recovery) == _parts(recovery)
        if known and (rule, badge) == (self._rule, self._badge):
            return
        self._recovery, self._rule, self._badge = recovery, rule, badge
        self._open = tuple(_unresolved(state))
        self.redraw()

    def redraw(self) -> None:
        """Draw again; where there is no room for the sentence that gives the number of samples, the border does."""
        super().redraw()
        if self._recovery is None:
            return
        policy = self._recovery.policy
        step = self._recovery.cognition.next_step
        samples = step.samples if policy.cognition == "chance" and step.outlook == "unlikely" else 0
        what = "step" if self.size.width < _WORDY else "recorded step"
        said = f"from {counted(samples, what)}" if samples and self.size.height < _WORDS_FROM else ""
        self.say_below(said, unused=not_used(policy, policy.cognition == "off"), rule=self._rule)

    def draw(self, width: int, height: int) -> list[Line]:
        """Most important first: the gauge, then counters, history, open uncertainties."""
        recovery = self._recovery
        if recovery is None:
            return []
        cognition, chance = recovery.cognition, recovery.policy.cognition == "chance"
        history = [] if chance else [recovery.policy.confidence_start]
        history += [value for _, value in cognition.history]
        lines = _headline(recovery, self._badge, history, width)[: 2 if height >= 5 else 1]
        lines.append(_counters(recovery, len(self._open), width))
        if chance and height >= _WORDS_FROM and cognition.next_step.words:
            lines.extend((Span(row, "muted"),) for row in wrap(cognition.next_step.words, width))
        open_lines = [*_open_lines(self._open, width, height - len(lines) - 1), *_breakers(recovery, width)]
        rows = min(_HIGHEST, height - len(lines) - len(open_lines))
        if rows > 0 and history:
            lines.extend(_course(history, width, rows))
        return [*lines, *open_lines]


def _parts(recovery: RecoveryState) -> tuple[int, ...]:
    """What the pane goes by, by identity: states never change."""
    parts = (recovery.cognition, recovery.streak, recovery.breakers, recovery.policy)
    return tuple(map(id, parts))


def _thresholds(policy: RecoveryPolicy) -> tuple[float, ...]:
    """The values at which the policy acts otherwise."""
    if policy.cognition == "chance":
        return (policy.pivot_chance,)
    return policy.degrade_threshold, policy.confidence_threshold


def _headline(recovery: RecoveryState, badge: str, history: list[float], width: int) -> list[Line]:
    """The figure, its gauge and the badge; below the gauge's marks what they stand for. Where no figure is stated, the
    outlook in a word and the share of the run's own steps that succeeded.
    """
    cognition, policy = recovery.cognition, recovery.policy
    thresholds, step = _thresholds(policy), cognition.next_step
    worn = Span(f" {badge} ", f"{BADGES[badge]} reverse bold")
    value = cognition.shown(policy)
    if policy.cognition != "chance":
        number = Span(f"{value:.2f} {trend(history, value)} ", f"{confidence_role(value)} bold")
    elif step.chance is None:
        number = Span("no step yet ", "muted bold")
    elif step.outlook == "unlikely":
        number = Span(f"{value:.2f} {trend(history, value)} ", f"{OUTLOOKS[step.outlook]} bold")
    else:
        number = Span(f"{step.outlook} {trend(history, value)} ", f"{OUTLOOKS[step.outlook]} bold")
    room = width - len(number.text) - len(worn.text) - 1
    if room < 10:
        return [clip((number, worn), width)]
    if policy.cognition == "chance" and step.outlook != "unlikely":
        said = fit(_record(step.successes, step.successes + step.failures, room), room)
        return [(number, Span(f"{said:<{room}}", "muted"), Span(" "), worn)]
    scale = Span(" " * len(number.text) + _scale(thresholds, room), "muted")
    return [(number, *gauge(value, room, thresholds), Span(" "), worn), (scale,)]


def _record(successes: int, steps: int, room: int) -> str:
    """The run's own record, in the longest words that have room."""
    if not steps:
        return ""
    forms = (
        f"{successes} of {counted(steps, 'step')} succeeded so far",
        f"{successes} of {steps} steps",
        f"{successes}/{steps}",
    )
    return next((form for form in forms if len(form) <= room), forms[-1])


def _scale(thresholds: tuple[float, ...], width: int) -> str:
    cells = [" "] * width
    for threshold in thresholds:
        place = min(width - 1, round(threshold * width))
        label = f"{threshold:.2f}".rstrip("0").rstrip(".")
        start = max(0, min(place - 1, width - len(label)))
        cells[start : start + len(label)] = label
    return "".join(cells)


def _counters(recovery: RecoveryState, unresolved: int, width: int) -> Line:
    """Counts with their limits, in the longest words that fit."""
    policy, stall, streak = recovery.policy, recovery.cognition.stall, recovery.streak
    stalled, over = stall >= policy.stall_threshold, streak.count > streak.limit
    counts = (
        (stall, policy.stall_threshold, "warn bold" if stalled else "warn"),
        (streak.count, streak.limit, "error bold" if over else "warn"),
        (unresolved, policy.uncertainty_limit, "warn"),
    )
    spans: list[Span] = []
    for labels, of, between in _COUNTERS:
        spans = []
        for label, (count, limit, role) in zip(labels, counts, strict=True):
            spans.append(Span(f"{between if spans else ''}{label} ", "muted"))
            spans.append(Span(f"{count}{of}{limit}", role if count else ""))
        if width_of(spans) <= width:
            break
    return clip(spans, width)


def _open_lines(unresolved: tuple[str, ...], width: int, rows: int) -> list[Line]:
    """What is open: whole where there are rows for that, else a line each."""
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
    for tool, breaker in recovery.breakers.states.items():
        phase = str(breaker.phase).replace("_", "-")
        if phase != "closed":
            said = Span(f"{one_line(tool)} breaker {phase}", "blocked")
            yield clip((Span("⊘ ", "blocked bold"), said), width)
