"""Fixtures of the tools' tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.box import Box


@pytest.fixture
def box(tmp_path: Path) -> Box:
    """An empty workspace and an output folder beside it."""
    root = tmp_path / "workspace"
    root.mkdir()
    return Box(root, tmp_path / "session" / "outputs")
