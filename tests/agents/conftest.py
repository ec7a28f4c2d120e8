"""A stand-in for Claude Code, which writes a session as it does and plays what a test wants."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tui_agent.cli import main

AGENT = """#!{python} -IS
import json, os, sys, time
from datetime import datetime, timezone

here = os.environ["STAND_IN"]
work = os.path.basename(os.path.dirname(os.getcwd())) if os.getcwd().endswith("worktree") else ""
own = here + f"/runs{{work}}.jsonl"
with open(own, "a") as runs:
    runs.write(json.dumps({{"argv": sys.argv[1:], "stdin": sys.stdin.read()}}) + "\\n")
attempt = open(own).read().count("\\n")
play = json.load(open(here + "/play.json"))
play = play[work] if work else play
name = "s" + (work or "1")
session, last, number = here + f"/.claude/projects/proj/{{name}}.jsonl", None, 0


def record(kind, content, **fields):
    global last
    made = os.urandom(16).hex()
    now = datetime.now(timezone.utc).isoformat()
    common = {{"type": kind, "uuid": made, "parentUuid": last, "sessionId": name}}
    common = {{**common, "cwd": os.getcwd(), "timestamp": now}}
    message = {{"role": kind, "content": content, **({{"id": made, "model": "opus"}} if kind == "assistant" else {{}})}}
    message["usage"] = fields.pop("usage", None)
    with open(session, "a") as file:
        file.write(json.dumps({{**common, "message": message, **fields}}) + "\\n")
    last = made


os.makedirs(os.path.dirname(session), exist_ok=True)
if os.path.exists(session):
    last = json.loads(open(session).read().splitlines()[-1])["uuid"]
record("user", "fix it")
for step, value in play[min(attempt, len(play)) - 1]:
    if step == "fail":
        for _ in range(value):
            number += 1
            call = {{"type": "tool_use", "name": "Bash", "input": {{"command": "make"}}}}
            record("assistant", [{{**call, "id": f"t{{attempt}}-{{number}}"}}])
            result = {{"type": "tool_result", "tool_use_id": f"t{{attempt}}-{{number}}", "is_error": True}}
            record("user", [{{**result, "content": "Exit code 2\\nno rule"}}])
    elif step == "fault":
        text = [{{"type": "text", "text": "API Error: " + value}}]
        record("assistant", text, isApiErrorMessage=True)
    elif step == "limit":
        text = [{{"type": "text", "text": value}}]
        record("assistant", text, isApiErrorMessage=True, error="rate_limit", apiErrorStatus=429)
    elif step == "say":
        print(value, flush=True)
    elif step == "answer":
        record("assistant", [{{"type": "text", "text": value}}])
        print(value, flush=True)
    elif step == "helper":
        words, died, told = value
        number += 1
        helper, call = f"h{{attempt}}-{{number}}", f"t{{attempt}}-{{number}}"
        given = {{"description": "look", "prompt": f"look into {{helper}}"}}
        record("assistant", [{{"type": "tool_use", "name": "Task", "id": call, "input": given}}])
        main, last, kept = session, None, last
        session = here + f"/.claude/projects/proj/{{name}}/subagents/agent-{{helper}}.jsonl"
        os.makedirs(os.path.dirname(session), exist_ok=True)
        aside = {{"isSidechain": True, "agentId": helper}}
        record("user", f"look into {{helper}}", **aside)
        record("assistant", [{{"type": "text", "text": words}}], **aside, isApiErrorMessage=died)
        session, last = main, kept
        record("user", [{{"type": "tool_result", "tool_use_id": call, "is_error": told, "content": words}}])
    elif step == "tokens":
        record("assistant", [{{"type": "text", "text": "so far"}}], usage={{"input_tokens": value, "output_tokens": 1}})
    elif step == "raw":
        open(session, "a").write(value)
    elif step == "cut":
        os.truncate(session, value)
    elif step == "lie":
        name = value
    elif step == "spawn":
        import subprocess
        child = subprocess.Popen(["sleep", "600"], start_new_session=True)
        open(here + "/child", "w").write(str(child.pid))
    elif step == "write":
        open(value[0], "w").write(value[1])
    elif step == "interrupted":
        record("user", [{{"type": "text", "text": "[Request interrupted by user]"}}])
    elif step == "signal":
        import signal
        signal.signal(getattr(signal, "SIG" + value), signal.SIG_DFL)
        os.kill(os.getpid(), getattr(signal, "SIG" + value))
    elif step == "wait":
        time.sleep(value)
    elif step == "until":
        while not os.path.exists(value):
            time.sleep(0.02)
    elif step == "exit":
        sys.exit(value)
"""


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="super"))
    for name in ("bin", "work", ".claude"):
        (folder / name).mkdir()
    for name, value in {
        "AGENT_TUI_STATE_DIR": folder / "state",
        "AGENT_TUI_RECOVERY__BACKOFF_BASE": "0.01",
        "STAND_IN": folder,
        "CLAUDE_CONFIG_DIR": folder / ".claude",
        "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
    }.items():
        monkeypatch.setenv(name, str(value))
    agent = folder / "bin" / "claude"
    agent.write_text(AGENT.format(python=sys.executable))
    agent.chmod(0o700)
    monkeypatch.chdir(folder / "work")
    yield folder
    shutil.rmtree(folder)


Supervise = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def supervise(
    home: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Iterator[Supervise]:
    """Supervises in this process, which spares the second of its imports."""

    def run(play: list[Any], *options: str) -> subprocess.CompletedProcess[str]:
        given = command(home, play, *options)[3:]
        code = main(given)
        return subprocess.CompletedProcess(given, code, *capfd.readouterr())

    with Path(os.devnull).open() as nothing:
        monkeypatch.setattr("sys.stdin", nothing)
        yield run


def command(home: Path, play: list[Any], *options: str) -> list[str]:
    (home / "play.json").write_text(json.dumps(play))
    ours = [sys.executable, "-m", "tui_agent", "supervise", *options, "--"]
    return [*ours, "claude", "-p", "fix it", "--model", "opus"]
