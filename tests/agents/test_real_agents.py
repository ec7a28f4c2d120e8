"""The real program, where it is there, against a scripted model on this machine: what its next request holds."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.anthropic_server import calls, event, says
from tests.openai_server import DONE, Answer, OpenAIServer, Recorded, Step, chunk, json_answer, stream, text
from tui_agent.agents.dialects import DIALECTS
from tui_agent.agents.supervision import GO_ON

CALL = "python3 nope.py"
TRIES = 5
PATIENCE = 900.0
"""Seconds for a program to end, however busy the machine is."""


def completion(number: int, tool: str, given: dict[str, Any]) -> Answer:
    function = {"name": tool, "arguments": json.dumps(given)}
    call = {"index": 0, "id": f"c{number}", "type": "function", "function": function}
    return stream(chunk({"role": "assistant", "tool_calls": [call]}), chunk(finish="tool_calls"), DONE)


class Model(OpenAIServer):
    """Calls one failing command again and again, then gives up, in either provider's protocol."""

    def __init__(self, tries: int = TRIES) -> None:
        super().__init__()
        self.tries = tries

    def turn(self, number: int) -> str:
        """The command that the model calls; "" if it gives up."""
        return CALL if number <= self.tries else ""

    words = "I gave up."

    def respond(self, request: Recorded) -> Answer:
        tools = request.body.get("tools", [])
        if request.path.endswith("/responses"):
            self.requests.append(request)
            return self._responses(len(self.requests))
        if "streamGenerateContent" in request.path:
            self.requests.append(request)
            return self._contents(len(self.requests))
        if request.path.endswith("/chat/completions"):
            if not tools:
                return text("A title")
            self.requests.append(request)
            offered = {tool["function"]["name"] for tool in tools}
            shell = next((name for name in ("Bash", "run_shell_command") if name in offered), "bash")
            return self._completion(len(self.requests), shell)
        if "messages" not in request.path or "count_tokens" in request.path:
            return json_answer({"input_tokens": 10, "models": [], "data": []})
        if not any(tool.get("name") == "Bash" for tool in tools):
            return says("ok")
        self.requests.append(request)
        number = len(self.requests)
        if not (command := self.turn(number)):
            return says(self.words)
        return calls([("Bash", {"command": command, "description": "run it"})], first=number)

    def _responses(self, number: int) -> Answer:
        item: dict[str, Any] = {"type": "message", "role": "assistant", "id": f"m{number}"}
        item["content"] = [{"type": "output_text", "text": self.words}]
        if command := self.turn(number):
            given = json.dumps({"cmd": command})
            own = {"id": f"f{number}", "call_id": f"c{number}"}
            if any(one["type"] == "additional_tools" for one in self.requests[-1].body["input"]):
                script = f"const r = await tools.exec_command({given}); text(r.output);"
                item = {"type": "custom_tool_call", "name": "exec", "input": script, **own}
            else:
                item = {"type": "function_call", "name": "exec_command", "arguments": given, **own}
        return self.response(number, item)

    def response(self, number: int, item: dict[str, Any]) -> Answer:
        """One item of OpenAI's Responses."""
        usage = {"input_tokens": 5, "output_tokens": 5, "total_tokens": 10}
        done = {"id": f"r{number}", "output": [item], "usage": usage}
        return stream(
            event("response.created", response={"id": f"r{number}"}),
            event("response.output_item.done", output_index=0, item=item),
            event("response.completed", response=done),
        )

    def _completion(self, number: int, shell: str) -> Answer:
        if not (command := self.turn(number)):
            return text(self.words)
        more = {"is_background": False} if shell == "run_shell_command" else {}
        return completion(number, shell, {"command": command, **more})

    def _contents(self, number: int) -> Answer:
        command = self.turn(number)
        call = {"functionCall": {"name": "run_shell_command", "args": {"command": command}}}
        part = call if command else {"text": self.words}
        given = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
        return stream(f"data: {json.dumps({'candidates': [given]})}\n\n".encode())


@dataclass(frozen=True)
class Program:
    """How it is run once, without a person and without limits."""

    agent: str
    command: tuple[str, ...]
    history: str
    """Where its request has the conversation."""
    tool: str = "Bash"
    tries: int = TRIES
    """As often may its model repeat a call before it gives up."""
    asks: bool = False
    """Somebody is asked first, also where nobody is there."""
    waits: bool = True
    """It waits for hooks after a call, so that notes reach its model, and a refusal comes at once."""


