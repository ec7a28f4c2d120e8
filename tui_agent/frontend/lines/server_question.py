"""The question of an MCP server in words: for leave to start, or for values, field by field."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from tui_agent.frontend.lines.passages import GAP, Choice, Passage
from tui_agent.terminal_text import one_line

if TYPE_CHECKING:
    from tui_agent.core.events import ServerAsked


TRUST = (
    Choice("y", "start it, also next time", "accept"),
    Choice("l", "not now", "cancel"),
    Choice("n", "never", "decline"),
)


OPEN = (
    Choice("y", "I have opened it", "accept"),
    Choice("n", "decline", "decline"),
    Choice("l", "not now", "cancel"),
)


FORM = (Choice("y", "answer", "accept"), Choice("n", "decline", "decline"), Choice("l", "not now", "cancel"))


class FieldError(ValueError):
    """A value does not fit its field; the message says what would."""


def subject(asked: ServerAsked) -> Iterable[Passage]:
    """The question, the address to open, the fields."""
    if asked.purpose == "trust":
        yield Passage(asked.message, verbatim=True)
        return
    yield Passage(f"The MCP server {asked.server} asks you:", "muted")
    yield Passage(asked.message, "bold")
    if asked.url:
        yield GAP
        yield Passage("It wants you to open this address in your browser, if you trust it:", "muted")
        yield Passage(asked.url, "code", verbatim=True)
    if asked.fields:
        yield GAP
    for name in asked.fields:
        yield Passage(f"{name}: {_kind(asked, name)}", "muted", indent=1)


def describe(asked: ServerAsked, name: str, place: int, count: int) -> str:
    """The line above the input: which field, what fits."""
    field = field_of(asked, name)
    about = one_line(str(field.get("description") or field.get("title") or ""), 200)
    number = f"{place + 1} of {count} · " if count > 1 else ""
    return f"{number}{name}{f' · {about}' if about else ''} · {_kind(asked, name)}"


def _kind(asked: ServerAsked, name: str) -> str:
    field = field_of(asked, name)
    choices = field.get("enum")
    kind = " | ".join(map(str, choices)) if isinstance(choices, list) else str(field.get("type", "string"))
    return kind if name in asked.required else f"{kind}, may be left empty"


def field_of(asked: ServerAsked, name: str) -> Mapping[str, Any]:
    field = asked.fields.get(name)
    return field if isinstance(field, dict) else {}


def shown_value(value: object) -> str:
    return ("no", "yes")[value] if isinstance(value, bool) else str(value)


def read_value(asked: ServerAsked, name: str, text: str) -> str | int | float | bool | list[str] | None:
    """The typed text as the field wants it; None if it is left out. Raises `FieldError`."""
    field = field_of(asked, name)
    text = text.strip()
    if not text:
        if name in asked.required:
            raise FieldError(f"{name} must be given ({_kind(asked, name)}).")
        return None
    choices = field.get("enum")
    if isinstance(choices, list) and field.get("type") != "array":
        found = next((str(choice) for choice in choices if str(choice).lower() == text.lower()), None)
        if found is None:
            raise FieldError(f"{name} must be one of {', '.join(map(str, choices))}.")
        return found
    match field.get("type", "string"):
        case "boolean":
            return _boolean(name, text)
        case "integer" | "number":
            return _number(name, text, field)
        case "array":
            return [part.strip() for part in text.split(",") if part.strip()]
    shortest, longest = field.get("minLength", 0), field.get("maxLength", len(text))
    if not shortest <= len(text) <= longest:
        raise FieldError(f"{name} must have {shortest} to {longest} characters; it has {len(text)}.")
    return text


def _boolean(name: str, text: str) -> bool:
    if text.lower() in {"y", "yes", "true", "1"}:
        return True
    if text.lower() in {"n", "no", "false", "0"}:
        return False
    raise FieldError(f"{name} must be yes or no.")


def _number(name: str, text: str, field: Mapping[str, Any]) -> int | float:
    try:
        value = int(text) if field.get("type") == "integer" else float(text)
    except ValueError:
        kind = "a whole number" if field.get("type") == "integer" else "a number"
        raise FieldError(f"{name} must be {kind}.") from None
    least, most = field.get("minimum", value), field.get("maximum", value)
    if not least <= value <= most:
        raise FieldError(f"{name} must be from {least} to {most}.")
    return value
