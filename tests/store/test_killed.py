"""A session that is killed while it works opens again (the benchmark does the same some hundreds of times)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.process
def test_a_session_killed_at_random_moments_opens_again_and_goes_on():
    # A process of its own: workers are forked, which needs a parent without threads.
    done = subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "kill_journal.py", "--kills", "10", "--seed", "7"],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "10 workers killed" in done.stdout
