"""The system prompt: role, ground rules, the recovery rule, and the project's own instructions from the workspace."""

from __future__ import annotations

import platform
from pathlib import Path

from tui_agent.core.recovery.note import system_rule

INSTRUCTION_FILES = ("AGENTS.md", "CLAUDE.md")
"""Project instructions, the first that exists is used."""

_INSTRUCTION_LIMIT = 32_000


def system_prompt(workspace: Path, *, operator_present: bool = True) -> str:
    """What every run begins with: role, ground rules, the recovery rule, the project's own instructions."""
    asking = (
        "ask with `ask_operator` only what you cannot find out yourself."
        if operator_present
        else "nobody can be asked meanwhile, so decide by yourself and say which assumptions you made."
    )
    parts = [
        (
            "You are a software engineer who works in a repository through tools. The workspace is the only place "
            f"you can touch; its folder is named {workspace.name!r} and every path you give is relative to it. "
            f"Commands run on {platform.system()} with bash."
        ),
        (
            "Look before you change: read a file before you edit it, make the smallest change that does the work, "
            "and check it by running what the project has for that (its tests, its linter). Calls that only read "
            "may be sent together in one reply. When the work is done, say so by calling `finish` with the answer; "
            f"{asking}"
        ),
        system_rule(operator_present=operator_present),
    ]
    instructions = project_instructions(workspace)
    if instructions:
        parts.append(f"The project's own instructions:\n\n{instructions}")
    return "\n\n".join(parts)


def project_instructions(workspace: Path) -> str:
    """The text of the workspace's AGENTS.md or CLAUDE.md, bounded; empty where there is none."""
    root = workspace.resolve()
    for name in INSTRUCTION_FILES:
        path = root / name
        try:
            if path.is_file() and path.resolve().is_relative_to(root):
                with path.open(encoding="utf-8", errors="replace") as file:
                    return file.read(_INSTRUCTION_LIMIT).strip()
        except OSError:
            continue
    return ""
