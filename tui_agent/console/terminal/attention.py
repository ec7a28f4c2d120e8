"""Calls to an operator who looks elsewhere: the window's title, the bell, a notification of the desktop.

The title always says how the run stands; the bell rings and a notification is sent only while the terminal has not the
focus, once for a question and once for the end of a run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent.terminal_text import one_line

if TYPE_CHECKING:
    from tui_agent.core.state import RunState

NAME = "agent-tui"
LONGEST = 80
"""Characters of a title or notification."""

NEEDS = "● needs you — "
ASKS = "asks"
"""How a call for an answer begins."""

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
        self._called: frozenset[str] = frozenset()

    def show(self, states: Sequence[RunState], shown: RunState | None) -> None:
        """Tell the state of the runs, if it has changed. `shown`: the one of `states` that is on the screen."""
        described = {state.session.id: describe(state) for state in states}
        calls = {f"{name} {event}": said for name, (said, event) in described.items() if event}
        asking = [said for said, event in described.values() if event.startswith(ASKS)]
        title = self._title if shown is None else described[shown.session.id][0]
        if asking and (len(asking) > 1 or title != asking[0]):
            asked = asking[0].removeprefix(NEEDS)
            title = f"{NEEDS}{asked}" if len(asking) == 1 else f"● {len(asking)} need you — {asked}"
        if "title" in self.ways and title != self._title:
            if not self._title:
                self._write(KEEP_TITLE)
            self._write(f"\x1b]2;{title}{BELL}")
        self._title = title
        new = [said for call, said in calls.items() if call not in self._called]
        self._called = frozenset(calls)
        if not new or self._looking():
            return
        if "bell" in self.ways:
            self._write(BELL)
        if "desktop" in self.ways:
            for said in new:
                self._write(notification(said, self._environment))

    def end(self) -> None:
        """Give the terminal its title back."""
        if "title" in self.ways and self._title:
            self._write(RESTORE_TITLE)


def describe(state: RunState) -> tuple[str, str]:
    """How a session stands, and what the operator is called for (empty: nothing); another text is another call."""
    task = one_line(state.session.title or state.run.task, LONGEST)
    asked = state.asked
    if asked is not None:
        words = asked.in_words if asked.type == "escalation_raised" else f"approve {asked.tool}"
        return f"{NEEDS}{one_line(words, LONGEST)}", f"{ASKS} {asked.id}"
    if state.server_questions:
        question = state.server_questions[0]
        text = one_line(f"{question.server}: {question.message}", LONGEST)
        return f"{NEEDS}{text}", f"{ASKS} {question.id}"
    if state.running:
        return f"▶ {task}", ""
    if state.run.outcome is not None:
        word = state.run.outcome.in_words
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
