"""How keys are written in `[keys]`, and which no action can have.

Terminals send some keys as others; texts, lists and cards need some for themselves.
"""

from __future__ import annotations

import re

_FORM = re.compile(r"(?:(?:ctrl|alt|shift)\+)*(?:f\d{1,2}|[a-z][a-z_]*|\S)")
_SAME: dict[str, str] = {
    "ctrl+i": "Tab",
    "ctrl+m": "Enter",
    "ctrl+h": "Backspace",
    "ctrl+left_square_bracket": "Esc",
    "ctrl+[": "Esc",
    "ctrl+space": "Ctrl+@",
}
"""Keys that a terminal sends as another one."""
_NEEDED: dict[str, str] = {
    "ctrl+c": "copies, or interrupts what runs",
    "ctrl+j": "breaks the line in the prompt",
    "ctrl+p": "opens the command palette",
    "alt+up": "takes a queued message back",
    "alt+enter": "breaks the line in the prompt",
    **dict.fromkeys(("enter", "shift+enter", "space", "tab", "shift+tab"), "is needed in texts and choices"),
    **dict.fromkeys(("backspace", "delete", "insert"), "edits texts"),
    **dict.fromkeys(
        ("up", "down", "left", "right", "home", "end", "pageup", "pagedown"), "moves in texts and lists"
    ),
}
ESCAPE = "escape"
MOST_F = 24


def written(key: str) -> str:
    """A key in the one way in which it is compared: small letters, `ctrl+alt+shift+` in this order."""
    *modifiers, name = key.strip().lower().rsplit("+", 1) if key.strip() != "+" else ["+"]
    given = modifiers[0].split("+") if modifiers else []
    order = ("ctrl", "alt", "shift")
    return "+".join(
        [*(each for each in order if each in given), *(each for each in given if each not in order), name]
    )


REPLAY = "replay-"
"""How the names of the replay's actions begin. It has no prompt, so that its keys may be letters."""
_REPLAY_KEYS = frozenset({"space", "left_square_bracket", "right_square_bracket"})
"""Keys that are no letters and that only the replay may have."""
_PANE_KEYS = frozenset("cgjknoswN")
"""Letters that panes use, in the replay too."""


def key_problem(key: str, action: str = "") -> str:
    """The reason why an action cannot have this key; "" if it can. The key is as `written` gives it."""
    *modifiers, name = key.split("+")
    if action.startswith(REPLAY) and key in _PANE_KEYS:
        return f"the panes have {key} for themselves"
    if action.startswith(REPLAY) and (key in _REPLAY_KEYS or (len(key) == 1 and key.isprintable())):
        return ""
    if not _FORM.fullmatch(key):
        return f"{key!r} is no key; write one as f11, ctrl+t or alt+x"
    if key in _SAME:
        return f"{key} reaches a program as {_SAME[key]}: terminals send the same for both"
    if key in _NEEDED:
        return f"{key} {_NEEDED[key]}"
    if name[:1] == "f" and name[1:].isdigit():
        return "" if 1 <= int(name[1:]) <= MOST_F else f"terminals have no key {name}"
    if not modifiers or modifiers == ["shift"]:
        return "" if key == ESCAPE else f"{key} alone is what you type; use a function key, ctrl+ or alt+"
    if {"ctrl", "shift"} <= set(modifiers) and len(name) == 1:
        return (
            f"{key} reaches a program as {key.replace('shift+', '')}: most terminals send the same for both"
        )
    if "ctrl" in modifiers and len(name) == 1 and not name.isalpha():
        return f"{key} is not sent by terminals; ctrl+ goes with letters"
    return ""
