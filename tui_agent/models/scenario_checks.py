"""Checks of a scenario's tables: small typed readers whose errors name file, key and the values that are
allowed.

They only read and complain; `scenario` gives the values their meaning.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


class ScenarioError(ValueError):
    """A scenario that cannot be used; the message names the fault, its place, and the values that are
    allowed.
    """


@dataclass(frozen=True)
class Table:
    """A table of the file and its place there, for messages."""

    data: dict[str, Any]
    where: str

    def table(self, key: str) -> Table:
        """The table under `key`; an empty one when there is none."""
        value = self.data.get(key, {})
        if not isinstance(value, dict):
            raise ScenarioError(f"{self.where}.{key} is {kind_of(value)}. It has to be a table.")
        return Table(value, f"{self.where}.{key}")

    def tables(self, key: str) -> list[Table]:
        """The tables in the array under `key`."""
        value = self.data.get(key, [])
        if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
            raise ScenarioError(
                f"{self.where}.{key} is {kind_of(value)}. It has to be a list of tables, [[{key}]]."
            )
        return [Table(each, f"{self.where}.{key}[{place}]") for place, each in enumerate(value)]

    def flag(self, key: str) -> bool:
        """True or false; false when it is missing."""
        value = self.data.get(key, False)
        if not isinstance(value, bool):
            raise ScenarioError(f"{self.where}.{key} is {kind_of(value)}. It has to be true or false.")
        return value


def kind_of(value: object) -> str:
    """A value's kind in words of the file format."""
    names = {
        bool: "a boolean",
        str: "a text",
        int: "a number",
        float: "a number",
        list: "a list",
        dict: "a table",
    }
    return names.get(type(value), type(value).__name__)


def nearest(word: str, known: Sequence[str]) -> str:
    """` (did you mean …?)` when something is near, else nothing."""
    found = difflib.get_close_matches(word, known, n=1)
    return f" (did you mean {found[0]!r}?)" if found else ""


def known_keys(table: Table, allowed: Sequence[str]) -> None:
    """Raises `ScenarioError` for a key that is none of `allowed`."""
    for key in table.data:
        if key not in allowed:
            raise ScenarioError(
                f"{table.where}: the key {key!r} is unknown{nearest(key, allowed)}. "
                f"Allowed: {', '.join(allowed)}."
            )


def text(table: Table, key: str) -> str:
    """A text; empty when it is missing."""
    value = table.data.get(key, "")
    if not isinstance(value, str):
        raise ScenarioError(f"{table.where}.{key} is {kind_of(value)}. It has to be a text in quotes.")
    return value


def texts(table: Table, key: str) -> list[str]:
    """One text or a list of texts; an empty list when it is missing."""
    value = table.data.get(key, [])
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list) or not all(isinstance(each, str) for each in listed):
        raise ScenarioError(
            f"{table.where}.{key} is {kind_of(value)}. It has to be a text or a list of texts."
        )
    return listed


def number(table: Table, key: str) -> float | None:
    """A number that is neither negative nor endless; None when it is missing."""
    value = table.data.get(key)
    if value is None:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < math.inf:
        raise ScenarioError(f"{table.where}.{key} is {value!r}. It has to be a number, 0 or more.")
    return float(value)


def whole_number(table: Table, key: str) -> int | None:
    """A whole number from 0; None when it is missing."""
    value = table.data.get(key)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ScenarioError(f"{table.where}.{key} is {value!r}. It has to be a whole number, 0 or more.")
    return value


def allowed_values(table: Table, key: str, allowed: Sequence[str]) -> str:
    """One of the allowed words; empty when it is missing."""
    value = text(table, key)
    if value and value not in allowed:
        raise ScenarioError(
            f"{table.where}.{key} is {value!r}{nearest(value, allowed)}. It is one of: {', '.join(allowed)}."
        )
    return value


def pattern(table: Table, key: str, source: str) -> re.Pattern[str]:
    """A regular expression, multi-line."""
    try:
        return re.compile(source, re.MULTILINE)
    except re.error as error:
        raise ScenarioError(
            f"{table.where}.{key}: {source!r} is no regular expression ({error}). "
            "Correct it, or escape its signs with \\."
        ) from error
