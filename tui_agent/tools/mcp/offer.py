"""A server's tools as the model is offered them: names that every provider takes, schemas and descriptions
within bounds.

What a server says of its tools is data from outside: made safe for the screen, bounded, and never trusted. One tool
with a schema that a provider refuses would cost every request of the run, so such schemas are opened or left out.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tui_agent.terminal_text import one_line, sanitize

SEPARATOR = "__"
LONGEST_NAME = 64
"""Characters of a tool's name that all providers take."""
MOST_TOOLS = 128
"""Tools of one server."""
MOST_SCHEMA = 20_000
"""Characters of one tool's schema as JSON."""
MOST_OF_A_SERVER = 200_000
"""Characters of all schemas and descriptions of one server."""
LONGEST_DESCRIPTION = 2_000
_LONGEST_INNER = 1_000
_DEEPEST = 24
_PROPERTY = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_OPEN: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": True}
_COMBINED = ("oneOf", "anyOf", "allOf", "not", "if", "then", "else", "enum", "const", "$ref")
"""Keywords that providers refuse at the top of a schema."""
_TYPES = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})


@dataclass(frozen=True)
class Described:
    """A tool as its server describes it, before anything is believed."""

    name: str
    description: str
    schema: Any
    read_only: bool = False
    destructive: bool = True


@dataclass(frozen=True)
class Offered:
    """A tool as the model sees it. `raw` is the server's own name of it."""

    name: str
    raw: str
    description: str
    parameters: dict[str, Any]
    checked: dict[str, Any]
    """The part of the schema that is checked here: which arguments must be there, and plain types."""
    read_only: bool
    destructive: bool


def slugs(names: Iterable[str]) -> dict[str, str]:
    """A short distinct word for each server, for the names of its tools."""
    taken: dict[str, str] = {}
    for name in sorted(names):
        word = (
            re.sub(r"_+", "_", re.sub(r"[^A-Za-z0-9-]", "_", name)).strip("_-")[:24].strip("_-") or "server"
        )
        while word in taken.values():
            word = f"{word[:20].rstrip('_-')}-{_hash(name)}"
        taken[name] = word
    return taken


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:6]


def offer(server: str, slug: str, described: Sequence[Described]) -> tuple[list[Offered], list[str]]:
    """The tools that the model gets, sorted by name, and what was left out and why. Slow: for a thread."""
    offered: dict[str, Offered] = {}
    notices: list[str] = []
    room = MOST_OF_A_SERVER
    unique = {tool.name: tool for tool in described}
    # Names that stay as they are come first, so that a made-up neighbour never takes the name of another.
    ordered = sorted(
        unique.values(), key=lambda tool: (_named(slug, tool.name) != _plain(slug, tool.name), tool.name)
    )
    if len(ordered) > MOST_TOOLS:
        notices.append(f"{len(ordered)} tools; the first {MOST_TOOLS} are used")
    for tool in ordered[:MOST_TOOLS]:
        name = _named(slug, tool.name)
        if name in offered:
            name = f"{name[: LONGEST_NAME - 7]}_{_hash(tool.name)}"
        schema, notice = offered_schema(tool.schema)
        if schema is None:
            notices.append(f"{one_line(tool.name, 80)} is left out: {notice}")
            continue
        description = described_by(server, tool.description, notice)
        room -= len(json.dumps(schema)) + len(description)
        if room < 0:
            notices.append(f"{one_line(tool.name, 80)} is left out: the descriptions are too long in all")
            continue
        offered[name] = Offered(
            name, tool.name, description, schema, checked_part(schema), tool.read_only, tool.destructive
        )
    return [offered[name] for name in sorted(offered)], notices


def _plain(slug: str, raw: str) -> str:
    return f"{slug}{SEPARATOR}{raw}"


def _named(slug: str, raw: str) -> str:
    cleaned = _plain(slug, re.sub(r"[^A-Za-z0-9_-]", "_", raw) or "tool")
    if len(cleaned) > LONGEST_NAME:
        return f"{cleaned[: LONGEST_NAME - 7]}_{_hash(raw)}"
    return cleaned


def described_by(server: str, text: str, notice: str = "") -> str:
    """A description that says whose it is."""
    said = sanitize(text[: LONGEST_DESCRIPTION * 2]).strip()
    if len(said) > LONGEST_DESCRIPTION:
        said = said[:LONGEST_DESCRIPTION].rstrip() + " […]"
    return f"[MCP server {one_line(server, 64)}] {said or '(no description)'}" + (
        f" ({notice})" if notice else ""
    )


def offered_schema(schema: Any) -> tuple[dict[str, Any] | None, str]:
    """The schema as a provider takes it, and what was changed in words; None: the tool cannot be offered."""
    try:
        text = json.dumps(schema, ensure_ascii=False)
        text.encode()
    except (ValueError, RecursionError):
        return dict(_OPEN), "its schema cannot be read; arguments are passed on as they are"
    if not isinstance(schema, dict) or schema.get("type", "object") != "object":
        return dict(_OPEN), "its schema describes no object; arguments are passed on as they are"
    if len(text) > MOST_SCHEMA:
        schema = _bounded(schema, 0, words=False)
        if len(json.dumps(schema)) > MOST_SCHEMA:
            return dict(_OPEN), "its schema is too long; arguments are passed on as they are"
    made: dict[str, Any] = {
        key: value
        for key, value in _bounded(schema, 0, words=True).items()
        if key not in _COMBINED and key != "$schema"
    }
    made["type"] = "object"
    properties = made.get("properties")
    properties = properties if isinstance(properties, dict) else {}
    required = made.get("required")
    required = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
    strange = [name for name in properties if not _PROPERTY.fullmatch(name)]
    if set(strange) & set(required):
        return None, f"its argument {one_line(strange[0], 40)!r} has a name that no provider takes"
    made["properties"] = {name: value for name, value in properties.items() if name not in strange}
    if required:
        made["required"] = sorted(set(required) & made["properties"].keys())
    else:
        made.pop("required", None)
    return (
        (made, "")
        if _valid(made)
        else (dict(_OPEN), "its schema is invalid; arguments are passed on as they are")
    )


def _valid(schema: dict[str, Any]) -> bool:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError

    try:
        Draft202012Validator.check_schema(schema)
    except (SchemaError, RecursionError, ValueError, TypeError):
        return False
    return True


def _bounded(value: Any, depth: int, *, words: bool) -> Any:
    """The same schema without references to elsewhere, bottomless nesting, and unsafe or (`words` False) any prose."""
    if depth > _DEEPEST:
        return {} if isinstance(value, dict) else [] if isinstance(value, list) else value
    if isinstance(value, list):
        return [_bounded(item, depth + 1, words=words) for item in value]
    if not isinstance(value, dict):
        return value
    made = {}
    for key, item in value.items():
        if key in {"description", "title", "$comment"} and isinstance(item, str):
            if words:
                made[key] = sanitize(item[:_LONGEST_INNER])
            continue
        elsewhere = key in {"$ref", "$dynamicRef"} and not (isinstance(item, str) and item.startswith("#"))
        if not elsewhere and (words or key not in {"examples", "default"}):
            made[key] = _bounded(item, depth + 1, words=words)
    return made


def checked_part(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a schema that is checked before the call is sent. No pattern, no reference: a server's
    schema could make those endless.
    """
    properties = {
        name: {"type": part["type"]}
        for name, part in schema.get("properties", {}).items()
        if isinstance(part, dict) and isinstance(part.get("type"), str) and part["type"] in _TYPES
    }
    return {"type": "object", "properties": properties, "required": list(schema.get("required", ()))}
