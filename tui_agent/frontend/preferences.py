"""The console's memory of its use, from one start to the next: a small file in the state folder.

A damaged or unreadable file is no reason to fail; everything has a default.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

from tui_agent.disk import replace_whole

FILE = "console.json"


def load(state_dir: Path) -> dict[str, str]:
    """The remembered values by name."""
    with suppress(OSError, ValueError, RecursionError):
        values = json.loads((state_dir / FILE).read_text(encoding="utf-8"))
        if isinstance(values, dict):
            return {name: value for name, value in values.items() if isinstance(value, str)}
    return {}


def save(state_dir: Path, **changes: str) -> None:
    """Change some values. A disk that refuses costs the memory and nothing else."""
    with suppress(OSError):
        text = json.dumps({**load(state_dir), **changes}, indent=1, sort_keys=True)
        replace_whole(state_dir / FILE, text + "\n")
