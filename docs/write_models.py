"""Writes docs/reference/SERVERS.md from the rows of `tui_agent.models.known_servers`.

`python docs/write_models.py` writes it; with `--check` it exits with 1 if the page is not current. A test checks.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tui_agent.models.habits import Habits, in_words
from tui_agent.models.known_servers import KNOWN

TARGET = Path(__file__).parent / "reference" / "SERVERS.md"

HEAD = """# Known servers

<!-- Written by docs/write_models.py from tui_agent/models/known_servers.py. Do not edit. -->

What is known of each server and model from the start, with the source. [MODELS.md](../MODELS.md#what-a-server-takes)
says how the rest is learnt.

| server | habits from the start | source |
|---|---|---|
"""


def page() -> str:
    """The whole page: a row for each server that is known."""
    rows = []
    for row in KNOWN:
        habits = (
            "; ".join(in_words(replace(Habits(), **row.habits))) or "as in the protocol; the rest is learnt"
        )
        rows.append(f"| {row.name} | {habits} | {row.source.replace('|', '/')} |\n")
    return HEAD + "".join(rows)


def main(arguments: list[str]) -> int:
    """Write, or check."""
    if "--check" not in arguments:
        TARGET.write_text(page(), "utf-8")
        return 0
    if TARGET.read_text("utf-8") == page():
        return 0
    sys.stderr.write("docs/reference/SERVERS.md is not current: run `python docs/write_models.py`.\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
