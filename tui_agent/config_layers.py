"""Where settings come from: options, environment, the project's file, the user's file. Each becomes a layer.

A layer is a plain nested mapping with the place of each key; what is unknown or not allowed there is left
out of it and told. The project's file comes with a checkout, perhaps a stranger's, so it cannot decide what
only a person may: what runs unasked, where keys and text are sent, where sessions are kept.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tui_agent.config_errors import Problem, looks_secret, nearest, secret_key, unknown_key

if TYPE_CHECKING:
    from pathlib import Path

PREFIX = "AGENT_TUI_"
PROJECT_FILE = ".agent-tui.toml"
_LARGEST_FILE = 1_000_000

Schema = Mapping[str, "frozenset[str] | None"]
"""Key → the keys of its section, or None for a plain value."""

PERSONAL: Mapping[str, str] = {
    "api_base": "it decides where your provider key and every message are sent",
    "hooks": "hooks are commands that run unasked",
    "state_dir": "it decides where your sessions are written",
    "retention_days": "it decides when your sessions are deleted",
    "workspace": "the file lies in the workspace it would choose",
}
"""What only a person may set, and why."""


@dataclass
class Layer:
    """One source: `values` nested by section; `places` says where a key stands, for messages."""

    name: str
    values: dict[str, Any] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    base: Path | None = None
    """What relative paths in it are relative to; None: the current directory."""

    def place(self, key: str) -> str:
        """Where `key` (dotted in a section) was set, in words a person can follow."""
        return self.places.get(key) or self.places.get(key.partition(".")[0]) or self.name


def options_layer(overrides: Mapping[str, Any]) -> Layer:
    """What the command line (or a caller) sets; None means not set."""
    values = {key: value for key, value in overrides.items() if value is not None}
    places = {key: "--" + key.replace("_", "-") for key in values}
    return Layer("options", values, places)


def environment_layer(environ: Mapping[str, str], schema: Schema) -> tuple[Layer, list[Problem]]:
    """`AGENT_TUI_KEY` and, in a section, `AGENT_TUI_SECTION__KEY`; lists and tables as JSON.

    A variable with our prefix that is near to none of ours is left alone: other programs may use the prefix.
    """
    layer, problems = Layer("environment"), []
    for variable, text in environ.items():
        if not variable.upper().startswith(PREFIX) or text == "":
            continue
        section, _, inner = variable[len(PREFIX) :].lower().partition("__")
        if section == "config" and not inner:
            continue
        if section not in schema or (inner and inner not in (schema[section] or ())):
            problem = _unknown_variable(variable, section, inner, schema)
            problems += [problem] if problem else []
            continue
        key = f"{section}.{inner}" if inner else section
        layer.places[key] = variable
        if inner:
            table = layer.values.setdefault(section, {})
            if isinstance(table, dict):
                table[inner] = text
        else:
            layer.values[section] = _decoded(text) if text.lstrip()[:1] in {"{", "["} else text
    return layer, problems


def _unknown_variable(variable: str, section: str, inner: str, schema: Schema) -> Problem | None:
    if looks_secret(section):
        says = "this is not a setting; set the provider's own variable, as OPENAI_API_KEY, instead"
        return Problem("environment", variable, says)
    if section in schema:
        near = nearest(inner, schema[section] or (), 0.0)
        full = f"{PREFIX}{section.upper()}" + (f"__{near.upper()}" if near else "")
        return Problem("environment", variable, f"there is no such variable; the nearest is {full}")
    near = nearest(section, schema, 0.75)
    if near is None:
        return None
    return Problem(
        "environment", variable, f"there is no such variable; the nearest is {PREFIX}{near.upper()}"
    )


def _decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def file_layer(path: Path, schema: Schema) -> tuple[Layer, list[Problem]]:
    """A TOML file's keys. The file must exist; what cannot be read or parsed is a problem."""
    layer = Layer(str(path), base=path.parent)
    try:
        table, problems = _read_toml(path), []
    except _UnreadableError as unreadable:
        return layer, [Problem(str(path), "", str(unreadable))]
    for key, value in table.items():
        if key not in schema:
            problems.append(_unknown(str(path), key, schema))
            continue
        inner = schema[key]
        if inner is not None and isinstance(value, dict):
            problems += [_unknown(str(path), f"{key}.{name}", inner) for name in value if name not in inner]
            value = {name: item for name, item in value.items() if name in inner}
        layer.values[key] = value
    return layer, problems


def _unknown(where: str, key: str, names: Mapping[str, Any] | frozenset[str]) -> Problem:
    if looks_secret(key):
        return secret_key(where, key)
    return unknown_key(where, key, names)


class _UnreadableError(Exception):
    """Why a file cannot be used."""


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        if not path.is_file():
            raise _UnreadableError("it is not a file" if path.exists() else "there is no such file")
        if path.stat().st_size > _LARGEST_FILE:
            raise _UnreadableError(f"it is larger than {_LARGEST_FILE:,} bytes, which no configuration is")
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError as error:
        raise _UnreadableError(f"it is not UTF-8 text (byte {error.start}); save it as UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        raise _UnreadableError(f"it is not valid TOML: {error}") from error
    except OSError as error:
        raise _UnreadableError(f"it cannot be read: {error.strerror or error}") from error


def without_personal_keys(layer: Layer, beneath: Layer) -> list[Problem]:
    """Take out of a project's layer what a project may not decide, and say so for each.

    `beneath` is the user's file: a project may set `max_cost` only at or below what the user's file allows.
    """
    problems = []
    for key, value in list(layer.values.items()):
        why = PERSONAL.get(key) or _unsafe_value(key, value, beneath)
        if why:
            del layer.values[key]
            says = (
                f"a project's file may not set this: {why}. Set it in your own config.toml, "
                f"as {PREFIX}{key.upper()} or as an option, if you want it"
            )
            problems.append(Problem(layer.name, key, says))
    return problems


def _unsafe_value(key: str, value: Any, beneath: Layer) -> str:
    if key == "approve" and value != "ask":
        return 'it would let calls run unasked (only approve = "ask" is accepted here)'
    if key in {"model", "fallback_models"}:
        names = value if isinstance(value, list) else [value]
        if any("://" in str(name) for name in names):
            return "a model's name with an address in it decides where your key is sent"
        if any(str(name).startswith("scripted:") for name in names):
            return "a scripted model plays its file's calls under your approvals"
    if key == "max_cost":
        allowed = beneath.values.get("max_cost")
        if isinstance(allowed, int | float) and isinstance(value, int | float) and value > allowed:
            return f"it is more than the {allowed} USD of {beneath.name}"
    return ""
