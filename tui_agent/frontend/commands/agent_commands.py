"""Slash commands of another agent that takes the steps: `/NAME` goes to it as it stands.

A name that is a command of ours, too, is the agent's behind `agent:`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_agent.frontend.commands.command import Completion
from tui_agent.frontend.commands.registry import BY_NAME

if TYPE_CHECKING:
    from tui_agent.core.events import AgentOffered

PREFIX = "agent:"


def suggestions(typed: str, offered: AgentOffered) -> list[Completion]:
    """Commands of the agent whose names fit what is typed after the slash."""
    wanted = typed.removeprefix("/").lower()
    found = []
    for command in offered.commands:
        written = f"{PREFIX}{command.name}" if command.name.lower() in BY_NAME else command.name
        if wanted in written.lower() and wanted != written.lower():
            text = f"/{written} " if command.hint else f"/{written}"
            about = f"{command.about}  (the agent's)".strip()
            found.append(Completion(text, f"/{written} {command.hint}".rstrip(), about))
    return sorted(found, key=lambda one: not one.text.lower().startswith(f"/{wanted}"))


def prompt_of(line: str, offered: AgentOffered) -> str:
    """The prompt that a line `/NAME …` is for the agent; "" if it has no such command."""
    text = line.strip().removeprefix("/").removeprefix(PREFIX)
    named = (text == one.name or text.startswith(f"{one.name} ") for one in offered.commands)
    return f"/{text}" if any(named) else ""
