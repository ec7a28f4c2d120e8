"""The subject of an approval, in words."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tui_agent.frontend.lines.passages import GAP, Choice, Passage, diff_passages, numbered
from tui_agent.terminal_text import one_line

if TYPE_CHECKING:
    from tui_agent.core.events import HeldFile

KEEP = (
    Choice("t", "take back", "deny"),
    Choice("k", "keep (this once)", "once"),
    Choice("s", "show", "show"),
)
"""Choices for files that a command left; the first holds if nothing else is chosen."""


def held_title(held: Sequence[HeldFile]) -> str:
    """The question about them."""
    return (
        "Keep what the command left?" if len(held) == 1 else f"Keep {len(held)} files that the command left?"
    )


def held_files(held: Sequence[HeldFile]) -> Iterable[Passage]:
    """Each file with the program that would run it, and the first line of it that is new."""
    for file in held:
        line = f" · line {file.number}: {one_line(file.line, 160)}" if file.line else ""
        yield Passage(f"{one_line(file.path, 200)} · {one_line(file.why, 200)}{line}", "code")
    what = "It is" if len(held) == 1 else "They are"
    yield Passage(f"{what} out of the way until you answer; no answer takes back.", "muted")


def held_whole(held: Sequence[HeldFile]) -> Iterable[Passage]:
    """Each of them from its first line to its last, with the numbers of its lines."""
    for file in held:
        yield Passage(f"{one_line(file.path, 200)}:", "bold")
        yield from numbered(file.text.removesuffix("\n"), always=True)


def subject(preview: str, arguments: Mapping[str, Any]) -> Iterable[Passage]:
    """The preview, then every argument that it does not show in full: text as text, line by line."""
    command = arguments.get("command")
    if isinstance(command, str) and command and preview.startswith(command):
        yield from numbered(command)
        rest = preview[len(command) :].strip("\n")
        yield from [Passage(rest, "muted")] if rest else []
    elif preview:
        yield from diff_passages(preview.rstrip("\n"))
    hidden = {name: value for name, value in arguments.items() if not _shown(value, preview)}
    if hidden and preview:
        yield GAP
    for name, value in hidden.items():
        label = one_line(name, 60)
        text = (
            value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False, default=str)
        )
        if "\n" in text:
            yield Passage(f"{label}:", "bold")
            yield from numbered(text)
        else:
            yield Passage(f"{label}: {text}", "code", verbatim=True)
    if not hidden and not preview:
        yield Passage("No arguments.", "muted")


def _shown(value: object, preview: str) -> bool:
    """True if every line of `value` stands in the preview: as it is, or as a line of a diff."""
    if not preview or not isinstance(value, str | int | float):
        return False
    text = str(value)
    if text in preview:
        return True
    lines = {line[1:] for line in preview.split("\n")}
    return all(line in lines for line in text.split("\n") if line)
