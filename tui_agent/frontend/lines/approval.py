"""What an approval asks about, in words."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from tui_agent.frontend.lines.passages import GAP, Passage, diff_passages, numbered
from tui_agent.terminal_text import one_line

if TYPE_CHECKING:
    pass


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
    """Whether every line of `value` stands in the preview: as it is, or as a line of a diff."""
    if not preview or not isinstance(value, str | int | float):
        return False
    text = str(value)
    if text in preview:
        return True
    lines = {line[1:] for line in preview.split("\n")}
    return all(line in lines for line in text.split("\n") if line)
