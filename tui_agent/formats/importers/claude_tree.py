"""Which records of a Claude Code session are on the main line of its tree, as they come.

A record names its parent in `parentUuid`. This file follows these links; of a record's content it reads only the ids
of replies and calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tui_agent.formats.importers.values import objects_at, text_at

if TYPE_CHECKING:
    from tui_agent.formats.importers.reading import Record

_MESSAGES = frozenset({"user", "assistant"})


def is_message(record: Record) -> bool:
    """A record with a message of the operator, a tool or the model."""
    return text_at(record, "type") in _MESSAGES and isinstance(record.get("message"), dict)


class Tree:
    """The messages of a session, and the links of all its records."""

    def __init__(self) -> None:
        self.messages: list[Record] = []
        self._by_uuid: dict[str, Record] = {}
        """Of what is no message only the links."""
        self._nearest: dict[str, str] = {}
        """The message that a record is, or that is above it."""
        self._linked = False
        self._group = ""
        self._end: set[str] = set()
        """The newest message, or the records of the newest reply with their results: what comes next follows one."""
        self._calls: set[str] = set()
        """Those of the line."""

    def link(self, record: Record) -> None:
        """A record that is no message can be a message's parent."""
        uuid = text_at(record, "uuid")
        if uuid:
            links = ("uuid", "parentUuid", "logicalParentUuid")
            self._by_uuid[uuid] = {key: record.get(key) for key in links}
            self._nearest[uuid] = self._nearest.get(str(_link(record)), "")

    def add(self, record: Record) -> bool:
        """Whether a message goes on where the line ends; if not, the line is another one from now on."""
        self.messages.append(record)
        uuid, link = text_at(record, "uuid"), _link(record)
        self._by_uuid[uuid] = record
        self._nearest[uuid] = uuid
        above = self._nearest.get(link) if isinstance(link, str) else ""
        goes_on = (
            len(self.messages) == 1
            or above is None
            or (above in self._end if above else not self._linked)
            or self._belongs(record)
        )
        self._linked = self._linked or isinstance(link, str)
        self._extend(record)
        return goes_on

    def _belongs(self, record: Record) -> bool:
        """To the newest reply, or to a call of the line."""
        return _reply(record) == self._group != "" or any(
            text_at(block, "tool_use_id") in self._calls for block in _blocks(record)
        )

    def _extend(self, record: Record) -> None:
        if not self._belongs(record):
            self._end.clear()
            self._group = _reply(record)
        self._end.add(text_at(record, "uuid"))
        if record.get("type") == "assistant":
            self._calls |= {key for block in _blocks(record) if (key := text_at(block, "id"))}

    def main_line(self) -> list[Record]:
        """The messages on the way from the newest one back to the first, in the order of the file.

        The parent of a parallel call's result is that call's own record, so the tree forks there: results whose call
        is on the line belong to it, and so do all records of a reply (`message.id`) that is on it. Where a parent is
        missing from the file, the message before it is taken. Where no message names a parent, they are one
        conversation.
        """
        messages = self.messages
        positions = {id(message): position for position, message in enumerate(messages)}
        line: set[int] = set()
        walked: set[int] = set()
        record: Record | None = next((one for one in reversed(messages) if is_message(one)), None)
        last = len(messages)
        while record is not None and id(record) not in walked:
            walked.add(id(record))
            if id(record) in positions:
                line.add(id(record))
                last = min(last, positions[id(record)])
            record = self._parent(record, last)
        self._calls = _add_parallel(messages, line)
        return [message for message in messages if id(message) in line]

    def _parent(self, record: Record, last: int) -> Record | None:
        link = _link(record)
        if not isinstance(link, str):
            return None
        parent = self._by_uuid.get(link)
        if parent is None and last > 0:
            return self.messages[last - 1]
        return parent


def _link(record: Record) -> Any:
    return record.get("parentUuid") or record.get("logicalParentUuid")


def _blocks(record: Record) -> list[Record]:
    return objects_at(record, "message", "content")


def _reply(record: Record) -> str:
    return text_at(record, "message", "id") if record.get("type") == "assistant" else ""


def _add_parallel(messages: list[Record], line: set[int]) -> set[str]:
    """Complete the line; the ids of its calls."""
    replies = {_reply(record) for record in messages if id(record) in line} - {""}
    calls: set[str] = set()
    for record in messages:
        if _reply(record) in replies:
            line.add(id(record))
            calls |= {text_at(block, "id") for block in _blocks(record)}
    calls.discard("")
    for record in messages:
        if any(text_at(block, "tool_use_id") in calls for block in _blocks(record)):
            line.add(id(record))
    return calls
