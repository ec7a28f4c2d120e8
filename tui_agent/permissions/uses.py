"""The use of each argument of a call, as permission rules see it. Rules and modes go by it, and by no tool's name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
_DEEPEST = 100
"""Lists within lists; JSON that is nested deeper is not read."""


def texts_in(value: Any, depth: int = 0) -> Iterator[str]:
    """Give the texts in an argument, those within lists and objects included. They may be many."""
    if isinstance(value, str):
        if value:
            yield value
    elif depth < _DEEPEST and isinstance(value, dict | list | tuple):
        for one in value.values() if isinstance(value, dict) else value:
            yield from texts_in(one, depth + 1)


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
