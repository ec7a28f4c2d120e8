"""The chance of the next step, or the confidence, in words and by role."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tui_agent.frontend.lines.glyphs import FALLING, LEVEL, RISING
from tui_agent.frontend.lines.styled import Span

if TYPE_CHECKING:
    from tui_agent.core.state import RunState


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
    from tui_agent.core.recovery.cognition import CognitiveState

    cognition, policy = state.recovery.of(CognitiveState), state.recovery.policy
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
