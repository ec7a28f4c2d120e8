"""The tools of other agents by their names: what a call of each shows or changes.

Their recordings say nothing of it. A name means the same with every agent that has it.
"""

from __future__ import annotations

from collections.abc import Mapping

from tui_agent.core.tool_facts import UNKNOWN, Effect, Looks, ToolFacts

_LOOKS: Mapping[Looks, tuple[str, ...]] = {
    "file": ("read_file", "read_files", "read", "view", "view_file", "open_file", "cat"),
    "search": (
        "grep",
        "grep_search",
        "search_codebase",
        "codebase_search",
        "glob",
        "search",
        "search_files",
        "find_file",
        "search_dir",
    ),
    "folder": ("list_dir", "ls", "list_directory", "list_files"),
}
_EDITS = (
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
    # Cline, Roo
    "editor", "apply_diff", "search_and_replace",
    # Crush, goose, Antigravity
    "multiedit", "lsp_replace_symbol", "text_editor", "replace_file_content", "multi_replace_file_content",
    # other well-known names
    "create_file", "replace_in_file", "write_to_file", "insert_edit_into_file",
)  # fmt: skip
_EDITING = {name: ToolFacts(effect=Effect.WRITE) for name in _EDITS}
_LOOKING = {name: ToolFacts(looks=looks) for looks, names in _LOOKS.items() for name in names}


def by_other_agents(tool: str) -> ToolFacts:
    """Give the facts of another agent's tool. The name of one that only looks may have capitals (`Read`)."""
    return _EDITING.get(tool) or _LOOKING.get(tool.lower(), UNKNOWN)
