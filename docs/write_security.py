"""Writes the table of attacks in docs/SECURITY.md, from the attacks themselves (`tests/adversarial`).

`python docs/write_security.py` writes it, `--check` exits with 1 where it is not current. A test checks.
"""

from __future__ import annotations

import sys
from itertools import groupby
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.adversarial.attack import all_attacks

TARGET = Path(__file__).parent / "SECURITY.md"
MARK = "<!-- made by docs/write_security.py -->\n"


def table() -> str:
    """Every attack, a table for each group."""
    found = list(all_attacks())
    fell = sum(bool(made.fell) for _, made in found)
    slow = sum(made.slow for _, made in found)
    lines = [
        f"{len(found)} attacks ({slow} slow ones, marked S); {fell} found something that gave way; all hold now.\n"
    ]
    for group, rows in groupby(found, key=lambda row: row[0]):
        lines += [f"### {group}\n", "| attack | what is tried | what holds | result |", "|---|---|---|---|"]
        for _, made in rows:
            name = f"`{made.name}`{' S' if made.slow else ''}"
            result = f"fell, fixed: {made.fell}" if made.fell else "held"
            lines.append(f"| {name} | {made.tried} | {made.holds} | {result} |".replace("\n", " "))
        lines.append("")
    return "\n".join(lines)


def page() -> str:
    """The whole page: what is written by hand up to the mark, then the table."""
    return TARGET.read_text("utf-8").partition(MARK)[0] + MARK + "\n" + table()


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(TARGET.read_text(encoding="utf-8") != page())
    TARGET.write_text(page(), encoding="utf-8")
