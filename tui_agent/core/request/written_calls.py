"""Calls that a model wrote into its text although tools were offered (`form.text_call`).

Small models, and servers that do not know a model's own form, send a call as JSON, in a fence or between tags. Such
text is no answer. An answer that shows JSON, or explains a call, is one: where `sure` is False, the calls are to be
taken only if they fit their tools. Pure; the text protocol has a reader of its own (`text_calls`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from tui_agent.core.events import ToolCall

_LONGEST_LEAD = 1_500
"""Characters of prose before a call; longer ones are an answer that shows a call."""

_MOST_CALLS = 32

_TAG = re.compile(
    r"^[ \t]*(?:<(?:tool_calls?|function_calls?|toolcall)>|<\|(?:python_tag|tool_calls?)\|>|\[TOOL_CALLS?\]"
    r"|```[ \t]*tool_?calls?[ \t]*\n|(?=<function[= ]))",
    re.IGNORECASE | re.MULTILINE,
)
"""What models put before their calls, at the beginning of a line."""

_ELEMENT = re.compile(
    r"<function(?:=|\s+name=)\"?([\w.:-]{1,200})\"?\s*>(.*?)(?:</function>|\Z)", re.DOTALL | re.IGNORECASE
)
_PARAMETER = re.compile(
    r"<parameter=\"?([\w.-]{1,200})\"?\s*>\n?(.*?)\n?</parameter>", re.DOTALL | re.IGNORECASE
)
_FENCE = re.compile(r"```\w*[ \t]*\n(\s*[\[{].*?)\s*```\s*\Z", re.DOTALL)
_OBJECT = re.compile(r'^[ \t]*\[?\s*\{\s*"(?:name|tool|type|function|tool_calls)"\s*:', re.MULTILINE)
_BEGUN = re.compile(
    r'\s*(?:```\w*\s*|<\w+>\s*)?\{\s*(?:"type"\s*:\s*"function"\s*,\s*)?"(?:name|tool)"\s*:\s*"([\w.:-]{1,200})"\s*,'
    r'\s*"(?:arguments|parameters)"\s*:\s*(?=\{)'
)
_EXAMPLE = re.compile(
    r"\b(?:examples?|e\.g\.|for instance|such as|like this|looks? like|would be|format|syntax|means|returns?)\b",
    re.IGNORECASE,
)
"""What stands in the line before a call that is shown and not made."""

_NAMES = ("name", "tool", "tool_name")
_ARGUMENTS = ("arguments", "parameters", "args", "tool_input")
_BESIDE = frozenset({"type", "id", "function", *_NAMES, *_ARGUMENTS})
_BETWEEN = re.compile(r"(?:[\s,;]|</?\|?(?:tool_calls?|function_calls?|toolcall)\|?>|```\w*)*", re.IGNORECASE)


@dataclass(frozen=True)
class WrittenCalls:
    """`text` before the calls. `sure`: nothing else is said, or tags mark them as calls."""

    text: str
    calls: tuple[ToolCall, ...]
    sure: bool


def written_calls(text: str, tools: Collection[str], *, cut: bool = False) -> WrittenCalls | None:
    """The calls that `text` holds, last in it; None where it is an answer. `cut`: the length limit ended the text.

    `tools`: the names that are known; others count only where nothing else is said, so that the model learns of it.
    """
    body = text.strip()
    if cut:
        return _begun(body, tools)
    tag = _TAG.search(body)
    if tag is not None:
        rest = body[tag.end() :]
        elements = tuple(_elements(rest))
        calls = elements or _values(rest, to_the_end=False)
        return _found(body[: tag.start()], calls, marked=True)
    fence = _FENCE.search(body)
    if fence is not None:
        return _known(_found(body[: fence.start()], _values(fence[1], to_the_end=True)), tools)
    place = _OBJECT.search(body)
    if place is None:
        return None
    found = _found(body[: place.start()], _values(body[place.start() :], to_the_end=True))
    return found if found is not None and found.sure else _known(found, tools)


def is_unreadable(text: str) -> bool:
    """Whether a text that holds no readable call begins like one all the same."""
    return _TAG.match(text.strip()) is not None


def _found(lead: str, calls: tuple[ToolCall, ...], *, marked: bool = False) -> WrittenCalls | None:
    lead = lead.strip()
    if not calls or len(lead) > _LONGEST_LEAD or "```" in lead:
        return None
    before = lead.rpartition("\n")[2]
    if before and _EXAMPLE.search(before):
        return None
    return WrittenCalls(lead, calls, sure=marked or not lead)


def _known(found: WrittenCalls | None, tools: Collection[str]) -> WrittenCalls | None:
    """In a fence or beside prose only calls of known tools are calls."""
    if found is not None and all(call.name in tools for call in found.calls):
        return found
    return None


def _begun(body: str, tools: Collection[str]) -> WrittenCalls | None:
    """A text that the length limit cut in the middle of its only call."""
    begun = _BEGUN.match(body)
    if begun is None or begun[1] not in tools:
        return None
    return WrittenCalls("", (ToolCall(id="", name=begun[1], arguments=body[begun.end() :]),), sure=True)


def _elements(text: str) -> Iterator[ToolCall]:
    """Calls as elements: `<function=NAME><parameter=KEY>VALUE</parameter></function>`, or with JSON inside."""
    for element in list(_ELEMENT.finditer(text))[:_MOST_CALLS]:
        parameters = {match[1]: _plain(match[2]) for match in _PARAMETER.finditer(element[2])}
        inside = element[2].strip()
        arguments = inside if inside.startswith("{") and not parameters else json.dumps(parameters)
        yield ToolCall(id="", name=element[1], arguments=arguments)


def _plain(value: str) -> Any:
    """Numbers, truth values and lists as such; everything else is text."""
    try:
        read = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return value if isinstance(read, str) else read


def _values(text: str, *, to_the_end: bool) -> tuple[ToolCall, ...]:
    """The calls in a row of JSON values; none where one of them is no call, or more follows that is none."""
    decoder = json.JSONDecoder(strict=False)
    calls: list[ToolCall] = []
    place = _after_gap(text, 0)
    while place < len(text) and len(calls) <= _MOST_CALLS:
        try:
            value, place = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            return () if to_the_end else tuple(calls)
        for each in value if isinstance(value, list) else [value]:
            made = tuple(_of(each))
            if not made:
                return () if to_the_end else tuple(calls)
            calls += made
        place = _after_gap(text, place)
    return tuple(calls[:_MOST_CALLS])


def _after_gap(text: str, place: int) -> int:
    gap = _BETWEEN.match(text, place)
    return place if gap is None else gap.end()


def _of(value: object) -> Iterator[ToolCall]:
    """The call that a JSON object is, in one of the forms that models know; nothing where it is none."""
    if not isinstance(value, dict):
        return
    listed = value.get("tool_calls")
    if value.keys() == {"tool_calls"} and isinstance(listed, list):
        for each in listed:
            yield from _of(each)
        return
    inner = value.get("function")
    if isinstance(inner, dict):
        yield from _of(inner) if value.keys() <= {"type", "id", "function", "index"} else ()
        return
    if not value.keys() <= _BESIDE:
        return
    name = next((value[key] for key in _NAMES if isinstance(value.get(key), str)), inner)
    arguments = next((value[key] for key in _ARGUMENTS if key in value), None)
    if isinstance(arguments, str):
        arguments = _plain(arguments)
    if isinstance(arguments, dict) and {"type", "properties"} <= arguments.keys():
        return  # the description of a tool
    if isinstance(name, str) and name.strip() and isinstance(arguments, dict):
        yield ToolCall(id="", name=name.strip(), arguments=json.dumps(arguments, ensure_ascii=False))
