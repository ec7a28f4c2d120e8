"""The measurement of docs/PLAYBOOK.md: a run is judged by what the other runs of its project know."""

from __future__ import annotations

import pytest

from tests.playbook.test_lessons import MISSING, run
from tui_agent.lab.evaluation import playbook


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


def test_without_recorded_runs_it_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert playbook.main(["--bench", "nowhere", "runs=nowhere/at/all"]) == 0
    assert "skipped: nowhere/at/all does not exist" in capsys.readouterr().err
