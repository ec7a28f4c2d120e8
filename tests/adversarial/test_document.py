"""The pages on security are those of the tests, and what they name is there."""

from __future__ import annotations

import re
from pathlib import Path

from docs.write_security import ATTACKS, PAGES, SECURITY
from tests.adversarial.attack import all_attacks, groups

ROOT = Path(__file__).resolve().parents[2]


def test_data_and_pages_of_attacks_are_current() -> None:
    there = re.findall(r"^\| `(\w+)`", ATTACKS.read_text("utf-8"), re.MULTILINE)
    assert sorted(there) == sorted(made.name for _, made in all_attacks())
    for path, made in PAGES.items():
        assert path.read_text("utf-8") == made(), "run `python docs/write_security.py`"


def test_no_two_attacks_have_one_name() -> None:
    names = [(group, made.name) for group, made in all_attacks()]
    assert len(names) == len(set(names))


def test_each_promise_names_a_mechanism_and_a_test_that_are_there() -> None:
    rows = re.findall(
        r"^\| (.+) \| (.+) \| (.+) \|$", SECURITY.read_text("utf-8").split("## What is not")[0], re.MULTILINE
    )
    promises = [row for row in rows if row[0].startswith("**")]
    assert len(promises) > 15
    for promise, mechanism, test in promises:
        places = re.findall(r"`([\w./]+)`", mechanism)
        assert places, promise
        assert all((ROOT / "tui_agent" / place).exists() for place in places), promise
        named = re.findall(r"ATTACKS\.md#(\w+)", test)
        assert named, promise
        assert set(named) <= set(groups()), promise
        assert all((ROOT / place).exists() for place in re.findall(r"`(tests/[\w./]+)`", test)), promise
    assert set(groups()) == {
        name for _, _, test in promises for name in re.findall(r"ATTACKS\.md#(\w+)", test)
    }
