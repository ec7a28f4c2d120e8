"""`agent-tui mcp`: the configured MCP servers, how they stand and what they offer; add, remove and trust them."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tui_agent.cli.errors import UsageError
from tui_agent.cli.mcp_login import How, log_in, log_out
from tui_agent.cli.options import Parser, add_place_options, amount, one_of, overrides, take_verb
from tui_agent.config.errors import ConfigError, nearest
from tui_agent.config.mcp_servers import (
    WORKSPACE_FILE,
    ConfiguredServers,
    ServerEntry,
    ServerEntryError,
    check_entry,
    load_servers,
    read_file,
    user_file,
    write_entry,
)
from tui_agent.config.settings import Settings, load_settings
from tui_agent.quantities import counted
from tui_agent.sandbox.choose import choose
from tui_agent.sandbox.inside import in_words
from tui_agent.sandbox.mechanisms import Sandbox
from tui_agent.sandbox.taken_back import TakenBack
from tui_agent.sandbox.watch import Watch
from tui_agent.session.sandboxes import for_server, sandbox_policy
from tui_agent.store.mcp_trust import McpTrust
from tui_agent.terminal_text import one_line, sanitize
from tui_agent.tools.mcp.servers import McpServers, ServerRow
from tui_agent.tools.mcp.status import Elicitation, ElicitationReply, ServerStatus
from tui_agent.tools.registry import ToolRegistry

_EXAMPLE = """
agent-tui mcp
agent-tui mcp add files npx -y @modelcontextprotocol/server-filesystem .
agent-tui mcp add docs https://example.org/mcp --header "Authorization: Bearer ${DOCS_TOKEN}"
agent-tui mcp get files
agent-tui mcp trust files
agent-tui mcp login docs"""

_VERBS = ("list", "get", "add", "remove", "trust", "untrust", "login", "logout")


def parser() -> Parser:
    """Options of `mcp`."""
    made = Parser(
        "mcp",
        "MCP servers: those of your own mcp.json, and those of the workspace's .mcp.json (docs/MCP.md).\n\n"
        "list (the default): every server, where it is from, whether it may start, its state, its tools\n"
        "get NAME: one server with all that it offers\n"
        "add NAME COMMAND [ARGUMENT…] | add NAME URL: into your own file, or the workspace's with --scope workspace\n"
        "remove NAME: take it out of its file\n"
        "trust NAME: a server of the workspace may start as it is configured now; untrust NAME takes that back\n"
        "login NAME: log in to a server at an address; logout NAME: forget that",
        _EXAMPLE,
        usage="agent-tui mcp [list | get NAME | add NAME COMMAND|URL … | remove|trust|login|logout NAME] [options]",
    )
    made.add_argument("name", nargs="?", metavar="NAME", help="the server's name")
    made.add_argument(
        "--env", action="append", default=[], metavar="NAME=VALUE", help="add: a variable for it"
    )
    made.add_argument(
        "--header", action="append", default=[], metavar="NAME: VALUE", help="add: an HTTP header"
    )
    made.add_argument(
        "--scope",
        type=one_of(("user", "workspace")),
        default="user",
        metavar="WHERE",
        help="add: user or workspace",
    )
    made.add_argument("--device", action="store_true", help="login: with a code, entered in any browser")
    made.add_argument("--no-browser", action="store_true", help="login: show the address, open nothing")
    made.add_argument("--offline", action="store_true", help="list, get: start nothing, connect to nothing")
    made.add_argument(
        "--timeout",
        type=amount,
        default=20.0,
        metavar="SECONDS",
        help="list, get: longest wait (default 20)",
    )
    made.add_argument("--workspace", metavar="DIR", help="for this folder (default: here)")
    made.add_argument("--json", action="store_true", help="list, get: one JSON object, for programs")
    add_place_options(made)
    return made


def main(arguments: Sequence[str]) -> int:
    """Do one verb; its exit code. Raises `UsageError`."""
    words = list(arguments)
    verb = take_verb(words, _VERBS, "mcp") or "list"
    command: list[str] = []
    if verb == "add":
        words, command = _split(words)
    namespace = parser().parse(words)
    if (namespace.name is None) is (verb != "list"):
        needs = "takes no name" if verb == "list" else "needs the name of a server"
        raise UsageError(f"agent-tui mcp {verb} {needs}.")
    settings = load_settings(overrides(namespace, "workspace", "state_dir"), namespace.config)
    if verb == "add":
        return _add(settings, namespace, command)
    configured = load_servers(settings.workspace)
    if verb == "list":
        return _show(settings, configured, namespace, only=None)
    entry = configured.get(namespace.name)
    if entry is None and verb != "remove":
        raise ConfigError(_unknown(namespace.name, configured))
    if entry is not None and verb == "get":
        return _show(settings, configured, namespace, only=entry.name)
    if entry is not None and verb in {"trust", "untrust"}:
        return _trust(settings, entry, trusted=verb == "trust")
    if entry is not None and verb in {"login", "logout"}:
        how = How(device=namespace.device, browser=not namespace.no_browser)
        return log_in(settings, entry, how) if verb == "login" else log_out(settings, entry)
    return _remove(settings, namespace.name, configured)


def _split(words: list[str]) -> tuple[list[str], list[str]]:
    """The words of ours before the command, and the command, which has options of its own."""
    taking = {"--env", "--header", "--scope", "--workspace", "--state-dir", "--config"}
    place, named = 0, False
    while place < len(words):
        word = words[place]
        if word == "--":
            return words[:place], words[place + 1 :]
        if not word.startswith("-"):
            if named:
                break
            named = True
        place += 2 if word in taking else 1
    before, command = words[:place], words[place:]
    # Options of ours may also stand behind an address, which takes no arguments.
    return (before + command[1:], command[:1]) if command and _is_address(command[0]) else (before, command)


def _is_address(word: str) -> bool:
    return word.startswith(("http://", "https://"))


def _unknown(name: str, configured: ConfiguredServers) -> str:
    names = [entry.name for entry in configured.entries]
    near = nearest(name, names)
    known = (
        f"did you mean {near}?"
        if near
        else f"there are {', '.join(names)}."
        if names
        else "none is configured."
    )
    problems = "".join(f"\n{problem}" for problem in configured.problems)
    return f"There is no MCP server {name!r}; {known}{problems}"


# --- add, remove, trust --------------------------------------------------------------------------------------


def _file(settings: Settings, scope: str) -> Path:
    return user_file() if scope == "user" else settings.workspace / WORKSPACE_FILE


def _add(settings: Settings, namespace: argparse.Namespace, command: list[str]) -> int:
    if not command:
        raise UsageError("agent-tui mcp add needs a command or an address behind the name.")
    written: dict[str, Any]
    if _is_address(command[0]):
        written = {"type": "http", "url": command[0]}
        headers = dict(_pair(text, ":", "--header") for text in namespace.header)
        if headers:
            written["headers"] = headers
    else:
        written = {"command": command[0], "args": command[1:]}
        env = dict(_pair(text, "=", "--env") for text in namespace.env)
        if env:
            written["env"] = env
    file = _file(settings, namespace.scope)
    try:
        check_entry(namespace.name, written)
        there = namespace.name in read_file(file)
        write_entry(file, namespace.name, written)
    except ServerEntryError as error:
        raise ConfigError(f"The MCP server {namespace.name} was not added: {error}.") from error
    sys.stdout.write(f"{'Replaced' if there else 'Added'} {namespace.name} in {file}\n")
    if namespace.scope == "workspace":
        sys.stdout.write(f"It starts once you agree: agent-tui mcp trust {namespace.name}\n")
    return 0


def _pair(text: str, separator: str, option: str) -> tuple[str, str]:
    name, found, value = text.partition(separator)
    if not found or not name.strip():
        raise UsageError(f"agent-tui mcp add: {option} is written NAME{separator}VALUE, not {text!r}.")
    return name.strip(), value.strip() if separator == ":" else value


def _remove(settings: Settings, name: str, configured: ConfiguredServers) -> int:
    for file in (user_file(), settings.workspace / WORKSPACE_FILE):
        try:
            if write_entry(file, name, None):
                sys.stdout.write(f"Removed {name} from {file}\n")
                return 0
        except ServerEntryError as error:
            raise ConfigError(f"{file} cannot be changed: {error}.") from error
    raise ConfigError(_unknown(name, configured))


def _trust(settings: Settings, entry: ServerEntry, *, trusted: bool) -> int:
    if entry.scope == "user":
        sys.stdout.write(f"{entry.name} is in your own {entry.file}: it needs no trust.\n")
        return 0
    McpTrust(settings.state_dir, settings.workspace).remember(entry, True if trusted else None)
    if not trusted:
        sys.stdout.write(f"{entry.name} asks again before it starts.\n")
        return 0
    sys.stdout.write(
        f"{entry.name} may start in {settings.workspace} from now on, as long as its entry stays this:\n"
    )
    for line in (entry.shown, *entry.details):
        sys.stdout.write(f"  {line}\n")
    return 0


# --- list, get -----------------------------------------------------------------------------------------------


class _Looking:
    """A host that only looks: nobody is asked, nothing is recorded."""

    present = False

    def __init__(self, trust: McpTrust, settings: Settings, scratch: Path) -> None:
        self._trust = trust
        self._settings = settings
        self.state_dir = settings.state_dir
        self._scratch = scratch
        self._choosing: asyncio.Task[Sandbox] | None = None

    def trusted(self, entry: ServerEntry) -> bool | None:
        return self._trust.trusted(entry)

    async def ask_trust(self, entry: ServerEntry) -> bool:
        """Nobody is asked."""
        return False

    async def ask(self, question: Elicitation) -> ElicitationReply:
        return ElicitationReply("decline")

    async def sandbox(self, entry: ServerEntry) -> Sandbox:
        """The same sandbox as in a session."""
        self._choosing = self._choosing or asyncio.create_task(self._chosen())
        return for_server(self._settings, entry, await self._choosing)

    async def _chosen(self) -> Sandbox:
        def report(taken: Sequence[TakenBack]) -> None:
            if taken:
                sys.stderr.write(f"{in_words(taken)}\n")

        policy = sandbox_policy(self._settings, self._settings.workspace, self._scratch)
        watch = Watch(policy.places, self._settings.state_dir / "taken-back")
        return await choose(self._settings.sandbox.mode, policy, watch=watch, report=report)

    def mask(self, secrets: Mapping[str, str]) -> None:
        """Nothing is written."""

    def changed(self, row: ServerRow) -> None:
        """Looked at in the end."""

    def notice(self, text: str) -> None:
        """The rows say it."""


async def _rows(
    settings: Settings, configured: ConfiguredServers, host: _Looking, seconds: float, *, offline: bool
) -> list[ServerRow]:
    if offline:
        rows = []
        for entry in configured.entries:
            allowed = entry.scope == "user" or host.trusted(entry) is True
            status = (
                ServerStatus.DISABLED
                if entry.disabled
                else ServerStatus.STOPPED
                if allowed
                else ServerStatus.UNTRUSTED
            )
            rows.append(ServerRow(entry, status))
        return rows
    servers = McpServers(configured, ToolRegistry([]), host, settings.workspace)
    servers.start()
    try:
        await servers.ready(seconds)
        return servers.rows()
    finally:
        await servers.close()


def _show(
    settings: Settings, configured: ConfiguredServers, namespace: argparse.Namespace, *, only: str | None
) -> int:
    if only is not None:
        entries = tuple(entry for entry in configured.entries if entry.name == only)
        configured = ConfiguredServers(entries, configured.problems)
    with TemporaryDirectory(prefix="agent-tui-") as scratch:
        host = _Looking(McpTrust(settings.state_dir, settings.workspace), settings, Path(scratch))
        rows = asyncio.run(_rows(settings, configured, host, namespace.timeout, offline=namespace.offline))
    if namespace.json:
        document = {"servers": [_as_json(row) for row in rows], "problems": list(configured.problems)}
        sys.stdout.write(json.dumps(document) + "\n")
        return 0
    for problem in configured.problems:
        sys.stdout.write(f"! {sanitize(problem)}\n")
    if not rows and not configured.problems:
        sys.stdout.write(
            f"No MCP server is configured ({sanitize(f'{user_file()}, {settings.workspace / WORKSPACE_FILE}')}).\n"
            "Add one: agent-tui mcp add NAME COMMAND [ARGUMENT…]\n"
        )
    for row in rows:
        for line in _described(row, whole=only is not None):
            sys.stdout.write(f"{sanitize(line)}\n")
    return 0


def _described(row: ServerRow, *, whole: bool) -> list[str]:
    """A server in a few lines, or with all that it offers."""
    mark = {"connected": "✓", "failed": "✗", "given up for now": "✗", "connecting again": "✗"}.get(
        row.status, "·"
    )
    lines = [f"{mark} {row.name}  {row.status}", f"    {row.entry.shown}", f"    from {row.entry.file}"]
    if row.server:
        lines[2] += f", {row.server}"
    if row.why:
        lines.append(f"    {one_line(row.why, 600)}")
    lines += [f"    {notice}" for notice in row.notices]
    if not whole:
        if row.tools:
            lines.append(
                f"    {counted(len(row.tools), 'tool')}: {', '.join(tool.name for tool in row.tools)}"
            )
        return lines
    lines += [f"    {detail}" for detail in row.entry.details]
    lines += [f"  tool {tool.name}: {one_line(tool.description, 200)}" for tool in row.tools]
    lines += [
        f"  resource {one_line(item.uri, 200)}: {item.description or item.name}" for item in row.resources
    ]
    for prompt in row.prompts:
        gaps = " ".join(
            f"{each.name}=…" if each.required else f"[{each.name}=…]" for each in prompt.arguments
        )
        lines.append(
            f"  prompt /{row.name}:{one_line(prompt.name, 100)} {one_line(gaps)}: {prompt.description}"
        )
    return lines


def _as_json(row: ServerRow) -> dict[str, Any]:
    return {
        "name": row.name,
        "status": str(row.status),
        "scope": row.entry.scope,
        "file": str(row.entry.file),
        "runs": row.entry.shown,
        "server": row.server,
        "why": row.why,
        "tools": [tool.name for tool in row.tools],
        "resources": [resource.uri for resource in row.resources],
        "prompts": [prompt.name for prompt in row.prompts],
        "remarks": list(row.notices),
    }
