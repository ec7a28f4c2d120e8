"""What can be asked of a request that came in: the checks by which a behaviour refuses one, or goes on.

A check is a table of names and values; a request meets it when it meets all of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from tests.openai_server import Recorded


@dataclass(frozen=True)
class Asked:
    """A request, and the one before it."""

    request: Recorded
    before: Recorded | None = None

    @property
    def body(self) -> dict[str, Any]:
        return self.request.body

    @property
    def messages(self) -> list[dict[str, Any]]:
        """Messages in the form of OpenAI and Anthropic; those of other protocols are asked for by their text."""
        found = self.body.get("messages")
        return found if isinstance(found, list) else []

    @property
    def said(self) -> str:
        """Everything but the tools, as text."""
        return _text({name: value for name, value in self.body.items() if name != "tools"})

    def of(self, role: str) -> list[dict[str, Any]]:
        """The messages of a role."""
        return [message for message in self.messages if message.get("role") == role]

    def calls(self) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        """Each call with its message."""
        for message in self.of("assistant"):
            for call in message.get("tool_calls") or ():
                yield message, call


def meets(check: Mapping[str, Any], asked: Asked) -> bool:
    """Whether the request is as the check says. Raises `KeyError` for a name that is no check."""
    return all(CHECKS[name](asked, value) for name, value in check.items())


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _after(asked: Asked, pair: list[str]) -> bool:
    """Two messages follow each other: `after = ["tool", "user"]`."""
    roles = [str(message.get("role")) for message in asked.messages]
    return any(list(each) == pair for each in pairwise(roles))


def _out_of_turn(asked: Asked, how: str) -> bool:
    """Roles do not alternate, beginning with the user. `calls apart`: messages with calls, and results, do not count,
    as in templates for Mistral's models; `results count`: a result counts as the user's, as in those for Gemma's.
    """
    turns: list[str] = []
    for message in asked.messages:
        role = message.get("role")
        if role in {"system", "developer"}:
            continue
        if how == "calls apart" and (role == "tool" or message.get("tool_calls")):
            continue
        turns.append("user" if role == "tool" else str(role))
    return any(role != ("user", "assistant")[at % 2] for at, role in enumerate(turns))


def _content(message: Mapping[str, Any]) -> str:
    if "content" not in message:
        return "absent"
    content = message["content"]
    if content is None:
        return "null"
    if isinstance(content, list):
        return "parts"
    return "text" if str(content).strip() else "empty"


def _content_beside_calls(asked: Asked, states: list[str]) -> bool:
    """A message with calls has a content of this kind: `absent`, `null`, `empty`, `parts`, `text`."""
    return any(_content(message) in states for message, _ in asked.calls())


def _content_of(asked: Asked, states: Mapping[str, list[str]]) -> bool:
    """By role: a message of it has a content of this kind."""
    return any(_content(message) in kinds for role, kinds in states.items() for message in asked.of(role))


def _at(value: Any, path: str) -> Any:
    """What stands at a path of names and numbers (`tools.0.function.strict`); `_NOTHING` where nothing does."""
    for name in path.split("."):
        if isinstance(value, list) and name.isdigit() and int(name) < len(value):
            value = value[int(name)]
        elif isinstance(value, dict) and name in value:
            value = value[name]
        else:
            return _NOTHING
    return value


_NOTHING = object()


def _has(asked: Asked, paths: str | list[str]) -> bool:
    """The body has something at one of these places."""
    places = [paths] if isinstance(paths, str) else paths
    return any(_at(asked.body, path) is not _NOTHING for path in places)


def _are(asked: Asked, values: Mapping[str, Any]) -> bool:
    """The body has these values at these places."""
    return all(_at(asked.body, path) == value for path, value in values.items())


def _calls_lack(asked: Asked, name: str) -> bool:
    """A message with calls has no such field, or null in it."""
    return any(message.get(name) is None for message, _ in asked.calls())


def _calls_blank(asked: Asked, name: str) -> bool:
    """A message with calls has no such field, or nothing in it."""
    return any(not str(message.get(name) or "").strip() for message, _ in asked.calls())


def _a_call_lacks(asked: Asked, wanted: Mapping[str, Any]) -> bool:
    """A call of the history has not these values at these places of it."""
    return any(_at(call, path) != value for _, call in asked.calls() for path, value in wanted.items())


def _a_message_has(asked: Asked, names: str | list[str]) -> bool:
    """A message has one of these fields."""
    fields = {names} if isinstance(names, str) else set(names)
    return any(fields & message.keys() for message in asked.messages)


def _results_lack(asked: Asked, name: str) -> bool:
    """A result has no such field."""
    return any(name not in message for message in asked.of("tool"))


def _ids(asked: Asked) -> list[str]:
    return [str(call.get("id")) for _, call in asked.calls()]


def _ids_repeat(asked: Asked, value: bool) -> bool:
    """An id of a call comes twice in the history."""
    ids = _ids(asked)
    return (len(ids) != len(set(ids))) is value


def _ids_unlike(asked: Asked, pattern: str) -> bool:
    """An id of a call, or the one that a result names, is not of this form."""
    named = [str(message.get("tool_call_id")) for message in asked.of("tool")]
    return any(re.fullmatch(pattern, each) is None for each in (*_ids(asked), *named))


def _longer_than(asked: Asked, characters: int) -> bool:
    """The messages, as JSON, are longer than so many characters."""
    return len(json.dumps(asked.messages or asked.body.get("contents") or asked.said)) > characters


def _messages_above(asked: Asked, count: int) -> bool:
    return len(asked.messages) > count


def _unchanged(asked: Asked, value: bool) -> bool:
    """The request says what the one before it said."""
    return (asked.before is not None and asked.before.body == asked.body) is value


def _last_has(asked: Asked, text: str) -> bool:
    """The last message has this text in it."""
    return bool(asked.messages) and text in _text(asked.messages[-1])


def _said_has(asked: Asked, text: str) -> bool:
    """The request has this text outside its tools."""
    return text in asked.said


def _said_lacks(asked: Asked, text: str) -> bool:
    return text not in asked.said


def _tools_have(asked: Asked, text: str) -> bool:
    """The tools' JSON has this text in it."""
    return text in _text(asked.body.get("tools") or [])


