"""Calls in other notations than JSON: Python, Gemma's own, elements, keys and values. Pure.

Each reader takes a text and a place in it, and gives the calls that begin there with the place behind them; None when
none begins there, or when it is not whole.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

from tui_agent.core.request.forms import SPACES, TAGS

MOST_CALLS = 32


class Made(NamedTuple):
    """A call as it was written. `loose`: it is one only if it fits a tool of the run."""

    name: str
    arguments: dict[str, Any] | str
    loose: bool = False


Read = tuple[tuple[Made, ...], int]

_DECODER = json.JSONDecoder(strict=False)

# --- elements ----------------------------------------------------------------------------------------------------

_VALUE_END = rf"\n?</{SPACES}(?:parameter|param)>"
_ELEMENT = re.compile(
    rf"<{SPACES}(?P<kind>function|invoke)(?:=|\s+name=)(?P<quote>[\"']?)(?P<name>[\w.:-]{{1,200}})(?P=quote)"
    r"(?P<open>\s*/?>|(?=\s*=?\s*\(?\s*\{))",
    re.IGNORECASE,
)
_PARAMETER = re.compile(
    rf"\s*<{SPACES}(?:parameter|param)(?:=|\s+name=)[\"']?(?P<name>[\w.-]{{1,200}})[\"']?(?P<more>[^>\n]*)>\n?"
    rf"(?P<value>.*?)(?:{_VALUE_END}|\n(?=\s{{0,40}}</?{SPACES}(?:parameter|param|function|invoke)[= >]))",
    re.DOTALL | re.IGNORECASE,
)
_ELEMENT_END = re.compile(rf"\s*>?\s*(?:</{SPACES}(?:function|invoke)>|\Z)", re.IGNORECASE)
_JSON_HEAD = re.compile(r"\s*=?\s*(?P<bracket>\(?)\s*(?=\{)")
_NAMED_INSIDE = re.compile(
    rf"<{SPACES}invoke>\s*<tool_name>\s*(?P<name>[\w.:-]{{1,200}})\s*</tool_name>\s*<parameters>(?P<inside>.*?)</parameters>"
    rf"\s*</{SPACES}invoke>",
    re.DOTALL,
)
_CHILD = re.compile(r"\s*<([\w.-]{1,200})>\n?(.*?)\n?</\1>", re.DOTALL)


def element(text: str, at: int) -> Read | None:
    """Read `<function=NAME><parameter=KEY>VALUE</parameter></function>`, `<invoke name="NAME">`, or JSON inside."""
    named = _NAMED_INSIDE.match(text, at)
    if named is not None:
        children = _children(named["inside"])
        return None if children is None else ((Made(named["name"], children),), named.end())
    found = _ELEMENT.match(text, at)
    if found is None:
        return None
    place = found.end()
    if found["open"].rstrip().endswith("/>"):
        return (Made(found["name"], {}, loose=True),), place
    arguments: dict[str, Any] | str = {}
    head = _JSON_HEAD.match(text, place)
    if head is not None:
        value, place = _object(text, head.end())
        if value is None:
            return None
        arguments = value
        place = place + 1 if head["bracket"] and text.startswith(")", place) else place
    else:
        given: dict[str, Any] = {}
        while (one := _PARAMETER.match(text, place)) is not None:
            given[one["name"]] = one["value"] if 'string="true"' in one["more"] else plain(one["value"])
            place = one.end()
        arguments = given
    end = _ELEMENT_END.match(text, place)
    return None if end is None else ((Made(found["name"], arguments),), end.end())


_TAGGED = re.compile(rf"<(?P<name>{TAGS})>(?P<inside>.*?)</(?P=name)>", re.DOTALL | re.IGNORECASE)


def tagged(text: str, at: int) -> Read | None:
    """Read `<NAME><KEY>VALUE</KEY></NAME>`, also with JSON for the keys; not a value without its key."""
    found = _TAGGED.match(text, at)
    if found is None:
        return None
    inside = found["inside"].strip()
    value, end = _object(inside, 0)
    given = value if value is not None and end == len(inside) else _children(inside)
    return None if given is None else ((Made(found["name"], given),), found.end())


def _children(inside: str) -> dict[str, Any] | None:
    given, place = {}, 0
    while (one := _CHILD.match(inside, place)) is not None:
        given[one[1]] = plain(one[2])
        place = one.end()
    return given if not inside[place:].strip() else None


def plain(value: str) -> Any:
    """Read numbers, truth values and lists as such; everything else is text."""
    try:
        read = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return value if isinstance(read, str) else read


def _object(text: str, at: int) -> tuple[dict[str, Any] | None, int]:
    try:
        value, place = _DECODER.raw_decode(text, at)
    except (ValueError, RecursionError):
        return None, at
    return (value, place) if isinstance(value, dict) else (None, at)


# --- keys and values ---------------------------------------------------------------------------------------------

_HEAD = re.compile(
    r"[ \t]*(?P<name>[A-Za-z_][\w.:-]{0,150})\s*(?=<(?:longcat_)?arg_key>|</(?:longcat_)?tool_call>)"
)
_PAIR = re.compile(
    r"\s*<(?:longcat_)?arg_key>\s*([^<>]{1,200}?)\s*</(?:longcat_)?arg_key>\s*<(?:longcat_)?arg_value>(.*?)</(?:longcat_)?arg_value>",
    re.DOTALL,
)


def keyed(text: str, at: int) -> Read | None:
    """Read `NAME<arg_key>KEY</arg_key><arg_value>VALUE</arg_value>…`, as GLM writes it; also without any pair."""
    head = _HEAD.match(text, at)
    if head is None:
        return None
    place, given = head.end(), {}
    while (pair := _PAIR.match(text, place)) is not None:
        given[pair[1]] = plain(pair[2])
        place = pair.end()
    if re.compile(r"\s*(?:</(?:longcat_)?tool_call>|\Z)").match(text, place) is None:
        return None
    return (Made(head["name"], given),), place


# --- Gemma's own -------------------------------------------------------------------------------------------------

_CALL = re.compile(r"call:\s*(?P<name>[A-Za-z_][\w.:-]{0,150})\s*(?=[({])")
_KEY = re.compile(r"[\s,]*(?:<\|\"\|>|\")?([A-Za-z_][\w.-]{0,150})(?:<\|\"\|>|\")?\s*[:=]\s*")
_QUOTED = re.compile(r"<\|\"\|>(.*?)<\|\"\|>|<escape>(.*?)<escape>", re.DOTALL)
_BARE = re.compile(r"[\w./@~+-]+")
_DEEPEST = 20


def notation(text: str, at: int) -> Read | None:
    """Read `call:NAME{KEY:<|"|>VALUE<|"|>}`: texts in quotes of its own, or bare if only one reading is
    possible.
    """
    head = _CALL.match(text, at)
    if head is None:
        return None
    read = _members(text, head.end(), 0)
    return None if read is None else ((Made(head["name"], read[0]),), read[1])


def _members(text: str, at: int, depth: int) -> tuple[dict[str, Any], int] | None:
    end, place, given = ")" if text[at] == "(" else "}", at + 1, dict[str, Any]()
    while (key := _KEY.match(text, place)) is not None:
        read = _value(text, key.end(), depth)
        if read is None:
            return None
        given[key[1]], place = read
    place = _after_blank(text, place)
    return (given, place + 1) if text.startswith(end, place) else None


def _value(text: str, at: int, depth: int) -> tuple[Any, int] | None:
    quoted = _QUOTED.match(text, at)
    if quoted is not None:
        return (quoted[1] if quoted[1] is not None else quoted[2]), quoted.end()
    if depth > _DEEPEST or at >= len(text):
        return None
    if text[at] == "{":
        return _members(text, at, depth + 1)
    if text[at] == "[":
        return _items(text, at, depth + 1)
    if text[at] == '"':
        try:
            return _DECODER.raw_decode(text, at)
        except ValueError:
            return None
    bare = _BARE.match(text, at)
    if bare is None or not text.startswith((",", "}", "]", ")"), _after_blank(text, bare.end())):
        return None
    return plain(bare[0]), bare.end()


def _items(text: str, at: int, depth: int) -> tuple[list[Any], int] | None:
    place, items = _after_blank(text, at + 1), list[Any]()
    while not text.startswith("]", place):
        read = _value(text, place, depth)
        if read is None:
            return None
        items.append(read[0])
        place = _after_blank(text, read[1])
        if text.startswith(",", place):
            place = _after_blank(text, place + 1)
    return items, place + 1


def _after_blank(text: str, place: int) -> int:
    while place < len(text) and text[place].isspace():
        place += 1
    return place


# --- Python ------------------------------------------------------------------------------------------------------

_PYTHON = re.compile(r"\s*(?:\[\s*|print\s*\(\s*)?[A-Za-z_][\w.]{0,150}\s*\(")
_PYTHON_END = re.compile(r"<\|[\w ]+\|>|</\w+>|^```[ \t]*$", re.MULTILINE)
_LONGEST_PYTHON = 100_000


def python(text: str, at: int) -> Read | None:
    """Read `[NAME(KEY=VALUE), …]`, or such calls as statements, perhaps printed; all values are literals."""
    if _PYTHON.match(text, at) is None:
        return None
    ends = [found.start() for found in _PYTHON_END.finditer(text, at)][:MOST_CALLS]
    for end in [*ends, len(text)]:
        source = text[at:end].strip()
        if not source or len(source) > _LONGEST_PYTHON:
            continue
        made = _statements(source)
        if made:
            return made, end
    return None


def _statements(source: str) -> tuple[Made, ...]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
        return tuple(_expressions(tree.body))[:MOST_CALLS]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()


def _expressions(body: list[ast.stmt]) -> Iterator[Made]:
    for statement in body:
        match statement:
            case ast.Expr(value=ast.List(elts=calls)):
                for call in calls:
                    yield _python_call(call)
            case ast.Expr(value=ast.Call(func=ast.Name(id="print"), args=[inner], keywords=[])):
                yield _python_call(inner)
            case ast.Expr(value=call):
                yield _python_call(call)
            case _:
                raise ValueError("no call")


def _python_call(call: ast.expr) -> Made:
    if not isinstance(call, ast.Call) or call.args:
        raise ValueError("no call by keywords")
    name = ast.unparse(call.func).removesuffix(".call")
    given = {}
    for keyword in call.keywords:
        if keyword.arg is None:
            raise ValueError("arguments from elsewhere")
        given[keyword.arg] = ast.literal_eval(keyword.value)
    return Made(name, given)
