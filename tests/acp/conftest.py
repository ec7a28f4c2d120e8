"""Sessions of a client in the test's own folders: nothing of this machine's configuration or models is looked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def own_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing(_: Any) -> list[Any]:
        return []

    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr("tui_agent.acp_agent.served.found_now", nothing)
    monkeypatch.setattr("tui_agent.acp_agent.served.known_at_once", nothing)
