"""Words of the Agent Client Protocol for what this program knows: kinds of tools, blocks of content, diffs.

Blocks are plain values in the form of protocol version 1: the SDK's models end at schema 1.19, and have no place for
a call's name, a notice or a compaction.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from tui_agent.core.tool_facts import Effect, ToolFacts, Use
from tui_agent.terminal_text import sanitize_between_tabs

Block = dict[str, Any]

KINDS = {
    Effect.READ: "read",
    Effect.WRITE: "edit",
    Effect.COMMAND: "execute",
    Effect.NETWORK: "fetch",
    Effect.DIALOGUE: "other",
    Effect.TASK: "other",
    None: "other",
}
"""Kinds of calls by the effect of their tool."""
_PATTERN = re.compile(r"[*?\[\]{}]")
_HUNK = re.compile(r"^@@ -\d+(?:,\d+)? \+(\d+)", re.MULTILINE)


def kind_of(facts: ToolFacts) -> str:
    """The kind of a tool's calls."""
    return "search" if facts.looks == "search" else KINDS[facts.effect]


def text_block(text: str) -> Block:
    """Text, safe for whoever draws it."""
    return {"type": "text", "text": sanitize_between_tabs(text)}


def content(text: str) -> list[Block]:
    """The content of a call that is a text; none for an empty one."""
    return [{"type": "content", "content": text_block(text)}] if text.strip() else []


def locations(facts: ToolFacts, arguments: Mapping[str, Any], workspace: Path) -> list[Block]:
    """The files that a call names."""
    found: list[Block] = []
    for name, use in facts.uses.items():
        path = arguments.get(name)
        if use not in {Use.READS, Use.WRITES} or not isinstance(path, str) or _PATTERN.search(path):
            continue
        line = arguments.get("offset")
        place: Block = {"path": str(workspace / path)}
        found.append(place | ({"line": line} if isinstance(line, int) and line > 0 else {}))
    return found


def diffs(diff: str, path: Path) -> Iterator[Block]:
    """The parts of a unified diff of one file, each as what was there and what is there now."""
    new = diff.startswith("--- /dev/null")
    starts = [found.start() for found in _HUNK.finditer(diff)]
    for start, end in pairwise([*starts, len(diff)]):
        before, after = _sides(diff[start:end].partition("\n")[2])
        block: Block = {"type": "diff", "path": str(path), "newText": after}
        yield block if new else block | {"oldText": before}


def _sides(hunk: str) -> tuple[str, str]:
    sides: dict[str, list[str]] = {"-": [], "+": []}
    last = "+-"
    for line in hunk.split("\n"):
        sign = line[:1]
        if sign == "\\":  # the line before ends the file without a line feed
            for each in last:
                sides[each][-1:] = [text.removesuffix("\n") for text in sides[each][-1:]]
        elif sign in {"-", "+", " "}:
            last = "+-" if sign == " " else sign
            for each in last:
                sides[each].append(f"{line[1:]}\n")
    return "".join(sides["-"]), "".join(sides["+"])
