"""The document of the events says what the events are."""

from __future__ import annotations

from pathlib import Path

from docs import write_events

ROOT = Path(__file__).resolve().parents[2]


def test_the_document_of_events_is_current():
    assert write_events.main(["--check"]) == 0


def test_the_document_shows_what_the_docstring_under_a_field_says():
    document = (ROOT / "docs" / "reference" / "EVENTS.md").read_text("utf-8")
    assert "| `transient` | `bool` | `False` | Infrastructure, not the model's doing" in document
