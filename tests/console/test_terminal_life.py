"""What happens to the terminal under the program: stopped and continued, resized without end, smaller than any card."""

from __future__ import annotations

import os
import random
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.console.terminal import Terminal

pytestmark = pytest.mark.process

TAKEN = b"\x1b[?2004h"
"""Written once the terminal sends each key as it is; before, the kernel echoes what is typed, and keeps ^Q."""


def test_ctrl_z_gives_the_shell_its_terminal_back_and_fg_draws_everything_again(
    start: Callable[..., Terminal],
) -> None:
    terminal = start(
        "-c", 'import os; os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])', PS1="shell: "
    )
    terminal.shows("shell: ")
    terminal.send(f"sh -c '{sys.executable} -m tui_agent --model scripted:recovery; exit $?'\r")
    terminal.shows("READY")
    terminal.send("half a sent\x1a")
    terminal.shows("Stopped")
    before = len(terminal.output)
    terminal.send("fg\r")
    terminal.until(lambda: b"half a sent" in terminal.output[before:])
    terminal.send("ence")
    terminal.shows("half a sentence", "╭─ Conversation", "READY", "F1 help")
    terminal.send("\x11")
    terminal.until(lambda: terminal.output.endswith(b"shell: "))
    terminal.send("exit $?\r")
    assert terminal.code() == 0


def test_ctrl_z_where_no_shell_would_continue_the_console_is_refused(start: Callable[..., Terminal]) -> None:
    terminal = start("-m", "tui_agent", "--model", "scripted:recovery")
    terminal.shows("READY")
    terminal.send("half a sent\x1a")
    terminal.shows("There is no shell to go back to")
    os.kill(terminal.pid, signal.SIGTSTP)
    terminal.send("ence")
    terminal.shows("half a sentence")
    terminal.send("\x11")
    assert terminal.code() == 0


EDITOR = """#!/bin/sh
cd "${0%/*}"
stty -a | grep -q -- -icanon && echo raw
echo >> begun
case $(wc -l < begun) in
    1) stty raw; kill -9 $$ ;;
    2) echo begun-$$; exec sleep 600 ;;
    *) rm "$0"; exit 1 ;;
esac
"""
"""Fails in another way each time, and is gone in the end."""


@pytest.mark.parametrize(
    ("editor", "says"),
    [
        (
            "",
            (
                "ended with signal 9",
                "ended with signal 2",
                "ended with exit code 1",
                "could not be used",
            ),
        ),
        ("an 'unclosed quote", ("closing quotation",)),
    ],
    ids=["each time in another way", "before it begins"],
)
def test_an_editor_that_fails_gives_the_terminal_back_and_leaves_the_draft(
    start: Callable[..., Terminal], tmp_path: Path, editor: str, says: tuple[str, ...]
) -> None:
    failing = tmp_path / "failing-editor"
    failing.write_text(EDITOR)
    failing.chmod(0o755)
    # By its name: where a notification is wrapped may not hang on the length of a path.
    found = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    terminal = start(
        "-m", "tui_agent", "--model", "scripted:recovery", VISUAL=editor or failing.name, PATH=found
    )
    terminal.shows("READY")
    terminal.send("the draft")
    for time, words in enumerate(says, 2):
        terminal.send("\x07")
        if words.endswith("signal 2"):
            terminal.until(lambda: b"begun-" in terminal.output)
            terminal.send("\x03")
        terminal.until(lambda time=time: terminal.output.count(TAKEN) == time)
        terminal.shows(words)
        terminal.send(" stays")
        terminal.shows("the draft" + " stays" * (time - 1), "╭─ Conversation", "F1 help")
    assert b"\nraw" not in terminal.output
    terminal.send("\x11")
    assert terminal.code() == 0


BESIDE_THE_EDITOR = """
[[turns]]
calls = [{ tool = "bash", args = { command = "until [ -e go ]; do sleep 0.2; done" } }]

[[turns]]
text = "It is built."
"""


def test_a_run_goes_on_while_its_prompt_is_in_the_editor(
    start: Callable[..., Terminal], tmp_path: Path
) -> None:
    scenario, editor = tmp_path / "beside.toml", tmp_path / "editor"
    scenario.write_text(BESIDE_THE_EDITOR)
    editor.write_text(
        f"""#!/bin/sh
touch {tmp_path}/go
until grep -q '"type":"run_finished"' {tmp_path}/state/sessions/*/events.jsonl; do sleep 0.2; done
printf ', edited' >> "$1"
"""
    )
    editor.chmod(0o755)
    options = ("--model", f"scripted:{scenario}", "--workspace", str(tmp_path), "--approve", "all")
    terminal = start("-m", "tui_agent", *options, VISUAL=str(editor))
    terminal.shows("READY")
    terminal.send("build it\r")
    terminal.shows("until [ -e go ]")
    terminal.send("the next task\x07")
    terminal.shows("the next task, edited", "DONE", "It is built.")
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
    terminal = start("-c", RESIZED_WHILE_READ, size=(80, 24))
    terminal.shows("Next request")
    terminal.resize(90, 25, drawn_for=(100, 30))
    terminal.until(lambda: terminal.size == (100, 30))
    terminal.shows("╭" + "─" * 98 + "╮", "F1 help")
