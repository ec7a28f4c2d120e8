"""Lessons for the playbook from the runs of an open session, as they end; sub-agents' runs too."""

from __future__ import annotations

import asyncio
import logging

from tui_agent.core import events
from tui_agent.core.projections.incidents import Incidents
from tui_agent.core.state import RunState
from tui_agent.playbook.lessons import lessons_of
from tui_agent.playbook.store import Playbook

logger = logging.getLogger(__name__)


class Learning:
    """Listens to a session's events. What the disk refuses is lost, and no run ends for it."""

    def __init__(self, playbook: Playbook) -> None:
        self._playbook = playbook
        self._writing: set[asyncio.Task[None]] = set()

    def heard(self, event: events.Event, state: RunState) -> None:
        """One more event, with the state after it."""
        match event:
            case events.RunFinished():
                source, ended = f"{state.session.id} {event.seq}", state
            case events.LaneEvent(lane=lane, placed=events.RunFinished()) if lane in state.lanes:
                source, ended = f"{state.session.id} {event.seq}", state.lanes[lane]
            case _:
                return
        if ended.recovery.policy.playbook and ended.metrics.failures:
            task = asyncio.get_running_loop().create_task(
                self._learn(source, ended.metrics.incidents, event.at)
            )
            self._writing.add(task)
            task.add_done_callback(self._writing.discard)

    async def _learn(self, source: str, incidents: Incidents, at: float) -> None:
        try:
            await asyncio.to_thread(lambda: self._playbook.learn(source, lessons_of(incidents), at))
        except Exception:
            logger.warning("the playbook could not be written", exc_info=True)

    async def settle(self) -> None:
        """Until all that was learned is on the disk."""
        if self._writing:
            await asyncio.wait(self._writing)
