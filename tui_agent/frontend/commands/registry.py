"""Every command, once: slash commands, the palette, the key bindings, the hints, the help and its document are made
from this list. What each does stands on its class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tui_agent.frontend.commands import (
    choosing,
    lending,
    other_agent,
    panes,
    rewind,
    running,
    sessions,
    showing,
    tabs,
)
from tui_agent.frontend.commands.command import Command, Completion, ReplayKey, key_label, keys_in_force

AnyCommand = Command[Any]
ValuesOf = Callable[[AnyCommand], Sequence[str]]

BY_NAME: dict[str, AnyCommand] = {
    command.name: command
    for command in (
        showing.Help(),
        running.Auto(),
        running.Pause(),
        running.Step(),
        running.Interrupt(),
        running.SkipWait(),
        panes.Card(),
        running.Stop(),
        choosing.Policy(),
        choosing.Model(),
        other_agent.Agent(),
        other_agent.AgentMode(),
        choosing.Login(),
        choosing.Profile(),
        choosing.Approve(),
        running.Note(),
        choosing.Keys(),
        choosing.Settings(),
        choosing.Permissions(),
        lending.Skills(),
        showing.Context(),
        running.Check(),
        running.GoalInWords(),
        running.Compact(),
        choosing.Breaker(),
        lending.Playbook(),
        lending.Background(),
        lending.Mcp(),
        running.Unqueue(),
        running.Queue(),
        running.Image(),
        panes.Theme(),
        panes.Panes(),
        panes.View(),
        showing.Why(),
        showing.Plan(),
        panes.NextPane(),
        panes.Jump(),
        panes.Find(),
        showing.History(),
        showing.Editor(),
        choosing.Vim(),
        tabs.New(),
        tabs.Clear(),
        tabs.Tabs(),
        tabs.Tab(),
        tabs.NextTab(),
        tabs.Close(),
        tabs.Inbox(),
        showing.Status(),
        showing.Cost(),
        showing.Diff(),
        sessions.Title(),
        sessions.Sessions(),
        sessions.Fork(),
        rewind.Rewind(),
        rewind.Undo(),
        rewind.Redo(),
        sessions.Export(),
        showing.Copy(),
        showing.Suspend(),
        tabs.Quit(),
    )
}
"""In the order of lists."""

COMMANDS = BY_NAME.values()
REPLAY_ACTIONS = (
    ReplayKey("replay-play", "Play, or pause", "space"),
    ReplayKey("replay-error", "Next error; with Shift the one before", "e"),
    ReplayKey("replay-verdict", "Next verdict; with Shift the one before", "v"),
    ReplayKey("replay-escalation", "Next question; with Shift the one before", "x"),
    ReplayKey("replay-slower", "Slower", "left_square_bracket"),
    ReplayKey("replay-faster", "Faster", "right_square_bracket"),
    ReplayKey("replay-fork", "Fork from here", "f"),
)
BACKWARDS = ("replay-error-back", "replay-verdict-back", "replay-escalation-back")
"""Bindings of the replay that have the key of their action with Shift."""
BINDABLE = (*(command for command in COMMANDS if not command.needs_argument), *REPLAY_ACTIONS)
"""The effects that a key can have."""


def use_keys(chosen: Mapping[str, str]) -> list[str]:
    """Let commands have these keys, "" for none; a default key that was given away is free. What is wrong, in words."""
    notices = []
    taken: dict[str, str] = {}
    for name, key in chosen.items():
        if name not in {command.name for command in BINDABLE}:
            notices.append(_no_action(name))
        elif key in taken:
            notices.append(
                f"[keys] gives {key_label(key)} to {taken[key]} and to {name}; {taken[key]} has it."
            )
        elif key:
            taken[key] = name
    keys_in_force.clear()
    for command in (*COMMANDS, *REPLAY_ACTIONS):
        given = command.name in chosen
        mine = next((key for key, name in taken.items() if name == command.name), "")
        free = "" if command.key in taken else command.key
        keys_in_force[command.name] = mine if given else free
    return notices


def _no_action(name: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, [command.name for command in BINDABLE], n=1, cutoff=0.4)
    return f"[keys]: there is no action {name} that a key can have{f'; did you mean {near[0]}?' if near else '.'}"


def with_shift(key: str) -> str:
    """The keys of Textual that are a letter with Shift; "" for what is no letter."""
    return f"{key.upper()},shift+{key}" if len(key) == 1 and key.isalpha() else ""


def shown_key(name: str) -> str:
    """Give the key of a command as it is written on the screen; without one, its slash command."""
    return BY_NAME[name].shown


def suggestions(
    typed: str, values_of: ValuesOf, offered: Iterable[AnyCommand] = COMMANDS
) -> list[Completion]:
    """Completions of `typed`: commands of those that are offered while the name is open, values after it."""
    name, space, argument = typed.removeprefix("/").partition(" ")
    if not space:
        begins = [command for command in offered if command.name.startswith(name.lower())]
        within = [command for command in offered if name.lower() in command.name and command not in begins]
        return [_of_command(command) for command in (*begins, *within)]
    command = BY_NAME.get(name.lower())
    if command is None:
        return []
    values = values_of(command)
    if argument in values:
        return []
    fitting = [value for value in values if argument.lower() in value.lower()]
    return [Completion(f"/{command.name} {value}", value, "") for value in fitting]


def _of_command(command: AnyCommand) -> Completion:
    text = f"/{command.name} " if command.needs_argument else f"/{command.name}"
    key = f"  ({key_label(command.pressed)})" if command.pressed else ""
    return Completion(text, command.usage, command.help + key)
