"""The commands about what helps the agent: skills, the playbook, commands in the background, MCP servers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tui_agent.frontend.commands.command import Command

if TYPE_CHECKING:
    from tui_agent.frontend.commands.host import SessionHost


class Skills(Command["SessionHost"]):
    name = "skills"
    help = "The skills that the agent can read; with a name: ask for that one"
    argument = "[NAME]"

    async def do(self, host: SessionHost, argument: str) -> str:
        """Show the skills; with a name, begin a message that asks for one."""
        from tui_agent.frontend.lines.skills import skill_lines

        found = host.session.skills.find()
        if not argument:
            await host.show_report("Skills", lambda width: skill_lines(found, width))
        elif found.named(argument) is None:
            there = ", ".join(skill.name for skill in found.skills) or "none"
            raise ValueError(f"There is no skill {argument}. There are: {there}.")
        else:
            host.put_in_prompt(f"Use the skill {argument}: ")
        return ""


class Playbook(Command["SessionHost"]):
    name = "playbook"
    help = "What helped against failures in earlier runs; `forget ID|all` forgets, `edit ID WORDS` puts your own words"
    argument = "[forget ID|all|edit ID WORDS]"
    values = ("forget", "edit")

    async def do(self, host: SessionHost, argument: str) -> str:
        import asyncio
        from functools import partial

        from tui_agent.frontend.lines.playbook import known, playbook_lines

        book = host.session.playbook
        if not argument:
            found = await asyncio.to_thread(known, book, host.now)
            await host.show_report("Playbook", lambda width: playbook_lines(found, width))
            return ""
        what, _, rest = argument.partition(" ")
        wanted, _, words = rest.strip().partition(" ")
        if what not in self.values or not wanted or (what == "edit") is not bool(words):
            raise ValueError(
                "Write /playbook, /playbook forget ID, /playbook forget all, or /playbook edit ID WORDS."
            )
        change = (
            partial(book.forget, wanted) if what == "forget" else partial(book.edit, wanted, words.strip())
        )
        if not await asyncio.to_thread(change):
            raise ValueError(f"There is no {wanted} in the playbook; /playbook lists what there is.")
        return "Forgotten." if what == "forget" else "Your words are said from the next such failure on."


class Background(Command["SessionHost"]):
    name = "background"
    help = "Commands that run in the background; `stop ID` ends one"
    argument = "[stop ID]"

    def choices(self, host: SessionHost) -> Sequence[str]:
        return [f"stop {name}" for name in host.session.state.background.running]

    async def do(self, host: SessionHost, argument: str) -> str:
        what, _, name = (part.strip() for part in argument.partition(" "))
        running = host.session.state.background.running
        if not argument:
            if not running:
                return "Nothing runs in the background."
            name = await host.choose_background(tuple(running.values()))
        elif what != "stop" or not name:
            raise ValueError("Write /background, or /background stop ID.")
        elif name not in running:
            there = ", ".join(running) or "none"
            raise ValueError(f"There is no command {name!r} in the background; running: {there}.")
        if name:
            await host.session.background.stop(name, "operator")
        return ""


class Mcp(Command["SessionHost"]):
    name = "mcp"
    help = (
        "MCP servers: how they stand; `trust NAME` starts one of this workspace, `reconnect NAME` tries again now, "
        "`login NAME` logs in with a browser (`--device`: with a code), `logout NAME` forgets that"
    )
    argument = "[trust|reconnect|login|logout NAME]"

    def choices(self, host: SessionHost) -> Sequence[str]:
        from tui_agent.tools.mcp.status import ServerStatus

        servers = host.session.mcp.servers
        rows = () if servers is None else servers.rows()
        waiting = [f"trust {row.name}" for row in rows if row.status is ServerStatus.UNTRUSTED]
        waiting += [f"login {row.name}" for row in rows if row.status is ServerStatus.LOGIN]
        return [*waiting, *(f"reconnect {row.name}" for row in rows if row.server or row.why)]

    async def do(self, host: SessionHost, argument: str) -> str:
        from tui_agent.frontend.lines.servers import server_lines
        from tui_agent.terminal_text import one_line

        mcp = host.session.mcp
        if mcp.lent is not None:
            names = ", ".join(one_line(entry.name, 80) for entry in mcp.lent) or "none"
            return f"The agent that takes the steps starts MCP servers itself. It was given: {names}."
        if not argument:
            servers = mcp.servers
            rows = servers.rows if servers is not None else tuple
            await host.show_report("MCP servers", lambda width: server_lines(rows(), width), 100, moves=True)
            return ""
        what, _, name = (part.strip() for part in argument.partition(" "))
        if what not in {"trust", "reconnect", "login", "logout"} or not name:
            raise ValueError("Write /mcp, or /mcp and one of trust, reconnect, login, logout with a NAME.")
        if what in {"login", "logout"}:
            from tui_agent.frontend.commands.server_login import log_in, log_out

            return await (log_in if what == "login" else log_out)(host, name)
        if not (await mcp.trust(name) if what == "trust" else mcp.reconnect(name)):
            raise ValueError(f"There is no MCP server {name} for that; /mcp lists them.")
        return ""
