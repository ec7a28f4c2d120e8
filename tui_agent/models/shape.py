"""A conversation in the shape that its server takes: what goes out in the place of the messages of a request.

Pure: the same messages and habits give the same result, so the beginning of a prompt stays as it was and a provider's
cache holds. The history is never changed. No word is lost: what has no place of its own is joined to another message.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from tui_agent.core.request.placeholders import CALLS, NOT_RECORDED, UNDERSTOOD
from tui_agent.models.habits import EMPTY_PROPERTIES, NO_TYPE, SEVERAL_TYPES, Habits

Message = dict[str, Any]

NOTE_BLOCK, USER_BLOCK = "system_note", "user_message"
"""Tags around words that stand in a tool's result and are not the tool's."""
EXPLAINED = (
    f"Messages of the user may stand at the end of a tool's result, in <{USER_BLOCK}> tags, and notes of the system in "
    f"<{NOTE_BLOCK}> tags. Such blocks are never a part of what the tool printed."
)
"""Words of the system prompt if results hold such blocks."""
GO_ON = "(The conversation goes on.)"
"""A turn of the user, likewise."""
NO_SIGNATURE = "skip_thought_signature_validator"
"""Stands for a signature that Gemini takes on calls that another model made."""

_FORGED = re.compile(rf"<(?=/?(?:{NOTE_BLOCK}|{USER_BLOCK})\b)")
_ODD = re.compile(r"[^a-zA-Z0-9_-]")
_NINE = re.compile(r"[a-zA-Z0-9]{9}\Z")
_LONGEST_ID = 40
_LETTERS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


class Shaped(NamedTuple):
    """Messages as they go out."""

    messages: list[Message]
    ephemeral: int
    """How many at the end no later request will hold as they are."""


def shaped(messages: Sequence[Message], habits: Habits, ephemeral: int = 0) -> Shaped:
    """Give a conversation the server's shape. Its last `ephemeral` messages (the note) stand in this request only."""
    stable = len(messages) - ephemeral
    marked = [(message, at >= stable) for at, message in enumerate(_with_own_ids(messages, habits))]
    if not habits.parallel:
        marked = list(_single(marked))
    marked = _placed([_explained(each, habits) for each in marked], habits)
    out = [_filled(message, habits) for message, _ in marked]
    last_stable = next((at for at, (_, passing) in enumerate(marked) if passing), len(marked))
    return Shaped(out, len(marked) - last_stable)


def fitted_tools(tools: Sequence[dict[str, Any]], habits: Habits) -> list[dict[str, Any]]:
    """The tools with parameters in the subset of JSON Schema that the server takes."""
    if not habits.schema:
        return list(tools)
    fitted = []
    for tool in tools:
        function = tool.get("function") or {}
        parameters = function.get("parameters") or {}
        if habits.schema & _REFERENCES:
            parameters = _resolved(parameters, parameters)
        parameters = _without(parameters, habits.schema)
        function = {**function, "parameters": parameters}
        if EMPTY_PROPERTIES in habits.schema and not parameters.get("properties"):
            del function["parameters"]
        fitted.append({**tool, "function": function})
    return fitted


_REFERENCES = frozenset({"$ref", "$defs", "definitions"})


def _resolved(
    schema: Any, root: Mapping[str, Any], within: tuple[str, ...] = (), *, names: bool = False
) -> Any:
    """A schema with what its references name in their place; `within`: those that are being followed."""
    if isinstance(schema, list):
        return [_resolved(each, root, within) for each in schema]
    if not isinstance(schema, dict):
        return schema
    rest = {
        key: _resolved(value, root, within, names=key in _NAMED and not names)
        for key, value in schema.items()
        if names or key not in _REFERENCES
    }
    name = None if names else schema.get("$ref")
    if not isinstance(name, str):
        return rest
    target: Any = root
    for part in name.removeprefix("#/").split("/"):
        target = target.get(part) if isinstance(target, Mapping) else None
    if not isinstance(target, Mapping) or name in within:
        return {"type": "object", **rest}  # a schema in itself has no end
    return _resolved(target, root, (*within, name)) | rest


_NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
"""Keywords whose keys are names and not keywords."""
_CHOICES = ("anyOf", "oneOf", "allOf")


def _without(schema: Any, keywords: frozenset[str], *, names: bool = False) -> Any:
    """A schema without these keywords at any depth; of a choice that goes its first schema stays."""
    if isinstance(schema, list):
        return [_without(each, keywords) for each in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {}
    chosen: dict[str, Any] = {}
    for key, value in schema.items():
        if not names and key == "type" and isinstance(value, list) and SEVERAL_TYPES in keywords:
            kept[key] = next((each for each in value if each != "null"), "string")
        elif names or key not in keywords:
            kept[key] = _without(value, keywords, names=key in _NAMED and not names)
        elif key == "const":
            chosen["enum"] = [value]
        elif key in _CHOICES and isinstance(value, list) and value and isinstance(value[0], dict):
            chosen |= _without(_likeliest(value), keywords)
    found = chosen | kept
    if not names and NO_TYPE in keywords and "type" not in found and not found.keys() & {"$ref", *_CHOICES}:
        found["type"] = _type(found)
    return found


def _type(schema: Mapping[str, Any]) -> str:
    """The type that a schema means which says none."""
    values = schema.get("enum")
    value = values[0] if isinstance(values, list) and values else ""
    whole = "object" if "properties" in schema else "array" if "items" in schema else "string"
    return {bool: "boolean", int: "integer", float: "number"}.get(type(value), whole)


def _likeliest(schemas: list[Any]) -> Any:
    """Of a choice the first schema that is not null."""
    return next(
        (each for each in schemas if isinstance(each, dict) and each.get("type") != "null"), schemas[0]
    )


# --- ids of calls --------------------------------------------------------------------------------------------


def _with_own_ids(messages: Sequence[Message], habits: Habits) -> list[Message]:
    """Messages whose calls have ids that are unique in the whole conversation, in the form that is wanted; their
    results have them too, and the tools' names if they are wanted.

    An id is made of the one that was there, so it stays the same from request to request.
    """
    used: set[str] = set()
    waiting: list[tuple[str, str, str]] = []
    out: list[Message] = []
    for message in messages:
        if message["role"] == "assistant" and message.get("tool_calls"):
            calls, waiting = [], []
            for call in message["tool_calls"]:
                old = str(call.get("id") or "")
                new = _id(old, habits.ids, used)
                used.add(new)
                waiting.append((old, new, call["function"]["name"]))
                calls.append(call if new == call.get("id") else {**call, "id": new})
            changed = any(new is not old for new, old in zip(calls, message["tool_calls"], strict=True))
            out.append({**message, "tool_calls": calls} if changed else message)
        elif message["role"] == "tool":
            old = str(message.get("tool_call_id") or "")
            at = next((at for at, (known, *_) in enumerate(waiting) if known == old), None)
            _, new, name = waiting.pop(at) if at is not None else (old, old, "")
            own = message if new == message.get("tool_call_id") else {**message, "tool_call_id": new}
            out.append({**own, "name": name} if habits.names and name else own)
        else:
            out.append(message)
    return out


def _id(old: str, form: str, used: set[str]) -> str:
    """An id of this form that is not used yet: the old one if it can stay."""
    for attempt in range(len(used) + 2):
        match form:
            case "nine":
                new = old if not attempt and _NINE.match(old) else _short(old, attempt)
            case "plain":
                plain = _ODD.sub("_", old)
                fits = plain and plain == old and len(plain) <= _LONGEST_ID
                new = plain if fits and not attempt else f"{plain[: _LONGEST_ID - 10]}_{_short(old, attempt)}"
            case _:
                new = old if old and not attempt else f"{old or 'call'}_{attempt + 1}"
        if new not in used:
            return new
    raise AssertionError("as many tries as ids cannot all be used")


def _short(text: str, attempt: int) -> str:
    """Nine letters and digits for a text."""
    number = int.from_bytes(hashlib.sha256(f"{attempt}:{text}".encode("utf-8", "replace")).digest()[:8])
    letters = []
    for _ in range(9):
        number, at = divmod(number, len(_LETTERS))
        letters.append(_LETTERS[at])
    return "".join(letters)


# --- turns ---------------------------------------------------------------------------------------------------

_Marked = tuple[Message, bool]
"""A message, and whether it stands in this request only."""


def _single(marked: Sequence[_Marked]) -> Iterable[_Marked]:
    """Each call in a message of its own, before its result."""
    at = 0
    while at < len(marked):
        message, passing = marked[at]
        calls = message.get("tool_calls") or ()
        at += 1
        if len(calls) < 2:
            yield message, passing
            continue
        results: dict[str, _Marked] = {}
        while at < len(marked) and marked[at][0]["role"] == "tool":
            results[str(marked[at][0].get("tool_call_id"))] = marked[at]
            at += 1
        for index, call in enumerate(calls):
            own = message if index == 0 else {"role": "assistant", "content": None}
            yield {**own, "tool_calls": [call]}, passing
            if call["id"] in results:
                yield results.pop(call["id"])
        yield from results.values()


def _explained(marked: _Marked, habits: Habits) -> _Marked:
    """The system's message with what it must say of blocks in results."""
    message, passing = marked
    if message["role"] != "system" or habits.after_tool != "result":
        return marked
    return {**message, "content": _contents(message.get("content"), EXPLAINED)}, passing


def _placed(marked: Sequence[_Marked], habits: Habits) -> list[_Marked]:
    """The messages in turns, and words behind results in their place."""
    rest, system = _without_system(marked, habits)
    out: list[_Marked] = []
    for message, passing in rest:
        last = out[-1][0] if out else None
        match message["role"]:
            case "user" if last is not None and last["role"] == "tool" and habits.after_tool != "user":
                _behind_result(out, message, habits, passing=passing)
            case "user" | "assistant" as role if habits.turns == "alternate":
                if last is None and role == "assistant":
                    out.append(({"role": "user", "content": GO_ON}, False))
                if last is not None and last["role"] == role and not last.get("tool_calls"):
                    out[-1] = _joined(last, message), out[-1][1] or passing
                else:
                    out.append((message, passing))
            case _:
                out.append((message, passing))
    if habits.after_tool != "user":
        out = [(_unforged(message), passing) for message, passing in out]
    if habits.turns == "alternate" and (not out or out[-1][0]["role"] == "assistant"):
        out.append(({"role": "user", "content": GO_ON}, True))
    return _with_system(out, system, habits)


def _without_system(marked: Sequence[_Marked], habits: Habits) -> tuple[list[_Marked], list[_Marked]]:
    """The messages, and apart from them those of the system, if they are to stand together."""
    if habits.system == "any" and habits.turns == "any":
        return list(marked), []
    return (
        [each for each in marked if each[0]["role"] != "system"],
        [each for each in marked if each[0]["role"] == "system"],
    )


def _with_system(marked: list[_Marked], system: list[_Marked], habits: Habits) -> list[_Marked]:
    """The messages with one of the system before them, or with its words at the beginning of the user's first."""
    if not system:
        return marked
    joined, passing = system[0]
    for message, also in system[1:]:
        joined, passing = _joined(joined, message), passing or also
    if habits.system != "user":
        return [(joined, passing), *marked]
    at = next((at for at, (message, _) in enumerate(marked) if message["role"] == "user"), None)
    as_user = {**joined, "role": "user"}
    if at is None or at > 0:
        return [(as_user, passing), *marked]
    first, also = marked[0]
    return [(_joined(as_user, first), passing or also), *marked[1:]]


def _behind_result(out: list[_Marked], message: Message, habits: Habits, *, passing: bool) -> None:
    """Words that follow a tool's result, if no message of the user may."""
    result, was_passing = out[-1]
    content = message.get("content")
    if habits.after_tool == "last_user" and passing:
        at = next((at for at in range(len(out) - 1, -1, -1) if out[at][0]["role"] == "user"), None)
        if at is not None:
            out[at] = _joined(out[at][0], message), True
            return
    if (
        habits.after_tool == "assistant"
        or not isinstance(content, str)
        or not isinstance(result.get("content"), str)
    ):
        # An image cannot stand in a result.
        out.append(({"role": "assistant", "content": UNDERSTOOD}, passing))
        out.append((message, passing))
        return
    tag = NOTE_BLOCK if passing else USER_BLOCK
    text = str(_unforged(result)["content"])
    words = f"{text}\n\n<{tag}>\n{_FORGED.sub('< ', content)}\n</{tag}>"
    out[-1] = _Folded({**result, "content": words}), was_passing or passing


class _Folded(dict[str, Any]):
    """A result that holds words of others behind its own."""


def _unforged(message: Message) -> Message:
    """A result in which no text of the tool looks like a block of ours."""
    content = message.get("content")
    if message["role"] != "tool" or isinstance(message, _Folded) or not isinstance(content, str):
        return message
    plain = _FORGED.sub("< ", content)
    return message if plain == content else {**message, "content": plain}


def _joined(first: Message, second: Message) -> Message:
    """Two messages of a role as one: texts behind each other, lists joined, of anything else the later."""
    both = dict(first)
    for key, value in second.items():
        if key == "content":
            both[key] = _contents(first.get(key), value)
        elif isinstance(value, list) and isinstance(first.get(key), list):
            both[key] = [*first[key], *value]
        elif key.startswith("reasoning") and isinstance(value, str) and isinstance(first.get(key), str):
            both[key] = "\n\n".join(filter(None, (first[key], value)))
        else:
            both[key] = value
    return both


def _contents(first: Any, second: Any) -> Any:
    if isinstance(first, str | None) and isinstance(second, str | None):
        return "\n\n".join(filter(None, (first, second))) or (first if second is None else second)
    return [*_parts(first), *_parts(second)]


def _parts(content: Any) -> list[Any]:
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content}] if content else []


