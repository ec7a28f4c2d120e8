"""Sub-agents: runs of the same loop beside the session's own, each in a lane of its events.

A lane has its own window, recovery and budget; workspace, permissions, sandbox, operator, model and journal are the
session's. It has no tool to start another one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar, cast

from tui_agent.core import events
from tui_agent.core.budgets import spendings
from tui_agent.core.projections.history import estimate_tokens
from tui_agent.core.state import RunState
from tui_agent.runtime.checkpointer import Checkpointer
from tui_agent.runtime.driver import Driver
from tui_agent.runtime.operator import (
    ApprovalReply,
    EscalationReply,
    GateReply,
    Operator,
    RequestOutline,
    ServerReply,
)
from tui_agent.runtime.recorder import Recorder
from tui_agent.tools.registry import ToolRegistry
from tui_agent.tools.task import TASK, TaskEnded
from tui_agent.tools.tool import TextMask

E = TypeVar("E", bound=events.Event)

_SHARE = 4
"""A lane gets this part of what is left of each budget of the run, and its steps are half of the run's."""

_ROLE = (
    "You are a sub-agent: another agent works on the operator's task and gave you a part of it. Do that part alone. "
    "Your final answer is all that it reads of your work, so say in it what you found or changed, with paths."
)


class SubAgents:
    """Runs the session's sub-agents, `most` of them at the same time."""

    def __init__(
        self,
        recorder: Recorder,
        tools: Callable[[], ToolRegistry],
        operator: Operator,
        checkpointer: Checkpointer,
        prepared: Callable[[str], Awaitable[events.RunStarted]],
        make_driver: Callable[[Recorder, ToolRegistry, Operator, Checkpointer], Driver],
        most: int,
    ) -> None:
        """`tools`: the session's as they are now; `prepared` makes the event that would begin a run of the session with
        a task.
        """
        self._recorder = recorder
        self._tools = tools
        self._operator = LaneOperator(operator)
        self._checkpointer = LaneCheckpointer(checkpointer)
        self._prepared = prepared
        self._make_driver = make_driver
        self._slots = asyncio.Semaphore(most)

    async def run(self, call_id: str, name: str, prompt: str) -> TaskEnded:
        """Do the work `prompt` in a lane under the call `call_id`. Cancellation ends it as interrupted."""
        async with self._slots:
            recorder = LaneRecorder(self._recorder, call_id, name)
            tools = self._tools().without(TASK)
            start = _narrowed(await self._prepared(prompt), self._recorder.state, tools)
            driver = self._make_driver(recorder, tools, self._operator, self._checkpointer)
            finished = await driver.run(start)
            state = recorder.state
            return TaskEnded(
                finished.outcome,
                finished.answer,
                finished.reason,
                state.run.iteration,
                state.metrics.files_changed,
            )


def _narrowed(start: events.RunStarted, state: RunState, tools: ToolRegistry) -> events.RunStarted:
    """The beginning of a lane: the run's own model and policy, fewer tools, and its share of the run's
    limits.
    """
    left = {spent.key: max(0.0, spent.limit - spent.used) for spent in spendings(state)}
    budgets: dict[str, float] = {}
    for key, rest in left.items():
        own = key.replace("session_cost", "cost").replace("session", "run")
        # Lanes that work side by side share money and tokens, and not the time.
        share = rest if own == "max_run_time" else rest / _SHARE
        budgets[own] = min(budgets.get(own, share), share)
    return start.model_copy(
        update={
            "run": 1,
            "model": state.run.model,
            "session_model": "",
            "policy": state.run.policy,
            "policy_settings": state.recovery.policy.model_dump(mode="json"),
            "system_prompt": f"{start.system_prompt}\n\n{_ROLE}",
            "tools": tools.names,
            "effects": tools.effects,
            "tools_tokens": sum(estimate_tokens(str(tool)) for tool in tools.specifications()),
            "max_iterations": max(1, min(start.max_iterations, state.run.max_iterations) // 2),
            "asks_for_steps": False,
            "max_cost": None,
            "kept": None,
            "budgets": budgets,
        }
    )


class LaneRecorder:
    """Records a lane's events within the session's: what comes in pieces, for the screen only, is left out."""

    def __init__(self, session: Recorder, call_id: str, name: str) -> None:
        self._session = session
        self._call_id = call_id
        self._name = name

    @property
    def state(self) -> RunState:
        return self._session.state.lane(self._call_id)

    def record(self, event: E) -> E:
        if isinstance(event, events.ReplyDelta | events.ToolProgress):
            return event
        asks = isinstance(event, events.ApprovalAsked | events.EscalationRaised)
        step: Any = event.model_copy(update={"lane": self._name}) if asks else event
        kept = self._session.record(events.LaneEvent(lane=self._call_id, name=self._name, event=step))
        return cast("E", kept.placed)

    async def barrier(self) -> None:
        await self._session.barrier()

    def sync_soon(self) -> None:
        self._session.sync_soon()

    def new_mask(self) -> TextMask:
        return self._session.new_mask()

    def restore(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        return self._session.restore(arguments)


class LaneOperator:
    """The operator for lanes: a step of the run is let go with all that its sub-agents do in it."""

    def __init__(self, operator: Operator) -> None:
        self._operator = operator

    @property
    def present(self) -> bool:
        return self._operator.present

    async def approve(self, asked: events.ApprovalAsked) -> ApprovalReply:
        return await self._operator.approve(asked)

    async def answer(self, raised: events.EscalationRaised) -> EscalationReply:
        return await self._operator.answer(raised)

    async def consult(self, asked: events.ServerAsked) -> ServerReply:
        return await self._operator.consult(asked)

    async def gate(self, outline: RequestOutline) -> GateReply:
        return GateReply(outline.note)


class LaneCheckpointer:
    """Keeps the workspace before the first effect; what a lane changed is saved with the step of the run."""

    def __init__(self, checkpointer: Checkpointer) -> None:
        self._checkpointer = checkpointer
        self._one_at_a_time = asyncio.Lock()

    async def before_effect(self) -> None:
        async with self._one_at_a_time:
            await self._checkpointer.before_effect()

    def after_iteration(self) -> None:
        pass

    async def look(self) -> None:
        pass

    async def settle(self) -> None:
        pass

    async def bring_back(self, ref: str) -> tuple[str, ...] | None:
        """Nobody but the run's operator brings files back."""
        return None
