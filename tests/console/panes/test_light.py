"""The panes are there at the first paint: importing them brings nothing heavy."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("pydantic", "litellm", "pygments", "markdown_it", "jsonschema", "httpx")


@pytest.mark.parametrize(
    "module", ["tui_agent.console.panes", "tui_agent.console.looks.themes", "tui_agent.terminal_text"]
)
def test_importing_brings_nothing_heavy(module: str) -> None:
    code = (
        f"import sys, {module} as m; [getattr(m, name) for name in getattr(m, '__all__', ())]; "
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert result.stdout.strip() == "[]"
