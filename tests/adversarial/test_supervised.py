"""Attacks on `supervise`: what stands among the sessions that it reads, readers and agents that never end; it ends
within two seconds of its limit, and of SIGTERM.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.adversarial.attack import Attack, attack, attacks
from tests.adversarial.ending import ends_here
from tui_agent import bounded_process
from tui_agent.agents import follower
from tui_agent.agents.followed import Followed
from tui_agent.cli import main

LIMIT = 1.0
LATE = 2.0
SLACK = 60.0
"""Seconds for a busy machine, beyond those that are promised: what hangs would take all of a test's patience."""
SLEEPS = "#!/bin/sh\nexec sleep 600\n"
DEAF = "#!/bin/sh\ntrap '' TERM INT HUP\nwhile :; do sleep 0.1; done\n"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "bin").mkdir()
    (tmp_path / "work").mkdir()
    (tmp_path / ".claude" / "projects" / "work").mkdir(parents=True)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / ".claude"))
    monkeypatch.setenv("AGENT_TUI_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path / "work")
    agent(tmp_path, SLEEPS)
    return tmp_path


def agent(home: Path, script: str) -> None:
    program = home / "bin" / "claude"
    program.write_text(script)
    program.chmod(0o700)


def supervised(monkeypatch: pytest.MonkeyPatch) -> tuple[int, float]:
    """Its exit code, and the seconds that it took beyond its limit."""
    with Path(os.devnull).open() as nothing:
        monkeypatch.setattr("sys.stdin", nothing)
        began = time.monotonic()
        code = ends_here(lambda: main(["supervise", "--timeout", str(LIMIT), "--", "claude", "-p", "x"]))
        return code, time.monotonic() - began - LIMIT


def gone(pid: int) -> bool:
    """Whether a process has ended; nobody may have asked for its exit code yet."""
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z"


def planted(home: Path, how: str) -> None:
    place = home / ".claude" / "projects" / "work" / "s.jsonl"
    match how:
        case "pipe":
            os.mkfifo(place)
        case "device":
            place.symlink_to("/dev/zero")
        case "sparse":
            with place.open("wb") as file:
                file.truncate(10 << 30)
        case "circle":
            (place.parent / "again").symlink_to("..")
            (place.parent.parent / "self").symlink_to(".")
        case _:
            place.symlink_to("/proc/kmsg")


@attacks(
    *(
        Attack(
            f"{name}_among_its_sessions",
            f"{what} among the sessions of the agent",
            "It ends within two seconds of its limit, and of SIGTERM",
            fell,
            value=name,
        )
        for name, what, fell in (
            ("pipe", "A named pipe", "it hung for good, beyond its limit and SIGTERM"),
            ("device", "A link to /dev/zero", ""),
            ("sparse", "A file of 10 GB without content", ""),
            ("circle", "A circle of folders", ""),
            ("kernel_log", "A link to the kernel's log, which waits for news", "it waited for news"),
        )
    )
)
def test_among_its_sessions(row: Attack, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planted(home, row.value)
    code, late = supervised(monkeypatch)
    assert (code, late < LATE + SLACK) == (130, True)


@pytest.mark.process
@attack(
    "SIGTERM while a named pipe and an endless device stand among the sessions",
    "It ends, and the agent with it",
    fell="it ignored the signal",
)
def test_signal_with_a_pipe_among_its_sessions(home: Path) -> None:
    planted(home, "pipe")
    (home / ".claude" / "projects" / "work" / "z.jsonl").symlink_to("/dev/zero")
    agent(home, f"#!/bin/sh\necho $$ > {home}/pid\nexec sleep 600\n")
    running = subprocess.Popen(
        [sys.executable, "-m", "tui_agent", "supervise", "--", "claude", "-p", "x"],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    pid = home / "pid"

    def started() -> None:
        while not (pid.exists() and pid.read_text().strip()):
            assert running.poll() is None
            time.sleep(0.02)

    try:
        ends_here(started)
        running.send_signal(signal.SIGTERM)
        began = time.monotonic()
        assert running.wait(60) == 130
        assert time.monotonic() - began < LATE + SLACK
        assert gone(int(pid.read_text()))
    finally:
        running.kill()
        running.wait()


def forever(*_: Any, **__: Any) -> Any:
    time.sleep(600)


def expression(*_: Any, **__: Any) -> Any:
    """Holds the interpreter, and looks at no signal, for longer than anybody lives."""
    return re.fullmatch(r"(a|aa)+$", "a" * 200 + "b")


def filling(*_: Any, **__: Any) -> Any:
    held = []
    while True:
        held.append(bytearray(64 << 20))


def dying(*_: Any, **__: Any) -> Any:
    os.kill(os.getpid(), signal.SIGKILL)


@attacks(
    *(
        Attack(
            f"reader_that_{name}",
            f"A reader that {what}, at its {when}",
            "The run ends in time",
            fell,
            value=(work, method),
        )
        for name, what, when, fell, work, method in (
            ("hangs", "waits for good", "first look", "the run waited with it", forever, "look"),
            ("hangs_at_once", "waits for good", "beginning", "the run waited with it", forever, "begin"),
            ("hangs_at_last", "waits for good", "last look", "the run waited with it", forever, "end"),
            ("holds_on", "holds the interpreter", "first look", "no limit and no signal was seen", expression, "look"),
        )
    )
)  # fmt: skip
def test_readers(row: Attack, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work: Callable[..., Any]
    work, method = row.value
    monkeypatch.setattr(Followed, method, work)
    if method == "end":
        monkeypatch.setattr(follower, "_LAST_LOOK", 0.2)
        agent(home, "#!/bin/sh\nexit 7\n")
        assert supervised(monkeypatch)[0] == 7
        return
    code, late = supervised(monkeypatch)
    assert (code, late < LATE + SLACK) == (130, True)


@attacks(
    *(
        Attack(
            f"reader_that_{name}",
            f"A reader that {what}, at its first look",
            "It ends alone; that nothing is judged any more is said, and the agent goes on to its end",
            fell,
            value=work,
        )
        for name, what, fell, work in (
            ("fills_the_memory", "takes all memory", "it took all of the machine's", filling),
            ("dies", "is ended by the system", "", dying),
        )
    )
)
def test_readers_that_are_lost(
    row: Attack, home: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    begun = home / "begun"

    def look(*_: Any, **__: Any) -> Any:
        begun.touch()
        return row.value()

    monkeypatch.setattr(Followed, "look", look)
    monkeypatch.setattr(follower, "MEMORY", 1 << 28)
    agent(home, f"#!/bin/sh\nuntil [ -e {begun} ]; do sleep 0.02; done\nexit 7\n")
    with Path(os.devnull).open() as nothing:
        monkeypatch.setattr("sys.stdin", nothing)
        assert ends_here(lambda: main(["supervise", "--", "claude", "-p", "x"])) == 7
    assert "nothing of it is judged any more" in capfd.readouterr().err


@attack(
    "An agent that ignores SIGTERM, with a child of its own session",
    "It is killed, and the run ends within two seconds of its limit",
    fell="it had five seconds more, and what it had said six",
)
def test_agent_that_will_not_end(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agent(home, DEAF.replace("while", f"setsid sleep 600 &\necho $! > {home}/child\nwhile"))
    code, late = supervised(monkeypatch)
    assert (code, late < LATE + SLACK) == (130, True)
    assert gone(int((home / "child").read_text()))


@attack(
    "An agent that writes without end, faster than it is read",
    "The run ends in time, and holds no more than the end of it",
)
def test_agent_that_never_stops_writing(
    home: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    agent(home, "#!/bin/sh\nexec yes\n")
    code, late = supervised(monkeypatch)
    capfd.readouterr()
    assert (code, late < LATE + SLACK) == (130, True)


@attack(
    "Work that is bounded takes more time or more memory than it may, or says nothing",
    "Whoever asked for it is told, and goes on",
)
def test_bounded_work() -> None:
    with pytest.raises(TimeoutError):
        ends_here(lambda: bounded_process.carried_out(forever, seconds=0.1, memory=1 << 30))
    for work in (filling, dying, bytes):
        with pytest.raises(MemoryError):
            ends_here(lambda work=work: bounded_process.carried_out(work, seconds=50, memory=1 << 28))
    assert bounded_process.carried_out(lambda: b"x" * 5_000_000, seconds=50, memory=1 << 28)[:1] == b"x"
