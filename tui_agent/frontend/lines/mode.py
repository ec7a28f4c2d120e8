"""How a run stands: its mode, whether it waits for the operator, and for how long it has run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_agent.core.names import Mode, Phase

if TYPE_CHECKING:
    from tui_agent.core.state import RunState


def mode_of(state: RunState) -> str:
    """AUTO, STEP or PAUSED, or WAITING for the operator, DONE, or READY before the first run."""
    phase = state.phase
    if waits_for_operator(state):
        return "WAITING"
    if phase is Phase.DONE:
        return "DONE"
    if phase is Phase.IDLE and state.session.mode is Mode.AUTO:
        return "READY"
    return str(state.session.mode)


def waits_for_operator(state: RunState) -> bool:
    """True if the run stands still until the operator answers."""
    return state.asked is not None or server_asks(state)


def server_asks(state: RunState) -> bool:
    """True if a call stands still until the operator answers an MCP server."""
    return any(asked.purpose == "elicitation" for asked in state.server_questions)


def elapsed(state: RunState, now: float) -> float:
    """Seconds of the newest run; it stands still when the run has ended."""
    started, ended = state.metrics.started_at, state.metrics.ended_at
    return max(0.0, (now if ended is None else ended) - started) if started else 0.0
