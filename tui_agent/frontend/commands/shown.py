"""Subjects of commands: a session that runs, a recording as it is played, another agent's session while it
runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent.frontend.commands.host import ForkPlace, Patch
from tui_agent.store.errors import SessionError

if TYPE_CHECKING:
    from tui_agent.config.settings import Settings
    from tui_agent.core.state import RunState
    from tui_agent.frontend.startup import Recorded
    from tui_agent.frontend.why import Why
    from tui_agent.session.player import Player
    from tui_agent.session.recordings import OpenedRecording
    from tui_agent.session.session import Session

OPENING = "The session is still being opened."
NOT_READ_YET = "The session is still being read up to here."


class ShownSession:
    """A session that runs; None until it is open."""

    def __init__(self, session: Callable[[], Session | None]) -> None:
        self._session = session

    @property
    def opened(self) -> bool:
        return self._session() is not None

    @property
    def session(self) -> Session:
        session = self._session()
        if session is None:
            raise ValueError(OPENING)
        return session

    @property
    def state(self) -> RunState:
        return self.session.state

    @property
    def settings(self) -> Settings:
        return self.session.settings

    @property
    def source(self) -> Path:
        return self.session.folder

    @property
    def coming(self) -> tuple[str, str]:
        return self.settings.model or "", str(self.settings.policy)

    async def place(self) -> ForkPlace:
        return ForkPlace(self.session.folder, self.session.state)

    async def patch(self, since: str = "") -> Patch | None:
        text = await self.session.rewinding.changes(since)
        return None if text is None else Patch(text)

    async def gather_why(self, seq: int, call_id: str) -> Why:
        from tui_agent.frontend.why import explain_live

        return await explain_live(self.session, seq, call_id)


class ShownRecording:
    """A recording, and its position; None until it is open."""

    coming = "", ""

    def __init__(self, played: Callable[[], tuple[Recorded, Player] | None]) -> None:
        self._played_now = played

    @property
    def opened(self) -> bool:
        return self._played_now() is not None

    @property
    def _played(self) -> tuple[Recorded, Player]:
        played = self._played_now()
        if played is None:
            raise ValueError(OPENING)
        return played

    @property
    def state(self) -> RunState:
        return self._played[1].state

    @property
    def settings(self) -> Settings:
        return self._played[0].settings

    @property
    def source(self) -> Path:
        return self._played[0].path

    async def place(self) -> ForkPlace:
        """After the event that is shown."""
        recorded, player = self._played
        if not recorded.recording.as_recorded:
            raise ValueError(_unforkable(recorded.recording))
        if not player.there:
            raise ValueError(NOT_READ_YET)
        seq = max(1, player.position)
        return ForkPlace(self.source, player.replay.state_at(seq), seq)

    async def patch(self, since: str = "") -> Patch | None:
        """Up to the position, or the step before it; None if the session's checkpoints are not on this machine."""
        from tui_agent.session.rewind import kept_before_run
        from tui_agent.store.checkpoints import Checkpoints
        from tui_agent.store.journal import sessions_folder
        from tui_agent.store.provenance import is_foreign

        state, (recorded, player) = self.state, self._played
        before, after = since or kept_before_run(state), player.replay.kept_then(player.position)
        folder = recorded.path if recorded.path.is_dir() else recorded.path.parent
        if (
            after is None
            or before in {"", after.ref}
            or is_foreign(folder, sessions_folder(self.settings.state_dir))
        ):
            return None
        checkpoints = Checkpoints(self.settings.state_dir, Path(state.session.workspace), state.session.id)
        try:
            return Patch(await checkpoints.patch(before, after.ref), whole=after.exact)
        except SessionError:
            return None

    async def gather_why(self, seq: int, call_id: str) -> Why:
        from tui_agent.frontend.why import explain

        return explain(self._played[1].replay, seq, call_id)


class ShownWatched(ShownRecording):
    """Another agent's session while it runs. `kept` saves what is known up to an event as a session of ours."""

    def __init__(
        self, played: Callable[[], tuple[Recorded, Player] | None], kept: Callable[[int], Path]
    ) -> None:
        super().__init__(played)
        self._kept = kept

    async def place(self) -> ForkPlace:
        """After the event that is shown, in a session of ours that is made of what is known up to it."""
        player = self._played[1]
        if not player.there or not player.position:
            raise ValueError(NOT_READ_YET)
        seq = player.position
        kept = await asyncio.to_thread(self._kept, seq)
        return ForkPlace(kept, player.replay.state_at(seq), seq)


def _unforkable(recording: OpenedRecording) -> str:
    if recording.judged_by and not recording.foreign:
        return (
            f"This is the session as {recording.judged_by} judges it, which is not what was recorded: "
            "replay it without --policy and fork it there."
        )
    return "This is no saved session: agent-tui sessions import makes it one, which can be forked."
