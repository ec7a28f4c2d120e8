"""The habits of a model server, as one value: the forms of requests that it takes.

Pure data and its words. `known_servers` has the habits from the start, `lessons` those that an error teaches,
`shape` makes a conversation follow them, and `kept_habits` keeps learnt ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any, Literal, get_args, get_type_hints

AfterTool = Literal["user", "result", "last_user", "assistant"]
Content = Literal["null", "absent", "empty", "filled"]
Reasoning = Literal["own", "empty", "filled", "every", "none"]


SEVERAL_TYPES, EMPTY_PROPERTIES, NO_TYPE = "lists of types", "empty properties", "properties without a type"
"""Shapes of a schema that some servers do not take; they stand among the keywords in `Habits.schema`."""


@dataclass(frozen=True, slots=True)
class Habits:
    """The habits of a server. The defaults are OpenAI's chat protocol as most servers speak it."""

    after_tool: AfterTool = "user"
    """The place of words that follow a tool's result, the recovery note among them: a message of the user, a
    marked block in that result, a part of the user's last message, or a message of the user behind a turn of
    the assistant.
    """
    turns: Literal["any", "alternate"] = "any"
    """`alternate`: the user begins, and no message follows one of the same role."""
    system: Literal["any", "first", "user"] = "any"
    """`first`: one system message at most, the first of all; `user`: none, its words begin those of the user."""
    parallel: bool = True
    """Takes a message with several calls; else each call is a message of its own with its result."""
    content: Content = "null"
    """The `content` of a message that has calls and no text."""
    ids: Literal["any", "plain", "nine"] = "any"
    """`plain`: 40 letters, digits, `_` and `-` at most; `nine`: nine letters and digits."""
    names: bool = False
    """Wants the name of its tool on each result."""
    reasoning: Reasoning = "own"
    """The messages with which the text of earlier reasoning goes back: `own` if it came with calls; `empty`
    with all calls, empty if there was none; `filled` with all calls and never empty; `every` with each
    message of the assistant; `none`.
    """
    reasoning_name: str = ""
    """The field for it; empty: the one it came in."""
    carried: bool = True
    """Takes back what else came with a reply: signed thinking, encrypted reasoning, details."""
    call_fields: bool = True
    """Takes back the fields of its own that it gave calls."""
    signed: bool = False
    """Wants a signature on every call, also on those that another model made."""
    images: bool = True
    image_url: Literal["object", "text"] = "object"
    """`text`: the address of an image stands without an object around it."""
    stream: bool = True
    usage: bool = True
    """Takes `stream_options`."""
    tool_choice: bool = True
    encrypted: bool = True
    """Encrypts the reasoning of its model."""
    thinks: bool = True
    """Takes parameters about the reasoning with this conversation."""
    refused: frozenset[str] = frozenset()
    """Parameters that are left out."""
    renamed: tuple[tuple[str, str], ...] = ()
    """Parameters that go out under another name."""
    bounds: tuple[tuple[str, float], ...] = ()
    """The largest numbers that parameters may be."""
    schema: frozenset[str] = frozenset()
    """Keywords of JSON Schema that are left out of the tools' parameters."""


_DEFAULT = Habits()
NOT_KEPT = frozenset({"images"})
"""Learnt for the life of a host only: the same name may see tomorrow, and nothing fails without."""


def changed(habits: Habits, since: Habits = _DEFAULT) -> dict[str, Any]:
    """The fields that differ."""
    pairs = ((each.name, getattr(habits, each.name)) for each in fields(Habits))
    return {name: value for name, value in pairs if value != getattr(since, name)}


def as_json(habits: Habits, since: Habits = _DEFAULT) -> dict[str, Any]:
    """The difference from the habits from the start, as JSON."""
    return {name: _plain(value) for name, value in changed(habits, since).items() if name not in NOT_KEPT}


def _plain(value: Any) -> Any:
    if isinstance(value, frozenset):
        return sorted(value)
    return [list(pair) for pair in value] if isinstance(value, tuple) else value


def from_json(values: Mapping[str, Any], base: Habits = _DEFAULT) -> Habits:
    """The habits with these values of an earlier day; those that mean nothing (any more) are left out."""
    return replace(
        base, **{name: found for name, value in values.items() if (found := _read(name, value)) is not None}
    )


_LONGEST_NAME, _MOST_NAMES = 100, 50