# --- single messages -----------------------------------------------------------------------------------------


def _filled(message: Message, habits: Habits) -> Message:
    """A message with all that the server wants in it, and nothing that it does not take."""
    if message["role"] == "user":
        return _with_image_form(message, habits)
    if message["role"] != "assistant":
        return dict(message) if isinstance(message, _Folded) else message
    filled = dict(message)
    calls = filled.get("tool_calls")
    if calls and not filled.get("content"):
        match habits.content:
            case "absent":
                filled.pop("content", None)
            case "null":
                filled["content"] = None
            case "empty":
                filled["content"] = ""
            case _:
                filled["content"] = CALLS
    if habits.reasoning in {"empty", "filled", "every"} and (calls or habits.reasoning == "every"):
        name = habits.reasoning_name or _reasoning_name(filled)
        if not filled.get(name) and not filled.get("reasoning_details"):
            filled[name] = "" if habits.reasoning == "empty" else NOT_RECORDED
    if calls and habits.signed:
        filled["tool_calls"] = [_signed(call) for call in calls]
    return filled


def _reasoning_name(message: Message) -> str:
    return "reasoning" if "reasoning" in message else "reasoning_content"


def _signed(call: dict[str, Any]) -> dict[str, Any]:
    extra = call.get("extra_content") or {}
    google = extra.get("google") or {}
    if google.get("thought_signature"):
        return call
    return {**call, "extra_content": {**extra, "google": {**google, "thought_signature": NO_SIGNATURE}}}


def _with_image_form(message: Message, habits: Habits) -> Message:
    content = message.get("content")
    if habits.image_url == "object" or not isinstance(content, list):
        return message
    parts = [
        {**part, "image_url": part["image_url"]["url"]}
        if isinstance(part, dict) and isinstance(part.get("image_url"), dict) and "url" in part["image_url"]
        else part
        for part in content
    ]
    return {**message, "content": parts}
