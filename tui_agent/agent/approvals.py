"""Who is asked before a call runs, and what "for this session" covers (CONTRACT.md, `--approve`)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from tui_agent.events import Approval
from tui_agent.tools.tool import Effect, Tool

_PLAIN_COMMAND = re.compile(r"[\w./=:,@%+ -]+")
_RUNS_OTHERS = frozenset({
    "bash", "sh", "zsh", "fish", "dash", "env", "xargs", "sudo", "su", "doas", "python", "python3", "node",
    "perl", "ruby", "php", "eval", "exec", "nohup", "timeout", "time", "find", "ssh", "docker", "podman",
    "kubectl", "make", "npx", "uvx", "pipx", "rm", "dd", "mkfs", "chmod", "chown", "curl", "wget", "git", "pip",
    "npm",
})  # fmt: skip
"""Programs that can do anything by their arguments: approving one call of them says nothing about the next."""


def needs_approval(effect: Effect, approve: Approval) -> bool:
    """ask: writes and commands ask. writes: file edits run, commands ask. all: nothing asks."""
    match effect:
        case Effect.WRITE:
            return approve is Approval.ASK
        case Effect.COMMAND:
            return approve is not Approval.ALL
        case _:
            return False


def session_rule(tool: Tool, arguments: Mapping[str, Any]) -> tuple[str, str]:
    """What allowing this call for the session allows: a rule to compare, and the words that say so."""
    if tool.effect is Effect.WRITE:
        return "effect:write", "every file edit inside the workspace"
    command = str(arguments.get("command", ""))
    words = command.split()
    if _PLAIN_COMMAND.fullmatch(command) and words and words[0].rpartition("/")[2] not in _RUNS_OTHERS:
        return f"{tool.name}:program:{words[0]}", f"every plain `{words[0]} …` command (no shell operators)"
    exact = json.dumps(dict(arguments), sort_keys=True, default=str)
    return f"{tool.name}:exact:{exact}", "exactly this call, again"


def allowed_by(rules: frozenset[str], tool: Tool, arguments: Mapping[str, Any]) -> bool:
    """Whether the operator allowed such a call for the session already."""
    return session_rule(tool, arguments)[0] in rules
