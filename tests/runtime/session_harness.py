"""A session over scripted turns and real tools in a temporary workspace, for tests of the loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.runtime.scripted import ScriptedOperator
from tests.scripted_model import scripted_model
from tui_agent.config.settings import Settings
from tui_agent.core.events import Event, RunFinished
from tui_agent.core.fold import fold
from tui_agent.core.state import RunState
from tui_agent.models.scripted import ScriptedModel
from tui_agent.runtime.waiting import Wait
from tui_agent.session.opening import open_session
from tui_agent.session.session import Session
from tui_agent.store.journal import read_journal
from tui_agent.tools.registry import ToolRegistry

LIMIT = 120.0
"""Seconds that only a run that hangs needs, also on a machine with ten times as much to do as it can."""


@dataclass
class LiveSession:
    """A session that is open, what its model was sent, who answers, and every event so far."""

    session: Session
    model: ScriptedModel
    operator: ScriptedOperator
    events: list[Event]

    @property
    def state(self) -> RunState:
        return self.session.state

    async def run(self, task: str = "go") -> RunFinished:
        await self.session.submit(task)
        return await self.ended()

    async def ended(self) -> RunFinished:
        finished = await asyncio.wait_for(self.session.wait(), LIMIT)
        assert finished is not None
        return finished

    async def until(self, holds: Callable[[RunState], Any]) -> None:
        """Wait until the state is as asked for."""
        reached = asyncio.Event()
        end = self.session.subscribe(lambda _, state: reached.set() if holds(state) else None)
        try:
            if not holds(self.state):
                await asyncio.wait_for(reached.wait(), LIMIT)
        finally:
            end()

    def of(self, kind: type[Event]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    def sent(self, call: int = -1) -> list[dict[str, Any]]:
        """Messages of a request."""
        return list(self.model.requests)[call].messages

    async def close(self) -> None:
        with suppress(RuntimeError):
            await self.session.close()


async def start_session(
    folder: Path,
    turns: Iterable[Mapping[str, Any] | str],
    *,
    operator: ScriptedOperator | None = None,
    tools: ToolRegistry | None = None,
    files: Mapping[str, str] | None = None,
    resume: Path | None = None,
    pace: float = 0.0,
    clock: Callable[[], float] = time.time,
    wait: Callable[[], Wait] = Wait,
    **settings: Any,
) -> LiveSession:
    """Open a session in `folder`/workspace with these turns; nothing asks for approval unless `approve` says so, and
    commands run without a sandbox, whose start takes longer than theirs, unless `sandbox` does.

    `resume`: the folder of the session to go on with.
    """
    workspace = folder / "workspace"
    workspace.mkdir(exist_ok=True)
    for name, text in (files or {}).items():
        (workspace / name).write_text(text)
    chosen = {"model": "scripted", "approve": "all", "sandbox": "off", **settings}
    configured = Settings(workspace=workspace, state_dir=folder / "state", **chosen)
    model = scripted_model(turns, pace=pace)
    operator = operator or ScriptedOperator()
    session = await open_session(configured, operator, model, resume, tools=tools, clock=clock, wait=wait)
    events: list[Event] = []
    session.subscribe(lambda event, _: events.append(event))
    return LiveSession(session, model, operator, events)


def assert_coherent(messages: list[dict[str, Any]]) -> None:
    """Every call of an assistant message has exactly one result right behind it; nothing is empty."""
    waiting: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            waiting.remove(message["tool_call_id"])
            continue
        assert not waiting, f"calls without a result: {waiting}"
        if message["role"] == "assistant":
            waiting = [call["id"] for call in message.get("tool_calls") or ()]
            assert waiting or message["content"]
    assert not waiting


def replayed(session: Session) -> RunState:
    """The state that the journal on disk gives."""
    return fold(read_journal(session.folder).events)
