"""Hints that help a wrong call become a right one: nearest file names, nearest tool names, the broken rule.

Everything here is bounded: a hint may be missing in a huge workspace, never slow.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tui_agent.terminal_text import escaped_line
from tui_agent.tools.walk import walk
from tui_agent.tools.workspace import Workspace, either, is_directory, quoted

_LOOKED_AT = 20_000
"""Entries of the workspace among which a missing name is looked for."""
_NAMED = 5
_HELD = 10
_COMPARED = 100
"""Characters of a name: comparing takes cubic time in the worst case."""
_SECONDS = 0.5
"""Time that is spent on looking for similar names."""


def missing_file(workspace: Workspace, name: str, path: Path, kind: str = "file") -> str:
    """Words about a path that does not exist: the missing part, and the nearest names that do exist."""
    parent = path.parent
    text = f"There is no {kind} {quoted(workspace.shown(path))} in the workspace."
    own, _, rest = workspace.shown(path).partition("/")
    if own == workspace.root.name and rest and not is_directory(workspace.root / own):
        exists = f": {quoted(rest)} exists" if os.path.lexists(workspace.root / rest) else ""
        return (
            f"{text} The workspace is itself named {quoted(own)}: leave '{escaped_line(own)}/' out{exists}."
        )
    if not is_directory(parent) and parent.is_relative_to(workspace.root):
        gone = parent
        while gone.parent != gone and not is_directory(gone.parent):
            gone = gone.parent
        text += f" There is no directory {quoted(workspace.shown(gone))} either."
    near = nearest_paths(workspace, name)
    if not near:
        return text + _held_by_nearest(workspace, path)
    return f"{text} Did you mean {either(near)}?"


def _held_by_nearest(workspace: Workspace, path: Path) -> str:
    """The content of the nearest directory that exists."""
    directory = path.parent
    while not is_directory(directory) and directory != workspace.root and directory.parent != directory:
        directory = directory.parent
    if not directory.is_relative_to(workspace.root):
        return ""
    place = directory.relative_to(workspace.root).as_posix()
    entries = []
    for entry in walk(workspace.root, "" if place == "." else place):
        name = entry.path if place == "." else entry.path.removeprefix(f"{place}/")
        if "/" not in name:
            entries.append(f"{name}/" if entry.is_dir else name)
        if len(entries) > _HELD:
            break
    where = "The workspace" if place == "." else f"The directory {quoted(place)}"
    if not entries:
        return f" {where} is empty."
    more = " and more" if len(entries) > _HELD else ""
    return f" {where} holds {', '.join(map(quoted, entries[:_HELD]))}{more}."


def nearest_paths(workspace: Workspace, name: str) -> list[str]:
    """Existing paths (relative) most like `name`: other case, same name elsewhere, misspelt. At most five."""
    wanted = name.replace("\\", "/").removeprefix(workspace.root.as_posix()).strip("/")
    while wanted.startswith(("./", "../")):
        wanted = wanted.partition("/")[2]
    base = wanted.rpartition("/")[2].casefold()
    if not base:
        return []
    exact = wanted.casefold()
    matcher, whole = difflib.SequenceMatcher(autojunk=False), difflib.SequenceMatcher(autojunk=False)
    matcher.set_seq2(base[:_COMPARED])
    whole.set_seq2(exact[: 4 * _COMPARED])
    scored: list[tuple[float, str]] = []
    deadline = time.monotonic() + _SECONDS
    for looked, entry in enumerate(walk(workspace.root)):
        if looked >= _LOOKED_AT or time.monotonic() > deadline:
            break
        path = entry.path
        candidate, folded = path.rpartition("/")[2].casefold(), path.casefold()
        if folded == exact:
            score = 4.0
        elif candidate == base:
            score = 3.0
        else:
            matcher.set_seq1(candidate[:_COMPARED])
            if matcher.real_quick_ratio() < 0.6 or matcher.quick_ratio() < 0.6:
                continue
            score = matcher.ratio()
            if score < 0.6:
                continue
        whole.set_seq1(folded[: 4 * _COMPARED])
        scored.append((score + whole.quick_ratio(), path))
    scored.sort(key=lambda item: (-item[0], item[1]))
    return [path for _, path in scored[:_NAMED]]


def unknown_tool(name: str, tools: Iterable[str]) -> str:
    """Words about a tool that does not exist: the nearest names, and all of them."""
    known = sorted(tools)
    folded = {tool.casefold().replace("_", ""): tool for tool in known}
    plain = name.casefold().replace("_", "").replace("-", "").replace(" ", "")
    near = [folded[match] for match in difflib.get_close_matches(plain, folded, n=3, cutoff=0.6)]
    meant = f" Did you mean {either(near)}?" if near else ""
    return f"There is no tool named {quoted(name[:100])}.{meant} The tools are: {', '.join(known)}."


def broken_rules(errors: Iterable[Any], parameters: Mapping[str, Any]) -> str:
    """Which rules of the schema arguments broke (`jsonschema` errors), with the part of the schema that
    holds them.
    """
    found, fragments = list[str](), dict[str, Any]()
    properties: Mapping[str, Any] = parameters.get("properties", {})
    for error in errors:
        found.append(_said(error, properties))
        fields = [str(error.absolute_path[0])] if error.absolute_path else list(properties)
        fragments |= {field: properties[field] for field in fields if field in properties}
        if len(found) == _NAMED:
            break
    required = parameters.get("required", [])
    schema = json.dumps({"properties": fragments, "required": required}, ensure_ascii=False)
    return f"{' '.join(found)} The schema says: {schema}"


def _said(error: Any, properties: Mapping[str, Any]) -> str:
    where = ".".join(str(part) for part in error.absolute_path)
    value = _short(error.instance)
    match error.validator:
        case "required":
            missing = [field for field in error.validator_value if field not in error.instance]
            return f"{either(missing)} missing: it must be given."
        case "additionalProperties":
            extra = [str(field) for field in error.instance if field not in properties]
            near = {
                field: difflib.get_close_matches(field, properties, n=1, cutoff=0.5)
                for field in extra[:_NAMED]
            }
            meant = [
                quoted(f[:100]) + (f" (did you mean {quoted(n[0])}?)" if n else "") for f, n in near.items()
            ]
            return f"Unknown argument {' and '.join(meant)}."
        case "type":
            hint = ""
            if isinstance(error.instance, str) and error.validator_value in ("integer", "number", "boolean"):
                hint = " Write it without quotation marks."
            return f"'{where}' must be {_article(str(error.validator_value))}, not {value}.{hint}"
        case "minLength" | "pattern" if not error.instance.strip():
            return f"'{where}' must not be empty."
        case "minimum":
            return f"'{where}' must be at least {error.validator_value}, not {value}."
        case "maximum":
            return f"'{where}' must be at most {error.validator_value}, not {value}."
        case _:
            place = f"'{where}': " if where else ""
            return f"{place}{escaped_line(str(error.message)[:300])}."


def _article(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 100 else f"{text[:100]}..."


_FREE_TEXT = frozenset({"content", "old", "new", "question", "answer", "explanation", "text"})
"""Parameters whose value may well use the words of their description."""

_FEWEST_WORDS = 3
_MOSTLY = 0.75
"""The share of a value's words that stand in the description, from which on it is a copy of it."""


def copied_description(tool: str, schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    """The parameter whose value is its own description, as small models fill it in; "" if none is."""
    properties: Mapping[str, Any] = schema.get("properties", {})
    for name, value in arguments.items():
        described = properties.get(name)
        if not isinstance(value, str) or not isinstance(described, dict):
            continue
        description = str(described.get("description", ""))
        if len(value) > 2 * len(description):
            continue
        words, known = _WORDS.findall(value.casefold()), _WORDS.findall(description.casefold())
        if len(words) < _FEWEST_WORDS:
            continue
        shared = {*known, name.casefold(), *_WORDS.findall(tool.casefold().replace("_", " "))}
        alike = words == known
        if not alike and name not in _FREE_TEXT:
            alike = sum(word in shared for word in words) >= _MOSTLY * len(words)
        if alike:
            return name
    return ""


_WORDS = re.compile(r"\w+")
