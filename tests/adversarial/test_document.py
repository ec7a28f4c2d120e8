"""The table of attacks in docs/SECURITY.md is that of the tests."""

from __future__ import annotations

import re
from pathlib import Path

from docs.write_security import TARGET, page
from tests.adversarial.attack import all_attacks

ROOT = Path(__file__).resolve().parents[2]


def test_the_table_of_attacks_is_current() -> None:
    text = TARGET.read_text("utf-8")
    there = re.findall(r"^\| `(\w+)`", text, re.MULTILINE)
    assert sorted(there) == sorted(made.name for _, made in all_attacks())
    assert text == page(), "run `python docs/write_security.py`"


def test_no_two_attacks_have_one_name() -> None:
    names = [(group, made.name) for group, made in all_attacks()]
    assert len(names) == len(set(names))
