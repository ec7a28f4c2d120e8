"""Lines of keys in a TOML text, for messages about them."""

from __future__ import annotations

import re

_HEADER = re.compile(r"\s*(\[\[?)([^\[\]]+)\]")
_KEY = re.compile(r"""\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=""")
_PART = re.compile(r"""[\w-]+|"[^"]*"|'[^']*'""")


def line_of(text: str, key: str) -> int:
    """The line, from 1, of a dotted key, or of the nearest above it; 0: none. An entry of a list goes by its number,
    from 0. The text need not be right.
    """
    counts: dict[tuple[str, ...], int] = {}
    section: tuple[str, ...] = ()
    line, nearest = 0, 0
    for number, row in enumerate(text.splitlines(), 1):
        if (header := _HEADER.match(row)) is not None:
            section = _numbered(_parts(header[2]), counts, is_list=header[1] == "[[")
            path = section
        elif (found := _KEY.match(row)) is not None:
            path = (*section, *_parts(found[1]))
        else:
            continue
        dotted = ".".join(path)
        if len(dotted) > nearest and f"{key}.".startswith(f"{dotted}."):
            line, nearest = number, len(dotted)
    return line


def _parts(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip("\"'") for part in _PART.findall(dotted))


def _numbered(
    parts: tuple[str, ...], counts: dict[tuple[str, ...], int], *, is_list: bool
) -> tuple[str, ...]:
    """A header's path with the number of the entry behind each list in it; the header may begin an entry."""
    path: tuple[str, ...] = ()
    for place, part in enumerate(parts, 1):
        path = (*path, part)
        if is_list and place == len(parts):
            counts[path] = counts.get(path, -1) + 1
        if path in counts:
            path = (*path, str(counts[path]))
    return path
