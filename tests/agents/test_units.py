"""Units of service managers are text that goes on with a night, and a machine that goes down stops no task."""

from __future__ import annotations

import os
import plistlib
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.agents.conftest import Supervise
from tui_agent.agents import supervision
from tui_agent.agents.night import nights
from tui_agent.agents.units import launchd, systemd
from tui_agent.cli import main

WORDS = [
    "/opt/my python/bin/python",
    "-m",
    "tui_agent",
    "--until=2026-11-28 07:00:00",
    'a"b\\c',
    "50%",
    "$HOME",
]
PLACE = {"PATH": "/usr/bin:/opt/my tools"}


def test_a_systemd_unit_holds_each_word_as_it_is(tmp_path: Path) -> None:
    unit = systemd(WORDS, Path("/home/me/100%"), PLACE)
    lines = dict(line.split("=", 1) for line in unit.splitlines() if "=" in line and line[0] != "#")
    assert [word.replace("%%", "%").replace("$$", "$") for word in shlex.split(lines["ExecStart"])] == WORDS
    assert lines["WorkingDirectory"] == "/home/me/100%%"
    assert lines["Environment"] == '"PATH=/usr/bin:/opt/my tools"'
    if verify := shutil.which("systemd-analyze"):
        (tmp_path / "agent-tui-night.service").write_text(systemd(["/bin/true", *WORDS[3:]], tmp_path, PLACE))
        done = subprocess.run(
            [verify, "verify", "--user", "--man=no", tmp_path / "agent-tui-night.service"],
            capture_output=True,
            text=True,
            check=False,
            # Without it, the user's manager is not asked, and every unit passes.
            env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)},
        )
        assert (done.returncode, "agent-tui-night.service:" in done.stderr) == (0, False), done.stderr


def test_a_launchd_file_is_a_property_list() -> None:
    held = plistlib.loads(launchd(WORDS, Path("/Users/me"), PLACE).encode())
    assert (held["ProgramArguments"], held["EnvironmentVariables"]) == (WORDS, PLACE)
    assert (held["RunAtLoad"], held["KeepAlive"]) == (True, {"Crashed": True})


@pytest.mark.parametrize("kind", ["systemd", "launchd"])
def test_a_unit_is_printed_and_goes_on_with_what_is_open_alone(
    kind: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tasks = home / "nightly.toml"
    tasks.write_text(
        "workspace = 'work'\nworktrees = false\n[[tasks]]\nname = 'a'\ncommand = 'claude -p a'\n"
    )
    assert main(["supervise", "--tasks", str(tasks), "--max-resumes", "3", "--print-unit", kind]) == 0
    said = capsys.readouterr().out
    assert all(word in said for word in (f"--tasks={tasks}", "--go-on", "--max-resumes=3"))
    assert main(["supervise", "--tasks", str(tasks), "--go-on"]) == 0
    assert "is open" in capsys.readouterr().err
    assert nights(home / "state") == []
    assert main(["supervise", "--go-on", "--", "claude", "-p", "a"]) == 2


@pytest.mark.parametrize("down", [True, False], ids=["by the machine's end", "by a person"])
def test_what_the_end_of_the_machine_stops_stays_open(
    down: bool, home: Path, supervise: Supervise, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervision, "machine_goes_down", lambda: down)
    assert supervise([[("fail", 1), ("signal", "TERM")]]).returncode == 143
    (task,) = nights(home / "state")[0].tasks
    assert (task.ended is None) == down
