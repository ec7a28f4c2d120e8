"""How a tool call is named in one line: its main argument, made safe and short."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tui_agent.core.projections.plan import UPDATE_PLAN, plan_of
from tui_agent.terminal_text import one_line, reveal

if TYPE_CHECKING:
    from collections.abc import Mapping

_MAIN_ARGUMENT = {
    "read_file": "path",
    "write_file": "path",
    "edit_file": "path",
    "list_dir": "path",
    "glob": "pattern",
    "grep": "pattern",
    "bash": "command",
    "web_fetch": "url",
    "bash_output": "id",
    "bash_stop": "id",
    "ask_operator": "question",
    "finish": "answer",
}
_USUAL_NAMES = ("command", "cmd", "file_path", "pattern", "query", "url", "path", "question")
"""Of main arguments of other programs' tools, the most telling first."""
_LIMIT = 400


def short_input(tool: str, arguments: Mapping[str, Any], raw: str = "") -> str:
    """The call's main argument on one safe line; for tools that we do not know with everything else as JSON.

    `raw` is the text as the model sent it, for calls that could not be parsed.
    """
    if tool == UPDATE_PLAN and (plan := plan_of(arguments)).steps:
        return one_line(plan.summary, _LIMIT)
    if not arguments:
        return shortened(raw) if raw not in ("", "{}") else ""
    main = arguments.get(_MAIN_ARGUMENT.get(tool, ""))
    if isinstance(main, str) and main:
        return shortened(main) + _rest(tool, arguments)
    name = next(
        (name for name in _USUAL_NAMES if isinstance(arguments.get(name), str) and arguments[name]), ""
    )
    rest = {other: value for other, value in arguments.items() if other != name}
    written = json.dumps(rest, ensure_ascii=False, sort_keys=True, default=str) if rest else ""
    return shortened(f"{arguments[name]} {written}".rstrip() if name else written)


def shortened(text: str) -> str:
    """`text` on one line with nothing hidden: controls spelled out, and beginning and end of what is too long."""
    if len(text) > 10 * _LIMIT:
        text = f"{text[: 5 * _LIMIT]} … {text[-5 * _LIMIT :]}"
    line = " ".join(reveal(text).split())
    return line if len(line) <= _LIMIT else f"{line[: _LIMIT // 2]} … {line[-_LIMIT // 2 :]}"


def _rest(tool: str, arguments: Mapping[str, Any]) -> str:
    """The second argument that matters: where a search looks, from which line a read begins."""
    if tool == "grep":
        where = arguments.get("path") or arguments.get("glob")
        return f" in {one_line(where, 120)}" if isinstance(where, str) and where else ""
    if tool == "bash" and arguments.get("background"):
        return "  ⚙"
    offset = arguments.get("offset")
    if tool == "read_file" and isinstance(offset, int) and offset > 0:
        return f" from line {offset}"
    return ""
