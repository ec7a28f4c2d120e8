"""The measurement of docs/PLAYBOOK.md: a run is judged by what the other runs of its project know."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.playbook.test_lessons import MISSING, run
from tui_agent.lab.evaluation import playbook
from tui_agent.playbook.book import is_evident


def test_each_run_is_left_out_in_turn() -> None:
    found = run(("pytest tests/a.py", MISSING), ("ls bin", None), ("bin/test tests/a.py", None))
    other = run(("pytest tests/a.py", MISSING), ("ls bin", None), ("python -m nose tests/a.py", None))
    held = list(playbook.held_out({"one": [found, found, found, other], "two": [found]}))
    assert [(each.project, each.recurs, each.said, each.right) for each in held] == [
        ("one", True, True, True),
        ("one", True, True, True),
        ("one", True, True, True),
        ("one", True, True, False),
        ("two", False, False, False),
    ]


def test_each_project_is_left_out_in_turn() -> None:
    found = run(("pytest tests/a.py", MISSING), ("ls bin", None), ("bin/test tests/a.py", None))
    known = {"one": [found, found], "two": [found], "three": [()]}
    held = list(playbook.project_left_out(known, is_evident))
    # What the two runs of the first know is enough for the second; the one of the second is not for the first.
    assert [(each.project, each.said, each.right) for each in held] == [
        ("one", False, False),
        ("one", False, False),
        ("two", True, True),
    ]


@pytest.mark.parametrize(
    ("name", "project"),
    [
        ("sympy__sympy-12345.traj.json", "sympy__sympy"),
        ("rust__servo__servo-43449.json", "rust__servo__servo"),
        ("bash__gpt-4--bash_react_10_turns_fs_1.json", "bash"),
        ("retail.json", "retail"),
    ],
)
def test_a_run_is_of_the_project_that_its_file_names(name: str, project: str) -> None:
    assert playbook.project_of(Path(name)) == project


def test_without_recorded_runs_it_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert playbook.main(["--bench", "nowhere", "runs=nowhere/at/all"]) == 0
    assert "skipped: nowhere/at/all does not exist" in capsys.readouterr().err