PROGRAMS = (
    Program("claude-code", ("claude", "-p", "fix it", "--dangerously-skip-permissions"), "messages"),
    Program(
        "codex",
        (
            "codex",
            "exec",
            "--dangerously-bypass-approvals-and-sandbox",
            "--dangerously-bypass-hook-trust",
            "fix it",
        ),
        "input",
    ),
    Program(
        "mistral-vibe", ("vibe", "-p", "fix it", "--auto-approve", "--trust"), "messages", "file_system.bash"
    ),
    Program(
        "gemini-cli",
        ("gemini", "-p", "fix it", "--yolo", "-m", "gemini-2.5-pro"),
        "contents",
        "run_shell_command",
    ),
    Program("opencode", ("opencode", "run", "fix it"), "messages", "bash"),
    Program("copilot", ("copilot", "-p", "fix it", "--allow-all-tools"), "messages", asks=True),
    Program(
        "qwen-code",
        ("qwen", "-p", "fix it", "--yolo"),
        "messages",
        "run_shell_command",
        tries=TRIES - 1,
    ),
    Program("kimi-code", ("kimi", "-p", "fix it"), "messages", waits=False),
)


OURS = [sys.executable, "-m", "tui_agent"]


@asynccontextmanager
async def home_of(agent: str, program: str, model: Model) -> AsyncIterator[dict[str, Any]]:
    """Where the agent runs, with hooks of ours, and `model` for its model: arguments of a process. Skips without it."""
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not on the PATH")
    with tempfile.TemporaryDirectory(prefix="hooks") as name:
        folder = Path(name)
        for place in ("work", ".codex", ".gemini", ".vibe", ".qwen", ".kimi-code", ".config/opencode"):
            (folder / place).mkdir(parents=True)
        address = model.url.removesuffix("/v1")
        environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("XDG_")},
            "HOME": name,
            "PWD": f"{name}/work",
            "CODEX_HOME": f"{name}/.codex",
            "VIBE_HOME": f"{name}/.vibe",
            "XDG_RUNTIME_DIR": name,
            "AGENT_TUI_STATE_DIR": f"{name}/state",
            "ANTHROPIC_API_KEY": "sk-ant-none",
            "ANTHROPIC_BASE_URL": address,
            "LOOPBACK_KEY": "none",
            "GEMINI_API_KEY": "none",
            "GOOGLE_GEMINI_BASE_URL": address,
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "IS_SANDBOX": "1",
            "OPENAI_API_KEY": "none",
            "OPENAI_BASE_URL": model.url,
            "OPENAI_MODEL": "m",
            "COPILOT_OFFLINE": "true",
            "COPILOT_PROVIDER_BASE_URL": model.url,
            "COPILOT_MODEL": "m",
            "COPILOT_ALLOW_ALL": "true",
            "COPILOT_AUTO_UPDATE": "false",
        }
        (folder / ".gemini" / "settings.json").write_text(
            '{"security": {"auth": {"selectedType": "gemini-api-key"}}}'
        )
        (folder / ".vibe" / "config.toml").write_text(
            f'active_model = "m"\nenable_telemetry = false\nenable_update_checks = false\n[[providers]]\n'
            f'name = "here"\napi_base = "{model.url}"\napi_key_env_var = "LOOPBACK_KEY"\napi_style = "openai"\n'
            'backend = "generic"\n[[models]]\nname = "m"\nprovider = "here"\nalias = "m"\n'
        )
        (folder / ".qwen" / "settings.json").write_text(
            '{"security": {"auth": {"selectedType": "openai"}}, "usageStatisticsEnabled": false,'
            ' "general": {"disableAutoUpdate": true}}'
        )
        (folder / ".kimi-code" / "config.toml").write_text(
            f'default_model = "here/m"\n[providers.here]\ntype = "openai"\nbase_url = "{model.url}"\n'
            'api_key = "none"\n[models."here/m"]\nprovider = "here"\nmodel = "m"\n'
            'max_context_size = 100000\ncapabilities = ["tool_use"]\n'
        )
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": model.url, "apiKey": "none"},
            "models": {"m": {}},
        }
        (folder / ".config" / "opencode" / "opencode.json").write_text(
            json.dumps({"model": "here/m", "autoupdate": False, "provider": {"here": provider}})
        )
        (folder / ".codex" / "config.toml").write_text(
            f'model = "m"\nmodel_provider = "here"\n[model_providers.here]\nname = "here"\n'
            f'base_url = "{model.url}"\nwire_api = "responses"\nenv_key = "LOOPBACK_KEY"\n'
        )
        where: dict[str, Any] = {"cwd": folder / "work", "env": environment}
        subprocess.run(["git", "init", "-q"], check=True, **where)
        # Copilot CLI runs those of Claude Code too, and nothing is noted twice.
        for whose in ({"copilot": ["claude-code", "--project"]}.get(agent), [agent]):
            if whose is not None:
                install = [*OURS, "hooks", "install", *whose, "--yes"]
                subprocess.run(install, check=True, capture_output=True, **where)
        yield where
        told = subprocess.run(
            [*OURS, "hooks", "status", agent], check=True, capture_output=True, text=True, **where
        )
        assert "errors 0" in told.stdout
        for socket in (folder / "agent-tui").glob("hooks-*"):
            socket.unlink()


