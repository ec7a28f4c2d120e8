"""A file of a command's that was taken back from programs outside: its name, the reason, and its effect.

`watch` takes it back; here are the values that say so, and what of a file an operator is shown.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tui_agent.sandbox.links_refused import FileState
from tui_agent.terminal_text import revealed_line

Kind = Literal[
    "obeyed", "rules", "pointer", "settings", "commondir", "alternates", "todo", "hook", "named", "shadow"
]

WHY: dict[Kind, str] = {
    "obeyed": "a program outside runs or obeys it by itself",
    "rules": "it holds the rules of this workspace",
    "pointer": "git would work with another folder",
    "settings": "git would run what they name, or look elsewhere",
    "commondir": "git would take its settings from another folder",
    "alternates": "git would look for objects elsewhere",
    "todo": "git would run the commands in it",
    "hook": "git would run it",
    "named": "a program outside runs it",
    "shadow": "it would run in the place of a program of the system, by PATH",
}
_FIRST_LINE = 120
"""Characters of what a file would have done that are shown."""
_SHOWN_WHOLE = 100_000
"""Bytes of a file up to which it can be shown, and so be asked about."""


@dataclass(frozen=True)
class OutOfTheWay:
    """A file as a command left it: text that can be shown whole, and be put there again."""

    place: Path
    left: FileState
    now: FileState
    """The content that stands there instead."""


@dataclass(frozen=True)
class TakenBack:
    """One thing that a command put somewhere, and that is as it was before."""

    path: str
    why: str
    kept: str = ""
    """The path of its copy."""
    line: str = ""
    """The first line of it that is new."""
    number: int = 0
    """The number of that line, from 1."""
    file: OutOfTheWay | None = None
    """The content that the operator may let stand after all."""

    def __str__(self) -> str:
        said = f": `{self.line}`" if self.line else ""
        return f"{self.path} ({self.why}{said}{f'; a copy is {self.kept}' if self.kept else ''})"


def new_line(before: FileState, form: FileState) -> tuple[int, str]:
    """Find the first line of a file that did not stand in it before, for people to read, and its number. "" of what is
    no text; a comment only if there is nothing else.
    """
    if form.kind == "link":
        return 0, revealed_line(f"a link to {os.fsdecode(form.content)}", _FIRST_LINE)
    if form.kind != "file" or not form.whole or b"\0" in form.content[:1000]:
        return 0, ""
    known = set(before.content.splitlines())
    lines = enumerate(form.content.splitlines(), 1)
    new = [(number, line.strip()) for number, line in lines if line not in known]
    telling = [(number, line) for number, line in new if line and line != b"{" and not line.startswith(b"#!")]
    acting = (one for one in telling if not one[1].startswith(b"#"))
    number, said = next(acting, telling[0] if telling else (0, b""))
    return number, revealed_line(said.decode("utf-8", "replace").replace("`", "'"), _FIRST_LINE)


def can_be_shown(form: FileState, before: FileState) -> bool:
    """Tell if an operator can be shown what would stand there. What a link leads to may change later."""
    if form.kind != "file" or not form.whole or len(form.content) > _SHOWN_WHOLE or b"\0" in form.content:
        return False
    try:
        form.content.decode()
    except UnicodeDecodeError:
        return False
    return before.kind in {"nothing", "file"} and before.whole
