"""Comparison of a result with the workspace: a write is read back, and the lines of a search are compared
with the file. Nothing is judged here; a difference goes into the result's event.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tui_agent import untrusted_files
from tui_agent.core.events import Contradiction
from tui_agent.core.recovery.iteration import command_of
from tui_agent.core.tool_facts import named
from tui_agent.terminal_text import clipped
from tui_agent.tools.tool import ToolOutput

_LARGEST = 1 << 20
"""Bytes of a file that is compared."""
_LINES = 20
"""Lines of a result that are compared."""
_LONGEST_LINE = 200
"""Characters; a longer line may have been cut by the tool."""
_QUOTED = 80

_SEARCHES = re.compile(r"grep|search|find|lookup|query", re.IGNORECASE)
_READS = re.compile(r"read|open|view|cat", re.IGNORECASE)
"""Tools by their names; a compiler's `file:line: message` is no line of the file."""
_GREP = re.compile(r"\s*(?:git\s+)?(?:grep|rg|ag|ack)\s[^|;&<>`$\n]*")
_CAT = re.compile(r"\s*cat\s+([\w./@+-]+)\s*")
_MATCH = re.compile(r"([^\s:][^:\n]{0,300}):(\d{1,9}):(.*)")
_NUMBERED = re.compile(r"\s*\d{1,9}[\t:|→]\s?")


def comparable(tool: str, arguments: Mapping[str, Any], output: ToolOutput) -> bool:
    """True if a result may be compared with a file. One that says by its digest which bytes it read is
    believed.
    """
    if named(tool).edits:
        return True
    if output.files:
        return False
    command = command_of(arguments)
    if command is not None:
        return bool(_CAT.fullmatch(command) or _GREP.fullmatch(command))
    return bool(_SEARCHES.search(tool) or _READS.search(tool))


def contradiction(
    workspace: Path, tool: str, arguments: Mapping[str, Any], output: ToolOutput
) -> Contradiction | None:
    """The difference between a file of the workspace and a comparable result; None if there is none, or
    nobody can tell.
    """
    if named(tool).edits:
        return _lost(workspace, arguments)
    text = output.content if output.unframed is None else output.unframed
    for name, shown in _shown(tool, arguments, text):
        held = _lines(workspace, name)
        if held and shown and not any(line in one for _, line in shown for one in held):
            number, line = shown[0]
            return Contradiction(path=name, line=number, shown=clipped(line, _QUOTED))
    return None


def _lost(workspace: Path, arguments: Mapping[str, Any]) -> Contradiction | None:
    """A write or an edit that the file does not show."""
    name = str(arguments.get("path", ""))
    old, new = arguments.get("old"), arguments.get("new", arguments.get("content"))
    wanted = _worded(new if isinstance(new, str) else "")
    held = _lines(workspace, name, missing=True)
    if not wanted or held is None or any(line in one for line in wanted for one in held):
        return None
    before = _worded(old if isinstance(old, str) else "")
    if "old" in arguments and not any(line in one for line in before for one in held):
        return None
    number, found = next(
        ((at, one) for at, one in enumerate(held, 1) if before and before[0] in one), (1, "".join(held[:1]))
    )
    return Contradiction(
        path=name, line=number, shown=clipped(wanted[0], _QUOTED), found=clipped(found, _QUOTED), wrote=True
    )


def _shown(
    tool: str, arguments: Mapping[str, Any], text: str
) -> Iterator[tuple[str, Sequence[tuple[int, str]]]]:
    """Files with the lines that a result shows of them, and their numbers (0: it does not say)."""
    command = command_of(arguments)
    path = arguments.get("path", arguments.get("file_path"))
    if command is not None:
        if match := _CAT.fullmatch(command):
            yield match[1], [(0, line) for line in _worded(text)]
        elif _GREP.fullmatch(command):
            yield from _matches(text)
    elif _SEARCHES.search(tool):
        yield from _matches(text)
    elif _READS.search(tool) and isinstance(path, str):
        yield path, [(0, line) for line in _worded(_NUMBERED.sub("", one) for one in text.splitlines())]


def _matches(text: str) -> Iterator[tuple[str, Sequence[tuple[int, str]]]]:
    """`path:line:text` of a search."""
    by_file: dict[str, list[tuple[int, str]]] = {}
    for row in text.splitlines()[:_LINES]:
        match = _MATCH.fullmatch(row)
        if match and (line := match[3].strip()) and len(line) <= _LONGEST_LINE:
            by_file.setdefault(match[1], []).append((int(match[2]), line))
    yield from by_file.items()


def _worded(text: str | Iterator[str]) -> list[str]:
    """The first lines that say something, without the space around them."""
    lines = text.splitlines() if isinstance(text, str) else text
    found = (line.strip() for line in lines)
    return [line for line in found if line and len(line) <= _LONGEST_LINE][:_LINES]


def _lines(workspace: Path, name: str, *, missing: bool = False) -> list[str] | None:
    """The lines of a file in the workspace; None for what is none, is outside, or is too large. `missing`: a file
    that is not there has no lines.
    """
    try:
        place = (workspace / name).resolve()
        if not place.is_relative_to(workspace.resolve()):
            return None
        if missing and not place.exists():
            return []
        if not place.is_file() or place.stat().st_size > _LARGEST:
            return None
        content = untrusted_files.content(place, _LARGEST, workspace)
    except (OSError, ValueError):
        return None
    return None if b"\0" in content else content.decode("utf-8", "replace").splitlines()
