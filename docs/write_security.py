"""Writes what the attacks are: data beside the tests (`tests/adversarial/attacks.jsonl`), and from it
docs/lab/ATTACKS.md and the figures at the end of docs/SECURITY.md.

`python docs/write_security.py` writes all three, `--check` exits with 1 where one is not current. A test checks.
"""

from __future__ import annotations

import json
import sys
from itertools import groupby
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.adversarial.attack import FOLDER, about, all_attacks

SECURITY = Path(__file__).with_name("SECURITY.md")
ATTACKS = SECURITY.parent / "lab" / "ATTACKS.md"
DATA = FOLDER / "attacks.jsonl"
MARK = "<!-- made by docs/write_security.py -->\n"

HEAD = """# Attacks

<!-- Written by docs/write_security.py from tests/adversarial/attacks.jsonl. Do not edit. -->

Every attack that was tried on agent-tui, with its result. [SECURITY.md](../SECURITY.md) says what is promised, and
how to run them again. *Fell* means that something gave way when the attack was first tried. It was fixed, and the
test holds now. S marks a slow one.
"""

Row = dict[str, Any]


def data() -> str:
    """A line for each group, which says what it is, and behind it one for each of its attacks."""
    lines = []
    for group, rows in groupby(all_attacks(), key=lambda row: row[0]):
        lines.append({"group": group, "about": about(group)})
        for _, one in rows:
            facts = {
                "attack": one.name,
                "tried": one.tried,
                "holds": one.holds,
                "fell": one.fell,
                "slow": one.slow,
            }
            lines.append({key: value for key, value in facts.items() if value})
    return "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines)


def _groups(text: str) -> list[tuple[Row, list[Row]]]:
    groups: list[tuple[Row, list[Row]]] = []
    for line in text.splitlines():
        row = json.loads(line)
        if "group" in row:
            groups.append((row, []))
        else:
            groups[-1][1].append(row)
    return groups


def _counts(rows: list[Row]) -> tuple[int, int, int]:
    """How many they are, how many of them are slow, and how many fell."""
    return len(rows), sum(bool(one.get("slow")) for one in rows), sum(bool(one.get("fell")) for one in rows)


def security() -> str:
    """The page on security: what is written by hand up to the mark, then the figures."""
    count, slow, fell = _counts([one for _, rows in _groups(data()) for one in rows])
    said = f"{count} attacks, {slow} of them slow. {fell} fell when they were first tried; all hold now.\n"
    return SECURITY.read_text("utf-8").partition(MARK)[0] + MARK + "\n" + said


def attacks() -> str:
    """The page of all attacks: the groups, and a table for each."""
    groups = _groups(data())
    lines = [HEAD, "| group | attacks | slow | fell | |", "|---|---:|---:|---:|---|"]
    for group, rows in groups:
        count, slow, fell = _counts(rows)
        name = group["group"]
        lines.append(f"| [{name}](#{name}) | {count} | {slow} | {fell} | {group['about']} |")
    count, slow, fell = _counts([one for _, rows in groups for one in rows])
    lines += [f"| all | {count} | {slow} | {fell} | |", ""]
    for group, rows in groups:
        lines += [
            f"## {group['group']}\n",
            "| attack | what is tried | what holds | result |",
            "|---|---|---|---|",
        ]
        for one in rows:
            name = f"`{one['attack']}`{' S' if one.get('slow') else ''}"
            result = f"fell, fixed: {one['fell']}" if one.get("fell") else "held"
            lines.append(f"| {name} | {one['tried']} | {one['holds']} | {result} |".replace("\n", " "))
        lines.append("")
    return "\n".join(lines)


PAGES = {DATA: data, ATTACKS: attacks, SECURITY: security}


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(any(path.read_text("utf-8") != made() for path, made in PAGES.items()))
    for path, made in PAGES.items():
        path.write_text(made(), "utf-8")
