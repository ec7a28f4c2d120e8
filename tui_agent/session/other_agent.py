"""The interface of another agent that takes the steps of a session, in the place of a model and of our tools."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from tui_agent.config.mcp_servers import ServerEntry
from tui_agent.core.events import RunStarted
from tui_agent.core.state import SessionFacts
from tui_agent.runtime.approvals import Approvals
from tui_agent.runtime.checkpointer import Checkpointer
from tui_agent.runtime.driver import Driver
from tui_agent.runtime.operator import Operator
from tui_agent.runtime.recorder import Recorder
from tui_agent.runtime.waiting import Wait
from tui_agent.tools.registry import ToolRegistry


class OtherAgent(Protocol):
    """One agent for one session."""

    def driver(
        self,
        recorder: Recorder,
        operator: Operator,
        checkpointer: Checkpointer,
        approvals: Approvals,
        tools: ToolRegistry,
        servers: Callable[[], Awaitable[Sequence[ServerEntry]]],
        jitter: Callable[[], float],
        wait: Wait,
    ) -> Driver:
        """The loop of the session's runs. `tools`: those of ours by which permission rules judge its calls; `servers`:
        MCP servers that it may start.
        """

    def begins(self, start: RunStarted) -> RunStarted:
        """The beginning of a run, as it is with this agent."""

    async def start(self) -> None:
        """Start it before the first prompt, so that what it offers is known."""

    async def choose(self, option: str, value: str) -> str:
        """Give one of its options a value; the value's name. Raises `ValueError`, `SessionError`."""

    async def close(self) -> None:
        """End its process. May be called twice."""


FindAgent = Callable[[SessionFacts], OtherAgent | None]
"""The agent of a session that is opened; None: this program takes the steps itself."""


def own_loop(_: SessionFacts) -> None:
    """No other agent."""