def _read(name: str, value: Any) -> Any:
    """A field's value from JSON; None if it is none."""
    allowed = _allowed().get(name)
    if allowed is None or name in NOT_KEPT:
        return None
    if isinstance(allowed, tuple):
        return value if value in allowed else None
    if allowed in {bool, str}:
        sound = isinstance(value, allowed) and (allowed is bool or len(value) <= _LONGEST_NAME)
        return value if sound else None
    if not isinstance(value, list) or len(value) > _MOST_NAMES:
        return None
    if name in {"renamed", "bounds"}:
        of_pair = _is_name if name == "renamed" else _is_bound
        pairs = [
            tuple(pair)
            for pair in value
            if isinstance(pair, list) and len(pair) == 2 and _is_name(pair[0]) and of_pair(pair[1])
        ]
        return tuple(pairs) if len(pairs) == len(value) else None
    return frozenset(value) if all(map(_is_name, value)) else None


@cache
def _allowed() -> dict[str, Any]:
    """For each field its words, or its type."""
    found: dict[str, Any] = {}
    for name, hint in get_type_hints(Habits).items():
        words = get_args(hint)
        found[name] = words if words and all(isinstance(each, str) for each in words) else hint
    return found


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _LONGEST_NAME


def _is_bound(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < float("inf")


_WORDS: dict[str, dict[Any, str]] = {
    "after_tool": {
        "result": "takes no message of the user after a tool's result: recovery's notes go into the last result",
        "last_user": "takes words of the user in the user's messages only: recovery's notes go into the last of them",
        "assistant": "takes no message of the user straight after a tool's result: a turn of the assistant is put in",
    },
    "turns": {"alternate": "wants the user and the assistant in turns: messages of the same role are joined"},
    "system": {
        "first": "takes one system message, the first of all",
        "user": "takes no system message: its words begin those of the user",
    },
    "parallel": {False: "takes one call a message: several calls of one reply go back one by one"},
    "content": {
        "absent": "takes no `content: null` beside calls: it is left out",
        "empty": 'wants text beside calls: an empty one ("") goes with them',
        "filled": "wants text beside calls: a word in brackets goes with them",
    },
    "ids": {
        "plain": "takes ids of calls of 40 plain characters at most: longer ones are shortened",
        "nine": "takes ids of calls of nine letters and digits: others are replaced",
    },
    "names": {True: "wants the name of its tool on each result"},
    "reasoning": {
        "empty": "wants the reasoning back with every call, also where there was none",
        "filled": "wants the reasoning back with every call, and never empty",
        "every": "wants the reasoning back with every message of the assistant",
        "none": "does not take the reasoning of earlier replies back: it is left out",
    },
    "carried": {
        False: "does not take back what came with earlier replies (signed or encrypted reasoning): it is left out"
    },
    "call_fields": {False: "does not take fields of other servers in calls: they are left out"},
    "signed": {
        True: "wants a signature on every call: those of other models get the one that stands for none"
    },
    "images": {False: "takes no images: it gets their names"},
    "image_url": {"text": "takes the address of an image as plain text"},
    "stream": {False: "does not stream: replies come as a whole"},
    "usage": {False: "takes no `stream_options`: it may not say how many tokens were used"},
    "tool_choice": {False: "takes no `tool_choice`"},
    "encrypted": {False: "does not encrypt its reasoning"},
    "thinks": {False: "takes no parameters about reasoning with this conversation: they are left out"},
}


def in_words(habits: Habits, since: Habits = _DEFAULT) -> tuple[str, ...]:
    """Their peculiarities, a phrase each, to follow the server's name."""
    said: list[str] = []
    particular = changed(habits, since)
    for name, value in particular.items():
        match name:
            case "reasoning_name" if "reasoning" in particular or not value:
                continue
            case "reasoning_name":
                said.append(f"takes reasoning back as `{value}`")
            case "refused":
                said.append(f"does not take {', '.join(sorted(value - since.refused))}")
            case "renamed":
                said += [
                    f"wants {new} in the place of {old}"
                    for old, new in value
                    if (old, new) not in since.renamed
                ]
            case "bounds":
                said += [
                    f"takes {name} of {most:g} at most"
                    for name, most in value
                    if (name, most) not in since.bounds
                ]
            case "schema":
                names = ", ".join(sorted(value - since.schema))
                said.append(f"takes no {names} in the schema of a tool: left out")
            case _:
                phrase = _WORDS[name].get(value)
                if phrase is not None:
                    said.append(phrase)
    return tuple(said)
