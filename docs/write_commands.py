"""Writes docs/reference/COMMANDS.md from the commands themselves; with --check says if it is current."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tui_agent.frontend.commands.command import key_label
from tui_agent.frontend.commands.registry import COMMANDS, AnyCommand

TARGET = Path(__file__).with_name("reference") / "COMMANDS.md"
HEAD = """\
# Commands

<!-- Written by docs/write_commands.py from the classes in tui_agent/frontend/commands. Do not edit. -->

A line that begins with `/` is a command. An argument in brackets may be left out. `/keys` gives commands other keys.
*both*: in the console and in lines (`--plain`); *screen*: in the console alone. *replay*: over a saved session too.

| command | key | does | where |
|---|---|---|---|
"""


def page() -> str:
    """Give the page as it is now."""
    return HEAD + "".join(_row(command) for command in COMMANDS)


def _row(command: AnyCommand) -> str:
    usage, words = (text.replace("|", "\\|") for text in (command.usage, command.help))
    where = ("screen" if command.screen else "both") + (", replay" if command.replay else "")
    return f"| `{usage}` | {key_label(command.key)} | {words} | {where} |\n"


def main(arguments: list[str]) -> int:
    """Write, or check."""
    if "--check" not in arguments:
        TARGET.write_text(page(), "utf-8")
        return 0
    if TARGET.is_file() and TARGET.read_text("utf-8") == page():
        return 0
    sys.stderr.write("docs/reference/COMMANDS.md is not current: run `python docs/write_commands.py`.\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
