"""Sources of settings: options, environment, the project's file, the user's file. Each becomes a layer.

A layer is a plain nested mapping with the place of each key; keys that are unknown or not allowed there are
left out and reported. The project's file comes with a checkout, perhaps a stranger's, so it cannot decide
things that only a person may: what runs unasked, which servers get keys and text, which folder keeps
sessions.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tui_agent import untrusted_files
from tui_agent.config.errors import Problem, nearest, secret_key, unknown_key
from tui_agent.core.names import BUDGET_KEYS
from tui_agent.secret_names import named_like_a_secret

PREFIX = "AGENT_TUI_"
PROJECT_FILE = ".agent-tui.toml"
_LARGEST_FILE = 1_000_000

Schema = Mapping[str, "frozenset[str] | None"]
"""Key → the keys of its section, or None for a plain value."""

PERSONAL: Mapping[str, str] = {
    "api_base": "it decides where your provider key and every message are sent",
    "hooks": "hooks are commands that run unasked",
    "agent": "it decides which program works in your folder",
    "agents": "agents are commands that run unasked",
    "keys": "it decides what your keys do",
    "format": "formatters are commands that run unasked",
    "web": "it decides which addresses of your network may be contacted",
    "notify": "it decides who is told of your runs, and by which command",
    "telemetry": "it decides who is sent what your runs do",
    "diagnostics": "checkers are commands that run unasked",
    "state_dir": "it decides where your sessions are written",
    "prices": "it decides what your limits on the cost are held against",
    "retention_days": "it decides when your sessions are deleted",
    "sandbox": "it decides what commands may write and reach",
    "environment": "it decides which of your secrets commands are given",
    "workspace": "the file is in the workspace it would choose",
}
"""Keys that only a person may set, each with the reason."""

_STEERS = "it decides where your key and every message are sent, or what a call may take"
IN_A_PROJECTS_PROFILE = frozenset({"model", "reasoning_effort", "temperature", "top_p", "seed"})
"""Keys that a project's file may set in a profile."""

LIMITS = (
    *BUDGET_KEYS,
    *("max_iterations", "timeout", "context_tokens", "wait_at_most"),
    *("parameters.max_tokens", "recovery.model_tries", "recovery.bad_output_retries", "recovery.shrinks"),
)
"""Bounds of a run's expense: a project may lower them, never raise them."""


@dataclass
class Layer:
    """One source: `values` nested by section; `places` names the place that set each key, for messages."""

    name: str
    values: dict[str, Any] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    base: Path | None = None
    """The folder that its relative paths start from; None: the current directory."""

    def place(self, key: str) -> str:
        """The place that set `key` (dotted in a section), in words that a person can follow."""
        return self.places.get(key) or self.places.get(key.partition(".")[0]) or self.name


def options_layer(overrides: Mapping[str, Any]) -> Layer:
    """Settings of the command line (or a caller), keys of a section as `section.key`; None means not set."""
    layer = Layer("options")
    for key, value in overrides.items():
        if value is None:
            continue
        section, _, name = key.rpartition(".")
        table = layer.values.setdefault(section, {}) if section else layer.values
        table[name] = value
        layer.places[key] = "--" + name.replace("_", "-")
    return layer


def environment_layer(environ: Mapping[str, str], schema: Schema) -> tuple[Layer, list[Problem]]:
    """`AGENT_TUI_KEY` and, in a section, `AGENT_TUI_SECTION__KEY`; lists and tables as JSON.

    A variable with our prefix that is near to none of ours is left alone: other programs may use the prefix.
    """
    layer, problems = Layer("environment"), []
    for variable, text in environ.items():
        if not variable.upper().startswith(PREFIX) or text == "":
            continue
        section, _, inner = variable[len(PREFIX) :].lower().partition("__")
        if section == MODEL_TABLE and inner in MODEL_KEYS:
            section, inner = MODEL_KEYS[inner], ""
        if section == "config" and not inner:
            continue
        if section not in schema or (inner and inner not in (schema[section] or ())):
            problem = _unknown_variable(variable, text, section, inner, schema)
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


def _unknown_variable(variable: str, text: str, section: str, inner: str, schema: Schema) -> Problem | None:
    if is_a_secret(section, text):
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


def is_a_secret(name: str, value: object) -> bool:
    """A number is none, whatever it is called (`max_tokens`)."""
    return named_like_a_secret(name) and not str(value).isdigit()


def _decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def file_layer(path: Path, schema: Schema) -> tuple[Layer, list[Problem]]:
    """A TOML file's keys. The file must exist; what cannot be read or parsed is a problem."""
    layer = Layer(str(path), base=path.parent)
    try:
        table, problems = _read_toml(path), []
    except _UnreadableError as unreadable:
        return layer, [Problem(str(path), "", str(unreadable))]
    if isinstance(table.get(MODEL_TABLE), dict):
        table, found = _without_model_table(str(path), table)
        problems += found
    for key, value in table.items():
        if key not in schema:
            problems.append(_unknown(str(path), key, value, schema))
            continue
        inner = schema[key]
        if inner is not None and isinstance(value, dict):
            problems += [
                _unknown(str(path), f"{key}.{name}", item, inner)
                for name, item in value.items()
                if name not in inner
            ]
            value = {name: item for name, item in value.items() if name in inner}
        layer.values[key] = value
    return layer, problems


MODEL_TABLE = "model"
MODEL_KEYS: Mapping[str, str] = {"name": "model", "on_limit": "on_limit", "wait_at_most": "wait_at_most"}
"""Keys of the table `[model]`, and the settings that they are."""


