"""What reaches an operator who looks elsewhere: the window's title, the bell, a notification of the desktop.

The title always says how the run stands; the bell rings and a notification is sent only while the terminal has not the
focus, once for a question and once for the end of a run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent.terminal_text import one_line

if TYPE_CHECKING:
    from tui_agent.core.state import RunState

NAME = "agent-tui"
LONGEST = 80
"""Characters of a title or notification."""

KEEP_TITLE, RESTORE_TITLE = "\x1b[22;2t", "\x1b[23;2t"
"""The title before and after us is the terminal's own."""

BELL = "\x07"


class Attention:
    """Writes the sequences; `ways` are those of bell, title and desktop that are wanted."""

    def __init__(
        self,
        write: Callable[[str], None],
        looking: Callable[[], bool],
        ways: tuple[str, ...],
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        """`looking`: whether the terminal has the focus."""
        self._write = write
        self._looking = looking
        self.ways = ways
        self._environment = environment
        self._title = ""
        self._told = ""

    def show(self, state: RunState) -> None:
        """Say how the run stands, where that has changed."""
        title, event = describe(state)
        if "title" in self.ways and title != self._title:
            if not self._title:
                self._write(KEEP_TITLE)
            self._write(f"\x1b]2;{title}{BELL}")
        self._title = title
        if event == self._told:
            return
        self._told = event
        if not event or self._looking():
            return
        if "bell" in self.ways:
            self._write(BELL)
        if "desktop" in self.ways:
            self._write(notification(title, self._environment))

    def end(self) -> None:
        """Give the terminal its title back."""
        if "title" in self.ways and self._title:
            self._write(RESTORE_TITLE)


def describe(state: RunState) -> tuple[str, str]:
    """The window's title, and what the operator is called for (empty: nothing); another text is another call."""
    task = one_line(state.session.title or state.run.task, LONGEST)
    if state.escalation is not None:
        return f"● needs you — {one_line(state.escalation.question, LONGEST)}", f"asked {state.escalation.id}"
    if state.approvals:
        asked = state.approvals[0]
        return f"● needs you — approve {one_line(asked.tool, LONGEST)}", f"approve {asked.id}"
    if state.running:
        return f"▶ {task}", ""
    if state.run.outcome is not None:
        word = str(state.run.outcome).replace("_", " ")
        return f"{'✓' if word == 'answered' else '■'} {word} — {task}", f"ended {state.run.number}"
    return f"{NAME} — {one_line(Path(state.session.workspace).name, LONGEST)}", ""


def notification(text: str, environment: Mapping[str, str]) -> str:
    """The sequence by which this terminal shows a notification; empty within tmux and screen, which swallow it."""
    program, term = environment.get("TERM_PROGRAM", ""), environment.get("TERM", "")
    if environment.get("TMUX") or term.startswith(("screen", "tmux", "linux", "dumb")):
        return ""
    if "kitty" in term or environment.get("KITTY_WINDOW_ID"):
        return f"\x1b]99;;{text}\x1b\\"
    if term.startswith(("foot", "rxvt")) or program == "ghostty" or environment.get("VTE_VERSION"):
        return f"\x1b]777;notify;{NAME};{text}\x1b\\"
    return f"\x1b]9;{text}{BELL}"
