"""Linting, formatting and strict typing as tests, so that `pytest` alone says whether the project is in order."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
EXEMPTIONS = 25
"""`type: ignore` and `noqa` that the whole project may hold."""


@pytest.mark.parametrize(
    "command",
    [["ruff", "check", "."], ["ruff", "format", "--check", "."], ["mypy", "--strict"]],
    ids=["ruff check", "ruff format", "mypy --strict"],
)
def test_the_whole_project_passes(command: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_exemptions_stay_few() -> None:
    pattern = re.compile(r"#\s*(type: ignore|noqa)")
    lines = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in sorted((ROOT / "tui_agent").rglob("*.py"))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if pattern.search(line)
    ]
    assert len(lines) <= EXEMPTIONS, "\n".join(lines)
