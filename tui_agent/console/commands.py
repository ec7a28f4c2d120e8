"""Every command once: its name, its key, its argument, what it does. Slash commands, the palette, the key
bindings, the hints and the help screen are all made from this list.

What a command does is a method of the deck it is given; nothing here touches a widget.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from tui_agent.console.completion import Suggestion

POLICIES = ("combined", "forge", "gigi", "funnelcanary", "hpd")
APPROVALS = ("ask", "writes", "all")


class Deck(Protocol):
    """What commands act on: the live deck, or the replay's, which has a part of it."""

    def theme_names(self) -> Sequence[str]: ...
    def tool_names(self) -> Sequence[str]: ...
    def pane_names(self) -> Sequence[str]: ...
    def set_auto(self) -> None: ...
    def pause(self) -> None: ...
    def step(self) -> None: ...
    def stop(self) -> Awaitable[None]: ...
    def interrupt(self) -> Awaitable[None]: ...
    def set_policy(self, name: str) -> None: ...
    def set_model(self, name: str) -> None: ...
    def set_approve(self, mode: str) -> None: ...
    def set_theme(self, name: str) -> None: ...
    def set_title(self, title: str) -> None: ...
    def edit_note(self, text: str) -> None: ...
    def set_breaker(self, argument: str) -> None: ...
    def take_back(self) -> None: ...
    def jump(self, pane: str) -> None: ...
    def toggle_panes(self) -> None: ...
    def next_pane(self) -> None: ...
    def show_sessions(self) -> Awaitable[None]: ...
    def fork(self) -> Awaitable[None]: ...
    def rewind(self, argument: str) -> Awaitable[None]: ...
    def export(self, argument: str) -> Awaitable[None]: ...
    def show_help(self) -> None: ...
    def quit(self) -> Awaitable[None]: ...


Run = Callable[[Deck, str], "Awaitable[None] | None"]


@dataclass(frozen=True)
class Command:
    """One thing that the operator can ask for."""

    name: str
    help: str
    run: Run
    argument: str = ""
    """How the argument is called in the help; in brackets where it may be left out."""
    choices: Callable[[Deck], Sequence[str]] | None = None
    key: str = ""
    """Textual's name of the key; shown by `key_label`."""
    hint: str = ""
    """One word for the line of hints; empty: not shown there."""
    replay: bool = False
    """Also makes sense over a saved session."""

    @property
    def needs_argument(self) -> bool:
        """Without an argument the command means nothing."""
        return bool(self.argument) and not self.argument.startswith("[")

    @property
    def usage(self) -> str:
        """`/name ARGUMENT`."""
        return f"/{self.name} {self.argument}".rstrip()


