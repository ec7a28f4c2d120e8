"""The MCP servers of a session: trust in the state folder, questions to the operator, events in the journal."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from secrets import token_hex
from typing import cast

from pydantic import JsonValue

from tui_agent.config.mcp_servers import ServerEntry, load_servers
from tui_agent.core import events
from tui_agent.core.events.servers import ServerStanding
from tui_agent.core.projections.history import estimate_tokens
from tui_agent.runtime.operator import Operator, ServerReply
from tui_agent.sandbox.mechanisms import Sandbox
from tui_agent.session.server_logins import ServerLogins
from tui_agent.store.mcp_trust import McpTrust
from tui_agent.store.recorder import SessionRecorder
from tui_agent.store.redaction import worth_masking
from tui_agent.terminal_text import one_line, sanitize
from tui_agent.tools.mcp.servers import McpServers, ServerRow, not_started
from tui_agent.tools.mcp.status import Elicitation, ElicitationReply, ServerStatus
from tui_agent.tools.registry import ToolRegistry

PATIENCE = 5.0
"""Seconds that the first model call waits for servers, from their start on; what comes later joins later calls."""
MOST_FIELDS = 30
_LONGEST_MESSAGE = 4_000
_RECORDED = {
    ServerStatus.READY,
    ServerStatus.RETRYING,
    ServerStatus.OPEN,
    ServerStatus.LOGIN,
    ServerStatus.FAILED,
    ServerStatus.STOPPED,
}


class SessionServers:
    """Implements `tools.mcp.servers.ServerHost` for a session."""

    def __init__(
        self,
        recorder: SessionRecorder,
        operator: Operator,
        registry: ToolRegistry,
        state_dir: Path,
        workspace: Path,
        sandbox: Callable[[ServerEntry], Awaitable[Sandbox]],
        *,
        wanted: bool = True,
        lends: bool = False,
    ) -> None:
        """`lends`: another agent takes the steps, and starts the servers itself."""
        self._recorder = recorder
        self._operator = operator
        self._registry = registry
        self._trust = McpTrust(state_dir, workspace)
        self.state_dir = state_dir
        self._workspace = workspace
        self._sandbox = sandbox
        self._wanted = wanted
        self.lent: tuple[ServerEntry, ...] | None = () if lends else None
        """Those that another agent was given; None: this program starts them."""
        self.servers: McpServers | None = None
        """None until the configuration has been read."""
        self.logins = ServerLogins(self)
        self._waits_until = 0.0
        self._opening: asyncio.Task[None] | None = None
        self._noticed: dict[str, tuple[str, ...]] = {}
        """Each server's tools as the operator knows them."""

    # --- life -----------------------------------------------------------------------------------------------

    def connect(self, patience: float = PATIENCE, given: Sequence[ServerEntry] = ()) -> None:
        """Start the servers in the background; the first model call waits `patience` seconds for them. `given`: by
        who drives the session, beside those of the files.
        """
        if not self._wanted or self.lent is not None:
            return
        self._waits_until = asyncio.get_running_loop().time() + patience
        self._opening = asyncio.get_running_loop().create_task(self._open(given), name="mcp-configuration")

    async def _open(self, given: Sequence[ServerEntry]) -> None:
        configured = await asyncio.to_thread(load_servers, self._workspace)
        if given:
            names = {entry.name for entry in given}
            rest = (entry for entry in configured.entries if entry.name not in names)
            configured = replace(configured, entries=(*given, *rest))
        if configured.entries or configured.problems:
            self.servers = McpServers(configured, self._registry, self, self._workspace)
            self.servers.start()

    async def lend(self) -> tuple[ServerEntry, ...]:
        """Servers that another agent may start: the operator's own, and those of the workspace that they agree to."""
        if not self._wanted:
            return ()
        configured = await asyncio.to_thread(load_servers, self._workspace)
        for problem in configured.problems:
            self.notice(f"MCP servers: {problem}.")
        enabled = (entry for entry in configured.entries if not entry.disabled)
        self.lent = tuple([entry for entry in enabled if await self._agreed(entry)])
        for entry in self.lent:
            self.mask(entry.secrets)
        return self.lent

    async def _agreed(self, entry: ServerEntry) -> bool:
        answer = True if entry.scope == "user" else self.trusted(entry)
        if answer is None and self.present:
            return await self.ask_trust(entry)
        if answer is None:
            self.notice(not_started(entry))
        return bool(answer)

    async def trust(self, name: str) -> bool:
        """Remember that the operator agrees to a server of the workspace, and start it."""
        entry = None if self.servers is None else self.servers.untrusted(name)
        if entry is None or self.servers is None:
            return False
        await asyncio.to_thread(self._trust.remember, entry, True)
        await self.servers.trust(name)
        return True

    def reconnect(self, name: str) -> bool:
        """Connect to a server anew; False if none of that name was started."""
        return self.servers is not None and self.servers.reconnect(name)

    async def listed(self) -> None:
        """Wait before a model call: for the servers to be connected or given up, later for lists that are read anew."""
        rest = self._waits_until - asyncio.get_running_loop().time()
        if rest > 0:
            if self._opening is not None:
                await self._opening
            if self.servers is not None:
                await self.servers.ready(rest)
            self._waits_until = 0.0
        elif self.servers is not None:
            await self.servers.listed()

    async def close(self) -> None:
        """End all servers."""
        await self.logins.close()
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.gather(self._opening, return_exceptions=True)
        if self.servers is not None:
            await self.servers.close()

    # --- as the servers' host -------------------------------------------------------------------------------

    @property
    def present(self) -> bool:
        """True if somebody can be asked."""
        return self._operator.present

    def trusted(self, entry: ServerEntry) -> bool | None:
        """The operator's answer for exactly this entry in this workspace."""
        return self._trust.trusted(entry)

    async def ask_trust(self, entry: ServerEntry) -> bool:
        """Show the whole of what would be started; the answer is remembered unless it is put off."""
        lines = [f"{'Connect to' if entry.url else 'Run'}: {entry.shown}", *entry.details]
        description = (await self.sandbox(entry)).description
        rights = (
            "It runs with your rights, outside of the sandbox."
            if description == "off"
            else f"It runs in the sandbox of commands ({description})."
        )
        message = (
            "\n".join(lines) + f"\n\n{entry.file.name} of this workspace names this MCP server. {rights}"
        )
        asked = events.ServerAsked(id=token_hex(4), server=entry.name, purpose="trust", message=message)
        reply = await self._consult(asked)
        if reply.decision != "cancel" and reply.by == "operator":
            try:
                await asyncio.to_thread(self._trust.remember, entry, reply.decision == "accept")
            except OSError as error:
                self.notice(
                    f"The answer about the MCP server {entry.name} could not be kept: {error.strerror}."
                )
        return reply.decision == "accept"

    async def ask(self, question: Elicitation) -> ElicitationReply:
        """Put a server's question to the operator."""
        properties = question.schema.get("properties")
        fields = dict(list(properties.items())[:MOST_FIELDS]) if isinstance(properties, dict) else {}
        # The server's names of its fields, by those that are shown.
        names = {sanitize(name)[:80]: name for name in fields}
        required = question.schema.get("required")
        asked = events.ServerAsked(
            id=token_hex(4),
            server=question.server,
            purpose="elicitation",
            message=sanitize(question.message[:_LONGEST_MESSAGE]),
            fields={shown: _field(fields[name]) for shown, name in names.items()},
            required=tuple(shown for shown, name in names.items() if name in required)
            if isinstance(required, list)
            else (),
            url=sanitize(question.url[:2_000]),
        )
        reply = await self._consult(asked)
        content = reply.content
        return ElicitationReply(
            reply.decision, content and {names[shown]: value for shown, value in content.items()}
        )

    async def _consult(self, asked: events.ServerAsked) -> ServerReply:
        self._recorder.record(asked)
        reply = ServerReply("cancel", by="policy")
        try:
            reply = await self._operator.consult(asked)
        finally:
            self._recorder.record(
                events.ServerAnswered(
                    id=asked.id,
                    server=asked.server,
                    decision=reply.decision,
                    given=tuple(reply.content or ()),
                    by=reply.by,
                )
            )
        return reply

    async def sandbox(self, entry: ServerEntry) -> Sandbox:
        """The sandbox that a server runs in; none for an address."""
        return Sandbox() if entry.url else await self._sandbox(entry)

    def mask(self, secrets: Mapping[str, str]) -> None:
        """Mask these values from now on."""
        self._recorder.learn_secrets({name: value for name, value in secrets.items() if worth_masking(value)})

    def changed(self, row: ServerRow) -> None:
        """Record how the server stands."""
        if row.status not in _RECORDED:
            return
        away = row.status is not ServerStatus.READY and row.status is not ServerStatus.RETRYING
        names = () if away else tuple(tool.name for tool in row.tools)
        tokens = sum(
            estimate_tokens(str(specification))
            for specification in self._registry.specifications()
            if specification["function"]["name"] in names
        )
        self._recorder.record(
            events.ServerChanged(
                server=row.name,
                status=cast(ServerStanding, row.status.value),
                tools=names,
                tools_tokens=tokens,
                why=one_line(row.why, 600),
            )
        )
        new = row.status is ServerStatus.READY and self._noticed.get(row.name) != row.notices
        self._noticed[row.name] = row.notices
        for notice in row.notices if new else ():
            self.notice(f"MCP server {row.name}: {notice}.")

    def notice(self, text: str) -> None:
        """Something the operator should know."""
        self._recorder.record(events.Notice(severity="warning", text=text))


def _field(field: object) -> dict[str, JsonValue]:
    """A field of a form, its words made safe and bounded."""
    if not isinstance(field, dict):
        return {}
    made: dict[str, JsonValue] = {}
    for key in ("type", "title", "description", "format", "default"):
        value = field.get(key)
        if isinstance(value, str):
            made[key] = sanitize(value[:400])
        elif key == "default" and isinstance(value, bool | int | float):
            made[key] = value
    for key in ("minimum", "maximum", "minLength", "maxLength"):
        value = field.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool):
            made[key] = value
    choices = field.get("enum")
    if not isinstance(choices, list):
        choices = [option.get("const") for option in field.get("oneOf") or () if isinstance(option, dict)]
    if choices:
        made["enum"] = [str(choice)[:200] for choice in choices[:50]]
    return made
