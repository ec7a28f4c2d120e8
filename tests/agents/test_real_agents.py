"""The real program, where it is there, against a scripted model on this machine: what its next request holds."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.anthropic_server import calls, says
from tests.openai_server import Answer, OpenAIServer, Recorded, json_answer

CLAUDE = shutil.which("claude")


class Model(OpenAIServer):
    """Calls one failing command again and again, then gives up."""

    def respond(self, request: Recorded) -> Answer:
        if "messages" not in request.path or "count_tokens" in request.path:
            return json_answer({"input_tokens": 10})
        if not any(tool.get("name") == "Bash" for tool in request.body.get("tools", [])):
            return says("ok")
        self.requests.append(request)
        number = len(self.requests)
        if number > 5:
            return says("I gave up.")
        return calls([("Bash", {"command": "python3 nope.py", "description": "run it"})], first=number)


@pytest.mark.slow
@pytest.mark.skipif(CLAUDE is None, reason="Claude Code is not on the PATH")
async def test_claude_code_reads_the_note_and_the_refusal() -> None:
    assert CLAUDE is not None
    with tempfile.TemporaryDirectory(prefix="hooks") as name:
        folder = Path(name)
        (folder / "work").mkdir()
        environment = {
            **os.environ,
            "HOME": name,
            "XDG_RUNTIME_DIR": name,
            "AGENT_TUI_STATE_DIR": f"{name}/state",
            "ANTHROPIC_API_KEY": "sk-ant-none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "IS_SANDBOX": "1",
        }
        ours = [sys.executable, "-m", "tui_agent", "hooks"]
        place = {"cwd": folder / "work", "env": environment}
        subprocess.run([*ours, "install", "claude-code", "--yes"], check=True, capture_output=True, **place)
        async with Model() as model:
            environment["ANTHROPIC_BASE_URL"] = model.url.removesuffix("/v1")
            process = await asyncio.create_subprocess_exec(
                CLAUDE, "-p", "fix it", "--dangerously-skip-permissions",
                stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, **place,
            )  # fmt: skip
            said, _ = await asyncio.wait_for(process.communicate(), 120)
        assert (process.returncode, said) == (0, b"I gave up.\n")
        sent = [json.dumps(request.body["messages"]) for request in model.requests]
        assert "recovery_note" in sent[1]
        assert "The second failure of this call of Bash" in sent[2]
        assert "This call of Bash was not executed: it failed 3 times" in sent[4]
        told = subprocess.run([*ours, "status"], check=True, capture_output=True, text=True, **place).stdout
        assert "errors 0" in told
        for socket in (folder / "agent-tui").glob("hooks-*"):
            socket.unlink()
