"""The call by which the model keeps its todo list. It changes nothing but what the operator sees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from tui_agent.core.names import UPDATE_PLAN
from tui_agent.core.projections.plan import STATUSES, Plan, plan_of
from tui_agent.core.tool_facts import Effect, ToolFacts, Use, Uses
from tui_agent.tools.errors import ToolError
from tui_agent.tools.tool import ToolContext, ToolOutput, schema, text

if TYPE_CHECKING:
    from tui_agent.tools.workspace import Workspace

_MOST_STEPS = 50
_LONGEST_STEP = 300


@dataclass(frozen=True)
class UpdatePlan:
    """`update_plan(plan, explanation?)`: the whole plan as it is now; the state is folded from the call's input."""

    name: ClassVar[str] = UPDATE_PLAN
    effect: ClassVar[Effect] = Effect.READ
    uses: ClassVar[Uses] = {"plan": Use.SAYS, "explanation": Use.SAYS}
    facts: ClassVar[ToolFacts] = ToolFacts(label="plan", works=False)
    description: ClassVar[str] = (
        "Keep a short plan, which the operator sees, for a task of more than two steps: send it before you begin, "
        "and again whole whenever a step begins or is done. At most one step is in_progress."
    )
    parameters: ClassVar[dict[str, Any]] = schema(
        "plan",
        plan={
            "type": "array",
            "maxItems": _MOST_STEPS,
            "description": "All steps in their order.",
            "items": schema(
                "step",
                "status",
                step=text("What is to be done, in a few words.", maxLength=_LONGEST_STEP),
                status={"type": "string", "enum": list(STATUSES)},
            ),
        },
        explanation={"type": "string", "description": "Why the plan changed, where it did."},
    )

    def preview(self, arguments: dict[str, Any], workspace: Workspace) -> str:
        """The plan as a list."""
        return plan_of(arguments).as_text()

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolOutput:
        """Raises `ToolError` if several steps are in progress."""
        plan = plan_of(arguments)
        at_once = [step.text for step in plan.steps if step.status == "in_progress"]
        if len(at_once) > 1:
            raise ToolError(
                f"{len(at_once)} steps are in_progress; at most one can be. Send the plan again with the others "
                "pending or completed."
            )
        return ToolOutput(_said(plan))


def _said(plan: Plan) -> str:
    return f"The plan is shown.\n{plan.as_text()}" if plan.steps else "The plan is empty now."
