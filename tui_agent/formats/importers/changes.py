"""Which calls of other agents' tools change files: a successful edit counts as progress.

Only dedicated edit tools are listed. What a shell command does to files is not clear from its text, so commands never
count, whatever they redirect into.
"""

from __future__ import annotations

import re
from typing import Any

_PATH_KEYS = ("file_path", "path", "notebook_path", "filename", "file", "target_file", "filepath", "filePath")

EDIT_TOOLS = frozenset(
    {
        # Claude Code
        "Edit", "MultiEdit", "Write", "NotebookEdit", "str_replace_based_edit_tool",
        # OpenHands and SWE-agent
        "str_replace_editor", "file_editor", "edit", "create", "insert", "edit_file", "write",
        # mistral-vibe
        "write_file", "search_replace",
        # Gemini CLI
        "replace",
        # Codex CLI
        "apply_patch",
        # other well-known names
        "create_file", "replace_in_file", "write_to_file", "insert_edit_into_file",
    }
)  # fmt: skip

_VIEWS = {"view", "read", "cat"}
"""Subcommands of the edit tools that only read."""

_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)


def changed_files(tool: str, arguments: dict[str, Any] | None) -> tuple[str, ...]:
    """The files that a successful call of `tool` changed, as the call names them; () for tools that do not edit."""
    if tool.rpartition("__")[2] not in EDIT_TOOLS and tool not in EDIT_TOOLS:
        return ()
    arguments = arguments or {}
    command = arguments.get("command")
    if isinstance(command, str) and command in _VIEWS:
        return ()
    for key in ("input", "patch", "command"):
        patch = arguments.get(key)
        if isinstance(patch, str) and (paths := _PATCHED.findall(patch)):
            return tuple(path.strip() for path in paths)
    for key in _PATH_KEYS:
        path = arguments.get(key)
        if isinstance(path, str) and path:
            return (path,)
    return (tool,)
