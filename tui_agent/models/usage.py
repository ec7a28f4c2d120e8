"""A server's report of its usage, as checked figures: anything else in it counts as not known.

Servers send strings, negative figures, NaN and 2^63; none of that may reach a sum, a limit or a database.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator

if TYPE_CHECKING:
    from tui_agent.config.profiles import Price

MOST_TOKENS = 10**9
"""Tokens of one call; a figure beyond it is none that a model has read or written."""
MOST_USD = 10**6
_DEEPEST = 3


def token_count(value: Any) -> int | None:
    """A number of tokens; None for what is none."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if type(value) is int and 0 <= value <= MOST_TOKENS else None


def usd(value: Any) -> float | None:
    """A cost; None for what is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= MOST_USD else None


TokenCount = Annotated[int | None, BeforeValidator(token_count)]
Usd = Annotated[float | None, BeforeValidator(usd)]


def cost(price: Price, prompt: int | None, completion: int | None, cached: int | None) -> float | None:
    """The cost of a call in USD; None if the server did not report its tokens. `cached` are a part of
    `prompt`.
    """
    if prompt is None or completion is None:
        return None
    read = min(cached or 0, prompt)
    again = price.prompt if price.cached is None else price.cached
    return ((prompt - read) * price.prompt + read * again + completion * price.completion) / 1_000_000


def figures(usage: Any) -> dict[str, Any]:
    """The figures of a usage that can be read, in the form they came in; nothing for what is no table."""
    return _readable(_table(usage), _DEEPEST)


def _table(usage: Any) -> Any:
    """A usage as a mapping, if a library made an object of it."""
    dump = getattr(usage, "model_dump", None)
    return dump(exclude_none=True, warnings=False) if callable(dump) else usage


def _readable(table: Any, deep: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in table.items() if isinstance(table, Mapping) else ():
        kept: Any
        if isinstance(value, Mapping):
            kept = _readable(value, deep - 1) if deep else None
        else:
            kept = usd(value) if "cost" in str(name) else token_count(value)
        if kept is not None:
            found[str(name)] = kept
    return found


def is_sound(usage: Any) -> bool:
    """True if every count of tokens in it is a number, so that a library may read it too."""
    usage = _table(usage)
    return isinstance(usage, Mapping) and all(
        _sound_field(str(name), value) for name, value in usage.items() if value is not None
    )


def _sound_field(name: str, value: Any) -> bool:
    if name.endswith("_details"):
        return is_sound(value)
    return not name.endswith("_tokens") or (type(value) is int and token_count(value) is not None)
