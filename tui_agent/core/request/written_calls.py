"""Calls that a model wrote into its text although tools were offered (`form.text_call`).

Small models, and servers that do not know a model's own form, send a call as JSON, in a fence or between
tags. Such text is no answer. An answer that shows JSON, or explains a call, is one: if `sure` is False, the
calls are to be taken only if they fit their tools. The forms stand in `forms`. Pure; the text protocol has a
reader of its own (`text_calls`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from tui_agent.core.events import ToolCall
from tui_agent.core.request.call_notations import (
    MOST_CALLS,
    Made,
    element,
    keyed,
    notation,
    plain,
    python,
    tagged,
)
from tui_agent.core.request.code_spans import fences, without_code
from tui_agent.core.request.forms import CALL_FORMS, SPACES, TAGS
from tui_agent.core.request.tool_names import meant

_LONGEST_LEAD = 1_500
"""Characters of prose before a call; longer ones are an answer that shows a call, unless tokens mark it."""

_MARK = re.compile(
    "|".join(
        f"(?:{form.begins})"
        if form.in_line
        else rf"^ {{0,3}}(?:{form.begins})|(?<=[.!?:…])[ \t]?(?:{form.begins})"
        for form in CALL_FORMS
    ),
    re.IGNORECASE | re.MULTILINE,
)
_CALL_FENCES = frozenset({"tool_code", "tool_call", "tool_calls", "toolcall", "tool call"})

_SIGN = r"<\|[^|<>\n]{1,60}\|?>|<[｜][^｜<>\n]{1,60}[｜]>|<\w+\|>|\[/?(?:TOOL_CALLS?|ARGS|CALL_ID)\]"
_WRAPPER = (
    rf"</?{SPACES}(?:tool_?calls?|toolcall|function_calls?|tools|(?:start|end)_function_call)>"
    rf"|</{SPACES}(?:function|invoke)>"
)
_BETWEEN = re.compile(rf"(?:[\s,;]|{_SIGN}|{_WRAPPER}|```\w*|Action:)*", re.IGNORECASE)
_NAMED = re.compile(
    rf"(?:(?:assistant|commentary|analysis|functions?(?=\s*<))(?:\s|{_SIGN})*)*(?:to=)?"
    r"(?P<name>[A-Za-z_][\w.-]{0,150}(?::\d+)?)"
    rf"(?:\s|{_SIGN}|\[CALL_ID\]\w+|Action[ _]Input:|json\b|code\b|```\w*)*(?=\{{)"
)
_RESULT = re.compile(r"</?(?:tool_response|tool_result|function_results?|result|tool_output)\b|Observation:")
"""How a guess at the call's result begins."""

_OBJECT = re.compile(r"^[ \t]*\[?\s*\{\s*\"\w+\"\s*:", re.MULTILINE)
_LIST_OF_CALLS = re.compile(r"^\[\s*[A-Za-z_][\w.]{0,150}\(", re.MULTILINE)
_BEGUN = re.compile(
    r'\s*(?:```\w*\s*|<\w+>\s*)?\{\s*(?:"type"\s*:\s*"function"\s*,\s*)?"(?:name|tool)"\s*:\s*"([\w.:-]{1,200})"\s*,'
    r'\s*"(?:arguments|parameters)"\s*:\s*(?=\{)'
)
_BEGUN_NAME = re.compile(
    rf"(?:{_SIGN}|{_WRAPPER}|[\s\[{{]|```\w*|assistant|commentary|analysis|function(?=\s*<)|\"name\"\s*:\s*\"|to=|call:"
    rf"|<{SPACES}(?:function|invoke)(?:=|\s+name=)[\"']?|<(?=(?:{TAGS})>)|print\s*\()*(?P<name>[A-Za-z_][\w.:-]{{0,150}})",
    re.IGNORECASE,
)
_EXAMPLE = re.compile(
    r"\b(?:examples?|e\.g\.|for instance|such as|like this|looks? like|would be|format|syntax|means|returns?)\b",
    re.IGNORECASE,
)
"""Words in the line before a call that is shown and not made."""
_REMAINS = re.compile(
    rf"^ {{0,3}}</{SPACES}(?:tool_?calls?|function_calls?|function|invoke|parameter|arg_key|arg_value)>[ \t]*$"
    r"|<\|channel\|>\s*(?:analysis|commentary|final)\b|<\|tool_calls?_(?:section_)?(?:begin|end)\|>\s*$",
    re.MULTILINE,
)
"""The rest of a call whose beginning is lost."""
_LONGEST_REMAINS = 4_000

_NAMES = ("name", "tool", "tool_name")
_ARGUMENTS = ("arguments", "parameters", "args", "tool_input")
_LOOSE_NAMES = ("recipient_name", "function_name", "action", "function")
_LOOSE_ARGUMENTS = ("input", "action_input", "params", "kwargs")
_LISTS = ("tool_calls", "tool_uses")
_IDS = frozenset({"type", "id", "index", "call_id", "tool_call_id"})
_OF_SCHEMAS = frozenset({"additionalProperties", "strict"})
"""Text that small models copy from the description of a tool."""
_BESIDE = frozenset({"function", *_IDS, *_NAMES, *_ARGUMENTS, *_OF_SCHEMAS})


