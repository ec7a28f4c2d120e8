"""`agent-tui --agent list`: the agents that can take the steps of a session."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING

from tui_agent.terminal_text import one_line

if TYPE_CHECKING:
    from tui_agent.config.settings import Settings


def print_agents(settings: Settings) -> int:
    """Name each with its command, and how it is got if it is not there."""
    from tui_agent.acp_client.entries import known_agents

    known = known_agents(settings)
    width = max(len(entry.name) for entry in known.entries)
    for entry in known.entries:
        there = (
            "yours" if entry.configured else "installed" if entry.installed else f"get it: {entry.install}"
        )
        title = f"{entry.title}: " if entry.title else ""
        sys.stdout.write(f"{entry.name:<{width}}  {one_line(f'{title}{shlex.join(entry.argv)}')} ({there})\n")
    sys.stdout.write(
        f"\nThe list: {known.source}.\n"
        "Others: --agent 'COMMAND', or a table [agents.NAME] with `command` in your own config.toml.\n"
    )
    return 0
