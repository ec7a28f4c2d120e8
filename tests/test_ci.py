"""What `.ci/run` does with tests that fail and pass when they are run again."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

FLAKY = Path(__file__).resolve().parents[1] / ".ci" / "flaky.py"

SOME = """
from pathlib import Path

def test_seldom_wrong():
    seen = Path(__file__).with_name("seen")
    was_seen = seen.exists()
    seen.touch()
    assert was_seen

def test_wrong():
    assert False

def test_right():
    pass
"""


def test_what_fails_and_then_passes_goes_on_record_and_what_fails_twice_fails_the_run(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(SOME)
    done = subprocess.run(
        [sys.executable, str(FLAKY), "run", "record", "today", "cache", "-p", "xdist", "test_some.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 1
    assert (
        tmp_path / "record"
    ).read_text() == f"today {sys.version_info.major}.{sys.version_info.minor} {SELDOM_WRONG}\n"
    assert "1 failed, 1 passed" in done.stdout.splitlines()[-1], "what passed is not run again"


SELDOM_WRONG = "test_some.py::test_seldom_wrong"


@pytest.mark.parametrize(
    ("record", "code", "said"),
    [
        ("", 0, ""),
        (f"before 3.11 {SELDOM_WRONG}\n", 0, ""),
        (f"today 3.11 {SELDOM_WRONG}\n", 0, "FLAKY test_some.py::test_seldom_wrong (in 1 run on record)\n"),
        (
            f"today 3.13 {SELDOM_WRONG}[a b]\ntoday 3.11 {SELDOM_WRONG}[a b]\n",
            0,
            "FLAKY test_some.py::test_seldom_wrong[a b] (in 1 run on record)\n",
        ),
        (
            f"before 3.11 {SELDOM_WRONG}\ntoday 3.12 {SELDOM_WRONG}\n",
            1,
            "FLAKY test_some.py::test_seldom_wrong (in 2 runs on record)\n",
        ),
    ],
)
def test_the_second_run_in_which_a_test_is_flaky_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], record: str, code: int, said: str
) -> None:
    (tmp_path / "record").write_text(record)
    assert runpy.run_path(str(FLAKY))["report"](tmp_path / "record", "today") == code
    assert capsys.readouterr().out == said
