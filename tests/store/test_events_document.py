"""The document of the events says what the events are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_document_of_events_is_current():
    checked = subprocess.run(
        [sys.executable, ROOT / "docs" / "write_events.py", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stderr


def test_the_document_shows_what_the_docstring_under_a_field_says():
    document = (ROOT / "docs" / "reference" / "EVENTS.md").read_text("utf-8")
    assert "| `transient` | `bool` | `False` | Infrastructure, not the model's doing" in document
