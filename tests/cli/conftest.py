"""The command line with nothing of this machine's settings, keys, sessions: in this process, or in one of its own."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest

from tui_agent.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Ended:
    """What a command left behind."""

    code: int
    out: str
    err: str


@dataclass
class CommandLine:
    """Runs `agent-tui` in `workspace`; the state and the configuration lie beside it."""

    workspace: Path
    home: Path
    environment: dict[str, str] = field(default_factory=dict)
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def config_file(self) -> Path:
        return self.home / "config" / "agent-tui" / "config.toml"

    @property
    def state(self) -> Path:
        return self.home / "state" / "agent-tui"

    def environ(self, **changes: str) -> dict[str, str]:
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.upper().startswith("AGENT_TUI_") and not name.upper().endswith("_API_KEY")
        }
        own = {
            "HOME": str(self.home),
            "XDG_CONFIG_HOME": str(self.home / "config"),
            "XDG_STATE_HOME": str(self.home / "state"),
            "PYTHONPATH": str(ROOT),
            "PYTHONUTF8": "1",
        }
        return {**kept, **own, **self.environment, **changes}

    def start(
        self, *arguments: str, stdin: int | None = subprocess.DEVNULL, **changes: str
    ) -> subprocess.Popen[str]:
        """Start `agent-tui`; it is ended with the test at the latest."""
        process = subprocess.Popen(
            [sys.executable, "-m", "tui_agent", *arguments],
            cwd=self.workspace,
            env=self.environ(**changes),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        self.started.append(process)
        return process

    def process(self, *arguments: str, stdin: str | None = None, **changes: str) -> Ended:
        """Run `agent-tui` to its end, in a process of its own."""
        process = self.start(
            *arguments, stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL, **changes
        )
        out, err = process.communicate(stdin, timeout=120)
        return Ended(process.returncode, out, err)

    def __call__(self, *arguments: str, **changes: str) -> Ended:
        """Run `agent-tui` to its end in this process, which spares the half second of its imports."""
        own = logging.getLogger("tui_agent")
        handlers, propagate = own.handlers[:], own.propagate
        out, err, stdin = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(3))
        try:
            with (
                mock.patch.dict(os.environ, self.environ(**changes), clear=True),
                contextlib.chdir(self.workspace),
                contextlib.redirect_stdout(out),
                contextlib.redirect_stderr(err),
                mock.patch.object(sys, "stdin", stdin),
            ):
                code = main(arguments)
        finally:
            own.handlers[:], own.propagate = handlers, propagate
        return Ended(code, *(stream.buffer.getvalue().decode() for stream in (out, err)))

    def scenario(self, text: str) -> str:
        """A scripted model with these turns, as the name of a model."""
        file = self.home / "scenario.toml"
        file.write_text(
            f'title = "t"\ntask = "t"\npolicy = "combined"\napprove = "all"\n[pace]\ninterval = 0\n{text}'
        )
        return f"scripted:{file}"


def failed_result(ended: Ended, code: int) -> dict[str, Any]:
    """The one object on standard output of a run that failed; no traceback anywhere."""
    assert ended.code == code, ended
    assert "Traceback" not in ended.out + ended.err
    (line,) = ended.out.splitlines()
    result = json.loads(line)
    assert isinstance(result, dict)
    assert result["answer"], "a partial answer is given whatever stopped the run"
    return result


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[CommandLine]:
    workspace, home = tmp_path / "workspace", tmp_path / "home"
    workspace.mkdir()
    home.mkdir()
    line = CommandLine(workspace, home)
    yield line
    for process in line.started:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.communicate()


@pytest.fixture
def refused() -> Callable[[Ended, int], str]:
    """Checks a refusal: its exit code, words on standard error alone, two parts at least, no traceback."""

    def check(ended: Ended, code: int) -> str:
        assert ended.code == code, ended
        assert ended.out == ""
        assert "Traceback" not in ended.err
        assert ended.err.startswith("agent-tui")
        assert len([line for line in ended.err.splitlines() if line.strip()]) >= 2, (
            "what and why, then what to do"
        )
        return ended.err

    return check
