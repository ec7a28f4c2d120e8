"""The measurement of docs/PLAYBOOK.md: a run is judged by what the other runs of its project know."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.playbook.test_lessons import MISSING, run

SCRIPT = Path(__file__).resolve().parents[2] / "docs" / "write_playbook.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("write_playbook", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["write_playbook"] = module
    spec.loader.exec_module(module)
    return module


def test_each_run_is_left_out_in_turn(script: ModuleType) -> None:
    found = run(("pytest tests/a.py", MISSING), ("ls bin", None), ("bin/test tests/a.py", None))
    other = run(("pytest tests/a.py", MISSING), ("ls bin", None), ("python -m nose tests/a.py", None))
    held = list(script.held_out({"one": [found, found, found, other], "two": [found]}))
    assert [(each.project, each.recurs, each.said, each.right) for each in held] == [
        ("one", True, True, True),
        ("one", True, True, True),
        ("one", True, True, True),
        ("one", True, True, False),
        ("two", False, False, False),
    ]


def test_without_recorded_runs_it_says_so(script: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert script.main(["--bench", "nowhere", "runs=nowhere/at/all"]) == 0
    assert "skipped: nowhere/at/all does not exist" in capsys.readouterr().err
