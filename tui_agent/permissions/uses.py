"""The use of each argument of a call, as permission rules see it. Rules and modes go by it, and by no tool's name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from types import MappingProxyType
from typing import Any

from tui_agent.core.tool_facts import OWN, Use, Uses

OF_RULES: Mapping[str, Uses] = MappingProxyType(
    {
        name: reaching
        for name, facts in OWN.items()
        if (reaching := {key: use for key, use in facts.uses.items() if use is not Use.SAYS})
    }
)
"""The names that rules are written with, and the meaning of each. A rule for one of them is about every tool with that
use: who may not read a file by `read_file` may not by another tool."""
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
