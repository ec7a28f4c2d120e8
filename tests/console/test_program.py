"""The program as a process: what its first paint imports, how it is left, what it says of what is wrong."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.console.terminal import ROOT, Terminal
from tests.store.session_events import write_session
from tui_agent.core import events
from tui_agent.store.session_store import SessionStore

DUMP_AT_FIRST_PAINT = """
import json, sys
from tui_agent.frontend.arguments import ConsoleArguments
import tui_agent.cli, tui_agent.cli.console
from tui_agent.console import program

async def start(self):
    self.exit_text = "modules " + json.dumps(sorted(sys.modules))
    self.exit()

program.ConsoleApp.open_first_session = start
from tui_agent.console.app import run_console
sys.exit(run_console(ConsoleArguments()))
"""


@pytest.mark.process
def test_the_first_paint_imports_nothing_heavy(start: Callable[..., Terminal]) -> None:
    console = start("-c", DUMP_AT_FIRST_PAINT)
    assert console.code() == 0
    modules = console.output.rpartition(b"modules ")[2].decode()
    assert '"tui_agent.console.looks.splash"' in modules
    for heavy in (
        "pydantic",
        "pydantic_core",
        "litellm",
        "tui_agent.core.events",
        "tui_agent.core.state",
        "openai",
        "aiofiles",
        "sqlite3",
        "tui_agent.terminal_text",
        "textual.widgets._text_area",
    ):
        assert f'"{heavy}"' not in modules


@pytest.mark.process
def test_ctrl_q_restores_the_terminal_brings_the_list_up_to_date_and_lets_old_sessions_go(
    start: Callable[..., Terminal], tmp_path: Path
) -> None:
    old = tmp_path / "state" / "sessions" / "old"
    write_session(old, [events.SessionStarted(session_id="old", workspace="/w")])
    os.utime(old / "events.jsonl", (1_000_000_000, 1_000_000_000))
    console = start("-m", "tui_agent", "--model", "scripted:recovery", AGENT_TUI_RETENTION_DAYS="30")
    console.until(lambda: b"READY" in console.output)
    console.send(b"\x11")
    assert console.code() == 0
    assert b"\x1b[?1049l" in console.output
    assert b"\x1b[?25h" in console.output
    assert b"Traceback" not in console.output
    store = SessionStore(tmp_path / "state")
    assert [row.id for row in store.trash()] == ["old"]
    assert store.stale() == 0
    assert len(store.rows()) == 1


@pytest.mark.process
@pytest.mark.parametrize(
    "number",
    [
        signal.SIGTERM,
        *(pytest.param(each, marks=pytest.mark.slow) for each in (signal.SIGINT, signal.SIGHUP)),
    ],
)
def test_a_signal_closes_the_session_in_good_order(
    start: Callable[..., Terminal], tmp_path: Path, number: int
) -> None:
    console = start("-m", "tui_agent", "--model", "openai/none")
    console.until(lambda: b"READY" in console.output)
    os.kill(console.pid, number)
    assert console.code() == 130
    assert b"Traceback" not in console.output
    journals = list((tmp_path / "state" / "sessions").glob("*/events.jsonl"))
    assert len(journals) == 1
    assert journals[0].read_bytes().endswith(b"}\n")


@pytest.mark.process
def test_a_terminal_that_goes_away_ends_the_program_with_a_run_and_a_tab_without_one(
    start: Callable[..., Terminal], tmp_path: Path
) -> None:
    console = start("-m", "tui_agent", "demo", "parallel", AGENT_TUI_MODEL="openai/none")
    console.until(lambda: b"AUTO" in console.output)
    console.send(b"\x14")
    console.shows("2 ○ new session", "READY")
    console.hang_up()
    assert console.code() == 130
    journals = list((tmp_path / "state" / "sessions").glob("*/events.jsonl"))
    assert len(journals) == 2
    assert all(journal.read_bytes().endswith(b"}\n") for journal in journals)


@pytest.mark.process
@pytest.mark.parametrize(
    ("arguments", "env", "says"),
    [
        (["--workspace", "/no/such/folder"], {}, b"/no/such/folder"),
        pytest.param([], {"AGENT_TUI_POLICY": "nonsense"}, b"AGENT_TUI_POLICY", marks=pytest.mark.slow),
        pytest.param(["--config", "/no/such.toml"], {}, b"/no/such.toml", marks=pytest.mark.slow),
        (["resume", "nothing-like-it"], {}, b"nothing-like-it"),
    ],
)
def test_what_is_wrong_is_said_on_the_normal_screen_with_exit_code_2(
    start: Callable[..., Terminal], arguments: list[str], env: dict[str, str], says: bytes
) -> None:
    console = start("-m", "tui_agent", *arguments, **{"AGENT_TUI_MODEL": "openai/none", **env})
    assert console.code() == 2
    after = console.output.rpartition(b"\x1b[?1049l")[2]
    assert says in after.replace(b"\r\n", b"")
    assert b"Traceback" not in console.output


@pytest.mark.process
def test_a_fault_of_its_own_names_the_log_and_restores_the_terminal(
    start: Callable[..., Terminal], tmp_path: Path
) -> None:
    broken = (
        "from tui_agent.console import program, app\n"
        "from tui_agent.frontend.arguments import ConsoleArguments\n"
        "def begin(self): raise RuntimeError('[/boom] \\x1b]0;x\\x07 broken')\n"
        "program.ConsoleApp.on_ready = begin\n"
        "import sys; sys.exit(app.run_console(ConsoleArguments()))\n"
    )
    console = start("-c", broken)
    assert console.code() == 1
    after = console.output.rpartition(b"\x1b[?1049l")[2]
    assert b"RuntimeError" in after
    assert b"Traceback" not in after
    logs = list((tmp_path / "state").glob("crash-*.log"))
    assert len(logs) == 1
    assert "Traceback" in logs[0].read_text(encoding="utf-8")
    assert logs[0].name.encode() in after.replace(b"\r\n", b"")


def test_without_a_terminal_it_names_the_command_that_needs_none(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tui_agent"],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env={**os.environ, "AGENT_TUI_STATE_DIR": str(tmp_path)},
        check=False,
        timeout=60,
    )
    assert done.returncode == 2
    assert b"agent-tui run" in done.stderr
    assert done.stdout == b""
