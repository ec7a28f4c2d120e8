"""The check of an answer: it is taken, or sent back once to be verified if it claims what no result shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_agent.core import budgets
from tui_agent.core.recovery.folding import so_far
from tui_agent.core.recovery.implicit import ImplicitFailures

if TYPE_CHECKING:
    from tui_agent.core.recovery.remarks import Remark
    from tui_agent.core.state import RunState


def to_verify(state: RunState, answer: str) -> Remark | None:
    """Choose what is asked about the answer; None if it ends the run. Without a step left for it nothing is asked."""
    run = state.run
    if not state.recovery.policy.verify_claims or run.iteration >= run.max_iterations or state.closing:
        return None
    # Calls of the same reply count: the tests may have run right before the answer.
    shown = so_far(state.recovery, run.iteration, state.seq, state.at).of(ImplicitFailures)
    remark = shown.unproved(answer)
    return None if remark is None or budgets.exceeded(state) is not None else remark
