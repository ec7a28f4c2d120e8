"""Sub-agents of another agent: what it says of their work stands in lanes, as that of our own sub-agents.

Which call of the agent's a word belongs to is told by `turn`. Nothing can be said to a sub-agent: what the operator
answers about one reaches the agent with its next prompt.
"""

from __future__ import annotations

from collections.abc import Callable
from random import random
from typing import Any

from tui_agent.acp_client.agent import AgentFault
from tui_agent.acp_client.calls import AgentCall
from tui_agent.acp_client.driver import AgentCalls, AgentSteps, InWords
from tui_agent.acp_client.permissions import AgentPermissions
from tui_agent.acp_client.turn import Turn
from tui_agent.core import events
from tui_agent.core.decision.steps import CallModel
from tui_agent.core.recovery.rules import Rule
from tui_agent.core.state import UNBOUNDED, RunState
from tui_agent.runtime.approvals import Approvals
from tui_agent.runtime.checkpointer import Checkpointer
from tui_agent.runtime.driver import Driver
from tui_agent.runtime.operator import Operator
from tui_agent.runtime.recorder import Recorder
from tui_agent.runtime.waiting import Wait
from tui_agent.session.sub_agents import LaneCheckpointer, LaneOperator, LaneRecorder
from tui_agent.terminal_text import one_line
from tui_agent.tools.registry import ToolRegistry

_NAMES = ("description", "subagent_type", "agent")
_TASKS = ("prompt", "task", "description")
_OVER = "The sub-agent has ended."


class AgentLanes:
    """Follows the sub-agents of an agent. `tell` takes words for the agent's next prompt."""

    def __init__(
        self,
        recorder: Recorder,
        operator: Operator,
        checkpointer: Checkpointer,
        approvals: Approvals,
        tools: ToolRegistry,
        answer: Callable[[int | str, dict[str, Any]], None],
    ) -> None:
        self.tell: Callable[[str], None] = lambda _: None
        self._recorder = recorder
        self._operator = LaneOperator(operator)
        self._checkpointer = LaneCheckpointer(checkpointer)
        self._approvals = approvals
        self._tools = tools
        self._answer = answer

    async def follow(self, call: AgentCall, turn: Turn) -> None:
        """Record what comes in `turn` as the work of the call, up to its end."""
        recorder = LaneRecorder(self._recorder, call.key, _said(call, _NAMES))
        permissions = AgentPermissions(recorder, self._operator, self._approvals, self._tools, self._answer)
        permissions.tell = self.tell
        steps = _LaneSteps(recorder, turn, self._checkpointer, self.tell)
        calls = AgentCalls(recorder, steps, self._checkpointer, permissions)
        operator = InWords(self._operator, steps)
        driver = Driver(recorder, steps, calls, operator, self._checkpointer)
        try:
            await driver.run(_begins(self._recorder.state, _said(call, _TASKS)))
        finally:
            turn.leave()


def _said(call: AgentCall, names: tuple[str, ...]) -> str:
    given = call.input
    found = (value for name in names if isinstance(value := given.get(name), str) and value.strip())
    return one_line(next(found, call.title), 400)


def _begins(state: RunState, task: str) -> events.RunStarted:
    """The lane's beginning: the run's policy, which has no say in what the sub-agent does next."""
    policy = state.recovery.policy.model_copy(update={"text_only": "answer", "verify_claims": False})
    return events.RunStarted(
        run=1,
        task=task,
        policy=state.run.policy,
        policy_settings=policy.model_dump(mode="json"),
        agent=state.run.agent,
        model=state.run.model,
        max_iterations=UNBOUNDED,
        compact_at=0.0,
        operator_present=state.run.operator_present,
        on_escalation="continue",
    )


class _LaneSteps(AgentSteps):
    """The replies of a sub-agent, whose turn was begun by the agent."""

    def __init__(
        self, recorder: Recorder, turn: Turn, checkpointer: Checkpointer, tell: Callable[[str], None]
    ) -> None:
        super().__init__(recorder, _NOBODY, checkpointer, advise="off", jitter=random, wait=Wait())
        self.turn = turn
        self._hand_on = tell

    async def call(self, step: CallModel) -> dict[str, Any]:
        """The next reply; after the last one the lane ends, whatever else would be asked of it."""
        if self.turn is None:
            self._recorder.record(events.StopRequested(reason=_OVER, rule=Rule.RUN_INTERRUPTED))
            return {}
        await super().call(step)
        return {}

    def has_words(self, state: RunState) -> bool:
        """Words of the operator go to the agent itself."""
        for words in self._untold(state):
            self._hand_on(words)
        self._told = state.seq
        return False


class _Nobody:
    """In the place of an agent: a sub-agent is neither prompted nor cancelled by itself."""

    async def ready(self) -> None:
        raise _NOT_PROMPTED

    def prompt(self, text: str, taken: set[str]) -> Turn:
        raise _NOT_PROMPTED

    def leave(self) -> None:
        """The agent's own turn is what is cancelled."""

    def over(self) -> None:
        """The agent's own turn goes on."""


_NOT_PROMPTED = AgentFault(events.Fault(kind=events.FaultKind.STREAM_CUT, message=_OVER))
_NOBODY = _Nobody()
