"""The signs of the console, one meaning each, and the role that colours them.

Every sign is one cell wide in every terminal (no emoji) and stands beside a word: nothing is said by colour
or by sign alone.
"""

from __future__ import annotations

from typing import NamedTuple

FULL, EMPTY = "●", "○"
SAME = "="
SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
SPIN_RATE = 10
"""Frames of the spinner a second."""
RISING, FALLING, LEVEL = "↗", "↘", "→"
SPARKS = "▁▂▃▄▅▆▇█"


class Sign(NamedTuple):
    """A glyph, the word that goes with it, and the role of its colour."""

    glyph: str
    word: str
    role: str


CALL_STATES: dict[str, Sign] = {
    "requested": Sign("…", "requested", "muted"),
    "waiting": Sign("?", "waiting for you", "operator"),
    "running": Sign(SPINNER[0], "running", "accent"),
    "succeeded": Sign("✓", "", "ok"),
    "found": Sign("!", "findings", "warn"),
    "failed": Sign("✗", "failed", "error"),
    "denied": Sign("⊘", "denied", "blocked"),
    "blocked": Sign("⊘", "blocked", "blocked"),
    "cancelled": Sign("–", "cancelled", "muted"),
    "not known": Sign("~", "not known", "muted"),
}

RECEIPTS: dict[str, Sign] = {
    "shown": Sign("✓", "shown", "ok"),
    "stale": Sign("△", "stale", "warn"),
    "failed": Sign("△", "failed", "warn"),
    "missing": Sign("–", "not shown", "muted"),
    "stray": Sign("+", "left behind", "muted"),
}

LEVELS: dict[str, Sign] = {
    "continue": Sign("·", "continue", "muted"),
    "guide": Sign("→", "guide", "note"),
    "pivot": Sign("↻", "pivot", "warn"),
    "escalate": Sign("▲", "escalate", "operator"),
    "restart": Sign("⟲", "restart", "warn"),
    "degrade": Sign("▼", "degrade", "error"),
    "stop": Sign("■", "stop", "error"),
}

TIMELINE: dict[str, Sign] = {
    "run": Sign("▶", "run", "accent"),
    "verdict": Sign("·", "verdict", "muted"),
    "error": Sign("✗", "failure", "warn"),
    "fault": Sign("≈", "fault", "warn"),
    "refused": Sign("⊘", "refused", "blocked"),
    "recovered": Sign("✓", "recovered", "ok"),
    "escalation": Sign("?", "asked", "operator"),
    "operator": Sign("»", "operator", "operator"),
    "breaker": Sign("⏚", "breaker", "blocked"),
    "coherence": Sign("≡", "coherence", "warn"),
    "window": Sign("▤", "window", "accent"),
    "hook": Sign("&", "hook", "note"),
    "notice": Sign("i", "notice", "muted"),
    "outcome": Sign("◆", "outcome", "accent"),
}

BADGES: dict[str, str] = {
    "CONTINUE": "accent",
    "GUIDE": "note",
    "DOUBTFUL": "warn",
    "PIVOT": "warn",
    "BLOCKED": "blocked",
    "ASK": "operator",
    "WAITING": "operator",
    "RETRY": "warn",
    "DEGRADE": "error",
    "STOP": "error",
    "CONCLUDE": "ok",
    "DONE": "ok",
    "PARTIAL": "warn",
    "STOPPED": "error",
    "FAILED": "error",
}
"""Role by badge."""

OUTCOMES: dict[str, Sign] = {
    "answered": Sign("✓", "answered", "ok"),
    "partial": Sign("◐", "partial answer", "warn"),
    "stopped": Sign("■", "stopped by recovery", "error"),
    "escalated": Sign("▲", "stopped at a question", "error"),
    "model_failed": Sign("✗", "the model could not be used", "error"),
    "interrupted": Sign("–", "interrupted", "warn"),
    "error": Sign("✗", "internal error", "error"),
}

MODES: dict[str, Sign] = {
    "READY": Sign("○", "READY", "muted"),
    "AUTO": Sign("▶", "AUTO", "ok"),
    "STEP": Sign("▷", "STEP", "accent"),
    "PAUSED": Sign("‖", "PAUSED", "warn"),
    "WAITING": Sign("?", "WAITING", "operator"),
    "DONE": Sign("◆", "DONE", "muted"),
}


STILL = "◆"
"""In the spinner's place if nothing shall move."""


def spinner(now: float | None) -> str:
    """The spinner's frame at the time `now` in seconds; None: nothing shall move."""
    if now is None:
        return STILL
    return SPINNER[int(now * SPIN_RATE) % len(SPINNER)]


def pips(count: int, limit: int) -> str:
    """`count` of `limit` as ●●○; more than the limit shows as +n."""
    full = min(count, limit)
    return FULL * full + EMPTY * (limit - full) + (f"+{count - limit}" if count > limit else "")
