"""Whether an answer is taken, or sent back once to be verified: it claims what no result shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_agent.core import budgets

if TYPE_CHECKING:
    from tui_agent.core.recovery.implicit import Remark
    from tui_agent.core.state import RunState


def to_verify(state: RunState, answer: str) -> Remark | None:
    """What is asked about the answer; None where it ends the run. Without a step left for it nothing is asked."""
    run = state.run
    if not state.recovery.policy.verify_claims or run.iteration >= run.max_iterations or state.closing:
        return None
    # Calls of the same reply count: the tests may have run right before the answer.
    shown = state.recovery.so_far(run.iteration, state.seq, state.at).implicit
    remark = shown.unproved(answer)
    return None if remark is None or budgets.exceeded(state) is not None else remark
