"""Agents by name: those of the operator's own configuration, then the well-known ones; anything else is a command.

Nothing is looked for in a checkout, and nothing is downloaded.
"""

from __future__ import annotations

import shlex
import shutil
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path

from tui_agent.config.errors import ConfigError
from tui_agent.config.settings import Settings
from tui_agent.disk import user_path


@dataclass(frozen=True)
class AgentEntry:
    """One agent that can be started."""

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str = ""
    login: str = ""
    """The way of logging in that is chosen before a session is opened; empty: none."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Values of its options that each session begins with."""
    title: str = ""
    install: str = ""
    """The way to get its program."""
    configured: bool = False
    """It stands in the operator's own configuration."""

    def folder(self, workspace: Path) -> Path:
        """The folder that it is started in, and works in."""
        return workspace / user_path(self.cwd) if self.cwd else workspace

    @property
    def installed(self) -> bool:
        return shutil.which(self.argv[0]) is not None


@dataclass(frozen=True)
class KnownAgents:
    """Agents in the order of their names. `source`: where the list of the well-known ones is from, and of when."""

    entries: tuple[AgentEntry, ...]
    source: str


def known_agents(settings: Settings) -> KnownAgents:
    """All agents that a name stands for; a configured one replaces a well-known one."""
    document = tomllib.loads(files(__package__).joinpath("known_agents.toml").read_text(encoding="utf-8"))
    found = {
        name: AgentEntry(name, tuple(one["command"]), title=one["title"], install=one["install"])
        for name, one in document["agents"].items()
    }
    for name, own in settings.agents.items():
        argv = tuple(shlex.split(own.command) if isinstance(own.command, str) else own.command)
        title = found[name].title if name in found else ""
        found[name] = AgentEntry(name, argv, own.env, own.cwd, own.login, own.options, title, configured=True)
    return KnownAgents(tuple(found[name] for name in sorted(found)), document["source"])


def agent_entry(settings: Settings, wanted: str) -> AgentEntry:
    """The agent of a name, or of a command. Raises `ConfigError`."""
    known = {entry.name: entry for entry in known_agents(settings).entries}
    if wanted in known:
        return known[wanted]
    try:
        argv = tuple(shlex.split(wanted))
    except ValueError as error:
        raise ConfigError(f"--agent {wanted!r} is no command line: {error}.") from error
    if len(argv) > 1 or "/" in wanted:
        return AgentEntry(Path(argv[0]).name, argv)
    near = get_close_matches(wanted, known, 1)
    hint = f" Did you mean {near[0]}?" if near else ""
    raise ConfigError(
        f"There is no agent {wanted!r}.{hint}\n"
        "agent-tui --agent list names those that can be had; a command of several words, or a path, is taken as it "
        "is, and [agents.NAME] in your own config.toml names one."
    )