@dataclass(frozen=True)
class WrittenCalls:
    """`text` before the calls. `sure`: nothing else is said, or tags mark them. `raw`: the calls as they stand."""

    text: str
    calls: tuple[ToolCall, ...]
    sure: bool
    raw: str = ""


def written_calls(text: str, tools: Collection[str], *, cut: bool = False) -> WrittenCalls | None:
    """Read the calls that `text` holds, last in it; None if it is an answer. `cut`: the length limit ended the text.

    `tools`: the names that are known; others count only if nothing else is said, so that the model learns of it.
    """
    body = text.strip()
    if cut:
        return _begun(body, tools)
    mark = _mark(body)
    if mark is not None:
        return _marked(body[: mark.start()], body[mark.start() :], tools)
    fence = next((each for each in fences(body) if each.end == len(body)), None)
    if fence is not None and not any(each.start < fence.start for each in fences(body)):
        return _fenced(body[: fence.start], body[fence.inner : fence.inner_end].strip(), tools)
    place = _OBJECT.search(body) or _LIST_OF_CALLS.search(body)
    if place is None:
        return None
    made, end = _read(body[place.start() :].lstrip(), tools)
    if not made or end < len(body[place.start() :].lstrip()):
        return None
    return _unmarked(body[: place.start()], made, tools, raw=body[place.start() :].strip(), alone=True)


def calls_of(text: str, tools: Collection[str]) -> WrittenCalls | None:
    """Read the calls in a text that is known to be one, whatever stands around it."""
    return written_calls(text, tools) or _marked("", text.strip(), tools)


def with_own_name(call: ToolCall, tools: Collection[str]) -> ToolCall:
    """Put a call of the API under the name of the tool that its name means, if that is beyond doubt."""
    if "<arg_key>" in call.name and call.arguments.strip() in {"", "{}", "null"}:
        whole = keyed(f"{call.name}</tool_call>", 0)
        if whole is not None:
            (one,) = _calls(whole[0])
            call = call.model_copy(update={"name": one.name, "arguments": one.arguments})
    return call.model_copy(update={"name": meant(call.name, tools)})


def is_unreadable(text: str) -> bool:
    """Tell if a text that holds no readable call is one in a model's own form all the same."""
    body = text.strip()
    mark = _mark(body)
    if mark is not None:
        lead = body[: mark.start()].strip()
        return len(lead) <= _LONGEST_LEAD and not _shows(lead)
    return len(body) <= _LONGEST_REMAINS and _REMAINS.search(without_code(body)) is not None


def _mark(body: str) -> re.Match[str] | None:
    """Find what marks the first call outside of code."""
    return _MARK.search(without_code(body, keep=_CALL_FENCES))


def _marked(lead: str, rest: str, tools: Collection[str]) -> WrittenCalls | None:
    """Read a call that its form marks as one. Beside more text, or far down, it has to fit a tool of the run."""
    made, end = _read(rest, tools)
    lead, behind = lead.strip(), rest[end:].strip()
    if not made or _shows(lead):
        return None
    aside = (behind and _RESULT.match(behind) is None) or len(lead) > _LONGEST_LEAD
    known = all(one.name in tools for one in made)
    if (len(lead) > _LONGEST_LEAD or any(one.loose for one in made)) and not known:
        return None
    return WrittenCalls(lead, _calls(made), sure=not (aside and known), raw=rest[:end].strip())


def _fenced(lead: str, inside: str, tools: Collection[str]) -> WrittenCalls | None:
    """Read a fence that ends the text."""
    mark = _MARK.match(inside)
    if mark is None and not inside.startswith(("{", "[")):
        return None
    made, end = _read(inside, tools)
    if inside[end:].strip():
        return None
    found = _unmarked(lead, made, tools, raw=inside, alone=False)
    # In a fence or beside prose only calls of known tools are calls.
    return found if found is not None and all(call.name in tools for call in found.calls) else None


def _unmarked(
    lead: str, made: tuple[Made, ...], tools: Collection[str], *, raw: str, alone: bool
) -> WrittenCalls | None:
    lead = lead.strip()
    if not made or len(lead) > _LONGEST_LEAD or "```" in lead or _shows(lead):
        return None
    loose, known = any(one.loose for one in made), all(one.name in tools for one in made)
    sure = not lead and not loose
    if not known and not (sure and alone):
        return None
    return WrittenCalls(lead, _calls(made), sure=sure, raw=raw)


def _shows(lead: str) -> bool:
    """Tell if what stands before a call announces an example."""
    before = lead.rpartition("\n")[2]
    return bool(before) and _EXAMPLE.search(before) is not None


def _calls(made: tuple[Made, ...]) -> tuple[ToolCall, ...]:
    return tuple(
        ToolCall(
            id="",
            name=one.name,
            arguments=one.arguments
            if isinstance(one.arguments, str)
            else json.dumps(one.arguments, ensure_ascii=False),
        )
        for one in made
    )


