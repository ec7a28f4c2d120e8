"""The card of an MCP server: whether it may be started, or what it asks the operator for, field by field.

What a server asks for is its own wording, shown as it is; the values go to that server alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Input, Static

from tui_agent.console.cards.card import Card
from tui_agent.console.cards.card_body import GAP, CardBody, Passage
from tui_agent.console.cards.choices import Choice, Choices
from tui_agent.console.fields import LineField
from tui_agent.console.hints import key_line
from tui_agent.terminal_text import one_line, reveal

if TYPE_CHECKING:
    from textual import events
    from textual.widget import Widget

    from tui_agent.console.operator import ServerQuestion
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


class ServerCard(Card):
    """Fields are asked one after another: Enter takes the value, Esc goes back; the choices stand below."""

    DEFAULT_CSS = """
    ServerCard {
        & Input { display: none; margin-top: 1; background: $background; }
        & .card--field { display: none; color: $text-muted; height: auto; margin-top: 1; }
        &.-tight .card--field { margin-top: 0; }
        &.-asking Input, &.-asking .card--field { display: block; }
        &.-asking Choices { display: none; }
    }
    """

    question: ServerQuestion
    fixed_rows = 1

    def __init__(self, question: ServerQuestion) -> None:
        asked = question.asked
        name = one_line(asked.server, 40)
        title = f"Start {name}?" if asked.purpose == "trust" else f"{name} asks"
        super().__init__(question, title)
        self._names = list(asked.fields)
        self._place = 0
        self._values: dict[str, Any] = {}

    def compose(self) -> ComposeResult:
        asked = self.question.asked
        yield CardBody(list(subject(asked)))
        yield Choices(TRUST if asked.purpose == "trust" else OPEN if asked.url else FORM)
        yield Static("", classes="card--field", markup=False)
        yield LineField(compact=True)

    def way_back(self) -> Content:
        if not self.has_class("-asking"):
            return super().way_back()
        last = self._place + 1 == len(self._names)
        return key_line(("Enter", "send" if last else "next"), ("Esc", "back"), ("^C", "interrupt"))

    def entrance(self) -> Widget:
        """The field that is being asked, else the choices."""
        return self.query_one(Input if self.has_class("-asking") else Choices)

    def picked(self, value: str) -> None:
        if value == "accept" and not self.shows_all():
            return
        if value == "accept" and self._names:
            self._ask(0)
        else:
            self._reply(value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Take the value; after the last field the answer goes out."""
        event.stop()
        name = self._names[self._place]
        try:
            value = read_value(self.question.asked, name, event.value)
        except FieldError as error:
            self._say(str(error))
            return
        self._values.pop(name, None)
        if value is not None:
            self._values[name] = value
        if self._place + 1 < len(self._names):
            self._ask(self._place + 1)
        else:
            self._reply("accept", self._values)

    def on_key(self, event: events.Key) -> None:
        """Esc goes back a field, and from the first one to the choices."""
        if event.key == "escape" and self.has_class("-asking"):
            event.stop()
            event.prevent_default()
            if self._place:
                self._ask(self._place - 1)
            else:
                self.remove_class("-asking")
                self.query_one(Choices).focus()

    def _ask(self, place: int) -> None:
        self._place = place
        name = self._names[place]
        field = _field(self.question.asked, name)
        given = self._values.get(name, field.get("default", ""))
        entry = self.query_one(Input)
        entry.value = "" if given == "" else _shown(given)
        self.add_class("-asking")
        self._say(describe(self.question.asked, name, place, len(self._names)))
        self._show_hint()
        entry.focus()
        entry.select_all()  # what is typed replaces the default

    def _say(self, text: str) -> None:
        self.query_one(".card--field", Static).update(reveal(text))

    def _reply(self, decision: str, content: dict[str, Any] | None = None) -> None:
        from tui_agent.runtime.operator import ServerReply

        match decision:
            case "accept" | "decline" | "cancel":
                self.settle(ServerReply(decision, content))
            case _:
                raise ValueError(decision)


def subject(asked: ServerAsked) -> Iterable[Passage]:
    """What is asked, the address to open, the fields."""
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
    field = _field(asked, name)
    about = one_line(str(field.get("description") or field.get("title") or ""), 200)
    number = f"{place + 1} of {count} · " if count > 1 else ""
    return f"{number}{name}{f' · {about}' if about else ''} · {_kind(asked, name)}"


def _kind(asked: ServerAsked, name: str) -> str:
    field = _field(asked, name)
    choices = field.get("enum")
    kind = " | ".join(map(str, choices)) if isinstance(choices, list) else str(field.get("type", "string"))
    return kind if name in asked.required else f"{kind}, may be left empty"


def _field(asked: ServerAsked, name: str) -> Mapping[str, Any]:
    field = asked.fields.get(name)
    return field if isinstance(field, dict) else {}


def _shown(value: object) -> str:
    return ("no", "yes")[value] if isinstance(value, bool) else str(value)


def read_value(asked: ServerAsked, name: str, text: str) -> str | int | float | bool | list[str] | None:
    """What was typed as the field wants it; None where it is left out. Raises `FieldError`."""
    field = _field(asked, name)
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
