"""Labels of recorded runs, solved or not: from the recording itself or from a `resolved.json` beside it.

A grade is a number, 1.0 for solved. Nothing is guessed: no word about it is no grade.
"""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from tui_agent import untrusted_files
from tui_agent.formats.importers.values import list_at, value_at

LABEL_FILE = "resolved.json"
"""Grades of the runs beside it by instance id, or SWE-bench's report with its `resolved_ids`."""

_KEYS = ("reward", "resolved", "solved")
_LARGEST = 16 * 2**20
_WHOLE_SUFFIXES = (".traj.json", ".traj", ".jsonl", ".json")


def grade(value: Any) -> float | None:
    """`value` as a grade: a number, or true and false for 1.0 and 0.0; None for anything else."""
    # Beyond 2^53 it is no grade, and beyond 10^308 no number of this machine's.
    usable = isinstance(value, bool | int | float) and abs(value) < _NO_GRADE
    return float(value) if usable else None


_NO_GRADE = 2**53


def grade_in(record: Any, *path: str) -> float | None:
    """The grade in the object at `path`, under one of the names that recorders use."""
    found = (grade(value_at(record, *path, key)) for key in _KEYS)
    return next((value for value in found if value is not None), None)


def grade_beside(path: Path, instance: str) -> float | None:
    """The grade in the `resolved.json` beside the file `path`, by the run's instance id or the file's name."""
    grades = _grades(path.parent / LABEL_FILE)
    name = path.name
    stem = next((name.removesuffix(suffix) for suffix in _WHOLE_SUFFIXES if name.endswith(suffix)), name)
    return next((grades[key] for key in (instance, stem) if key in grades), None)


def _grades(path: Path) -> dict[str, float]:
    try:
        state = path.stat()
    except OSError:
        return {}
    return _read(path, state.st_mtime_ns) if state.st_size <= _LARGEST else {}


@lru_cache(maxsize=64)
def _read(path: Path, _modified: int) -> dict[str, float]:
    try:
        document = json.loads(untrusted_files.content(path, _LARGEST, path.parent))
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(document, dict):
        return {}
    listed = ((key, 1.0 if key == "resolved_ids" else 0.0) for key in ("unresolved_ids", "resolved_ids"))
    grades = {
        name: value for key, value in listed for name in list_at(document, key) if isinstance(name, str)
    }
    return grades or {key: value for key, raw in document.items() if (value := grade(raw)) is not None}
