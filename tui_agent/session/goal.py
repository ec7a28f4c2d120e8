"""The goal of a run: a command whose exit code says if the work is done, and how often an agent is sent back.

A round without progress ends as one before did: with the same failures, and with files as they were then. Times,
addresses and the order of lines are no difference. Neither the agent nor the command is run in here.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import stat
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tui_agent import untrusted_files
from tui_agent.core import events
from tui_agent.core.framed import framed
from tui_agent.headline import last_line
from tui_agent.quantities import counted, whole_seconds
from tui_agent.terminal_text import one_line

MOST_ROUNDS = 10
"""How often an answer is sent back because its check fails."""
ROUNDS = 3
"""Rounds in a row without progress after which the agent is not sent back any more."""
_TOLD = 3_000
"""Characters of the output that the agent is told."""
_VARIES = re.compile(
    r"0x[0-9a-fA-F]+|\b\d+(?:[.:]\d+)+(?:Z|[+-]\d\d:?\d\d)?\b|\b\d{4}-\d\d-\d\dT?"
    r"|\b\d+(?:\.\d+)? ?(?:ms|s|secs?|seconds?|min)\b|/(?:tmp|var/folders)/[^\s:'\"]*|(?<=seed)\W{0,3}\d+",
)
"""What differs from one run of the same tests to the next."""
_MADE = frozenset(
    {".git", ".hg", ".jj", "node_modules", "__pycache__", ".venv", ".tox", ".nox", ".pytest_cache"}
)
"""Folders that tools fill by themselves."""
_MOST_FILES = 100_000
_LARGEST = 1 << 20
"""Bytes of a file that is compared by its content."""


@dataclass(frozen=True)
class Goal:
    """When the work is done."""

    check: str
    """A line for the shell; exit code 0: it is done."""
    words: str = ""
    """The goal as the person puts it."""
    seconds: float = 1_800.0
    """Longest time of a check."""


@dataclass(frozen=True)
class Checked:
    """The outcome of a check. `code` is None if it was not over in time."""

    code: int | None
    output: str

    @property
    def passed(self) -> bool:
        return self.code == 0

    def in_words(self, goal: Goal) -> str:
        """`exit code 1: 2 failed, 5 passed`."""
        if self.code is None:
            return f"it was not over within {whole_seconds(goal.seconds)}"
        said = one_line(last_line(self.output), 200)
        return f"exit code {self.code}" + (f": {said}" if said else "")

    def verdict(self, goal: Goal) -> str:
        """What an agent is told that knows the output."""
        return (
            f"The work is not done: its check `{goal.check}` failed ({self.in_words(goal).partition(':')[0]}). "
            + (f"The goal is: {goal.words}\n" if goal.words else "")
            + "Mend what makes it fail, and leave the check as it is."
        )

    def told(self, goal: Goal) -> str:
        """The next prompt of an agent, with the end of the output."""
        end = self.output.strip()[-_TOLD:]
        said = f"The end of its output:{framed(end, _TOLD)}" if end else "It printed nothing."
        return f"{self.verdict(goal)} {said}"

    @property
    def failures(self) -> str:
        """The failures, for comparison with those of another round."""
        lines = {_VARIES.sub("#", line).strip() for line in self.output.splitlines()}
        return hashlib.sha256("\n".join([str(self.code), *sorted(lines)]).encode()).hexdigest()


@dataclass(frozen=True)
class Rounds:
    """The rounds of an agent whose check fails."""

    red: int = 0
    idle: int = 0
    """Those in a row that brought nothing new."""
    left: str = ""
    """The files after the newest check, which may have written some itself."""
    seen: frozenset[str] = field(default_factory=frozenset)
    """Failures and states of files of all rounds."""

    def failed(self, failures: str, files: str, left: str) -> Rounds:
        """One more red check. `files`: as the agent left them; `left`: as the check did."""
        same = failures in self.seen and (files == self.left or files in self.seen)
        seen = self.seen | {failures, files, left}
        return Rounds(self.red + 1, self.idle + 1 if same else 0, left, seen)

    @property
    def hopeless(self) -> str:
        """The reason why no further round is worth it; empty if one is."""
        return f"{counted(ROUNDS, 'round')} brought nothing new" if self.idle >= ROUNDS else ""


class Unmet(NamedTuple):
    """Why a goal is not reached, and what became of the run by that."""

    outcome: events.Outcome
    why: str


class GoalKeeper:
    """Checks the answers of a session's runs, and says what the model is told next. `goal` is the session's;
    `workspace` is where its files are.
    """

    def __init__(self, goal: Callable[[], Goal | None], workspace: Path) -> None:
        self._goal = goal
        self._workspace = workspace
        self._rounds = Rounds()
        self._since = 0.0
        self._checking: asyncio.Future[Checked] | None = None
        self.carry_out: Callable[[Goal], Awaitable[Checked]] | None = None
        """Runs the command; without it nothing is checked."""
        self.unmet: Unmet | None = None
        """The end of the newest run's rounds, if its check still fails."""

    def begin(self) -> None:
        """The operator wants something new."""
        self._rounds, self._since, self.unmet = Rounds(), time.time(), None

    def interrupt(self) -> None:
        """End the check that runs."""
        if self._checking is not None:
            self._checking.cancel()

    async def judged(self, finished: events.RunFinished | None) -> str:
        """What the model is told after the check of an answer; empty if the work is done, or goes no further."""
        goal = self._goal()
        if (
            goal is None
            or self.carry_out is None
            or finished is None
            or finished.outcome is not events.Outcome.ANSWERED
        ):
            return ""
        files = await self._files()
        self._checking = asyncio.ensure_future(self.carry_out(goal))
        try:
            await asyncio.wait({self._checking})
        finally:
            self._checking.cancel()
        if self._checking.cancelled():
            self.unmet = Unmet(events.Outcome.INTERRUPTED, "It was interrupted while its check ran.")
            return ""
        found = self._checking.result()
        if found.passed:
            return ""
        self._rounds = self._rounds.failed(found.failures, files, await self._files())
        why = f"The check still fails ({found.in_words(goal)})"
        if self._rounds.hopeless:
            self.unmet = Unmet(events.Outcome.STOPPED, f"{why}, and {self._rounds.hopeless}.")
        elif self._rounds.red > MOST_ROUNDS:
            self.unmet = Unmet(events.Outcome.PARTIAL, f"{why} after {MOST_ROUNDS} rounds.")
        return "" if self.unmet else found.verdict(goal)

    async def _files(self) -> str:
        return await asyncio.to_thread(files_of, self._workspace, self._since)


def files_of(workspace: Path, since: float) -> str:
    """The state of the files. Those that changed after `since` count by their content, so that a change that is taken
    back is none. Blocking.
    """
    digest = hashlib.sha256()
    for number, (path, state) in enumerate(_files(workspace)):
        if number == _MOST_FILES:
            break
        digest.update(
            f"\0{path.relative_to(workspace)}\0{state.st_mode}\0".encode("utf-8", "surrogateescape")
        )
        content = b""
        if state.st_mtime >= since and state.st_size <= _LARGEST:
            with suppress(OSError):
                content = untrusted_files.content(path, _LARGEST, workspace)
        digest.update(content or f"{state.st_size} {state.st_mtime_ns}".encode())
    return digest.hexdigest()


def _files(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Regular files in the order of their names."""
    with suppress(OSError):
        for entry in sorted(os.scandir(folder), key=lambda one: one.name):
            with suppress(OSError):
                state = entry.stat(follow_symlinks=False)
                if stat.S_ISREG(state.st_mode):
                    yield Path(entry.path), state
                elif stat.S_ISDIR(state.st_mode) and entry.name not in _MADE:
                    yield from _files(Path(entry.path))
