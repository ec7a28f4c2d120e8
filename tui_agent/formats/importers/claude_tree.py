"""Which records of a Claude Code session belong together: the main line of its tree, and each subagent's run.

A record names its parent in `parentUuid`. This file follows these links; of a record's content it reads only the ids
of replies and calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tui_agent.formats.importers.values import content_text, objects_at, text_at, value_at

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tui_agent.formats.importers.reading import Record

MESSAGES = frozenset({"user", "assistant"})


def is_message(record: Record) -> bool:
    """A record with a message of the operator, a tool or the model."""
    return text_at(record, "type") in MESSAGES and isinstance(record.get("message"), dict)


def main_line(records: Iterable[Record], messages: list[Record]) -> set[int]:
    """Identities of the messages on the way from the newest one back to the first.

    The parent of a parallel call's result is that call's own record, so the tree forks there: results whose call
    is on the line belong to it, and so do all records of a reply (`message.id`) that is on it. Where a parent is
    missing from the file, the message before it is taken. Where no message names a parent, they
    are one conversation in the order of the file.
    """
    if not any(isinstance(_link(message), str) for message in messages):
        return {id(message) for message in messages}
    by_uuid: dict[str, Record] = {}
    for one in records:
        uuid = one.get("uuid")
        if isinstance(uuid, str):
            by_uuid[uuid] = one
    positions = {id(message): position for position, message in enumerate(messages)}
    line: set[int] = set()
    walked: set[int] = set()
    newest: Record | None = next((message for message in reversed(messages) if is_message(message)), None)
    last = len(messages)
    record = newest
    while record is not None and id(record) not in walked:
        walked.add(id(record))
        if id(record) in positions:
            line.add(id(record))
            last = min(last, positions[id(record)])
        record = _parent(record, by_uuid, messages, last)
    _add_parallel(messages, line)
    return line


def _link(record: Record) -> Any:
    return record.get("parentUuid") or record.get("logicalParentUuid")


def _parent(record: Record, by_uuid: dict[str, Record], messages: list[Record], last: int) -> Record | None:
    link = _link(record)
    if not isinstance(link, str):
        return None
    parent = by_uuid.get(link)
    if parent is None and last > 0:
        return messages[last - 1]
    return parent


def _add_parallel(messages: list[Record], line: set[int]) -> None:
    replies = {text_at(record, "message", "id") for record in messages if id(record) in line} - {""}
    calls: set[str] = set()
    for record in messages:
        if text_at(record, "message", "id") in replies and record.get("type") == "assistant":
            line.add(id(record))
            calls |= {text_at(block, "id") for block in objects_at(record, "message", "content")}
    calls.discard("")
    for record in messages:
        blocks = objects_at(record, "message", "content")
        if any(text_at(block, "tool_use_id") in calls for block in blocks):
            line.add(id(record))


def by_root(records: list[Record]) -> list[tuple[str, list[Record]]]:
    """Sidechain records by the subagent they belong to, with its first prompt, in order of appearance."""
    groups: dict[str, list[Record]] = {}
    root_of: dict[str, str] = {}
    linked = any(isinstance(_link(record), str) for record in records)
    for record in records:
        uuid, parent = text_at(record, "uuid"), text_at(record, "parentUuid")
        root = text_at(record, "agentId") or root_of.get(parent) or (uuid if linked else "")
        root_of[uuid] = root
        groups.setdefault(root, []).append(record)
    return [(content_text(value_at(group[0], "message", "content")), group) for group in groups.values()]
