"""The sandboxes that settings ask for: of commands, and of MCP servers. Which mechanism enforces them is tried out in
`sandbox.choose`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from tui_agent.config.mcp_servers import ServerEntry
from tui_agent.config.settings import Settings, user_config_file
from tui_agent.permissions.commands import read_command
from tui_agent.permissions.programs import runs_code
from tui_agent.sandbox.choose import choose
from tui_agent.sandbox.mechanisms import Sandbox
from tui_agent.sandbox.policy import SandboxPolicy
from tui_agent.shell_programs import base_name
from tui_agent.store.private import make_private


async def tried_out(settings: Settings) -> Sandbox:
    """The mechanism that works here, tried before there is a session; one that opens later need not try
    again.
    """
    if settings.sandbox.mode == "off":
        return Sandbox()
    make_private(settings.state_dir)
    # Outside the workspace, which may be /tmp.
    with TemporaryDirectory(prefix="sandbox-", dir=settings.state_dir) as scratch:
        policy = sandbox_policy(settings, settings.workspace, Path(scratch))
        return await choose(settings.sandbox.mode, policy)


def for_server(settings: Settings, entry: ServerEntry, sandbox: Sandbox) -> Sandbox:
    """The sandbox of commands, with a network, for a server that the settings want in one."""
    wanted = settings.sandbox.servers
    if wanted == "off" or (wanted == "workspace" and entry.scope == "user") or sandbox.policy is None:
        return Sandbox(why="the settings want none for it" if sandbox.policy else sandbox.why)
    return replace(sandbox, policy=replace(sandbox.policy, network=True))


def sandbox_policy(settings: Settings, workspace: Path, scratch: Path) -> SandboxPolicy:
    """The policy for commands, by the settings."""
    chosen = settings.sandbox
    return SandboxPolicy.around(
        workspace,
        scratch,
        network=chosen.network,
        loopback=chosen.loopback,
        hide=chosen.hide,
        show=chosen.show,
        writable=chosen.writable,
        state_dir=settings.state_dir,
        config_dir=user_config_file().parent,
        run_outside=tuple(_run_by_hooks(settings)),
    )


def _run_by_hooks(settings: Settings) -> Iterator[str]:
    """Files, as hooks name them, that hooks run: a program with a path, and the script of an interpreter."""
    for hook in settings.hooks.all_commands:
        for command in read_command(hook.command).commands:
            if "/" in command.program:
                yield command.program
            if runs_code(base_name(command.program)):
                words = [word for word in command.words[1:] if not word.text.startswith("-")]
                yield from (word.text for word in words[:1] if word.kind == "literal")
