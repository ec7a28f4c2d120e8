"""Writes the tables of keys in docs/CONSOLE.md from the registry of commands and the keys of places.

`python docs/write_keys.py` writes them; with `--check` it exits with 1 if they are not current. A test checks.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tui_agent.frontend.commands.keys import place_label  # noqa: E402
from tui_agent.frontend.commands.place_keys import PLACES, key_rows  # noqa: E402
from tui_agent.frontend.commands.registry import BINDABLE  # noqa: E402

TARGET = ROOT / "docs" / "CONSOLE.md"
BEGIN = "<!-- Keys: written by docs/write_keys.py. Do not edit. -->"
END = "<!-- End of the keys. -->"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _code(keys: str) -> str:
    return f"``{keys}``" if "`" in keys else f"`{keys}`"


def tables() -> str:
    """Write a row for each command that has a key, and one for each place with keys of its own."""
    commands = [
        f"| {_code(place_label(command.key))} | `{command.title}` | {_cell(command.help)} |"
        for command in BINDABLE
        if command.key
    ]
    places = [
        f"| {title} | {' · '.join(_cell(f'{_code(keys)} {says}') for keys, says in key_rows(place))} |"
        for place, (title, _) in PLACES.items()
    ]
    return "\n".join(
        [
            *("| key | command | |", "|---|---|---|", *commands, ""),
            "Keys that act in one place of the console are fixed:\n",
            *("| where | |", "|---|---|", *places),
        ]
    )


def page(text: str) -> str:
    """Put the tables into the page."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{tables()}\n{END}{after}"


def main(arguments: list[str]) -> int:
    """Write, or check."""
    text = TARGET.read_text("utf-8")
    if "--check" not in arguments:
        TARGET.write_text(page(text), "utf-8")
        return 0
    if text == page(text):
        return 0
    sys.stderr.write("docs/CONSOLE.md is not current: run `python docs/write_keys.py`.\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
