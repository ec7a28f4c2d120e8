"""How a tool call is named in one line: the argument that tells calls apart, made safe and short."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tui_agent.console.sanitize import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

_TELLING = {
    "read_file": "path",
    "write_file": "path",
    "edit_file": "path",
    "list_dir": "path",
    "glob": "pattern",
    "grep": "pattern",
    "bash": "command",
    "ask_operator": "question",
    "finish": "answer",
}
_LIMIT = 400


def short_input(tool: str, arguments: Mapping[str, Any], raw: str = "") -> str:
    """The call's telling argument on one safe line; the whole input as JSON for tools that we do not know.

    `raw` is the text as the model sent it, for calls that could not be parsed.
    """
    if not arguments:
        return one_line(raw, _LIMIT) if raw not in ("", "{}") else ""
    telling = arguments.get(_TELLING.get(tool, ""))
    if isinstance(telling, str) and telling:
        rest = _rest(tool, arguments)
        return one_line(telling, _LIMIT) + rest
    return one_line(
        json.dumps(arguments, ensure_ascii=False, sort_keys=True, default=str)[: _LIMIT + 1], _LIMIT
    )


def _rest(tool: str, arguments: Mapping[str, Any]) -> str:
    """What else changes a search or a read: where, which lines."""
    if tool == "grep":
        where = arguments.get("path") or arguments.get("glob")
        return f" in {one_line(where, 120)}" if isinstance(where, str) and where else ""
    offset = arguments.get("offset")
    if tool == "read_file" and isinstance(offset, int) and offset > 0:
        return f" from line {offset}"
    return ""
