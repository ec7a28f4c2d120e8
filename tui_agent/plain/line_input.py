"""Lines for the plain console: typed at a terminal, with editing and history, or read from a pipe.

A line is asked for by `want`. At a terminal one may also be typed while none is asked for; a pipe is read only when a
line is wanted, so that each line of a script meets the question that it was written for.
"""

from __future__ import annotations

import asyncio
import os
import select
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from types import ModuleType
from typing import NamedTuple, Protocol

from tui_agent.plain.paper import PROMPT, Paper
from tui_agent.terminal_text import sanitize

PASTE = 0.05
"""Seconds within which a further line belongs to the same paste."""


class Ahead(NamedTuple):
    """Input that was typed before it was asked for: whole lines, and the beginning of one."""

    lines: Sequence[str] = ()
    draft: str = ""
    taken: bool = False
    """The draft was taken out of the terminal: the line that is typed on does not begin with it any more."""


class Receiver(Protocol):
    """Takes what was read; called in the event loop."""

    def line(self, text: str, *, echoed: bool) -> None:
        """A line without its end. `echoed`: it stands on the paper already."""

    def ended(self, *, for_good: bool) -> None:
        """The end of the input was said (Ctrl+D); `for_good`: no line comes any more."""


class LineInput(Protocol):
    """A source of lines."""

    interactive: bool
    """Somebody types: lines may come unasked, or too early to be meant for a question."""

    def start(self, receiver: Receiver) -> None:
        """Deliver to `receiver` from now on."""

    def want(self, draft: str = "") -> None:
        """Ask for a line, unless one is asked for already; `draft` stands in it if lines can be edited."""

    def typed_ahead(self) -> Ahead:
        """Take the input that was typed before now, if that is known."""

    def remember(self, texts: Sequence[str]) -> None:
        """Put texts into the editor's history, the oldest first."""

    def lent(self) -> AbstractContextManager[None]:
        """Inside, another program gets the keys. Raises `ValueError` if a line is asked for."""

    def close(self) -> None:
        """Leave the terminal as it was."""


