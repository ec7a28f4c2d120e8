"""What the documents name is there: files, folders, and the pages they link to."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = (
    "README.md",
    "CONTRIBUTING.md",
    "docs/ARCHITECTURE.md",
    "docs/CONSOLE.md",
    "docs/CUSTOMISING.md",
    "docs/FIRST_HOUR.md",
    "docs/lab/MEASURED.md",
    "docs/MODELS.md",
    "docs/PERMISSIONS.md",
    "docs/SCRIPTING.md",
    "docs/RECOVERY.md",
    "docs/lab/POLICIES.md",
    "docs/SECURITY.md",
    "docs/lab/ATTACKS.md",
    "tests/cases/README.md",
    "tests/servers/conformance/README.md",
)
ROOTS = (ROOT, ROOT / "tui_agent", ROOT / "tui_agent" / "core", ROOT / "tui_agent" / "tools")
"""Where a path of a document may begin; in a section about one folder its files are named alone."""


def links(text: str) -> set[str]:
    """Targets of links, without those to other sites and within the page."""
    targets = {target.partition("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", text)}
    return {target for target in targets if target and "://" not in target}


def paths(text: str) -> set[str]:
    """Code that looks like a path of this project: `core/decision/decide.py`, `tests/cases/`."""
    return set(
        re.findall(
            r"`((?:tui_agent|tests|docs|core|runtime|store|models|formats|console|cli|tools)/[\w./]*)`", text
        )
    )


@pytest.mark.parametrize("name", DOCUMENTS)
def test_links_lead_to_files_that_are_there(name: str) -> None:
    document = ROOT / name
    missing = [link for link in links(document.read_text("utf-8")) if not (document.parent / link).exists()]
    assert missing == []


@pytest.mark.parametrize("name", DOCUMENTS)
def test_paths_in_the_text_are_there(name: str) -> None:
    found = paths((ROOT / name).read_text("utf-8"))
    assert [path for path in found if not any((root / path).exists() for root in ROOTS)] == []