COMMANDS: tuple[Command, ...] = (
    Command(
        "help",
        "Keys, commands and what each pane means",
        lambda deck, _: deck.show_help(),
        key="f1",
        hint="help",
        replay=True,
    ),
    Command("auto", "Go on by itself", lambda deck, _: deck.set_auto(), key="f5", hint="auto"),
    Command("pause", "Pause after this iteration", lambda deck, _: deck.pause(), key="f6", hint="pause"),
    Command("step", "Run one iteration, then wait", lambda deck, _: deck.step(), key="f10", hint="step"),
    Command(
        "interrupt",
        "Interrupt the call or tool that runs; the run pauses, nothing is lost",
        lambda deck, _: deck.interrupt(),
        key="escape",
        hint="interrupt",
    ),
    Command("stop", "End the run with a partial answer", lambda deck, _: deck.stop()),
    Command(
        "policy",
        "Recovery policy of the next run",
        lambda deck, name: deck.set_policy(name),
        "NAME",
        lambda _: POLICIES,
    ),
    Command(
        "model",
        "Model of the next call, by its litellm name",
        lambda deck, name: deck.set_model(name),
        "NAME",
    ),
    Command(
        "approve",
        "What asks you first: ask (writes and commands), writes (commands only), all (nothing)",
        lambda deck, mode: deck.set_approve(mode),
        "MODE",
        lambda _: APPROVALS,
    ),
    Command(
        "note",
        "Edit the recovery note before it is sent; with a text: replace it; `drop`: send none",
        lambda deck, text: deck.edit_note(text),
        "[TEXT|drop]",
        key="f4",
    ),
    Command(
        "breaker",
        "Open or close a tool's circuit breaker by hand",
        lambda deck, argument: deck.set_breaker(argument),
        "TOOL open|close",
        lambda deck: [f"{tool} {what}" for tool in deck.tool_names() for what in ("open", "close")],
    ),
    Command(
        "unqueue", "Take the newest queued message back into the prompt", lambda deck, _: deck.take_back()
    ),
    Command(
        "theme",
        "Change the colours",
        lambda deck, name: deck.set_theme(name),
        "NAME",
        lambda deck: deck.theme_names(),
        replay=True,
    ),
    Command(
        "panes",
        "Show or hide the recovery panes",
        lambda deck, _: deck.toggle_panes(),
        key="f2",
        hint="panes",
        replay=True,
    ),
    Command(
        "next-pane", "Go to the next recovery pane", lambda deck, _: deck.next_pane(), key="f3", replay=True
    ),
    Command(
        "jump",
        "Jump to a pane",
        lambda deck, pane: deck.jump(pane),
        "[PANE]",
        lambda deck: deck.pane_names(),
        key="ctrl+o",
        hint="jump",
        replay=True,
    ),
    Command("title", "Name this session", lambda deck, title: deck.set_title(title), "TITLE"),
    Command("sessions", "Look through saved sessions", lambda deck, _: deck.show_sessions(), replay=True),
    Command(
        "fork",
        "Go on from here in a session of its own: what if policy, model, answer or note were another",
        lambda deck, _: deck.fork(),
        replay=True,
    ),
    Command(
        "rewind",
        "Go back: conversation, files or both; shows what would change. `undo` takes the newest one back",
        lambda deck, argument: deck.rewind(argument),
        "[undo]",
        lambda _: ("undo",),
    ),
    Command(
        "export",
        "Write the session to a file: markdown, html, json or messages",
        lambda deck, argument: deck.export(argument),
        "[FORMAT] [FILE]",
        lambda _: ("markdown", "html", "json", "messages"),
        replay=True,
    ),
    Command(
        "quit",
        "Leave; the session is kept",
        lambda deck, _: deck.quit(),
        key="ctrl+q",
        hint="quit",
        replay=True,
    ),
)

BY_NAME = {command.name: command for command in COMMANDS}


def key_label(key: str) -> str:
    """How a key is written on the screen: `f10` is F10, `ctrl+p` is ^P."""
    if key == "escape":
        return "Esc"
    if key.startswith("ctrl+"):
        return "^" + key.removeprefix("ctrl+").upper()
    return key.upper() if key[:1] == "f" and key[1:].isdigit() else key


class UnknownCommandError(Exception):
    """A slash command that is not there, or lacks its argument; the message says what would be right."""


class Invocation(NamedTuple):
    """A command and its argument, as typed."""

    command: Command
    argument: str


def parse(line: str) -> Invocation:
    """A line that begins with a slash. Raises `UnknownCommandError`."""
    name, _, argument = line.removeprefix("/").strip().partition(" ")
    command = BY_NAME.get(name.lower())
    if command is None:
        from difflib import get_close_matches

        near = get_close_matches(name.lower(), BY_NAME, n=1, cutoff=0.4)
        rest = f"Did you mean /{near[0]}?" if near else "/help lists the commands."
        raise UnknownCommandError(
            f"There is no command /{name}. {rest} To send a text that begins with a slash, put a space before it."
        )
    argument = argument.strip()
    if command.needs_argument and not argument:
        raise UnknownCommandError(f"/{command.name} needs an argument: {command.usage}. {command.help}.")
    return Invocation(command, argument)


def suggestions(deck: Deck, typed: str) -> list[Suggestion]:
    """What could complete `typed`: commands while the name is open, values after it."""
    name, space, argument = typed.removeprefix("/").partition(" ")
    if not space:
        begins = [command for command in COMMANDS if command.name.startswith(name.lower())]
        within = [command for command in COMMANDS if name.lower() in command.name and command not in begins]
        return [_of_command(command) for command in (*begins, *within)]
    command = BY_NAME.get(name.lower())
    if command is None or command.choices is None:
        return []
    values = command.choices(deck)
    if argument in values:
        return []
    fitting = [value for value in values if argument.lower() in value.lower()]
    return [Suggestion(f"/{command.name} {value}", value, "") for value in fitting]


def _of_command(command: Command) -> Suggestion:
    text = f"/{command.name} " if command.needs_argument else f"/{command.name}"
    key = f"  ({key_label(command.key)})" if command.key else ""
    return Suggestion(text, command.usage, command.help + key)
