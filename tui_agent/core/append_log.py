"""An immutable sequence that only grows, with cheap appends.

Versions share one list: each version is a prefix of it, so a state, all its ancestors and every snapshot for
seeking hold their logs in the memory of the longest one. Appending is O(1) as long as one line of descent grows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Generic, TypeVar, get_args, overload

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

T = TypeVar("T")

_ALL = slice(None)


class AppendLog(Sequence[T], Generic[T]):
    """A prefix of a shared list. Equal to any other log with equal items."""

    __slots__ = ("_items", "_length")

    def __init__(self, items: Sequence[T] = ()) -> None:
        self._items: list[T] = list(items)
        self._length = len(self._items)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """In JSON a log is the list of its items."""
        items = core_schema.list_schema(handler.generate_schema(get_args(source)[0]))
        listed = core_schema.wrap_serializer_function_ser_schema(lambda log, rest: rest(log[:]), schema=items)
        return core_schema.no_info_after_validator_function(cls, items, serialization=listed)

    def append(self, item: T) -> AppendLog[T]:
        """This log followed by `item`.

        If a longer version exists already and holds an equal item at this place (a replay that was sought
        back), its memory is shared again; if it holds another (a fork), the prefix is copied.
        """
        items, length = self._items, self._length
        if length == len(items):
            items.append(item)
        elif items[length] != item:
            items = [*items[:length], item]
        grown: AppendLog[T] = AppendLog.__new__(AppendLog)
        grown._items = items
        grown._length = length + 1
        return grown

    def prefix(self, length: int) -> AppendLog[T]:
        """The first `length` items, sharing this log's memory."""
        if not 0 <= length <= self._length:
            raise IndexError(f"no prefix of {length} in a log of {self._length}")
        cut: AppendLog[T] = AppendLog.__new__(AppendLog)
        cut._items = self._items
        cut._length = length
        return cut

    def tail(self, start: int) -> list[T]:
        """The items from `start` on, as a list of its own."""
        return self._items[start : self._length]

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: int | slice) -> T | list[T]:
        if isinstance(index, slice):
            if index == _ALL:
                return self._items[: self._length]
            return [self._items[position] for position in range(self._length)[index]]
        if not -self._length <= index < self._length:
            raise IndexError(index)
        return self._items[index if index >= 0 else self._length + index]

    def __iter__(self) -> Iterator[T]:
        items = self._items
        return islice(items, self._length)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AppendLog):
            return NotImplemented
        return self._length == len(other) and all(
            mine == theirs for mine, theirs in zip(self, other, strict=True)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"AppendLog({list(self)!r})"
