"""The agent of a session: the one that is asked for, else the one that the saved session was worked on by."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from tui_agent.acp_client.agent import Agent
from tui_agent.acp_client.driver import Advice, AgentDriver
from tui_agent.acp_client.entries import agent_entry
from tui_agent.acp_client.hooked import hooks_advise
from tui_agent.acp_client.lanes import AgentLanes
from tui_agent.acp_client.permissions import AgentPermissions
from tui_agent.acp_client.recorded import RecordedAgent
from tui_agent.config.errors import ConfigError
from tui_agent.config.mcp_servers import ServerEntry
from tui_agent.config.settings import Settings
from tui_agent.core import events
from tui_agent.core.recovery.policy import RecoveryPolicy, policy_of_run
from tui_agent.core.state import UNBOUNDED, SessionFacts
from tui_agent.runtime.approvals import Approvals
from tui_agent.runtime.checkpointer import Checkpointer
from tui_agent.runtime.operator import Operator
from tui_agent.runtime.recorder import Recorder
from tui_agent.runtime.waiting import Wait
from tui_agent.store.errors import SessionError
from tui_agent.tools.registry import ToolRegistry


class SessionAgent:
    """Implements `session.other_agent.OtherAgent` over the Agent Client Protocol."""

    def __init__(self, settings: Settings, agent: Agent) -> None:
        self._settings = settings
        self._agent = agent
        self._hooked = hooks_advise(agent.entry, agent.workspace)
        self._recorded: RecordedAgent | None = None

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
    ) -> AgentDriver:
        """The loop of the session's runs."""
        wanted = {**self._agent.entry.options, **_model_of_this_start(self._settings)}
        agent = self._recorded = RecordedAgent(recorder, self._agent, servers, wanted)
        permissions = AgentPermissions(recorder, operator, approvals, tools, self._agent.answer)
        lanes = AgentLanes(recorder, operator, checkpointer, approvals, tools, self._agent.answer)
        return AgentDriver(
            recorder,
            agent,
            operator,
            checkpointer,
            permissions,
            lanes,
            advise="off" if self._hooked else self._settings.advise,
            jitter=jitter,
            wait=wait,
        )

    def begins(self, start: events.RunStarted) -> events.RunStarted:
        """The beginning of a run: window, tools and limit of steps are the agent's own."""
        settings = self._settings
        policy = policy_of_run(start.policy, start.policy_settings)
        return start.model_copy(
            update={
                "agent": self._agent.entry.name,
                "model": self._agent.entry.name,
                "session_model": "",
                "policy_settings": _of_others(policy, settings.advise, hooked=self._hooked).model_dump(
                    mode="json"
                ),
                "system_prompt": "",
                "tools": (),
                "effects": {},
                "tools_tokens": 0,
                "max_iterations": settings.max_iterations if settings.says("max_iterations") else UNBOUNDED,
                "context_tokens": None,
                "fallback_models": (),
                "fallbacks": {},
                "compact_at": 0.0,
                "advisor": "",
                "sandbox": "",
                "api_base": "",
                "kept": None,
            }
        )

    async def start(self) -> None:
        """Start it, so that what it offers is known before the first prompt; a prompt tries that again."""
        if self._recorded is not None:
            await self._recorded.start()

    async def choose(self, option: str, value: str) -> str:
        """Give one of its options a value; the value's name. Raises `ValueError`, `SessionError`."""
        if self._recorded is None:
            raise ValueError("The session is still being opened.")
        return await self._recorded.choose(option, value)

    async def close(self) -> None:
        """End its process."""
        await self._agent.close()


def _of_others(policy: RecoveryPolicy, advise: Advice, *, hooked: bool) -> RecoveryPolicy:
    """The policy for an agent that is not put into its turns; if it is told nothing, no answer is sent back. Hooks send
    back what an answer claims, but do not know that nobody reads it.
    """
    changes: dict[str, object] = {"closing_turn": False, "playbook": False, "persist": False}
    if advise == "off":
        changes["text_only"] = "answer"
    if advise == "off" or hooked:
        changes["verify_claims"] = False
    return policy.model_copy(update=changes)


def _model_of_this_start(settings: Settings) -> dict[str, str]:
    """A model that is named with the command is the agent's; any other one is that of our own runs."""
    named = settings.sources["model"].startswith("--") and settings.model
    return {"model": str(settings.model)} if named else {}


def session_agent(settings: Settings, facts: SessionFacts) -> SessionAgent | None:
    """The agent of a session; None: this program takes its steps. Raises `ConfigError`, `SessionError`."""
    before = facts.agent
    if not settings.agent and before is None:
        return None
    wanted = settings.agent or (before.agent if before is not None else "")
    try:
        entry = agent_entry(settings, wanted)
    except ConfigError as error:
        if settings.agent:
            raise
        raise SessionError(
            f"The session cannot go on with {wanted}",
            "it was started by its command, which is not taken from a saved session",
            "Name it again: agent-tui resume --agent 'COMMAND'",
        ) from error
    same = before is not None and before.agent == entry.name
    known = before.session if before is not None and same else ""
    return SessionAgent(settings, Agent(entry, Path(facts.workspace), known))
