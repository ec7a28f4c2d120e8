"""Recovery summary: the one line into which the recovery panes fold where the terminal is narrow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_agent.console.panes.attempts import is_blocked
from tui_agent.console.panes.confidence import confidence_role, trend
from tui_agent.console.panes.glyphs import EMPTY, FULL, STRATEGIES, pips
from tui_agent.console.panes.ring import SLOTS
from tui_agent.console.panes.status import LineWidget
from tui_agent.console.panes.styled_line import Line, Span, clip, width_of
from tui_agent.terminal_text import one_line

if TYPE_CHECKING:
    from tui_agent.core.state import RunState


class RecoverySummary(LineWidget):
    """Ring, the worst call, confidence, strategy, streak, and whether a note is pending."""

    def draw(self, state: RunState, now: float, width: int) -> Line:
        """The parts that fit, in order; labels go before parts do."""
        for labels in (True, False):
            parts = _parts(state, labels)
            while parts:
                line = _joined(parts)
                if width_of(line) <= width:
                    return line
                if labels:
                    break
                parts.pop()
        return clip(_ring(state, False), width)


def _joined(parts: list[tuple[Span, ...]]) -> Line:
    spans: list[Span] = []
    for number, part in enumerate(parts):
        if number:
            spans.append(Span(" · ", "faint"))
        spans.extend(part)
    return tuple(spans)


def _parts(state: RunState, labels: bool) -> list[tuple[Span, ...]]:
    parts = [_ring(state, labels)]
    attempts = _attempts(state, labels)
    if attempts:
        parts.append(attempts)
    parts.append(_confidence(state, labels))
    strategy = str(state.recovery.cognition.strategy).upper()
    parts.append((Span(strategy, f"{STRATEGIES.get(strategy, 'muted')} bold"),))
    streak = state.recovery.streak
    if streak.count:
        role = "error bold" if streak.count > streak.limit else "warn"
        parts.append((Span("streak ", "muted"), Span(f"{streak.count}/{streak.limit}", role)))
    if state.note is not None:
        parts.append((Span("→ note pending" if labels else "→ note", "note"),))
    return parts


def _ring(state: RunState, labels: bool) -> tuple[Span, ...]:
    ring = state.recovery.ring
    filled = sum(1 for slot in ring.slots if slot is not None)
    role = "error" if ring.identical > 1 else "warn"
    spans = [Span("ring ", "muted")] if labels else []
    spans += [Span(FULL * filled, role), Span(EMPTY * (SLOTS - filled), "faint")]
    if ring.tripped:
        spans.append(Span(" tripped", "error bold"))
    return tuple(span for span in spans if span.text)


def _attempts(state: RunState, labels: bool) -> tuple[Span, ...]:
    worst = max(state.recovery.attempts.newest_first(), key=lambda entry: entry.count, default=None)
    if worst is None or not worst.count:
        return ()
    blocked = is_blocked(worst)
    role = "blocked" if blocked else "error" if worst.count >= worst.limit else "warn"
    tool = one_line(worst.tool)
    mark = " ⊘ blocked" if blocked else ""
    if labels:
        return (Span("attempts ", "muted"), Span(f"{worst.count}/{worst.limit} {tool}{mark}", role))
    return (Span(f"{pips(worst.count, worst.limit)} {tool}{' ⊘' if blocked else ''}", role),)


def _confidence(state: RunState, labels: bool) -> tuple[Span, ...]:
    cognition = state.recovery.cognition
    policy = state.recovery.policy
    history = [value for _, value in cognition.history[-2:]]
    chance = policy.cognition == "chance"
    spans = [Span("chance " if chance else "confidence ", "muted")] if labels else []
    if chance and cognition.next_step.chance is None:
        return (*spans, Span("–", "muted"))
    value = cognition.shown(policy)
    role = (
        confidence_role(value, policy.pivot_chance, policy.pivot_chance) if chance else confidence_role(value)
    )
    spans.append(Span(f"{value:.2f} {trend(history)}", role))
    return tuple(spans)
