"""A session that is watched, as the console has it: what is known of it, and how an answer gets to its agent."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tui_agent.agents.answers import conversation, leave
from tui_agent.agents.dialects import DIALECTS
from tui_agent.config.settings import Settings, load_settings
from tui_agent.core.events import EscalationRaised, Event, IterationStarted, RunStarted
from tui_agent.core.fold import fold
from tui_agent.core.recovery.policy import preset
from tui_agent.core.state import RunState
from tui_agent.formats.importers.load import keep
from tui_agent.frontend.arguments import ConsoleArguments
from tui_agent.frontend.operator import WatchedQuestion
from tui_agent.frontend.startup import Recorded
from tui_agent.session.recordings import OpenedRecording
from tui_agent.session.replay import Replay
from tui_agent.store.journal import sessions_folder
from tui_agent.store.journal_index import EventList
from tui_agent.store.provenance import is_foreign
from tui_agent.store.redaction import Redactor
from tui_agent.watch.following import follow
from tui_agent.watch.places import RUNNING, root_of
from tui_agent.watch.watched import Watched

_REACHES = (
    "Its hooks are installed: the agent reads your answer with its next step, in a note or in a refusal."
)
_OURS = "It is a session of ours: answer it in the console where it runs."
_LONG = 2_000
"""Events from which on the end of a session is shown before all of it was read through."""
_END = 400
"""Events that are shown of it."""


def end_of(told: Sequence[Event]) -> RunState | None:
    """The state that a long session's last steps make by themselves, under its newest task; None for a short one."""
    last = range(max(1, len(told) - _END), len(told))
    place = next((place for place in last if isinstance(told[place], IterationStarted)), None)
    if len(told) < _LONG or place is None:
        return None
    began = next((event for event in reversed(told[1:place]) if isinstance(event, RunStarted)), None)
    return fold([told[0], *([began] if began is not None else []), *told[place:]])


@dataclass(frozen=True)
class WatchedSession:
    """Values that the watching screen starts with."""

    watched: Watched
    source: EventList
    recorded: Recorded
    settings: Settings

    def follow(self, wait: Callable[[float], object]) -> Iterator[int | None]:
        """With each look how many of the events stand; it never ends. Raises `TranscriptError`."""
        return follow(self.watched, wait=wait)

    def may_run(self, state: RunState) -> bool:
        """True if a run is under way; one that has said nothing for long may be dead."""
        return state.running and time.time() - state.at < RUNNING

    def kept(self, seq: int) -> Path:
        """A saved session of the events up to one. Raises `SessionError` if it cannot be written."""
        known = [self.source.event(number) for number in range(1, seq + 1)]
        sessions = sessions_folder(self.settings.state_dir)
        return keep(known, self.watched.path, sessions, Redactor.from_environment(os.environ))

    def question(self, asked: EscalationRaised) -> WatchedQuestion:
        """The question that the policy would ask now."""
        question = WatchedQuestion(asked)
        question.reaches, question.reach = self.reach()
        return question

    def reach(self) -> tuple[bool, str]:
        """True if an answer gets to the agent, and a sentence that says so."""
        if self._folder is not None:
            return True, _REACHES
        if self.watched.is_own:
            return False, _OURS
        name = next((one.name for one in DIALECTS.values() if one.title == self.watched.agent), "")
        how = f" With its hooks it would: agent-tui hooks install {name}" if name else ""
        return False, f"This console only watches: nothing that you type here reaches the agent.{how}"

    def answer(self, text: str) -> None:
        """Leave an answer for the agent's next hook. Raises `OSError`."""
        if self._folder is not None:
            leave(self._folder, text)

    @property
    def _folder(self) -> Path | None:
        """The conversation as our hooks keep it."""
        sessions = sessions_folder(self.settings.state_dir)
        if self.watched.is_own:
            path = self.watched.path
            folder = path if path.is_dir() else path.parent
            return folder if folder.parent == sessions and is_foreign(folder, sessions) else None
        agents = [one.name for one in DIALECTS.values() if self.watched.agent.startswith(one.title)]
        found = (conversation(sessions, agent, self.watched.session_id) for agent in agents)
        return next((folder for folder in found if folder is not None), None)


async def open_watch(arguments: ConsoleArguments) -> WatchedSession:
    """The first of the sessions that are to be watched. Raises `ConfigError`."""
    settings = await asyncio.to_thread(load_settings, arguments.overrides, arguments.config)
    path = Path(arguments.watch[0])
    policy = preset(settings.policy, **settings.recovery.overrides())
    source = EventList()
    recorded = Recorded(Replay(source), OpenedRecording(path, source, foreign=True), settings)
    watched = Watched(path, policy, rejudge=settings.asked_policy, within=root_of(path))
    return WatchedSession(watched, source, recorded, settings)
