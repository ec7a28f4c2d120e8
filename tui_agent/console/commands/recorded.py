"""The commands over a recording: a saved session, a run of a board, another agent's session while it runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent.console.commands.shown import OPENING, ShownCommands
from tui_agent.frontend.commands.view import ForkPlace, Patch
from tui_agent.store.errors import SessionError

if TYPE_CHECKING:
    from tui_agent.console.screens.dashboard_screen import DashboardScreen
    from tui_agent.console.screens.player import Player
    from tui_agent.frontend.startup import Recorded
    from tui_agent.frontend.why import Why
    from tui_agent.session.recordings import OpenedRecording


class ReplayCommands(ShownCommands):
    """The commands that make sense over a saved session."""

    coming = "", ""

    def __init__(self, screen: DashboardScreen, shown: Callable[[], tuple[Recorded, Player] | None]) -> None:
        """`shown`: what is played, and where; None as long as it is being opened."""
        super().__init__(screen)
        self._shown = shown

    @property
    def _opened(self) -> bool:
        return self._shown() is not None

    @property
    def _played(self) -> tuple[Recorded, Player]:
        played = self._shown()
        if played is None:
            raise ValueError(OPENING)
        return played

    @property
    def source(self) -> Path:
        return self._played[0].path

    async def place(self) -> ForkPlace:
        """After the event that is shown."""
        recorded, player = self._played
        if not recorded.recording.as_recorded:
            raise ValueError(_unforkable(recorded.recording))
        if not player.there:
            raise ValueError("The session is still being read up to here.")
        seq = max(1, player.position)
        return ForkPlace(self.source, player.replay.state_at(seq), seq)

    async def patch(self) -> Patch | None:
        """Up to the position, or the step before it; None where the session's checkpoints are not on this machine."""
        from tui_agent.session.rewind import kept_before_run
        from tui_agent.store.checkpoints import Checkpoints
        from tui_agent.store.journal import sessions_folder
        from tui_agent.store.provenance import is_foreign

        state, (recorded, player) = self.state, self._played
        before, after = kept_before_run(state), player.replay.kept_then(player.position)
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


class FollowedCommands(ReplayCommands):
    """The commands over a run of a board."""

    async def leave(self) -> None:
        """As the board does, where there is one."""
        board = next((tab for tab in self.app.tabs if tab.is_board), None)
        if board is None:
            await self.app.leave()
        else:
            self.app.show_tab(board)
            board.commands.run("quit")


class WatchCommands(FollowedCommands):
    """The commands over another agent's session while it runs."""

    def __init__(
        self,
        screen: DashboardScreen,
        shown: Callable[[], tuple[Recorded, Player] | None],
        kept: Callable[[int], Path],
    ) -> None:
        """`kept` saves what is known up to an event as a session of ours."""
        super().__init__(screen, shown)
        self._kept = kept

    async def place(self) -> ForkPlace:
        """After the event that is shown, in a session of ours that is made of what is known up to it."""
        player = self._played[1]
        if not player.there or not player.position:
            raise ValueError("The session is still being read up to here.")
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