def _begun(body: str, tools: Collection[str]) -> WrittenCalls | None:
    """Read a text that the length limit cut in the middle of its only call."""
    begun = _BEGUN.match(body)
    if begun is not None and begun[1] in tools:
        return WrittenCalls("", (ToolCall(id="", name=begun[1], arguments=body[begun.end() :]),), sure=True)
    mark = _mark(body)
    begun = None if mark is None else _BEGUN_NAME.match(body, mark.start())
    if mark is None or begun is None:
        return None
    name = meant(begun["name"].removesuffix(".call"), tools)
    if name not in tools:
        return None
    # Not one call of it is certain to be whole.
    rest = body[begun.end() :].rstrip("} \n") or "{"
    return WrittenCalls(
        body[: mark.start()].strip(), (ToolCall(id="", name=name, arguments=rest),), sure=True
    )


def _read(text: str, tools: Collection[str]) -> tuple[tuple[Made, ...], int]:
    """Read the calls in a row that a text begins with, and the place behind them; none if one of them is not whole."""
    made: list[Made] = []
    place = _after_gap(text, 0)
    while place < len(text) and len(made) < MOST_CALLS:
        read = _json(text, place, tools) if text[place] in "{[" else None
        read = read or element(text, place) or keyed(text, place) or notation(text, place)
        read = read or tagged(text, place) or _named(text, place) or python(text, place)
        if read is None or not read[0]:
            begun = _MARK.match(text, place) or (text[place] in "{[" and made)
            return ((), 0) if begun else (tuple(made), place)
        made += (one._replace(name=meant(one.name, tools)) for one in read[0])
        place = _after_gap(text, read[1])
    return tuple(made[:MOST_CALLS]), place


def _after_gap(text: str, place: int) -> int:
    gap = _BETWEEN.match(text, place)
    return place if gap is None else gap.end()


def _named(text: str, at: int) -> tuple[tuple[Made, ...], int] | None:
    """Read a name and, behind tokens, its arguments as JSON: Kimi, Mistral, DeepSeek, Harmony, ReAct."""
    head = _NAMED.match(text, at)
    if head is None:
        return None
    try:
        value, end = json.JSONDecoder(strict=False).raw_decode(text, head.end())
    except (ValueError, RecursionError):
        return None
    return ((Made(head["name"], value),), end) if isinstance(value, dict) else None


def _json(text: str, at: int, tools: Collection[str]) -> tuple[tuple[Made, ...], int] | None:
    """Read the calls in a JSON value; None if it is none, or holds anything else."""
    try:
        value, end = json.JSONDecoder(strict=False).raw_decode(text, at)
    except (ValueError, RecursionError):
        return None
    made: list[Made] = []
    for each in value if isinstance(value, list) else [value]:
        of_it = tuple(_of(each, tools))
        if not of_it:
            return None
        made += of_it
    return tuple(made), end


def _of(value: object, tools: Collection[str]) -> Iterator[Made]:
    """Read the call that a JSON object is, in one of the forms that models know; nothing if it is none."""
    if not isinstance(value, dict):
        return
    listed = next((value[key] for key in _LISTS if value.keys() == {key}), None)
    if isinstance(listed, list):
        for each in listed:
            yield from _of(each, tools)
        return
    inner = value.get("function")
    if isinstance(inner, dict):
        beside = {key: each for key, each in value.items() if key not in _IDS and key != "function"}
        yield from _of({**inner, **beside}, tools) if beside.keys() <= set(_ARGUMENTS) else ()
        return
    name = next((value[key] for key in _NAMES if isinstance(value.get(key), str)), inner)
    arguments = next((value[key] for key in _ARGUMENTS if key in value), None)
    if isinstance(arguments, str):
        arguments = plain(arguments)
    if isinstance(arguments, dict) and {"type", "properties"} <= arguments.keys():
        return  # the description of a tool
    if value.keys() <= _BESIDE and isinstance(name, str) and name.strip() and isinstance(arguments, dict):
        yield Made(name.strip(), arguments)
        return
    yield from _loose(value, tools)


def _loose(value: dict[str, Any], tools: Collection[str]) -> Iterator[Made]:
    """Read an object that is a call only if its tool and its arguments are those of the run."""
    if len(value) == 1:
        ((name, arguments),) = value.items()
        if meant(name, tools) in tools and isinstance(arguments, dict):
            yield Made(name, arguments, loose=True)
        return
    key = next((key for key in (*_NAMES, *_LOOSE_NAMES) if isinstance(value.get(key), str)), "")
    if not key or meant(value[key], tools) not in tools:
        return
    beside = {other: each for other, each in value.items() if other != key}
    if beside.get("type") in {"function", "tool_use", "tool_call"}:
        del beside["type"]
        beside.pop("id", None)
    names = (*_ARGUMENTS, *_LOOSE_ARGUMENTS)
    inside = next((beside[other] for other in names if beside.keys() == {other}), None)
    if isinstance(inside, str):
        inside = plain(inside)
    arguments = inside if isinstance(inside, dict) else beside
    if arguments:
        yield Made(value[key], arguments, loose=True)
