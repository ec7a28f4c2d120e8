"""Plan mode (`--approve plan`): the answer is a plan, and the operator says whether it is carried out.

That edits are refused meanwhile is the judge's (`permissions.judge`); without an operator the run ends with the plan.
"""

from __future__ import annotations

from tui_agent.core import events
from tui_agent.core.decision.endings import answered
from tui_agent.core.decision.steps import Finish, Record, Step
from tui_agent.core.names import ABOUT_PLAN, Approval
from tui_agent.core.recovery.rules import Rule
from tui_agent.core.state import RunState

WAYS = {
    "carry it out": Approval.ASK,
    "carry it out, edits run": Approval.WRITES,
    "carry it out, nothing asks": Approval.ALL,
}
"""Choices of the operator, with the mode that holds from then on."""


def after_plan(state: RunState, plan: str) -> Step | None:
    """The question whether `plan`, the run's answer, is carried out, and what follows; None: the run goes on."""
    answer = plan_answer(state)
    # A sub-agent's answer goes to the run, whose plan is asked about.
    planning = state.session.approve is Approval.PLAN and state.run.operator_present and not state.in_lane
    if answer is None:
        return Record((_question(state, plan),)) if planning else Finish(answered(state, plan))
    if answer.choice != "answer" or answer.by != "operator":
        return Finish(answered(state, plan))
    way = WAYS.get(answer.text)
    if way is not None and planning:
        return Record((events.SettingChanged(setting="approve", value=way.value),))
    return None


def plan_answer(state: RunState) -> events.EscalationAnswered | None:
    """The answer to the plan of this step."""
    answer = state.answer
    return answer if answer is not None and answer.id.startswith(ABOUT_PLAN) else None


def _question(state: RunState, plan: str) -> events.EscalationRaised:
    return events.EscalationRaised(
        id=f"{ABOUT_PLAN}-{state.seq + 1}",
        question=plan,
        source=ABOUT_PLAN,
        rule=Rule.OPERATOR_ANSWER,
        options=tuple(WAYS),
    )