def _without_model_table(where: str, table: dict[str, Any]) -> tuple[dict[str, Any], list[Problem]]:
    """The settings with those of `[model]` among them: `on_limit` in the table is `on_limit` beside it."""
    inner: dict[str, Any] = table[MODEL_TABLE]
    problems = [
        _unknown(where, f"{MODEL_TABLE}.{key}", inner[key], MODEL_KEYS) for key in inner.keys() - MODEL_KEYS
    ]
    rest = {key: value for key, value in table.items() if key != MODEL_TABLE}
    return {**rest, **{name: inner[key] for key, name in MODEL_KEYS.items() if key in inner}}, problems


def _unknown(where: str, key: str, value: object, names: Iterable[str]) -> Problem:
    if is_a_secret(key, value):
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
        return tomllib.loads(untrusted_files.content(path, _LARGEST_FILE).decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise _UnreadableError(f"it is not UTF-8 text (byte {error.start}); save it as UTF-8") from error
    except ValueError as error:  # also a number of thousands of digits
        raise _UnreadableError(f"it is not valid TOML: {error}") from error
    except RecursionError as error:
        raise _UnreadableError("it is nested too deeply; no key has more than three levels") from error
    except OSError as error:
        raise _UnreadableError(f"it cannot be read: {error.strerror or error}") from error


def without_personal_keys(layer: Layer, user: Layer, defaults: Mapping[str, Any]) -> list[Problem]:
    """Take out of a project's layer what a project may not decide, and say so for each.

    Limits may be lower than the user's file (else the default) has them, never higher.
    """
    problems = _steering_keys(layer, user)
    for key, value in list(layer.values.items()):
        why = PERSONAL.get(key) or unsafe_value(key, value)
        if why:
            del layer.values[key]
            problems.append(_not_a_projects(layer, key, why))
    recovery = layer.values.get("recovery")
    if isinstance(recovery, dict) and "advisor" in recovery:
        del recovery["advisor"]
        why = "it decides which further model is paid for and reads what you work on"
        problems.append(_not_a_projects(layer, "recovery.advisor", why))
    rules = layer.values.get("permissions")
    if isinstance(rules, dict) and "allow" in rules:
        del rules["allow"]
        why = "a checkout may only narrow what you permit, by `ask` and `deny`"
        problems.append(_not_a_projects(layer, "permissions.allow", why))
    if isinstance(rules, dict) and rules.get("reads", "ask") != "ask":
        del rules["reads"]
        why = "a checkout may only narrow what you permit, by `ask`"
        problems.append(_not_a_projects(layer, "permissions.reads", why))
    for key in LIMITS:
        section, _, name = key.rpartition(".")
        table, users = (each.values.get(section, {}) if section else each.values for each in (layer, user))
        if not isinstance(table, dict) or name not in table:
            continue
        own = users.get(name) if isinstance(users, Mapping) else None
        where = user.place(key) if own is not None else "the default"
        why = _above(table[name], defaults[key] if own is None else own, where)
        if why:
            del table[name]
            problems.append(_not_a_projects(layer, key, why))
    return problems


def _not_a_projects(layer: Layer, key: str, why: str) -> Problem:
    variable = PREFIX + key.upper().replace(".", "__")
    ways = variable if "." in key else f"{variable} or as an option"
    says = (
        f"a project's file may not set this: {why}. Set it in your own config.toml, as {ways}, if you want it"
    )
    return Problem(layer.name, key, says)


def _steering_keys(layer: Layer, user: Layer) -> list[Problem]:
    """Take what steers keys, traffic or expense out of a project's profiles."""
    problems = []
    profiles, own = (each.values.get("profiles") for each in (layer, user))
    for name, table in profiles.items() if isinstance(profiles, dict) else ():
        for key, value in list(table.items()) if isinstance(table, dict) else ():
            why = "" if key in IN_A_PROJECTS_PROFILE else _STEERS
            if key == "model" and not why:
                users = isinstance(own, dict) and name in own
                why = f"{_STEERS} (your own file has this profile)" if users else unsafe_value(key, value)
            if why:
                del table[key]
                problems.append(_not_a_projects(layer, f"profiles.{name}.{key}", why))
    return problems


def _above(value: Any, limit: Any, where: str) -> str:
    """Why a limit may not be this; "" for one that may. What is no number counts as none."""
    if limit is None:
        return ""
    try:
        # Quoted numbers are numbers too by the time they count.
        return "" if float(value) <= float(limit) else f"it is more than {limit} ({where})"
    except (TypeError, ValueError, OverflowError):
        return f"it is no number up to {limit} ({where})"


def unsafe_value(key: str, value: Any) -> str:
    """The reason why a checkout may not give a setting this value; "" if it may."""
    if key == "approve" and value not in {"ask", "plan"}:
        return 'it would let calls run unasked (only approve = "ask" and "plan" are accepted here)'
    if key == "mcp" and value is not False:
        return "it would start servers that you switched off (only mcp = false is accepted here)"
    if key in {"model", "fallback_models", "summary_model", "aliases", "fallbacks"}:
        names = _listed(value)
        if any("://" in str(name) for name in names):
            return "a model's name with an address in it decides where your key is sent"
        if any(str(name).startswith("scripted:") for name in names):
            return "a scripted model plays its file's calls under your approvals"
    return ""


def _listed(value: Any) -> list[Any]:
    """All the names in a name, a list or a table of them."""
    if isinstance(value, dict | list):
        return [
            name for part in (value.values() if isinstance(value, dict) else value) for name in _listed(part)
        ]
    return [value]
