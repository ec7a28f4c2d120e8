"""Writes the table of known servers in docs/MODELS.md from the rows of `tui_agent.models.known_servers`.

`python docs/write_models.py` writes it; with `--check` it says whether the page is current.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tui_agent.models.habits import Habits, in_words
from tui_agent.models.known_servers import KNOWN

TARGET = Path(__file__).with_name("MODELS.md")
BEGIN, END = "<!-- Written by docs/write_models.py. -->\n", "<!-- End of what is written. -->\n"


def page(text: str) -> str:
    """The page with the table as it is now."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


def table() -> str:
    """A row for each server that is known."""
    rows = ["| server | habits from the start | source |", "|---|---|---|"]
    for row in KNOWN:
        habits = (
            "; ".join(in_words(replace(Habits(), **row.habits))) or "as in the protocol; the rest is learnt"
        )
        rows.append(f"| {row.name} | {habits} | {row.source.replace('|', '/')} |")
    return "\n".join(rows) + "\n"


def main(arguments: list[str]) -> int:
    """Write, or check."""
    old = TARGET.read_text("utf-8")
    new = page(old)
    if "--check" not in arguments:
        TARGET.write_text(new, "utf-8")
        return 0
    if old == new:
        return 0
    sys.stderr.write("docs/MODELS.md is not current: run `python docs/write_models.py`.\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
