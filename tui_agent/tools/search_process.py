"""Our own search engine, run as a process: `python -m tui_agent.tools.search_process`, a request as JSON on
stdin.

It writes what ripgrep would: paths that end in NUL, or JSON lines of `begin`, `match` and `end`. It is a
process because an expression may never end, and a process can be stopped.
"""

from __future__ import annotations

import io
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tui_agent.tools.encoding import SAMPLE, BinaryContentError, detect
from tui_agent.tools.errors import ToolError
from tui_agent.tools.walk import walk
from tui_agent.tools.workspace import Workspace

_LARGEST = 256 * 1024 * 1024


def paths(request: dict[str, Any]) -> Iterator[str]:
    """Files of the request's place, from its top."""
    if request["is_file"]:
        yield request["start"]
        return
    for entry in walk(Path(request["top"]), request["start"]):
        if not entry.is_dir:
            yield entry.path


def content(workspace: Workspace, path: str) -> bytes:
    """All that a regular file holds; b"" if it is too large. Raises `OSError`, `ToolError`."""
    with workspace.open(workspace.root / path) as stream:
        return stream.read() if os.fstat(stream.fileno()).st_size <= _LARGEST else b""


def matches(data: bytes, expression: re.Pattern[str]) -> Iterator[tuple[int, str, int]]:
    """Lines of a file that match: number, text, and the byte at which the match begins. Raises
    `BinaryContentError`.
    """
    encoding = detect(data[:SAMPLE])
    if encoding.codec.startswith("utf-32") or (encoding.codec in ("utf-8", "latin-1") and b"\0" in data):
        raise BinaryContentError
    for number, line in enumerate(io.StringIO(encoding.searched().decode(data), newline="\n"), 1):
        line = line.removesuffix("\n").removesuffix("\r")
        if (match := expression.search(line)) is not None:
            yield number, line, len(line[: match.start()].encode("utf-8", "surrogateescape"))


def records(path: str, found: Iterable[tuple[int, str, int]]) -> Iterator[dict[str, Any]]:
    """ripgrep's lines about a file with matches; none about one without."""
    begun = False
    for number, line, start in found:
        if not begun:
            begun = True
            yield {"type": "begin", "data": {"path": {"text": path}}}
        data = {
            "path": {"text": path},
            "lines": {"text": line},
            "line_number": number,
            "submatches": [{"start": start}],
        }
        yield {"type": "match", "data": data}
    if begun:
        yield {"type": "end", "data": {"binary_offset": None}}


def main() -> None:
    """Answer the request on stdin."""
    request = json.load(sys.stdin)
    out = sys.stdout
    if request.get("files"):
        for path in paths(request):
            out.buffer.write(os.fsencode(path) + b"\0")
        out.buffer.flush()
        return
    expression = re.compile(request["pattern"])
    workspace = Workspace(Path(request["top"]))
    for path in paths(request):
        try:
            for record in records(path, matches(content(workspace, path), expression)):
                out.write(json.dumps(record) + "\n")
        except (OSError, ToolError, BinaryContentError, UnicodeError):
            continue
        # A search that is stopped later has shown what it found until then.
        out.flush()


if __name__ == "__main__":
    try:
        main()
    except MemoryError:
        sys.exit("out of memory: memory allocation failed")
