"""The check of an answer: it is taken, or sent back once because it is none, claims what no result shows, or stands for
work that was not done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_agent.core import budgets
from tui_agent.core.events import CallProblem, FailureKind
from tui_agent.core.names import Approval
from tui_agent.core.recovery.announcements import announcement
from tui_agent.core.recovery.folding import so_far
from tui_agent.core.recovery.form import FormErrors
from tui_agent.core.recovery.implicit import ImplicitFailures
from tui_agent.core.recovery.questions import puts_question
from tui_agent.core.recovery.rules import Rule

if TYPE_CHECKING:
    from tui_agent.core.recovery.remarks import Remark
    from tui_agent.core.state import RunState


def announced(state: RunState, answer: str) -> CallProblem | None:
    """Say why an answer is none: it announces what comes next, and nothing comes. None if it may be one."""
    recovery = state.recovery
    if not recovery.policy.reads_text or recovery.of(FormErrors).announced or _is_planning(state):
        return None
    if recovery.of(ImplicitFailures).interrupted or not _may_go_on(state):
        return None
    words = announcement(answer, state.run.task)
    return (
        None
        if words is None
        else CallProblem(kind=FailureKind.NO_TOOL_CALL, message=words, rule=Rule.FORM_ANNOUNCED)
    )


def to_verify(state: RunState, answer: str) -> Remark | None:
    """Choose what is asked about the answer; None if it ends the run. Without a step left for it nothing is asked."""
    run = state.run
    if not state.recovery.policy.verify_claims or not _may_go_on(state):
        return None
    # Calls of the same reply count: the tests may have run right before the answer.
    shown = so_far(state.recovery, run.iteration, state.seq, state.at).of(ImplicitFailures)
    words_alone = _is_planning(state) or (run.operator_present and puts_question(answer))
    return shown.unproved(answer, words_alone=words_alone)


def _is_planning(state: RunState) -> bool:
    return state.session.approve is Approval.PLAN


def _may_go_on(state: RunState) -> bool:
    """Tell if the run has a step and budget left."""
    return not (budgets.steps_used_up(state) or state.closing) and budgets.exceeded(state) is None
