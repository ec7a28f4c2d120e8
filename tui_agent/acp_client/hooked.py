"""Our hooks in the settings of an agent that is driven here: what they tell it is not told again."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import get_args

from tui_agent.acp_client.entries import AgentEntry
from tui_agent.agents.dialect import Scope
from tui_agent.agents.dialects import named
from tui_agent.agents.installing import installed, settings_place

RUN_HOOKS = {"claude-agent-acp": "claude-code", "copilot": "copilot", "qwen": "qwen-code"}
"""Programs in whose sessions hooks were seen to run, and whose hooks these are."""


def hooks_advise(entry: AgentEntry, workspace: Path) -> bool:
    """True if our hooks are in settings that the agent reads in its sessions."""
    programs = (Path(word).name.partition("@")[0] for word in entry.argv)  # `npx -y @scope/NAME@VERSION` too
    whose = next((RUN_HOOKS[program] for program in programs if program in RUN_HOOKS), None)
    if whose is None:
        return False
    environment = {**os.environ, **entry.env}
    for scope in get_args(Scope):
        with suppress(OSError, UnicodeError):  # no agent reads it either
            if installed(settings_place(named(whose), scope, entry.folder(workspace), environment)):
                return True
    return False
