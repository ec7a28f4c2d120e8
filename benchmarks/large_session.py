"""The console over a session of 10,000 messages, in a terminal of its own, beside an empty one and a bare text area.

    python benchmarks/large_session.py [--messages 10000] [--echoes 200] [--idle 20]

Limits: the echo of a key p99 ≤ 50 ms, while nothing else happens, while messages are appended, while the
conversation is scrolled, while the terminal is resized and while the theme changes; memory ≤ 150 MB above an empty
console's; < 0.5 % of a processor while nothing happens; the session's end is shown, and a key echoed, < 1 s after an
empty console would do so. When a message that is sent then is acted on is told too, and has no limit: the session is
whole by then, read through when it is opened for the first time, and by its saved state when it was closed before.
Exits with 1 where a limit is missed.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from key_echo import LETTERS, REFERENCE, told
from long_session import long_session
from terminal import Terminal

from tui_agent.core import events
from tui_agent.store.lines import encode

ROOT = Path(__file__).resolve().parents[1]
MEMORY = 150.0
"""MB."""
IDLE = 0.5
"""Percent of a processor."""
RESUMED = 1.0
"""Seconds."""
END = "The last answer of the large session"
ACTED = b"look at the next part"
"""What a run says first."""
SIZE = (120, 40)
MESSAGES = (events.RunStarted, events.ReplyFinished, events.ToolSucceeded, events.ToolFailed)

APPENDING = '''
title = "More of it"
task = "Go on."
approve = "all"

[pace]
chars = [4, 8]
interval = 0.001
pause = 0.0

[[turns]]
label = "look"
text = """
I look at the next part of it, and say at some length what I expect to see there before I do. *Then* I look.
"""
calls = [{ tool = "list_dir", args = {} }]
next = "look"
'''


def write_session(path: Path, messages: int, workspace: Path) -> int:
    """A finished session of so many messages; returns its events."""
    path.parent.mkdir(parents=True)
    count = said = 0
    with path.open("wb") as file:
        for event in long_session(sys.maxsize):
            count += 1
            said += isinstance(event, MESSAGES)
            if isinstance(event, events.SessionStarted):
                event = event.model_copy(update={"workspace": str(workspace)})
            last = said >= messages and isinstance(event, events.RunFinished)
            file.write(encode(event.model_copy(update={"answer": END}) if last else event))
            if last:
                break
    return count


def echoes(
    terminal: Terminal, count: int, before: Callable[[int], None] = lambda number: None
) -> list[float]:
    """Do something, then type a letter at once: milliseconds until the prompt shows it, `count` times."""
    times = []
    for number in range(count):
        before(number)
        marker = LETTERS[number % len(LETTERS)].encode()
        start = len(terminal.seen)
        sent = terminal.send(marker)
        times.append((terminal.wait_for(marker, 20.0, start) - sent) * 1000)
        if number % len(LETTERS) == len(LETTERS) - 1:
            terminal.send(b"\x15")  # empties the line, so that the prompt stays small
            terminal.drain(0.2)
        terminal.drain(0.05)
    terminal.send(b"\x15")
    return times


class Start(NamedTuple):
    """Seconds on the clock, and of processor time, from a console's start until something is on the screen."""

    clock: float
    processor: float

    def beyond(self, other: Start) -> str:
        """How much more this is, in words."""
        return f"{self.clock - other.clock:+.2f} s ({self.processor - other.processor:+.2f} s of a processor)"


def since_start(terminal: Terminal, marker: bytes, start: int = 0) -> Start:
    """Wait until `marker` stands in the output after byte `start`."""
    return Start(terminal.wait_for(marker, 60.0, start) - terminal.started, terminal.cpu())


def rest(terminal: Terminal) -> None:
    """Wait until the program has nothing more to do."""
    before, now = float("-inf"), terminal.cpu()
    while now - before > 0.1:
        terminal.drain(1.0)
        before, now = now, terminal.cpu()


def begin(command: list[str], env: dict[str, str], shown: bytes) -> tuple[Start, Start, Start]:
    """When `shown` is on the screen, when the first key after it is echoed, and when a message that is sent then has
    the first words of its answer.
    """
    with Terminal(command, SIZE, env) as terminal:
        seen = since_start(terminal, shown)
        start = len(terminal.seen)
        terminal.send(LETTERS[0].encode())
        echoed = since_start(terminal, LETTERS[0].encode(), start)
        start = len(terminal.seen)
        terminal.send(b"\x15go on\r")
        return seen, echoed, since_start(terminal, ACTED, start)


