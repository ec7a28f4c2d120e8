"""What another agent offers the operator: its mode, its model, options of its own, and slash commands.

Newer agents tell all of these as options; older ones have modes, and models, with methods of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from tui_agent.core.events import AgentOffered
from tui_agent.core.values import AgentChoice, AgentCommand, AgentOption
from tui_agent.formats.importers.values import text_at, value_at
from tui_agent.terminal_text import one_line

KINDS = frozenset({"available_commands_update", "current_mode_update", "config_option_update"})
"""Updates that may come while no turn goes on."""
_MOST = 500
"""Options, values and commands of each that are taken."""
_ON, _OFF = "on", "off"
_Method = Literal["session/set_config_option", "session/set_mode", "session/set_model"]


class Change(NamedTuple):
    """The request that sets an option; all but the session's name."""

    method: _Method
    params: dict[str, Any]


class Offers:
    """What one session of the agent offers. `now` is that as an event."""

    def __init__(self) -> None:
        self._options: dict[str, AgentOption] = {}
        self._switches: set[str] = set()
        """Options that are on or off."""
        self._older: dict[str, tuple[_Method, str]] = {}
        """Options with a method of their own, and the name of its parameter."""
        self._commands: tuple[AgentCommand, ...] = ()

    @property
    def now(self) -> AgentOffered:
        return AgentOffered(options=tuple(self._options.values()), commands=self._commands)

    def begin(self, opened: object) -> None:
        """Take what a session begins with; what an update has told already is newer."""
        if not self._options:
            self._take_options(value_at(opened, "configOptions"))
            self._take_older(opened)

    def update(self, update: dict[str, Any]) -> None:
        """Take one of the updates of `KINDS`."""
        match update.get("sessionUpdate"):
            case "available_commands_update":
                self._commands = tuple(_commands(update.get("availableCommands")))
            case "current_mode_update":
                mode = next((one for one in self._options.values() if one.kind == "mode"), None)
                if mode is not None:
                    self._set(mode, _id(update, "currentModeId"))
            case "config_option_update":
                self._take_options(update.get("configOptions"))

    def change(self, option: AgentOption, value: str) -> Change:
        """The request that gives an option this value."""
        if option.id in self._older:
            method, parameter = self._older[option.id]
            return Change(method, {parameter: value})
        params: dict[str, Any] = {"configId": option.id, "value": value}
        if option.id in self._switches:
            params |= {"type": "boolean", "value": value == _ON}
        return Change("session/set_config_option", params)

    def changed(self, option: AgentOption, value: str, answer: object) -> None:
        """An option has this value now; the answer may tell all of them anew."""
        told = value_at(answer, "configOptions")
        if isinstance(told, list):
            self._take_options(told)
        else:
            self._set(option, value)

    def _set(self, option: AgentOption, value: str) -> None:
        self._options[option.id] = option.with_values({"value": value})

    def _take_options(self, told: object) -> None:
        if not isinstance(told, list):
            return
        older = [self._options[one] for one in self._older if one in self._options]
        read = [found for one in told[:_MOST] if (found := _option(one)) is not None]
        kinds = {one.kind for one in read}
        self._options = {one.id: one for one in (*(one for one in older if one.kind not in kinds), *read)}
        self._switches = {_id(one, "id") for one in told if value_at(one, "type") == "boolean"}
        for one in read:
            self._older.pop(one.id, None)

    def _take_older(self, opened: object) -> None:
        told: tuple[tuple[str, _Method, str, str, str], ...] = (
            ("mode", "session/set_mode", "modes", "modeId", "id"),
            ("model", "session/set_model", "models", "modelId", "modelId"),
        )
        for kind, method, key, parameter, name in told:
            listed = value_at(opened, key, f"available{key.capitalize()}")
            known = any(one.kind == kind for one in self._options.values())
            if isinstance(listed, list) and listed and not known:
                choices = tuple(filter(None, (_choice(one, name) for one in listed[:_MOST])))
                now = _id(value_at(opened, key), f"current{kind.capitalize()}Id")
                self._options[kind] = AgentOption(
                    id=kind, name=kind.capitalize(), kind=kind, value=now, choices=choices
                )
                self._older[kind] = method, parameter


def _option(told: object) -> AgentOption | None:
    identity = _id(told, "id")
    if not identity:
        return None
    name = _line(told, "name", 80) or one_line(identity, 80)
    kind = _line(told, "category", 40)
    if value_at(told, "type") == "boolean":
        on, off = AgentChoice(value=_ON, name=_ON), AgentChoice(value=_OFF, name=_OFF)
        now = _ON if value_at(told, "currentValue") is True else _OFF
        return AgentOption(id=identity, name=name, kind=kind, value=now, choices=(on, off))
    choices = tuple(filter(None, (_choice(one, "value") for one in _listed(value_at(told, "options")))))
    return AgentOption(
        id=identity, name=name, kind=kind, value=_id(told, "currentValue"), choices=choices[:_MOST]
    )


def _listed(told: object) -> Iterator[object]:
    """The values of an option; those of groups, too."""
    for one in told[:_MOST] if isinstance(told, list) else ():
        inner = value_at(one, "options")
        yield from inner[:_MOST] if isinstance(inner, list) else (one,)


def _choice(told: object, key: str) -> AgentChoice | None:
    value = _id(told, key)
    if not value:
        return None
    name = _line(told, "name", 120) or one_line(value, 120)
    return AgentChoice(value=value, name=name, about=_line(told, "description", 200))


def _commands(told: object) -> Iterator[AgentCommand]:
    for one in told[:_MOST] if isinstance(told, list) else ():
        name = _line(one, "name", 120).removeprefix("/")
        if name:
            hint = one_line(text_at(one, "input", "hint"), 60)
            yield AgentCommand(name=name, about=_line(one, "description", 200), hint=hint)


def _id(told: object, key: str) -> str:
    """A name that goes back to the agent as it is; "" for one that could not be shown."""
    found = text_at(told, key)
    return found if found.isprintable() and len(found) <= 400 else ""


def _line(told: object, key: str, length: int) -> str:
    return one_line(text_at(told, key), length)
