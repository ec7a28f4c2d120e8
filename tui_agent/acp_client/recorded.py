"""An agent whose start and offers are events of the session, and whose options the operator chooses."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

from tui_agent.acp_client.agent import Agent, AgentFault
from tui_agent.acp_client.entries import AgentEntry
from tui_agent.acp_client.turn import Turn
from tui_agent.config.mcp_servers import ServerEntry
from tui_agent.core import events
from tui_agent.core.values import AgentOption
from tui_agent.runtime.recorder import Recorder
from tui_agent.store.errors import SessionError
from tui_agent.terminal_text import one_line


class RecordedAgent:
    """One agent of one session. `servers` gives the MCP servers that it may start, `wanted` values of its options for a
    session in which the operator has chosen none.
    """

    def __init__(
        self,
        recorder: Recorder,
        agent: Agent,
        servers: Callable[[], Awaitable[Sequence[ServerEntry]]],
        wanted: Mapping[str, str],
    ) -> None:
        self._recorder = recorder
        self._agent = agent
        self._servers = servers
        self._wanted = wanted
        self._one_at_a_time = asyncio.Lock()
        self._greeted = False
        """What it offers is known as a whole."""
        agent.offered = self._offered

    @property
    def entry(self) -> AgentEntry:
        return self._agent.entry

    def prompt(self, text: str, taken: set[str]) -> Turn:
        """See `Agent.prompt`."""
        return self._agent.prompt(text, taken)

    def leave(self) -> None:
        """Cancel the turn that goes on."""
        self._agent.leave()

    def over(self) -> None:
        """The turn has come to its end."""
        self._agent.over()

    async def start(self) -> None:
        """Get it ready, and say what is in the way of that; the next prompt tries it again."""
        try:
            await self.ready()
        except AgentFault as raised:
            text = f"The agent is not ready: {raised.fault.message}"
            self._recorder.record(events.Notice(severity="warning", text=text))

    async def ready(self) -> None:
        """Connect if that is not done, with the options as they were chosen. Raises `AgentFault`."""
        async with self._one_at_a_time:
            if self._agent.open:
                servers: Sequence[ServerEntry] = ()
            else:
                servers, self._greeted = await self._servers(), False
            greeting = await self._agent.ready(servers)
            if greeting is None:
                return
            opened = events.AgentOpened(
                agent=self._agent.entry.name,
                session=greeting.session,
                version=greeting.version,
                model=greeting.model,
            )
            self._recorder.record(opened)
            self._greeted = True
            self._offered()
            if greeting.forgot:
                why = "The agent could not open its session again and knows nothing of it"
                self._warn(f"{why}: {greeting.forgot}")
            if greeting.withheld:
                names = one_line(", ".join(greeting.withheld), 400)
                self._warn(f"The agent starts no MCP servers that have an address: it does not get {names}.")
            for option, value in {**self._wanted, **self._recorder.state.session.chosen}.items():
                await self._have(option, value)

    async def _have(self, wanted: str, value: str) -> None:
        """Let an option have the value that was chosen before; what is in the way of that costs nothing else."""
        try:
            option, choice = self._found(wanted, value)
            if option.value != choice:
                await self._agent.choose(option, choice)
                self._offered()
        except (ValueError, AgentFault) as error:
            self._warn(f"The agent's {one_line(wanted, 80)} is not {one_line(value, 80)}: {error}")

    async def choose(self, wanted: str, value: str) -> str:
        """Give an option a value, by its own name or by ours; the value's name. Raises `ValueError`, `SessionError`."""
        try:
            await self.ready()
            option, choice = self._found(wanted, value)
            async with self._one_at_a_time:
                await self._agent.choose(option, choice)
        except AgentFault as raised:
            way = "See what it wrote, or choose another value."
            raise SessionError("The agent's option was not changed", raised.fault.message, way) from raised
        named = option.with_values({"value": choice}).named
        self._recorder.record(events.AgentOptionChosen(option=option.id, value=choice, name=named))
        self._offered()
        return named

    def _found(self, wanted: str, value: str) -> tuple[AgentOption, str]:
        """An option, and the id of its value. Raises `ValueError`."""
        offered = self._agent.offers.now
        option = offered.option(wanted)
        if option is None:
            there = ", ".join(one.id for one in offered.options) or "none"
            raise ValueError(f"it has no option {one_line(wanted, 80)}; its options are: {there}.")
        choice = option.choice(value)
        if choice is None:
            known = ", ".join(one.name for one in option.choices[:_NAMED])
            more = ", …" if len(option.choices) > _NAMED else ""
            raise ValueError(f"there is no {option.id} {one_line(value, 80)}; there are {known}{more}.")
        return option, choice.value

    def _offered(self) -> None:
        now, known = self._agent.offers.now, self._recorder.state.session.offered
        if self._greeted and (now.options, now.commands) != (known.options, known.commands):
            self._recorder.record(now)

    def _warn(self, text: str) -> None:
        self._recorder.record(events.Notice(severity="warning", text=text))


_NAMED = 20
"""Values that are named at most."""
