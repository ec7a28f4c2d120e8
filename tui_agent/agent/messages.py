"""The request: system prompt, the window of the history, and the recovery note as its trailing message.

The note is ephemeral: it stands in this request only and never enters the history (RECOVERY.md, 2).
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tui_agent.agent import window
from tui_agent.agent.coherence import Validator
from tui_agent.folds.history import Message, estimate_tokens
from tui_agent.recovery.note import SYSTEM_RULE
from tui_agent.state import RunState

INSTRUCTION_FILES = ("AGENTS.md", "CLAUDE.md")
"""Project instructions, the first that exists is used."""

_INSTRUCTION_LIMIT = 32_000


@dataclass(frozen=True)
class BuiltRequest:
    """Messages in OpenAI's chat form; `tokens` is an estimate of all of them."""

    messages: list[Message]
    tokens: int
    dropped_groups: int
    repairs: Mapping[str, int]


def system_prompt(workspace: Path) -> str:
    """What every run begins with: role, ground rules, the recovery rule, the project's own instructions."""
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
            "ask with `ask_operator` only what you cannot find out yourself."
        ),
        SYSTEM_RULE,
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


def build(
    state: RunState, note: str | None, tools_tokens: int, budget: int | None, validator: Validator
) -> BuiltRequest:
    """The next request's messages within `budget` tokens (None: unlimited), of which the tools take some."""
    head = estimate_tokens(state.run.system_prompt) + tools_tokens
    tail = estimate_tokens(note) if note else 0
    room = None if budget is None else max(0, budget - head - tail)
    kept = window.select(state.history.groups, state.run.number, room)
    stored, repairs = validator.messages(kept.groups)
    messages = [{"role": "system", "content": state.run.system_prompt}, *stored]
    if note:
        messages.append({"role": "user", "content": note})
    return BuiltRequest(messages, head + kept.tokens + tail, kept.dropped, repairs)
