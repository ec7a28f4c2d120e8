"""The keys of commands, as Textual binds them and as the last line shows them."""

from __future__ import annotations

from collections.abc import Sequence

from textual.binding import Binding, BindingType

from tui_agent.console.looks.hints import Hint
from tui_agent.frontend.commands.command import key_label
from tui_agent.frontend.commands.place_keys import PLACES
from tui_agent.frontend.commands.registry import BINDABLE, BY_NAME, AnyCommand

_OF_TABS = (("next-tab", "next tab"), ("inbox", "inbox"))
"""Commands that the last line shows too if there are several tabs, and their words."""


def no_key(command: AnyCommand) -> str:
    """Stands for the key of a command that has none: no terminal sends it."""
    return f"none_{command.name.replace('-', '_')}"


def command_bindings(*, replay: bool) -> list[BindingType]:
    """The registry's keys; Esc leaves the first word to whatever is open."""
    made: list[BindingType] = [
        Binding(
            command.key or no_key(command),
            # Esc closes what is open first.
            "interrupt" if command.name == "interrupt" else f"command('{command.name}')",
            command.help,
            show=False,
            priority=command.key != "escape",
            id=command.name,
        )
        for command in BINDABLE
        if command.slash and (command.replay or not replay)
    ]
    return [*made, *bindings("anywhere")]


def bindings(*places: str) -> list[BindingType]:
    """Bind the keys of these places, as far as they have an action."""
    return [
        Binding(key.keys, key.does, key.help, show=False, priority=key.first, id=f"{place}.{key.name}")
        for place in places
        for key in PLACES[place].keys
        if key.does
    ]


def closing(name: str, result: str = "None") -> BindingType:
    """Let the key of a command close what it has opened."""
    key = BY_NAME[name].key or no_key(BY_NAME[name])
    return Binding(key, f"dismiss({result})", "Back", show=False, priority=True, id=name)


def key_hints(*names: str) -> list[Hint]:
    """The hints of these commands, as far as they have a key."""
    pressed = [(name, BY_NAME[name].pressed) for name in names]
    return [Hint(key_label(key), name, key) for name, key in pressed if key]


def with_tabs(usual: Sequence[Hint]) -> list[Hint]:
    """The keys of the last line if there are several tabs."""
    there = {hint.key for hint in usual}
    pressed = [(BY_NAME[name].pressed, word) for name, word in _OF_TABS]
    more = (Hint(key_label(key), word, key) for key, word in pressed if key and key not in there)
    return [*usual[:1], *more, *usual[1:]]


def live_hints(way_out: str = "", *, under_way: bool = False, by_itself: bool = False) -> list[Hint]:
    """Of a live session: what can be done with the run, or how one is begun; then what can always be done.

    `way_out`: what Esc does first; empty: nothing that is to be said. `by_itself`: the run goes on without a key.
    """
    leads_out = [hint._replace(word=way_out) for hint in key_hints("interrupt") if way_out]
    if not under_way:
        now = [*leads_out, Hint("/", "commands", "/"), Hint("@", "files", "@")]
    elif by_itself:
        now = [*leads_out, *key_hints("pause", "step")]
    else:
        now = [*key_hints("auto", "step"), *leads_out]
    palette = Hint("^P", "palette", "ctrl+p")
    return [*key_hints("help"), *now, *key_hints("panes", "quit"), palette, *key_hints("jump", "find")]
