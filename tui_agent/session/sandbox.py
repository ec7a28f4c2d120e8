"""The sandbox of a session's commands: found out once, its places watched, and what it took back said."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Sequence
from pathlib import Path

from tui_agent.config.mcp_servers import ServerEntry
from tui_agent.config.settings import Settings
from tui_agent.core import events
from tui_agent.core.state import RunState
from tui_agent.runtime.approvals import Approvals, obeyed_by
from tui_agent.sandbox.choose import choose, switched_off
from tui_agent.sandbox.inside import in_words
from tui_agent.sandbox.left_behind import WorkspaceRecord
from tui_agent.sandbox.mechanisms import Sandbox
from tui_agent.sandbox.named import names_in
from tui_agent.sandbox.taken_back import TakenBack
from tui_agent.sandbox.watch import Watch
from tui_agent.session.sandboxes import for_server, sandbox_policy
from tui_agent.store.checkpoints import Checkpoints
from tui_agent.store.recorder import SessionRecorder

SCRATCH_FOLDER = "tmp"
"""In a session's folder: what commands in a sandbox see as their temporary folder, for as long as it is open."""
TAKEN_BACK_FOLDER = "taken-back"
"""In a session's folder: copies of what the sandbox took back from commands."""


class SessionSandbox:
    """Tells approvals and checkpoints of the sandbox once it is there."""

    def __init__(
        self,
        settings: Settings,
        workspace: Path,
        folder: Path,
        recorder: SessionRecorder,
        checkpoints: Checkpoints,
        approvals: Approvals,
    ) -> None:
        self._settings = settings
        self._workspace = workspace
        self._folder = folder
        self._recorder = recorder
        self._checkpoints = checkpoints
        self._approvals = approvals
        self._chosen: asyncio.Task[Sandbox] | None = None
        self._trying: asyncio.Task[Sandbox] | None = None
        approvals.obeyed = self._why_obeyed
        recorder.subscribe(self._accept_own_writes)

    def start(self, trying: asyncio.Task[Sandbox] | None = None) -> asyncio.Task[Sandbox]:
        """Find it out in the background; `trying` (`sandboxes.tried_out`) is under way."""
        self._trying = trying or self._trying
        if self._chosen is None or _failed(self._chosen):
            self._chosen = asyncio.get_running_loop().create_task(self._choose(), name="sandbox")
        return self._chosen

    async def ready(self) -> Sandbox:
        """Wait until it is found out."""
        return await asyncio.shield(self.start())

    async def change(self, settings: Settings) -> None:
        """Find out another one, by these settings, for the commands that follow. Not while one runs."""
        await self.settle()
        self._settings, self._chosen, self._trying = settings, None, None
        self._approvals.sandbox = Sandbox()
        self._checkpoints.inside(self._approvals.sandbox)

    async def of_server(self, entry: ServerEntry) -> Sandbox:
        """Give the sandbox that an MCP server runs in."""
        return for_server(self._settings, entry, await self.ready())

    async def _choose(self) -> Sandbox:
        settings, passed = self._settings, self._settings.environment.passed
        if settings.sandbox.mode == "off":
            return switched_off(passed)
        if self._trying is not None:
            await asyncio.gather(self._trying, return_exceptions=True)
        policy = sandbox_policy(settings, self._workspace, self._folder / SCRATCH_FOLDER)
        record = WorkspaceRecord.of(settings.state_dir, self._workspace)
        watch = Watch(policy.places, self._folder / TAKEN_BACK_FOLDER, record)
        self._say_taken_back(await asyncio.to_thread(watch.recover), "The last run here was killed. ")
        chosen = await choose(settings.sandbox.mode, policy, passed, watch, self._say_taken_back)
        self._checkpoints.inside(chosen)
        self._approvals.sandbox = chosen
        return chosen

    def _say_taken_back(self, taken: Sequence[TakenBack], before: str = "") -> None:
        if taken:
            text = before + in_words(taken)
            self._recorder.record(events.Notice(severity="warning", text=text, origin="sandbox"))

    def _accept_own_writes(self, event: events.Event, _: RunState) -> None:
        """Let stand what our own tools wrote by leave of the operator: no command did."""
        match event:
            case events.ToolSucceeded(changed=paths) | events.Rewound(files=paths) if paths:
                if (watch := self._watch) is not None:
                    for path in paths:
                        watch.accept(self._workspace / path)

    def _why_obeyed(self, path: str) -> str:
        """Say what outside obeys a file by itself: a name that programs look for, or git's settings and hooks."""
        if (watch := self._watch) is not None:
            return watch.why_obeyed(self._workspace / path)
        said = names_in((self._workspace,), (self._workspace / ".git",)).about(self._workspace / path)
        return said or obeyed_by(path)

    @property
    def _watch(self) -> Watch | None:
        chosen = self._chosen
        there = chosen is not None and chosen.done() and not _failed(chosen)
        return chosen.result().watch if chosen is not None and there else None

    async def settle(self) -> None:
        """Look a last time, when nothing runs any more: what changes after the last command is the operator's doing."""
        if (watch := self._watch) is not None:
            if watch.owed:
                self._say_taken_back(await asyncio.to_thread(watch.settle))
            if watch.record is not None:
                watch.record.close()

    async def close(self) -> None:
        """End a program that tries it, and remove the temporary folder of commands."""
        if self._chosen is not None:
            self._chosen.cancel()
            await asyncio.wait([self._chosen])
            await asyncio.to_thread(shutil.rmtree, self._folder / SCRATCH_FOLDER, True)


def _failed(task: asyncio.Task[Sandbox]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)
