"""Every setting as a row: its value as it is shown, its source, its meaning, and the values that are allowed.

Made from the schema. A value that could be a secret is never shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, get_args
from urllib.parse import urlsplit

from pydantic import BaseModel, ValidationError

from tui_agent.config.field_notes import field_notes
from tui_agent.config.profiles import FallbackSettings, ModelParameters
from tui_agent.config.sections import (
    ConsoleSettings,
    EnvironmentSettings,
    NotifySettings,
    RecoverySection,
    SandboxSettings,
    TelemetrySettings,
    WebSettings,
)
from tui_agent.config.settings import Settings, in_words
from tui_agent.core.names import BUDGET_KEYS
from tui_agent.core.recovery.policy import RecoveryPolicy, preset
from tui_agent.secret_names import named_like_a_secret

GROUPS: Mapping[str, tuple[str, ...]] = {
    "model": (
        *("model", "profile", "api_base", "fallback_models", "summary_model", "tool_calls", "model_timeout"),
        *("on_limit", "wait_at_most", "context_tokens", "compact_at"),
    ),
    "run": ("policy", "approve", "step", "max_iterations", "command_timeout", "workspace"),
    "budgets": (*BUDGET_KEYS, "budget_warning"),
    "console": ("theme", "vim", "glyphs", "motion", "captions", "plain"),
    "sessions": ("state_dir", "retention_days", "mcp"),
    "agent-tui run": ("output", "on_escalation", "timeout"),
    "replay": ("speed",),
}
"""The keys outside of sections; those that only make sense as an option of one start are left out."""
OPTIONS_ONLY = frozenset({"at", "run", "print_only"})
SECTIONS: Mapping[str, type[BaseModel]] = {
    "parameters": ModelParameters,
    "fallbacks": FallbackSettings,
    "recovery": RecoveryPolicy,
    "sandbox": SandboxSettings,
    "web": WebSettings,
    "notify": NotifySettings,
    "telemetry": TelemetrySettings,
    "console": ConsoleSettings,
    "environment": EnvironmentSettings,
}
"""Sections whose keys are values, with the model that documents them."""
ELSEWHERE: Mapping[str, str] = {
    "permissions": "/permissions shows and changes the rules",
    "keys": "/keys shows and changes them",
    "theme": "/theme shows them",
}
"""Tables that have a screen of their own; others are edited as they stand in the file."""
EXAMPLES: Mapping[str, str] = {
    "profiles": '[profiles.here]\nmodel = "openai/qwen3"\napi_base = "http://127.0.0.1:8080/v1"\ntemperature = 0.2',
    "prices": '[prices."openai/qwen3"]\nprompt = 0.2\ncompletion = 0.8\ncached = 0.05',
    "aliases": '[aliases]\nfast = "gemini/gemini-2.5-flash"',
    "hooks": '[[hooks.PreToolUse]]\nmatcher = "bash"\nhooks = [{ type = "command", command = "./check.sh" }]',
    "format": '[format]\n"*.py" = ["ruff", "format", "-q", "{path}"]',
    "diagnostics": '[diagnostics]\n"*.py" = ["ruff", "check", "-q", "--output-format", "concise", "{path}"]',
    "recovery.hints": '[[recovery.hints]]\npattern = "relation .* does not exist"\nhint = "Migrate first."',
}
"""An example of each table."""


@dataclass(frozen=True)
class SettingRow:
    """One setting. `key` is `section.name` in a section; "" as a value is none."""

    key: str
    group: str
    note: str
    value: str
    default: str
    origin: str
    choices: tuple[str, ...]
    """The values that are allowed, if they are few."""

    @property
    def edited(self) -> str:
        """The way in which it is edited, if not as a value."""
        return ELSEWHERE.get(self.key) or ("a table, edited as TOML" if self.group == "tables" else "")

    @property
    def is_table(self) -> bool:
        """Edited as a TOML text."""
        return self.key in EXAMPLES

    @property
    def is_set(self) -> bool:
        return self.origin != "default"


class SettingError(ValueError):
    """A value that a setting does not take; the message says what is allowed."""


def setting_rows(settings: Settings) -> Iterator[SettingRow]:
    """Every setting of the schema, group by group."""

    def row(key: str, group: str, note: str, value: str, default: str = "", kind: Any = None) -> SettingRow:
        return SettingRow(key, group, note, value, default, settings.origin(key), _choices(kind))

    notes = field_notes(Settings)
    defaults = Settings(workspace=settings.workspace)
    listed = {key for keys in GROUPS.values() for key in keys} | OPTIONS_ONLY
    plain = tuple(name for name in Settings.model_fields if name not in listed and not _is_table(name))
    for group, keys in (*GROUPS.items(), ("other", plain)):
        for key in keys:
            value, default = (shown(key, getattr(each, key)) for each in (settings, defaults))
            yield row(key, group, notes.get(key, ""), value, default, Settings.model_fields[key].annotation)
    for section, model in SECTIONS.items():
        about = field_notes(model)
        policy = preset(settings.policy) if section == "recovery" else None
        for name, field in model.model_fields.items():
            if name == "name":
                continue
            usual = field.get_default(call_default_factory=True) if policy is None else getattr(policy, name)
            given = getattr(getattr(settings, section), name)
            value, default = shown(name, usual if given is None else given), shown(name, usual)
            key = f"{section}.{field.alias or name}"
            yield row(key, section, about.get(name, ""), value, default, field.annotation)
    for name in Settings.model_fields:
        if _is_table(name) and name not in SECTIONS:
            table = getattr(settings, name)
            note = notes.get(name, "") or " ".join((type(table).__doc__ or "").split())
            yield row(name, "tables", note, _counted(table))
    patterns = ", ".join(hint.pattern for hint in settings.recovery.hints)
    yield row("recovery.hints", "tables", field_notes(RecoverySection)["hints"], patterns)


def toml_value(key: str, text: str) -> Any:
    """The text in the file for a value as it was typed; None: nothing, the default holds. Raises
    `SettingError`.
    """
    if not text.strip():
        return None
    section, _, name = key.rpartition(".")
    listed = (
        isinstance(_default_of(key), tuple)
        and text.lstrip()[:1] != "["
        and [part.strip() for part in text.split(",") if part.strip()]
    )
    value = listed or text.strip()
    try:
        settings = Settings.model_validate({section: {name: value}} if section else {name: value})
    except ValidationError as error:
        finding = error.errors(include_url=False, include_context=False)[0]
        raise SettingError(f"{key} {in_words(finding)}.") from error
    table = getattr(settings, section) if section else settings
    fields = {field.alias or each: each for each, field in type(table).model_fields.items()}
    return _plain(getattr(table, fields[name]))


def _default_of(key: str) -> Any:
    section, _, name = key.rpartition(".")
    fields = (SECTIONS[section] if section else Settings).model_fields
    field = next(field for each, field in fields.items() if name in {each, field.alias})
    return field.get_default(call_default_factory=True)


def shown(name: str, value: Any) -> str:
    """A value as text. Of a secret, that there is one; of an address, no password."""
    plain = _plain(value)
    if (
        name not in RecoveryPolicy.model_fields
        and named_like_a_secret(name)
        and isinstance(plain, str)
        and plain
    ):
        return "(set)"
    if isinstance(plain, str) and "://" in plain:
        parts = urlsplit(plain)
        return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    if plain is None:
        return ""
    if isinstance(plain, bool):
        return str(plain).lower()
    if isinstance(plain, list):
        return ", ".join(str(each) for each in plain)
    return f"{plain:g}" if isinstance(plain, float) else str(plain)


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Path):
        return str(value)
    return [_plain(each) for each in value] if isinstance(value, tuple | list | frozenset) else value


def _is_table(name: str) -> bool:
    return isinstance(Settings.model_fields[name].get_default(call_default_factory=True), dict | BaseModel)


def _counted(table: Any) -> str:
    given = table if isinstance(table, dict) else table.model_dump(exclude_defaults=True)
    return ", ".join(str(name) for name in given)


def _choices(kind: Any) -> tuple[str, ...]:
    """The values that are allowed, if they are few; () if any value of a kind is."""
    if kind is bool:
        return ("true", "false")
    if isinstance(kind, type) and issubclass(kind, Enum):
        return tuple(str(member.value) for member in kind)
    parts = [part for part in get_args(kind) if part is not type(None)]
    if len(parts) == 1 and not isinstance(parts[0], str):
        return _choices(parts[0]) if type(None) in get_args(kind) else ()
    return tuple(parts) if parts and all(isinstance(part, str) for part in parts) else ()