def begins(command: list[str], model: list[str], env: dict[str, str], journal: Path) -> bool:
    """Print how much later than an empty console the session is there; whether that keeps the limit."""
    new, closed = (journal.parent.with_name(name) for name in ("new", "closed"))
    for folder in (new, closed):
        shutil.copytree(journal.parent, folder)
    with Terminal([*command, "resume", closed.name, *model], SIZE, env) as terminal:
        terminal.wait_for(b"DONE", 60.0)
        rest(terminal)  # all of it was read: its state is saved when it is closed
    empty = begin([*command, *model], env, b"READY")
    good = True
    for name, folder in (("opened for the first time", new), ("opened again", closed)):
        times = begin([*command, "resume", folder.name, *model], env, END.encode())
        told = zip(("its end is shown", "a key echoed", "a message acted on"), times, empty, strict=True)
        print(f"{name}: {', '.join(f'{what} {time.beyond(other)}' for what, time, other in told)}")
        good &= times[1].clock - empty[1].clock < RESUMED
    print(f"beyond an empty console   limit {RESUMED} s until the key is echoed")
    return good


def idle(terminal: Terminal, name: str, seconds: float) -> bool:
    """Print what an idle console costs; whether it keeps the limit."""
    terminal.drain(2.0)
    before = terminal.cpu()
    terminal.drain(seconds)
    share = (terminal.cpu() - before) / seconds * 100
    print(f"{name:<28} idle for {seconds:.0f} s: {share:.2f} % of a processor   limit {IDLE} %")
    return share < IDLE


def main() -> int:
    """Measure all; exit code 1 where a limit is not kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=10_000)
    parser.add_argument("--echoes", type=int, default=200)
    parser.add_argument("--idle", type=float, default=20.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        return measure(Path(temporary), options.messages, options.echoes, options.idle)


def measure(folder: Path, messages: int, count: int, idle_seconds: float) -> int:
    """All of it, with files in `folder`."""
    workspace = folder / "workspace"
    workspace.mkdir()
    journal = folder / "sessions" / "bench" / "events.jsonl"
    written = write_session(journal, messages, workspace)
    print(f"a session of {messages:,} messages: {written:,} events, {journal.stat().st_size / 1e6:.1f} MB")
    script = folder / "appending.toml"
    script.write_text(APPENDING, encoding="utf-8")
    bare = folder / "bare.py"
    bare.write_text(REFERENCE, encoding="utf-8")
    env = {"PYTHONPATH": str(ROOT), "AGENT_TUI_STATE_DIR": str(folder), "XDG_CONFIG_HOME": str(folder)}
    command = [sys.executable, "-m", "tui_agent"]
    model = ["--model", f"scripted:{script}", "--workspace", str(workspace)]
    good = begins(command, model, env, journal)
    with Terminal([sys.executable, str(bare)], SIZE, env) as terminal:
        terminal.wait_for(b"first paint")
        told("a bare TextArea", echoes(terminal, count), worst=False)
    with Terminal([*command, *model], SIZE, env) as terminal:
        terminal.wait_for(b"READY")
        terminal.drain(3.0)
        good &= told("an empty console", echoes(terminal, count), worst=False)
        good &= idle(terminal, "an empty console", idle_seconds)
        empty_size = terminal.rss()
    with Terminal([*command, "resume", "bench", *model], SIZE, env) as terminal:
        terminal.wait_for(b"DONE", 60.0)
        terminal.drain(3.0)
        good &= told("the large session", echoes(terminal, count), worst=False)
        good &= idle(terminal, "the large session", idle_seconds)
        for name, before in disturbances(terminal):
            good &= told(name, echoes(terminal, count, before), worst=False)
        terminal.send(b"go on\r")
        terminal.wait_for(ACTED, start=len(terminal.seen))
        good &= told("while messages are appended", echoes(terminal, count), worst=False)
        grown = (terminal.rss() - empty_size) / 1e6
        print(
            f"memory: {grown:.0f} MB above an empty console's {empty_size / 1e6:.0f} MB   limit {MEMORY:.0f} MB"
        )
        good &= grown <= MEMORY
    return 0 if good else 1


def disturbances(terminal: Terminal) -> list[tuple[str, Callable[[int], None]]]:
    """What happens right before a key, by name."""
    themes = ("agent-light", "agent-dark")

    def scroll(number: int) -> None:
        up = 64 if number // 40 % 2 == 0 else 65
        terminal.send(f"\x1b[<{up};20;10M".encode() * 3)

    def resize(number: int) -> None:
        terminal.resize(SIZE[0] - (number % 7) * 3, SIZE[1] - number % 5)

    def theme(number: int) -> None:
        terminal.drain(0.5)
        terminal.send(f"\x15/theme {themes[number % 2]}".encode())
        terminal.drain(0.5)
        terminal.send(b"\r")
        terminal.drain(0.03 * (number % 10))  # a key at each stage of it

    return [
        ("while it is scrolled", scroll),
        ("while the terminal is resized", resize),
        ("while the theme changes", theme),
    ]


if __name__ == "__main__":
    raise SystemExit(main())
