"""Commands that take time and print while they run, in a real terminal: each line is seen, and the console lives on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.console.terminal import Terminal

pytestmark = pytest.mark.process

CHATTY = r"""
title = "Chatty"
task = "Run them."
approve = "all"

[pace]
chars = [40, 40]
interval = 0.001
pause = 0.0

[[turns]]
calls = [{ tool = "bash", args = { command = '''
echo one; sleep 0.4; echo two; sleep 0.4
printf three; sleep 0.4; echo; echo four''' } }]

[[turns]]
calls = [{ tool = "bash", args = { command = '''
for n in 1 2 3; do printf "\r\033[32mat %s of 3\033[0m" $n; sleep 0.3; done; echo''' } }]

[[turns]]
calls = [{ tool = "bash", args = { command = '''
for n in $(seq 8); do head -c 50000 /dev/zero | tr "\0" x; echo; echo piece $n; done
sleep 0.3; printf "the end"''' } }]

[[turns]]
calls = [
  { tool = "bash", args = { command = "for n in 1 2 3; do echo left $n; sleep 0.2; done" } },
  { tool = "bash", args = { command = "for n in 1 2 3; do echo right $n; sleep 0.3; done; echo oops >&2; exit 3" } },
]

[[turns]]
text = "All of them ran."
"""


def test_each_line_of_chatty_commands_is_seen_while_they_run(
    start: Callable[..., Terminal], tmp_path: Path
) -> None:
    scenario = tmp_path / "chatty.toml"
    scenario.write_text(CHATTY)
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "console.json").write_text('{"view": "full"}')  # what has ended stays in sight
    terminal = start(
        *("-m", "tui_agent", "--model", f"scripted:{scenario}", "--workspace", str(tmp_path)),
        *("--approve", "all", "run them"),
        size=(100, 40),
    )
    for lines in (
        ("one",),
        ("two",),
        ("three",),
        ("four",),
        ("at 1 of 3",),
        ("at 2 of 3",),
        ("at 3 of 3",),
        ("piece 8", "the end"),
        ("left 3", "right 3", "oops"),
        ("All of them ran.",),
    ):
        terminal.shows(*(f"│ {line}" if "ran" not in line else line for line in lines))
    terminal.shows("DONE")
    terminal.send("still here")
    terminal.shows("still here")
    assert "could not be drawn" not in terminal.picture
    terminal.send("\x11")
    assert terminal.code() == 0
    assert b"Traceback" not in terminal.output
