"""Writes docs/reference/EVENTS.md from the event models: every event of a journal, its fields, and what they mean.

`python docs/write_events.py` writes the file, `--check` exits with 1 if it is not current. A test runs the check.
"""

from __future__ import annotations

import inspect
import re
import sys
from enum import StrEnum
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from pydantic import BaseModel

from tui_agent.config.field_notes import field_notes
from tui_agent.core import events

TARGET = Path(__file__).parent / "reference" / "EVENTS.md"

INTRODUCTION = f"""\
# Events

<!-- Written by docs/write_events.py from tui_agent/core/events and tui_agent/core/values.py. Do not edit. -->

A session is a folder with a journal, `events.jsonl`. Each line is one event, a JSON object. Lines are only ever
appended. Every pane, every counter and the model's history are made from the journal alone.

- A line begins with `seq`, `at`, `v` and `type`. `seq` counts from 1 without gaps. `at` is seconds since the epoch
  (UTC). `v` is the version of the schema, now **{events.SCHEMA_VERSION}**.
- The first event is `session_started`.
- A killed process may leave half a line at the end. It is dropped when the session is opened again, and a notice says
  so. Any other damage is named with its line, and nothing is skipped.
- Lines of older versions are converted while they are read; the file is not rewritten. A newer version is
  refused with the advice to update. Any change to the form of an event raises the version.
- Secrets are masked before an event is applied or written. The value of a variable named like a secret becomes
  `[masked:NAME]`. Well-known shapes become `[masked:github-token]` and the like. They are numbered
  (`[masked:github-token-2]`) where there are several.
- Texts are exactly what the model, a tool or the operator said. They must be cleaned before a terminal shows them.
"""


def document() -> str:
    """The whole document."""
    parts = [INTRODUCTION, "\n## Parts\n"]
    parts += [_model(model) for model in _values()]
    parts += [_enum(enum) for enum in _enums()]
    parts.append("\n## Events by type\n")
    parts += [_model(model, name) for name, model in events.EVENT_TYPES.items()]
    return "\n".join(parts).rstrip() + "\n"


def _values() -> list[type[BaseModel]]:
    """What events are made of; they are values themselves."""
    return [
        model
        for model in vars(events).values()
        if inspect.isclass(model)
        and issubclass(model, events.Value)
        and not issubclass(model, events.Event)
        and model is not events.Value
    ]


def _enums() -> list[type[StrEnum]]:
    return [
        enum
        for enum in vars(events).values()
        if inspect.isclass(enum) and issubclass(enum, StrEnum) and enum is not StrEnum
    ]


def _model(model: type[BaseModel], name: str = "") -> str:
    lines = [f"### `{name or model.__name__}`", "", _text(model.__doc__), ""]
    notes: dict[str, str] = {}
    for base in reversed(model.__mro__):
        if issubclass(base, events.Value):
            notes |= {name: note.replace("|", "\\|") for name, note in field_notes(base).items()}
    fields = {
        field: info for field, info in model.model_fields.items() if field not in {"seq", "at", "v", "type"}
    }
    if fields:
        lines += ["| field | type | default | |", "|---|---|---|---|"]
        for field, info in fields.items():
            default = "required" if info.is_required() else f"`{_value(info.default)}`"
            lines.append(f"| `{field}` | {_type(model, field)} | {default} | {notes.get(field, '')} |")
        lines.append("")
    return "\n".join(lines)


def _enum(enum: type[StrEnum]) -> str:
    values = ", ".join(f"`{member.value}`" for member in enum)
    return f"### `{enum.__name__}`\n\n{_text(enum.__doc__)}\n\n{values}\n"


def _type(model: type[BaseModel], field: str) -> str:
    for base in model.__mro__:
        annotation = inspect.get_annotations(base).get(field)
        if annotation is not None:
            text = str(annotation) if isinstance(annotation, str) else annotation.__name__
            return "`" + text.replace("|", "\\|") + "`"
    raise AssertionError(field)


def _value(default: Any) -> str:
    if isinstance(default, StrEnum):
        return default.value
    return '""' if default == "" else str(default)


def _text(doc: str | None) -> str:
    return re.sub(r"\s+", " ", doc or "").strip()


def main(arguments: list[str]) -> int:
    """Write, or check."""
    text = document()
    if "--check" not in arguments:
        TARGET.write_text(text, "utf-8")
        return 0
    if TARGET.exists() and TARGET.read_text("utf-8") == text:
        return 0
    sys.stderr.write("docs/reference/EVENTS.md is not current: run `python docs/write_events.py`.\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
