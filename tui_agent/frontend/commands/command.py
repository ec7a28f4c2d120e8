"""A command: its name, key, argument and help, and what it does, on one class.

Classes of commands are imported before the first paint, for keys and help. What `do` takes beyond that it imports.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import ClassVar, Generic, NamedTuple, TypeVar

Answer = str | Awaitable[str]
"""The words about a command's effect; empty: it shows by itself."""

Host_contra = TypeVar("Host_contra", contravariant=True)

keys_in_force: dict[str, str] = {}
"""Keys by the name of their command, as the operator chose them. There is one console in a process."""


class Completion(NamedTuple):
    """One line of the list of completions: what would stand in the prompt, how it is shown, and what it does."""

    text: str
    """Ends with a space if an argument must follow."""
    label: str
    help: str


_LABELS = {"escape": "Esc", "space": "Space", "left_square_bracket": "[", "right_square_bracket": "]"}


def key_label(key: str) -> str:
    """Give a key as it is written on the screen: `f10` is F10, `ctrl+p` is ^P."""
    if key in _LABELS:
        return _LABELS[key]
    if key.startswith("ctrl+"):
        return "^" + key.removeprefix("ctrl+").upper()
    return key.upper() if key[:1] == "f" and key[1:].isdigit() else key


class Command(Generic[Host_contra]):
    """One thing that the operator can ask for, of a host that can show it (`host.Host` and what is made of it)."""

    name: str
    help: str
    argument: ClassVar[str] = ""
    """How the argument is called in the help; in brackets if it may be left out."""
    values: ClassVar[tuple[str, ...]] = ()
    """Values of the argument, as far as they are the same everywhere."""
    key: str = ""
    """Textual's name of the key; shown by `key_label`."""
    replay: ClassVar[bool] = False
    """Also makes sense over a saved session."""
    early: ClassVar[bool] = False
    """Needs nothing to be open yet."""
    screen: ClassVar[bool] = False
    """Is about a screen, and means nothing in lines."""
    slash: ClassVar[bool] = True
    """Can be written in the prompt; else it is a key's alone, of the replay."""

    def do(self, host: Host_contra, argument: str) -> Answer:
        """Do it, and answer in words. Raises `ValueError` and `SessionError`, with what would be right."""
        raise NotImplementedError

    def choices(self, host: Host_contra) -> Sequence[str]:
        """Give what the argument can be now. Raises `ValueError` if nothing is open."""
        return self.values

    @property
    def pressed(self) -> str:
        """The key that is in force; empty: none."""
        return keys_in_force.get(self.name, self.key)

    @property
    def shown(self) -> str:
        """The key as it is written on the screen; without one, the slash command."""
        return key_label(self.pressed) if self.pressed else f"/{self.name}"

    @property
    def needs_argument(self) -> bool:
        """Without an argument the command means nothing."""
        return bool(self.argument) and not self.argument.startswith("[")

    @property
    def title(self) -> str:
        """How it is called in lists of keys."""
        return f"/{self.name}" if self.slash else self.name

    @property
    def usage(self) -> str:
        """`/name ARGUMENT`."""
        return f"/{self.name} {self.argument}".rstrip()


class ReplayKey(Command[object]):
    """A key of the replay, which has no prompt: it may be a letter (`config.keys.key_problem`)."""

    slash = False

    def __init__(self, name: str, words: str, key: str) -> None:
        self.name, self.help, self.key = name, f"Replay: {words}", key
