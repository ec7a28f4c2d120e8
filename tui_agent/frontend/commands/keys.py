"""A key that acts in one place of the console: its name, what it does there, and how the help and the document say it.
Keys of commands stand on the commands (`registry`); they act everywhere. All keys of places are in `place_keys`.

A place binds its keys from here (`console.looks.command_keys.bindings`). A key without an action is read by the place
itself, since it is text as well.
"""

from __future__ import annotations

from typing import NamedTuple


class Key(NamedTuple):
    """One key, or several that do the same."""

    name: str
    """In its place: `conversation.next`."""
    keys: str
    """Textual's names, with commas between them."""
    does: str
    """The action of the place, as Textual writes one; empty: the place reads the key itself."""
    help: str
    first: bool = False
    """The key acts before the widget that has the focus."""
    label: str = ""
    """The keys as they are shown, if not by their names."""

    @property
    def shown(self) -> str:
        """The keys as they are written on the screen."""
        return self.label or " ".join(map(place_label, self.keys.split(",")))


class Place(NamedTuple):
    """A part of the console with keys of its own."""

    title: str
    keys: tuple[Key, ...]


_LABELS = {
    "escape": "Esc",
    "pageup": "PgUp",
    "pagedown": "PgDn",
    "less_than_sign": "<",
    "greater_than_sign": ">",
    "plus": "+",
    "minus": "-",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "underscore": "_",
}


def place_label(key: str) -> str:
    """Give a key as it is written on the screen: `ctrl+s` is ^S, `alt+up` is Alt+Up."""
    *modifiers, name = key.split("+")
    written = _LABELS.get(name) or (name.capitalize() if len(name) > 1 and name[0] != "/" else name)
    if "ctrl" in modifiers:
        modifiers.remove("ctrl")
        written = f"^{written.upper() if len(written) == 1 else written}"
    return "".join([*(f"{each.capitalize()}+" for each in modifiers), written])
