"""The model's plan: the steps of its newest `update_plan`, as the operator sees them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

STATUSES = ("pending", "in_progress", "completed")
_BOXES = {"completed": "[x]", "in_progress": "[>]", "pending": "[ ]"}


class PlanStep(NamedTuple):
    """One step; `status` is one of `STATUSES`."""

    text: str
    status: str


@dataclass(frozen=True)
class Plan:
    """Steps in their order. `seq` is that of the event that brought it, or that began the task which found it."""

    steps: tuple[PlanStep, ...] = ()
    seq: int = 0
    earlier: bool = False
    """An earlier task left it so; the task of now has not taken it up."""

    @property
    def done(self) -> int:
        """Completed steps."""
        return sum(step.status == "completed" for step in self.steps)

    @property
    def finished(self) -> bool:
        """Nothing is left of it."""
        return self.done == len(self.steps)

    @property
    def now(self) -> PlanStep | None:
        """The step in progress, else the first that is pending."""
        left = [step for step in self.steps if step.status != "completed"]
        return next((step for step in left if step.status == "in_progress"), left[0] if left else None)

    @property
    def summary(self) -> str:
        """How far it is, in one line."""
        step = self.now
        what = "done" if step is None else f"{'now' if step.status == 'in_progress' else 'next'}: {step.text}"
        return f"{self.done}/{len(self.steps)} · {what}"

    def as_text(self) -> str:
        """A list with a box for each step."""
        return "\n".join(f"{_BOXES[step.status]} {step.text}" for step in self.steps)


def plan_of(arguments: Mapping[str, Any], seq: int = 0) -> Plan:
    """The plan in a call's arguments; what is no step in them (a call of another program) is left out."""
    listed = arguments.get("plan")
    steps = tuple(
        PlanStep(str(item.get("step", "")), str(item["status"]))
        for item in (listed if isinstance(listed, list | tuple) else ())
        if isinstance(item, Mapping) and item.get("status") in _BOXES
    )
    return Plan(steps, seq)
