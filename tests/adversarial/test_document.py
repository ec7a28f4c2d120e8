"""The tables of attacks in docs/ are those of the tests."""

from __future__ import annotations

import re

from docs.write_security import ATTACKS, SECURITY, attacks, security
from tests.adversarial.attack import all_attacks


def test_the_tables_of_attacks_are_current() -> None:
    there = re.findall(r"^\| `(\w+)`", ATTACKS.read_text("utf-8"), re.MULTILINE)
    assert sorted(there) == sorted(made.name for _, made in all_attacks())
    assert ATTACKS.read_text("utf-8") == attacks(), "run `python docs/write_security.py`"
    assert SECURITY.read_text("utf-8") == security(), "run `python docs/write_security.py`"


def test_no_two_attacks_have_one_name() -> None:
    names = [(group, made.name) for group, made in all_attacks()]
    assert len(names) == len(set(names))
