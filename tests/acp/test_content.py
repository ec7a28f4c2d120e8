"""Words of the protocol: diffs as what was there and is there now, places, kinds."""

from __future__ import annotations

from pathlib import Path

import pytest

from tui_agent.acp.content import diffs, kind_of, locations
from tui_agent.core.own_tools import ROWS
from tui_agent.core.tool_facts import UNKNOWN, named
from tui_agent.tools.diffs import unified_diff

FILE = Path("/w/a.py")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("one\ntwo\n", "one\nthree\n"),
        ("one\ntwo", "one\nthree"),
        ("one", "one\n"),
        ("", "one\n"),
        ("one\n", ""),
        ("--- a\n+++ b\n", "--- a\n+++ c\n"),
        ("@@ -1 +1 @@\nx\n", "@@ -1 +1 @@\ny\n"),
    ],
)
def test_a_small_diff_holds_both_texts_whole(before: str, after: str) -> None:
    [block] = diffs(unified_diff(before, after, "a.py"), FILE)
    assert block == {"type": "diff", "path": "/w/a.py", "oldText": before, "newText": after}


def test_a_new_file_has_no_old_text_and_far_changes_are_parts_of_their_own() -> None:
    assert [*diffs(unified_diff("", "x\n", "a.py", new=True), FILE)] == [
        {"type": "diff", "path": "/w/a.py", "newText": "x\n"}
    ]
    lines = [f"{number}\n" for number in range(100)]
    changed = ["first\n", *lines[1:-1], "last\n"]
    parts = [*diffs(unified_diff("".join(lines), "".join(changed), "a.py"), FILE)]
    assert [(part["oldText"][:2], part["newText"][-5:]) for part in parts] == [
        ("0\n", "\n2\n3\n"),
        ("96", "last\n"),
    ]
    assert [*diffs("(for at most 120 s)", FILE)] == [*diffs("", FILE)] == []


def test_every_tool_has_a_kind_and_calls_name_their_files() -> None:
    kinds = {name: kind_of(named(name)) for name in ROWS}
    assert kinds | {"read_file": "read", "edit_file": "edit", "bash": "execute", "grep": "search"} == kinds
    assert kind_of(UNKNOWN) == "other"
    place = {"path": "/w/x.py", "line": 7}
    assert locations(named("read_file"), {"path": "x.py", "offset": 7}, Path("/w")) == [place]
    assert locations(named("glob"), {"pattern": "**/*.py"}, Path("/w")) == []
    assert locations(named("bash"), {"command": "cat x.py"}, Path("/w")) == []
    assert locations(named("write_file"), {"path": ["x"]}, Path("/w")) == []