async def run(command: tuple[str, ...], where: dict[str, Any]) -> tuple[int | None, str, str]:
    """Its exit code, and what it wrote to standard output and standard error."""
    nothing, pipe = asyncio.subprocess.DEVNULL, asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdin=nothing, stdout=pipe, stderr=pipe, **where)
    said, told = await asyncio.wait_for(process.communicate(), PATIENCE)
    return process.returncode, said.decode().strip(), told.decode()


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.agent)
async def test_its_model_reads_the_notes_and_the_refusal(program: Program) -> None:
    async with Model(program.tries) as model, home_of(program.agent, program.command[0], model) as where:
        code, said, told = await run(program.command, where)
    assert (code, said[-10:]) == (0, "I gave up."), told
    sent = [json.dumps(request.body[program.history]) for request in model.requests]
    if not program.waits:
        assert f"This call of {program.tool} was not executed: it failed 3 times" in sent[-1]
        assert len(sent) == program.tries + 1
        return
    assert f"The second failure of this call of {program.tool}" in sent[2]
    assert f"This call of {program.tool} was not executed: it failed 3 times" in sent[4 + program.asks]
    # Where it takes that answer, and nobody reads its own, it gave up, was told to go on, and gave up again.
    assert len(sent) == program.tries + 1 + (
        DIALECTS[program.agent].answers.go_on is not None and not program.asks
    )


class Failing(Model):
    """Breaks each connection after the first call, until the agent is told to go on."""

    def respond(self, request: Recorded) -> Answer:
        answer = super().respond(request)
        if self.requests[-1:] != [request] or len(self.requests) == 1:
            return answer
        if GO_ON not in json.dumps(request.body):
            return stream(Step.CUT)
        self.requests += [request] * TRIES  # it has tried often enough
        return super().respond(request)


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.agent)
async def test_it_is_taken_up_again_after_its_connection_broke(program: Program) -> None:
    if program.agent == "mistral-vibe":
        pytest.skip("it tries a broken connection again for five minutes by itself")
    async with Failing() as model, home_of(program.agent, program.command[0], model) as where:
        code, said, told = await run((*OURS, "supervise", "--", *program.command), where)
    assert (code, said[-10:]) == (0, "I gave up."), told
    assert "resumed 1 time" in told.splitlines()[-1]
    asked = json.dumps(model.requests[-1].body[program.history])
    assert asked.index(CALL) < asked.index(GO_ON)


@pytest.mark.slow
async def test_mistral_vibe_goes_on_with_its_newest_session_and_with_a_named_one() -> None:
    headless = DIALECTS["mistral-vibe"].headless
    assert headless is not None
    program = next(one for one in PROGRAMS if one.agent == "mistral-vibe")
    async with Model() as model, home_of(program.agent, "vibe", model) as where:
        await run(program.command, where)
        sessions = Path(where["env"]["VIBE_HOME"], "logs", "session", "unified")
        for name in ("", next(sessions.iterdir()).name):
            code, said, _ = await run(tuple(headless.goes_on(program.command, 0, name, GO_ON)), where)
            assert (code, said) == (0, "I gave up.")
            asked = json.dumps(model.requests[-1].body["messages"])
            assert asked.index(CALL) < asked.index(GO_ON)


class Looping(Model):
    """Never gives up."""

    def turn(self, number: int) -> str:
        return CALL


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.agent)
async def test_it_is_ended_where_it_is_stuck(program: Program) -> None:
    if program.agent in {"gemini-cli", "qwen-code"}:
        pytest.skip("it ends a model that repeats itself")
    async with Looping() as model, home_of(program.agent, program.command[0], model) as where:
        code, _, told = await run((*OURS, "supervise", "--", *program.command), where)
    assert code == 4, told
    assert "it is stuck" in told.splitlines()[-1]


class Delegating(Model):
    """Leaves the task to a sub-agent, which reads a file that is not there, again and again."""

    def respond(self, request: Recorded) -> Answer:
        if not request.body.get("tools"):
            return text("A title")
        self.requests.append(request)
        asked = next(message for message in request.body["messages"] if message["role"] == "user")
        if "look into it" not in json.dumps(asked):
            given = {"description": "look", "prompt": "look into it", "subagent_type": "general"}
            return text("I gave up.") if len(self.requests) > 1 else completion(1, "task", given)
        number = len(self.requests)
        return text("nothing") if number > TRIES else completion(number, "read", {"filePath": "nope.py"})


@pytest.mark.slow
async def test_errors_of_an_opencode_sub_agent_are_noted_in_its_own_session() -> None:
    async with Delegating() as model, home_of("opencode", "opencode", model) as where:
        code, said, _ = await run(("opencode", "run", "fix it"), where)
        told = subprocess.run(
            [*OURS, "sessions", "list"], check=True, capture_output=True, text=True, **where
        ).stdout
    assert (code, said) == (0, "I gave up.")
    sent = [json.dumps(request.body["messages"]) for request in model.requests]
    assert "The second failure of this call of read" in sent[3]
    assert "This call of read was not executed: it failed 3 times" in sent[5]
    assert "recovery_note" not in sent[-1]
    assert "OpenCode: sub-agent" in told
