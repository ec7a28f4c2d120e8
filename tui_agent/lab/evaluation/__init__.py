"""What writes the pages of docs/lab from recorded runs, each a program: `python -m tui_agent.lab.evaluation.policies`.

They work in a checkout, where the pages and their data are.
"""

from __future__ import annotations

from pathlib import Path

PAGES = Path(__file__).resolve().parents[3] / "docs" / "lab"
