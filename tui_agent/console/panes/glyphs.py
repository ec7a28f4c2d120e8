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
EIGHTHS = " ▏▎▍▌▋▊▉█"


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
    "failed": Sign("✗", "failed", "error"),
    "denied": Sign("⊘", "denied", "blocked"),
    "blocked": Sign("⊘", "blocked", "blocked"),
    "cancelled": Sign("–", "cancelled", "muted"),
}

LEVELS: dict[str, Sign] = {
    "continue": Sign("·", "continue", "muted"),
    "guide": Sign("→", "guide", "note"),
    "pivot": Sign("↻", "pivot", "warn"),
    "escalate": Sign("▲", "escalate", "operator"),
    "degrade": Sign("▼", "degrade", "error"),
    "stop": Sign("■", "stop", "error"),
}

TIMELINE: dict[str, Sign] = {
    "run": Sign("▶", "run", "accent"),
    "verdict": Sign("·", "verdict", "muted"),
    "error": Sign("✗", "failure", "warn"),
    "fault": Sign("≈", "fault", "warn"),
    "refused": Sign("⊘", "refused", "blocked"),
    "escalation": Sign("?", "asked", "operator"),
    "operator": Sign("»", "operator", "operator"),
    "breaker": Sign("⏚", "breaker", "blocked"),
    "coherence": Sign("≡", "coherence", "warn"),
    "hook": Sign("&", "hook", "note"),
    "notice": Sign("i", "notice", "muted"),
    "outcome": Sign("◆", "outcome", "accent"),
}

STRATEGIES: dict[str, str] = {"CONTINUE": "accent", "PIVOT": "warn", "DEGRADE": "error", "CONCLUDE": "ok"}
"""Role by cognition's strategy."""

OUTCOMES: dict[str, Sign] = {
    "answered": Sign("✓", "answered", "ok"),
    "partial": Sign("◐", "partial answer", "warn"),
    "stopped": Sign("■", "stopped by recovery", "error"),
    "escalated": Sign("▲", "nobody could answer", "error"),
    "model_failed": Sign("✗", "the model could not be used", "error"),
    "interrupted": Sign("–", "interrupted", "warn"),
    "error": Sign("✗", "internal error", "error"),
}

MODES: dict[str, Sign] = {
    "AUTO": Sign("▶", "AUTO", "ok"),
    "STEP": Sign("▷", "STEP", "accent"),
    "PAUSED": Sign("‖", "PAUSED", "warn"),
    "WAITING": Sign("?", "WAITING", "operator"),
    "DONE": Sign("◆", "DONE", "muted"),
}

KINDS: dict[str, tuple[str, str]] = {
    "no_tool_call": ("no tool call", "no call"),
    "invalid_tool_call": ("invalid call", "invalid"),
    "unknown_tool": ("unknown tool", "unknown"),
    "tool_execution": ("tool failed", "tool"),
    "model_api": ("model fault", "model"),
    "cancelled": ("cancelled", "cancel"),
}
"""Failure kinds in words: the full ones and those for narrow panes."""


def spinner(now: float) -> str:
    """The spinner's frame at the time `now` in seconds."""
    return SPINNER[int(now * SPIN_RATE) % len(SPINNER)]


def pips(count: int, limit: int) -> str:
    """`count` of `limit` as ●●○; more than the limit shows as +n."""
    full = min(count, limit)
    return FULL * full + EMPTY * (limit - full) + (f"+{count - limit}" if count > limit else "")


def sparkline(values: list[float], width: int) -> str:
    """The newest `width` values, each in [0, 1], as one row of blocks."""
    return "".join(SPARKS[min(7, max(0, round(value * 7)))] for value in values[-width:]) if width > 0 else ""


def seconds(value: float) -> str:
    """A duration as people read it: `20 ms`, `0.4 s`, `12 s`, `3m 05s`, `1h 02m`."""
    value = max(0.0, value)
    if 0.0 < value < 0.095:
        return f"{max(1, round(value * 1000))} ms"
    if value < 9.95:
        return f"{value:.1f} s"
    whole = round(value)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60}m {whole % 60:02d}s"
    return f"{whole // 3600}h {whole % 3600 // 60:02d}m"


def compact(number: int) -> str:
    """A count in few cells: 950, 12.3k, 1.2M."""
    if number < 1000:
        return str(number)
    if number < 999_950:
        return f"{number / 1000:.1f}k"
    return f"{number / 1_000_000:.1f}M"
