"""Each command is implemented once: what it does and answers is the same in both consoles, which draw it."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.console.conftest import no_fixed_waits as no_fixed_waits
from tests.console.real_session import real_live
from tests.console.terminal import LIMIT, ROOT
from tui_agent.console.screens.live import LiveScreen
from tui_agent.console.screens.replay import ReplayScreen
from tui_agent.frontend.commands.command import Command
from tui_agent.frontend.commands.dispatch import command_behind
from tui_agent.frontend.commands.host import SessionHost
from tui_agent.frontend.commands.registry import BY_NAME, COMMANDS, use_keys
from tui_agent.plain.commands import PlainHost


@pytest.fixture
def no_keys() -> Iterator[None]:
    """As in lines."""
    use_keys(dict.fromkeys(BY_NAME, ""))
    yield
    use_keys({})


def test_consoles_define_nothing_but_how_a_command_is_drawn() -> None:
    """No method of theirs stands beside a command's class, under its name or Textual's for it."""
    drawn = {name for name, _ in inspect.getmembers(SessionHost) if not name.startswith("_")}
    lines = {name for name in vars(PlainHost) if not name.startswith("_")}
    assert lines - {"write", "shown"} <= drawn
    screens = {name for each in (LiveScreen, ReplayScreen) for name, _ in inspect.getmembers(each)}
    actions = {f"action_{name.replace('-', '_')}" for name in BY_NAME}
    # Esc closes what is open before it interrupts.
    assert screens & actions == {"action_interrupt"}


def test_a_class_stands_for_one_command_and_does_it() -> None:
    kinds = [type(command) for command in COMMANDS]
    assert len(set(kinds)) == len(kinds)
    assert all(kind.do is not Command.do for kind in kinds)
    assert [name for name, command in BY_NAME.items() if name != command.name] == []


ANSWERED = (
    "/auto",
    "/step",
    "/pause",
    "/interrupt",
    "/skip-wait",
    "/stop",
    "/policy hpd",
    "/policy nonsense",
    "/profile nonsense",
    "/approve writes",
    "/approve maybe",
    "/note",
    "/note Look again",
    "/note drop",
    "/permissions allow bash(make *)",
    "/permissions remove 9",
    "/permissions nonsense",
    "/skills nothing",
    "/breaker bash",
    "/breaker nothing open",
    "/background",
    "/background stop b1",
    "/background now",
    "/mcp trust nothing",
    "/mcp now",
    "/unqueue",
    "/queue",
    "/diff",
    "/why",
    "/plan",
    "/copy",
    "/title A new name",
    "/rewind",
    "/rewind undo",
    "/rewind now",
    "/undo",
    "/redo",
    "/export nonsense",
    "/export markdown said.md",
    "/export markdown said.md",
    "/login nothing",
    "/nonsense",
    "/pause now",
)
"""Lines in a session in which nothing was done yet, that are answered in words or show by themselves."""


async def test_both_consoles_answer_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_keys: None
) -> None:
    folders = tmp_path / "screen", tmp_path / "lines"
    for folder in folders:
        folder.mkdir()
    answers: dict[str, str] = {}
    monkeypatch.chdir(folders[0])
    async with real_live(folders[0], []) as console:
        for line in ANSWERED:
            console.app.clear_notifications()
            console.screen.prompt.put("")
            await console.say(line)
            await console.until(lambda: all(worker.group != "commands" for worker in console.app.workers))
            answers[line] = " ".join(console.remarks().split())
    monkeypatch.undo()
    scenario = folders[1] / "nothing.toml"
    scenario.write_text('[[turns]]\ntext = "done"\n')
    workspace = folders[1] / "workspace"
    workspace.mkdir()
    options = {"workspace": workspace, "state-dir": folders[1] / "state", "model": f"scripted:{scenario}"}
    given = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    done = subprocess.run(
        [sys.executable, "-m", "tui_agent", "--plain", *given],
        cwd=folders[1],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        input="".join(f"{line}\n" for line in ANSWERED),
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    spoken = " ".join(done.stdout.replace(str(folders[1]), str(folders[0])).split())
    missing = {line: answer for line, answer in answers.items() if answer not in spoken}
    assert missing == {}
    assert sum(bool(answer) for answer in answers.values()) > 30


@pytest.mark.parametrize(
    ("text", "before", "found"),
    [
        ("fix it /redo", "", "/redo"),
        ("fix it\n/model openai/x", "", "/model openai/x"),
        ("fix it/redo", "fix it", "/redo"),
        ("fix it /policy hpd", "fix it", "/policy hpd"),
        ("/redo", "", ""),
        ("/redo", "fix it", ""),
        (" /redo", "", ""),
        ("look at docs/help", "", ""),
        ("read /etc/hosts", "", ""),
        ("what does /redo do?", "", ""),
        ("fix it /nosuch", "", ""),
        ("", "", ""),
    ],
)
def test_a_command_behind_a_text_is_known(text: str, before: str, found: str) -> None:
    assert command_behind(text, before) == found
