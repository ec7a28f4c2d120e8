"""Writes the table of keys in docs/CONSOLE.md from the registry of commands, and docs/reference/KEYS.md from the keys
of places.

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

CONSOLE = ROOT / "docs" / "CONSOLE.md"
PLACES_PAGE = ROOT / "docs" / "reference" / "KEYS.md"
BEGIN = "<!-- The keys of commands, by docs/write_keys.py. -->"
END = "<!-- The end of the keys. -->"
HEAD = """# Keys of places

<!-- Written by docs/write_keys.py from tui_agent/frontend/commands/place_keys.py. Do not edit. -->

Keys that act in one place of the console alone. They are fixed; the [keys of commands](../CONSOLE.md#keys) are yours
to change.

| where | |
|---|---|
"""


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _code(keys: str) -> str:
    return f"``{keys}``" if "`" in keys else f"`{keys}`"


def console(text: str) -> str:
    """Put a row for each command that has a key into the page."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    rows = [
        f"| {_code(place_label(command.key))} | `{command.title}` | {_cell(command.help)} |"
        for command in BINDABLE
        if command.key
    ]
    table = "\n".join(["| key | command | |", "|---|---|---|", *rows])
    return f"{before}{BEGIN}\n{table}\n{END}{after}"


def places() -> str:
    """Write a row for each place that has keys of its own."""
    rows = [
        f"| {title} | {' · '.join(_cell(f'{_code(keys)} {says}') for keys, says in key_rows(place))} |\n"
        for place, (title, _) in PLACES.items()
    ]
    return HEAD + "".join(rows)


def main(arguments: list[str]) -> int:
    """Write, or check."""
    pages = {CONSOLE: console(CONSOLE.read_text("utf-8")), PLACES_PAGE: places()}
    if "--check" not in arguments:
        for target, text in pages.items():
            target.write_text(text, "utf-8")
        return 0
    old = [
        target.name
        for target, text in pages.items()
        if not target.exists() or target.read_text("utf-8") != text
    ]
    if old:
        sys.stderr.write(f"{', '.join(old)}: not current; run `python docs/write_keys.py`.\n")
    return 1 if old else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
