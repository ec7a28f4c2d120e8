"""Tokens of a request: what it may have, what its fixed parts take, and how the provider counts them."""

from __future__ import annotations

from tui_agent.core.projections.history import estimate_tokens
from tui_agent.core.recovery import note
from tui_agent.core.state import RunState

REPLY_ROOM = 4_096
"""Tokens of a window that are kept for the reply, at most a quarter of it."""


def scale(state: RunState, model: str) -> float:
    """Tokens as this model's provider counts them, for one that we estimate."""
    return state.calibration.get(model, 1.0)


def budget(state: RunState, model: str) -> int | None:
    """Tokens that a request to `model` may have: the run's budget or the model's, the smaller; None: unknown."""
    known = [limit for limit in (state.run.context_tokens, state.windows.get(model)) if limit is not None]
    return min(known, default=None)


def room_for_history(state: RunState, text: str | None, model: str) -> int | None:
    """The part of that budget that system prompt, tools and note leave to the history, in tokens as we
    estimate them.
    """
    limit = budget(state, model)
    return None if limit is None else max(0, int(limit / scale(state, model)) - overhead(state, text))


def overhead(state: RunState, text: str | None) -> int:
    """Estimate of a request's tokens beside the history."""
    return (
        state.run.system_tokens + state.run.tools_tokens + (estimate_tokens(note.tagged(text)) if text else 0)
    )


def counted(state: RunState, prompt_tokens: int | None) -> float | None:
    """Tokens counted by the provider for one that we estimated, in the newest call; None if that says
    nothing.
    """
    called = state.called
    if called is None or not called.tokens or prompt_tokens is None:
        return None
    if not 0 < prompt_tokens < _NO_PROMPT:
        return None
    ratio = prompt_tokens * called.calibration / called.tokens
    return ratio if _PLAUSIBLE[0] <= ratio <= _PLAUSIBLE[1] else None


_NO_PROMPT = 10**12
"""Tokens that no prompt has; a server may say any number."""
_PLAUSIBLE = (0.4, 3.0)
"""Tokens counted for one estimated. Servers that count only what was not cached, or nothing, are outside."""
