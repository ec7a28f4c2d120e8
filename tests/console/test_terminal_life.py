"""What happens to the terminal under the program: stopped and continued, resized without end, smaller than any card."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable

from tests.console.terminal import Terminal


def test_ctrl_z_gives_the_shell_its_terminal_back_and_fg_draws_everything_again(
    start: Callable[..., Terminal],
) -> None:
    terminal = start("-m", "tui_agent", "--model", "openai/none")
    terminal.shows("READY")
    terminal.send("half a sent\x1a")
    terminal.until(lambda: b"\x1b[?1049l" in terminal.output)
    terminal.until(lambda: os.waitid(os.P_PID, terminal.pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT))
    before = len(terminal.output)
    os.kill(terminal.pid, signal.SIGCONT)
    terminal.until(lambda: b"half a sent" in terminal.output[before:])
    terminal.send("ence")
    terminal.shows("half a sentence", "╭─ Conversation", "READY", "F1 help")
    terminal.send("\x11")
    assert terminal.code() == 0


def test_no_size_and_no_storm_of_sizes_ends_the_program(start: Callable[..., Terminal]) -> None:
    terminal = start("-m", "tui_agent", "demo", "recovery", "--step", size=(4, 10))
    terminal.until(lambda: b"\x1b[?2004h" in terminal.output)
    chance = random.Random(7)
    sizes = [(1, 1), (2, 3), (3, 24), (20, 5), (10, 2)]
    sizes += [(chance.choice((1, 4, 20, 60, 120, 200)), chance.choice((1, 5, 24, 60))) for _ in range(30)]
    for number, size in enumerate(sizes):
        terminal.resize(*size)
        if number < 6:
            for key in (
                "x",
                "\x1b[200~a\rb\x1b[201~",
                "\x1bOQ",
                "\x1b[19~",
                "\x1bOP",
                "\x1b",
                "\x10",
                "\x1b",
            ):
                terminal.send(key)
    terminal.resize(100, 30)
    terminal.shows("╭─ Conversation", "Next request", "F1 help")
    terminal.send("\x11")
    terminal.shows("Leaving ends it")


RESIZED_WHILE_READ = """
import os, sys, termios
from tui_agent.__main__ import main
read = os.get_terminal_size
def resized_while_read(handle):
    size = read(handle)
    if size == (90, 25):
        termios.tcsetwinsize(handle, (30, 100))
    return size
os.get_terminal_size = resized_while_read
sys.argv = ["agent-tui", "demo", "recovery", "--step"]
sys.exit(main())
"""


def test_of_two_sizes_the_newer_one_stays_also_where_it_comes_while_the_older_one_is_read(
    start: Callable[..., Terminal],
) -> None:
    terminal = start("-c", RESIZED_WHILE_READ)
    terminal.shows("Next request")
    terminal.resize(90, 25)
    terminal.until(lambda: terminal.size == (100, 30))
    terminal.resize(100, 30)
    terminal.shows("╭" + "─" * 98 + "╮", "F1 help")
