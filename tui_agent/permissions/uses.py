"""What a call does with each of its arguments. Rules, modes and the audit go by it, and by no tool's name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from itertools import islice
from types import MappingProxyType
from typing import Any


class Use(StrEnum):
    """What is done with an argument of a tool."""

    READS = "reads"
    """It is a path, or several: what stands there is read or listed."""
    WRITES = "writes"
    """It is a path, or several: what stands there is changed."""
    RUNS = "runs"
    """It is a shell command."""
    SENDS = "sends"
    """It is an address, which is contacted."""
    SAYS = "says"
    """Text and figures that by themselves reach nothing."""
    ANYTHING = "anything"
    """Nobody here knows, as with a server's tool: rules that narrow take it for each of the others."""


Uses = Mapping[str, Use]

OF_RULES: Mapping[str, Uses] = MappingProxyType(
    {
        **{name: {"path": Use.READS} for name in ("read_file", "list_dir", "grep")},
        "glob": {"pattern": Use.READS},
        **{name: {"path": Use.WRITES} for name in ("write_file", "edit_file")},
        "bash": {"command": Use.RUNS},
        "web_fetch": {"url": Use.SENDS},
    }
)
"""The names that rules are written with, and what each means. A rule for one of them is about every tool with that use:
who may not read a file by `read_file` may not by another tool."""
_LONGEST = 4_096
"""Characters of a value that may be a path, a command or an address of somebody else's tool."""
_MOST = 200
"""Values that are looked at in one argument."""


def texts_in(value: Any) -> Iterator[str]:
    """Give the texts in an argument, those within lists and objects included."""
    yield from islice(_texts(value, 0), _MOST)


def _texts(value: Any, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        if value and len(value) <= _LONGEST:
            yield value
    elif depth < 6 and isinstance(value, dict | list | tuple):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _texts(one, depth + 1)


def undeclared(uses: object, parameters: Mapping[str, Any]) -> str:
    """Name what a tool does not say about itself, for who registers it; "" if nothing is missing."""
    properties = parameters.get("properties", {})
    if not isinstance(uses, Mapping):
        return (
            "it does not say what it does with its arguments (`uses`)"
            if properties or uses is not None
            else ""
        )
    missing = (
        sorted(str(name) for name in properties if name not in uses) if isinstance(properties, dict) else []
    )
    if missing:
        return f"it does not say what it does with {', '.join(missing)} (`uses`)"
    wrong = sorted(name for name, use in uses.items() if not isinstance(use, Use))
    return f"it says no use that is known of {', '.join(wrong)}" if wrong else ""
