"""Programs that write the pages of docs/lab from recorded runs: `python -m
tui_agent.lab.evaluation.policies`.

They work in a checkout, which has the pages and their data.
"""

from __future__ import annotations

from pathlib import Path

PAGES = Path(__file__).resolve().parents[3] / "docs" / "lab"
