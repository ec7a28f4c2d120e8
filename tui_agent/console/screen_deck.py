"""The commands that make sense over any session, live or saved: what is seen, forking, exporting, leaving.

They talk to the screen through `Surface`; the decks of the two screens add their own.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from tui_agent.console.frame import PANE_NAMES

if TYPE_CHECKING:
    from tui_agent.console.screens.fork import ForkChoice
    from tui_agent.sessions.fork_point import ForkPoint
    from tui_agent.sessions.rewind import RewindPlan
    from tui_agent.sessions.session import Session
    from tui_agent.state import RunState

Severity = Literal["information", "warning", "error"]


class Surface(Protocol):
    """What the deck asks of the screen."""

    def say(self, text: str, severity: Severity = "information") -> None: ...
    def redraw(self) -> None: ...
    def put_in_prompt(self, text: str) -> None: ...
    def edit_note(self, note: str) -> None: ...
    def themes(self) -> Sequence[str]: ...
    def use_theme(self, name: str) -> None: ...
    def focus_pane(self, name: str) -> None: ...
    def open_jump(self) -> None: ...
    def toggle_panes(self) -> None: ...
    def next_pane(self) -> None: ...
    def open_help(self) -> None: ...
    async def open_sessions(self) -> None: ...
    async def choose_rewind(self, session: Session, *, undo: bool) -> RewindPlan | None: ...
    async def choose_fork(self, point: ForkPoint) -> ForkChoice | None: ...
    async def go_over(
        self, session_id: str, what: Literal["resume", "replay"], changed: frozenset[str] = frozenset()
    ) -> None: ...
    async def confirm_leaving(self) -> bool: ...
    async def leave(self) -> None: ...


class ScreenDeck:
    """Commands that make sense over a live session and over a saved one."""

    def __init__(self, surface: Surface) -> None:
        self._surface = surface

    def set_theme(self, name: str) -> None:
        """Change the colours at once."""
        if name in self._surface.themes():
            self._surface.use_theme(name)
        else:
            self._surface.say(
                f"There is no theme {name}. There are {', '.join(self._surface.themes())}.", "warning"
            )

    def theme_names(self) -> Sequence[str]:
        """Themes that can be chosen."""
        return self._surface.themes()

    def pane_names(self) -> Sequence[str]:
        """Where `/jump` can go."""
        return (*PANE_NAMES, "prompt")

    def jump(self, pane: str) -> None:
        """Go to a pane by name, or choose one by its letter."""
        if not pane:
            self._surface.open_jump()
        elif pane in self.pane_names():
            self._surface.focus_pane(pane)
        else:
            self._surface.say(
                f"There is no pane {pane}. There are {', '.join(self.pane_names())}.", "warning"
            )

    def toggle_panes(self) -> None:
        """Show or hide the recovery panes."""
        self._surface.toggle_panes()

    def next_pane(self) -> None:
        """Go to the next recovery pane."""
        self._surface.next_pane()

    def show_help(self) -> None:
        """Keys, commands, panes."""
        self._surface.open_help()

    async def show_sessions(self) -> None:
        """The saved sessions."""
        await self._surface.open_sessions()

    async def quit(self) -> None:
        """Leave."""
        await self._surface.leave()

    async def _fork(self, parent: Path, state: RunState, seq: int | None) -> None:
        from tui_agent.sessions.errors import SessionError
        from tui_agent.sessions.fork_point import fork_point
        from tui_agent.sessions.upkeep import adopt_checkpoints

        try:
            point = await asyncio.to_thread(fork_point, parent, state, seq)
            chosen = await self._surface.choose_fork(point)
            if chosen is None:
                return
            folder = await asyncio.to_thread(_forked, parent, chosen)
        except SessionError as error:
            self._surface.say(str(error), "error")
            return
        await adopt_checkpoints(folder)
        what_if = chosen.what_if
        changed = {"policy": what_if.policy, "model": what_if.model}
        # What this start was told on the command line must not outweigh what was chosen for the fork.
        held = frozenset(name for name, value in changed.items() if value is not None)
        await self._surface.go_over(folder.name, "resume", held)

    async def _export(self, folder: Path, argument: str) -> None:
        from tui_agent.sessions.errors import SessionError

        try:
            file = await asyncio.to_thread(_exported, folder, argument)
        except (SessionError, ValueError, OSError) as error:
            self._surface.say(f"The session was not exported: {error}", "error")
        else:
            self._surface.say(f"The session was written to {file}")


def _forked(parent: Path, chosen: ForkChoice) -> Path:
    """Make the fork beside its parent; its folder."""
    from tui_agent.sessions.fork import fork
    from tui_agent.sessions.redaction import Redactor
    from tui_agent.sessions.session import new_session_id

    now = time.time()
    return fork(
        parent,
        (parent if parent.is_dir() else parent.parent).parent,
        new_session_id(now),
        at=now,
        seq=chosen.seq,
        what_if=chosen.what_if,
        redactor=Redactor.from_environment(os.environ),
    )


def _exported(folder: Path, argument: str) -> Path:
    """Write the file that `[FORMAT] [FILE]` asks for; its path. Raises `ValueError` for an unknown format."""
    from tui_agent.sessions.export import FORMATS, SUFFIXES, export_session

    words = argument.split(maxsplit=1)
    given = words[0] if words else "markdown"
    chosen = next((name for name in FORMATS if name == given), None)
    if chosen is None:
        raise ValueError(f"there is no format {given}; choose one of {', '.join(FORMATS)}.")
    file = (
        Path(words[1]).expanduser() if len(words) > 1 else Path(f"agent-tui-{folder.name}{SUFFIXES[chosen]}")
    )
    text = export_session(folder, chosen)
    with file.open("x", encoding="utf-8") as target:
        target.write(text)
    return file.resolve()