def _path_lacks(asked: Asked, text: str) -> bool:
    return text not in asked.request.path


def _path_has(asked: Asked, text: str) -> bool:
    return text in asked.request.path


def _system_messages_above(asked: Asked, count: int) -> bool:
    return len(asked.of("system")) > count


def _system_not_first(asked: Asked, value: bool) -> bool:
    """A message of the system stands behind another one's."""
    return any(message.get("role") == "system" for message in asked.messages[1:]) is value


def _roles_have(asked: Asked, role: str) -> bool:
    return bool(asked.of(role))


def _last_role(asked: Asked, role: str) -> bool:
    return bool(asked.messages) and asked.messages[-1].get("role") == role


def _calls_above(asked: Asked, count: int) -> bool:
    """A message has more calls than so many."""
    return any(len(message.get("tool_calls") or ()) > count for message in asked.messages)


def _unanswered(asked: Asked, value: bool) -> bool:
    """A call of the history has no result."""
    named = {message.get("tool_call_id") for message in asked.of("tool")}
    return any(each not in named for each in _ids(asked)) is value


def _a_header_lacks(asked: Asked, wanted: Mapping[str, str]) -> bool:
    """A header of the request is not so."""
    return any(asked.request.headers.get(name) != value for name, value in wanted.items())


Check = Callable[[Asked, Any], bool]

CHECKS: dict[str, Check] = {
    "after": _after,
    "out_of_turn": _out_of_turn,
    "content_beside_calls": _content_beside_calls,
    "content_of": _content_of,
    "has": _has,
    "lacks": lambda asked, paths: not _has(asked, paths),
    "are": _are,
    "calls_lack": _calls_lack,
    "calls_blank": _calls_blank,
    "a_call_lacks": _a_call_lacks,
    "a_message_has": _a_message_has,
    "results_lack": _results_lack,
    "ids_repeat": _ids_repeat,
    "ids_unlike": _ids_unlike,
    "longer_than": _longer_than,
    "messages_above": _messages_above,
    "unchanged": _unchanged,
    "last_has": _last_has,
    "said_has": _said_has,
    "said_lacks": _said_lacks,
    "tools_have": _tools_have,
    "path_has": _path_has,
    "path_lacks": _path_lacks,
    "system_messages_above": _system_messages_above,
    "system_not_first": _system_not_first,
    "roles_have": _roles_have,
    "last_role": _last_role,
    "calls_above": _calls_above,
    "unanswered": _unanswered,
    "a_header_lacks": _a_header_lacks,
}


@dataclass
class Meeting:
    """How often a check was met, for one that a server forgets after some times."""

    check: Mapping[str, Any]
    times: int | None = None
    met: int = field(default=0)

    def meets(self, asked: Asked) -> bool:
        """Whether the request is refused by it; counted."""
        if (self.times is not None and self.met >= self.times) or not meets(self.check, asked):
            return False
        self.met += 1
        return True