class Pipe:
    """Lines of standard input, one each time one is wanted."""

    interactive = False

    def __init__(self) -> None:
        self._wanted = False

    def start(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._loop = asyncio.get_running_loop()

    def want(self, draft: str = "") -> None:
        if not self._wanted:
            self._wanted = True
            threading.Thread(target=self._read, daemon=True).start()

    def typed_ahead(self) -> Ahead:
        return Ahead()

    def remember(self, texts: Sequence[str]) -> None:
        """A pipe has no history."""

    def lent(self) -> AbstractContextManager[None]:
        return nullcontext()

    def close(self) -> None:
        """A thread that still reads ends with the process."""

    def _read(self) -> None:
        try:
            line = sys.stdin.readline() if sys.stdin is not None else ""
        except (OSError, ValueError):
            line = ""
        with suppress(RuntimeError):  # the loop has been closed
            self._loop.call_soon_threadsafe(self._got, line)

    def _got(self, line: str) -> None:
        self._wanted = False
        if line:
            self._receiver.line(line.rstrip("\r\n"), echoed=False)
        else:
            self._receiver.ended(for_good=True)


class Keyboard:
    """Lines typed at a terminal.

    If they can be edited, the editor has the terminal while a line is wanted; else, and while none is wanted,
    the terminal itself collects and echoes them.
    """

    interactive = True

    def __init__(self, paper: Paper, *, editing: bool, complete: Callable[[str], Sequence[str]]) -> None:
        import termios

        self._paper = paper
        self._fd = sys.stdin.fileno()
        self._before = termios.tcgetattr(self._fd)
        self._wanted = False
        self._listening = False
        self._rest = b""
        self._draft = ""
        self._editor = _editor(complete, lambda: self._draft) if editing else None
        paper.typed = self._in_prompt

    def start(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._loop = asyncio.get_running_loop()
        self._listen()

    def remember(self, texts: Sequence[str]) -> None:
        """Put texts into the editor's history, the oldest first."""
        if self._editor is not None:
            for text in texts:
                self._editor.add_history(" ".join(text.split("\n")))

    def want(self, draft: str = "") -> None:
        if self._wanted:
            return
        self._paper.end()
        if draft and self._editor is None:
            self._paper.line(f"(Kept from before: {sanitize(draft)})")
        self._wanted = True
        if self._editor is None:
            self._paper.prompt()
            return
        self._loop.remove_reader(self._fd)
        self._listening = False
        self._draft = draft
        threading.Thread(target=self._edit, daemon=True).start()

    @contextmanager
    def lent(self) -> Iterator[None]:
        if self._wanted:
            raise ValueError("Answer what is asked first.")
        self._loop.remove_reader(self._fd)
        self._listening = False
        try:
            yield
        finally:
            self._listen()

    def typed_ahead(self) -> Ahead:
        """Input that waits in the terminal, also the beginning of a line; text in the open editor stays
        there.
        """
        if not self._listening:
            return Ahead(draft=self._in_prompt() or "")
        data = self._rest + self._drained()
        whole, newline, self._rest = data.rpartition(b"\n")
        draft, self._rest = _text(self._rest), b""
        return Ahead(_text(whole).split("\n") if newline else (), draft, taken=True)

    def close(self) -> None:
        import termios

        if self._listening:
            self._loop.remove_reader(self._fd)
        if self._wanted:
            self._wanted = False
            self._paper.line()
        with suppress(OSError, termios.error):
            termios.tcsetattr(self._fd, termios.TCSADRAIN, self._before)

    def _listen(self) -> None:
        if not self._listening:
            self._listening = True
            self._loop.add_reader(self._fd, self._readable)

    def _readable(self) -> None:
        try:
            data = os.read(self._fd, 65_536)
        except OSError:  # the terminal is gone
            self._loop.remove_reader(self._fd)
            self._listening = False
            self._receiver.ended(for_good=True)
            return
        if not data:
            self._wanted = False
            self._receiver.ended(for_good=False)
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._wanted = False
            self._receiver.line(_text(line), echoed=True)

    def _drained(self) -> bytes:
        """Input that the terminal holds, without waiting for the end of a line."""
        import termios

        mode = termios.tcgetattr(self._fd)
        at_once = [*mode[:6], [*mode[6]]]
        at_once[3] &= ~termios.ICANON
        at_once[6][termios.VMIN], at_once[6][termios.VTIME] = 0, 0
        termios.tcsetattr(self._fd, termios.TCSANOW, at_once)
        try:
            return os.read(self._fd, 65_536)
        finally:
            termios.tcsetattr(self._fd, termios.TCSANOW, mode)

    def _in_prompt(self) -> str | None:
        """The text in an open prompt, as far as it is known; None if none is open."""
        if not self._wanted:
            return None
        return "" if self._editor is None else self._editor.get_line_buffer()

    def _edit(self) -> None:
        try:
            lines = [input(PROMPT)]
            while select.select([self._fd], [], [], PASTE)[0]:
                lines.append(input())
        except (EOFError, OSError, ValueError):
            lines = []
        with suppress(RuntimeError):  # the loop has been closed
            self._loop.call_soon_threadsafe(self._edited, lines)

    def _edited(self, lines: list[str]) -> None:
        self._wanted = False
        if lines:
            self._listen()
            self._receiver.line("\n".join(lines), echoed=True)
        else:
            self._listen()
            self._paper.line()
            self._receiver.ended(for_good=False)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace").replace("\r", "")


def _editor(complete: Callable[[str], Sequence[str]], draft: Callable[[], str]) -> ModuleType | None:
    """The standard library's line editor, set up; None if this Python has none."""
    try:
        import readline
    except ImportError:
        return None
    if "libedit" in (readline.__doc__ or ""):
        readline.parse_and_bind("bind ^I rl_complete")
    else:
        # Both write control sequences of their own; a paste is known by how fast it comes.
        readline.parse_and_bind("set enable-bracketed-paste off")
        readline.parse_and_bind("set enable-meta-key off")
        readline.parse_and_bind("set bell-style none")
        readline.parse_and_bind("tab: complete")
    readline.set_auto_history(False)
    readline.set_completer_delims(" \t\n")

    fitting: list[str] = []

    def completer(_: str, place: int) -> str | None:
        if place == 0:
            fitting[:] = complete(readline.get_line_buffer()[: readline.get_endidx()])
        return fitting[place] if place < len(fitting) else None

    readline.set_completer(completer)
    readline.set_startup_hook(lambda: readline.insert_text(draft()))
    return readline
