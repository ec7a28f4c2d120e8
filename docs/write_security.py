"""Writes docs/ATTACKS.md, and the table of groups in docs/SECURITY.md, from the attacks (`tests/adversarial`).

`python docs/write_security.py` writes both, `--check` exits with 1 where one is not current. A test checks.
"""

from __future__ import annotations

import sys
from itertools import groupby
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.adversarial.attack import Attack, about, all_attacks

SECURITY = Path(__file__).with_name("SECURITY.md")
ATTACKS = Path(__file__).with_name("ATTACKS.md")
MARK = "<!-- made by docs/write_security.py -->\n"

HEAD = """# Attacks

<!-- Written by docs/write_security.py from tests/adversarial. Do not edit. -->

Every attack that was tried on agent-tui, with its result. [SECURITY.md](SECURITY.md) says what is promised, and how to
run them again. *Fell* means that something gave way when the attack was first tried. It was fixed, and the test holds
now. S marks a slow one.
"""


def _groups() -> list[tuple[str, list[Attack]]]:
    return [
        (group, [made for _, made in rows]) for group, rows in groupby(all_attacks(), key=lambda row: row[0])
    ]


def security() -> str:
    """The page on security: what is written by hand up to the mark, then a row for each group of attacks."""
    lines = ["| group | attacks | slow | fell | |", "|---|---:|---:|---:|---|"]
    rows = [
        (group, len(made), sum(one.slow for one in made), sum(bool(one.fell) for one in made))
        for group, made in _groups()
    ]
    lines += [
        f"| [{group}](ATTACKS.md#{group}) | {count} | {slow} | {fell} | {about(group)} |"
        for group, count, slow, fell in rows
    ]
    count, slow, fell = (sum(row[column] for row in rows) for column in (1, 2, 3))
    lines.append(f"| all | {count} | {slow} | {fell} | |")
    return SECURITY.read_text("utf-8").partition(MARK)[0] + MARK + "\n" + "\n".join(lines) + "\n"


def attacks() -> str:
    """The page of all attacks, a table for each group."""
    lines = [HEAD]
    for group, made in _groups():
        lines += [f"## {group}\n", "| attack | what is tried | what holds | result |", "|---|---|---|---|"]
        for one in made:
            name = f"`{one.name}`{' S' if one.slow else ''}"
            result = f"fell, fixed: {one.fell}" if one.fell else "held"
            lines.append(f"| {name} | {one.tried} | {one.holds} | {result} |".replace("\n", " "))
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(SECURITY.read_text("utf-8") != security() or ATTACKS.read_text("utf-8") != attacks())
    SECURITY.write_text(security(), "utf-8")
    ATTACKS.write_text(attacks(), "utf-8")
