"""Which records of a Claude Code session are on the main line of its tree, as they come.

A record names its parent in `parentUuid`. Only the operator goes back in a conversation: by a second message at one
place, and what followed the first one is left then. All other forks (progress of hooks, parallel calls, commands of
the console, helpers that write at the same time) are one conversation, in the order of the file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tui_agent.formats.importers.values import content_text, objects_at, text_at, value_at

if TYPE_CHECKING:
    from tui_agent.formats.importers.reading import Record

_MESSAGES = frozenset({"user", "assistant"})
_NOT_TYPED = (
    *("<local-command-", "<command-name>", "<bash-", "<task-notification>", "<system-reminder>"),
    *("<teammate-message", "[Request interrupted by user", "Caveat: The messages below"),
)
"""How texts of the user's role begin that nobody typed as a task: commands of the console and what they print."""


def is_message(record: Record) -> bool:
    """A record with a message of the operator, a tool or the model."""
    return text_at(record, "type") in _MESSAGES and isinstance(record.get("message"), dict)


def is_typed(record: Record) -> bool:
    """A message that the operator gave as a task, or as an answer."""
    if record.get("type") != "user" or record.get("isMeta") is True or record.get("isCompactSummary") is True:
        return False
    if any(block.get("type") == "tool_result" for block in objects_at(record, "message", "content")):
        return False
    text = content_text(value_at(record, "message", "content")).lstrip()
    return bool(text) and not text.startswith(_NOT_TYPED)


class Tree:
    """The messages of a session, and the links of all its records."""

    def __init__(self) -> None:
        self.messages: list[Record] = []
        self._above: dict[str, str] = {}
        """By the uuid of a record, the message that it is, or that is above it."""
        self._places: dict[str, str] = {}
        """By the uuid of a message, the place behind it: all records of a reply are one."""
        self._task: dict[str, int] = {}
        """By the uuid of a message, the task that it belongs to."""
        self._tasks = [("before", 0)]
        """Messages of the operator: the place of each, and the task above it. The first stands for what is before."""
        self._of: list[int] = []
        """The task of each message."""
        self._left: set[int] = set()
        """Tasks that the operator left by going back."""
        self._linked = False

    def link(self, record: Record) -> None:
        """A record that is no message can be a message's parent."""
        if uuid := text_at(record, "uuid"):
            self._above[uuid] = self._above.get(str(_link(record)), "")

    def add(self, record: Record) -> bool | None:
        """True: the message goes on at the end of the line; False: the line is another one from now on; None:
        it belongs to a line that was left, or is a copy.
        """
        uuid, link = text_at(record, "uuid"), _link(record)
        if uuid and uuid in self._places:
            return None
        above = self._above.get(str(link), "")
        newest = next((task for task in range(len(self._tasks) - 1, -1, -1) if task not in self._left), 0)
        task = self._task.get(above, newest)
        goes_on, linked = True, isinstance(link, str)
        if is_typed(record):
            place = self._places.get(above, "")
            if linked and not above:  # its parent is missing from the file
                place = f"{link} missing"
            elif not linked and not self._linked and len(self._tasks) > 1:
                place = f"{uuid} alone"  # no message names a parent: one conversation
            elif not linked:
                task = 0
            goes_on = self._goes_on(place, task)
            self._tasks.append((place, task))
            task = len(self._tasks) - 1
        self._linked = self._linked or linked
        self.messages.append(record)
        self._of.append(task)
        self._above[uuid] = uuid
        self._places[uuid] = text_at(record, "message", "id") or uuid
        self._task[uuid] = task
        return None if goes_on and task in self._left else goes_on

    def _goes_on(self, place: str, above: int) -> bool:
        """True if no line has to be left or taken up again for a task at this place."""
        before = frozenset(self._left)
        path = {above}
        while above:
            above = self._tasks[above][1]
            path.add(above)
        chosen = {self._tasks[task][0] for task in path}
        self._left = {
            task
            for task, (at, _) in enumerate(self._tasks)
            if task not in path and (at == place or at in chosen)
        }
        for task, (_, parent) in enumerate(self._tasks):
            if parent in self._left:
                self._left.add(task)
        return self._left == before

    def main_line(self) -> list[Record]:
        """The messages that the operator did not leave, in the order of the file."""
        return [
            message for message, task in zip(self.messages, self._of, strict=True) if task not in self._left
        ]


def _link(record: Record) -> Any:
    return record.get("parentUuid") or record.get("logicalParentUuid")
