"""The runs of a folder of growing sessions, as a board shows them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tui_agent.fleet import wire
from tui_agent.fleet.hosts import LocalHost
from tui_agent.fleet.row import RunRow

WATCHER = "tui_agent.fleet.watcher"


@dataclass
class FolderRun:
    """One session of the folder."""

    name: str
    folder: Path
    """Its folder or file."""
    row: RunRow = field(default_factory=RunRow)
    why: str = ""

    @property
    def over(self) -> bool:
        """Its newest run has ended."""
        return self.row.over

    @property
    def outcome(self) -> str:
        """How it ended in one word, as far as its recording tells."""
        return self.row.outcome or "open"


class FolderOfRuns:
    """All sessions below a folder, in the order in which they were found."""

    def __init__(self, folder: Path, changed: Callable[[], None]) -> None:
        """`changed` is called for each row that is another one."""
        self.runs: list[FolderRun] = []
        self._folder = folder
        self._changed = changed
        self._by_path: dict[str, FolderRun] = {}

    async def run(self) -> None:
        """Follow them until it is cancelled. Raises `OSError` if the watcher ended by itself."""
        host = await LocalHost.start(WATCHER, str(self._folder))
        try:
            async for message in host.messages():
                if isinstance(message, wire.Stands):
                    self._take(message)
        finally:
            await host.end()
        raise OSError(f"the process that reads {self._folder} ended: {host.printed.strip()[-300:]}")

    def _take(self, message: wire.Stands) -> None:
        run = self._by_path.get(message.run)
        if run is None:
            path = Path(message.run)
            run = self._by_path[message.run] = FolderRun(self._name(path), path)
            self.runs.append(run)
        run.row = message.row
        self._changed()

    def _name(self, path: Path) -> str:
        """Its path in the folder; for the first file of a Harbor job's trial (TRIAL/agent/FILE) the trial's."""
        parts = path.relative_to(self._folder).parts
        trial = parts[0] if len(parts) == 3 and parts[1] == "agent" else ""
        if trial and all(run.name != trial for run in self.runs):
            return trial
        return "/".join(parts) or path.name
