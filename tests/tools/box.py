"""A workspace with an output folder, and calls of tools as the loop makes them."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from tui_agent.core.events import ToolCall
from tui_agent.tools.errors import ToolError
from tui_agent.tools.registry import ToolRegistry, default_tools
from tui_agent.tools.tool import ToolContext, ToolOutput
from tui_agent.tools.workspace import Workspace


@dataclass
class Box:
    """A workspace, and what tools are given in it."""

    root: Path
    output_dir: Path
    registry: ToolRegistry = field(default_factory=default_tools)
    progress: list[str] = field(default_factory=list)

    @property
    def workspace(self) -> Workspace:
        return Workspace(self.root)

    @property
    def context(self) -> ToolContext:
        return ToolContext(self.workspace, self.output_dir, "call-1", self.progress.append)

    def put(self, path: str, content: str | bytes = "") -> Path:
        """A file of the workspace."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return file

    async def call(self, name: str, known: Mapping[str, str] | None = None, **arguments: Any) -> ToolOutput:
        """A call through the registry, so that schemas are held too; `known`: the files that the model knows."""
        parsed = self.registry.parse(ToolCall(id="1", name=name, arguments=json.dumps(arguments)))
        return await parsed.tool.run(parsed.arguments, replace(self.context, known_files=known or {}))

    async def fail(self, name: str, known: Mapping[str, str] | None = None, **arguments: Any) -> ToolError:
        """A call that must fail; its error."""
        with pytest.raises(ToolError) as caught:
            await self.call(name, known, **arguments)
        return caught.value


async def wait_until(holds: Callable[[], object], seconds: float = 60.0) -> bool:
    """Whether something came to hold before the deadline; for the world outside, which sends us no events."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(0.005)
    return True


def processes_with(marker: str) -> list[int]:
    """Pids whose command line holds `marker`, zombies left out."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if marker.encode() in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found
