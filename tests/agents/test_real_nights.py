"""Nights of real programs, where they are there, against a scripted model on this machine: from the fault to the report
of the morning.
"""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests.agents.test_real_agents import CALL, OURS, PATIENCE, PROGRAMS, Model, Program, home_of, run
from tests.agents.test_supervise import until
from tests.openai_server import Answer, Recorded, Step, stream
from tui_agent.agents.night import TaskFolder
from tui_agent.agents.supervision import CUT_OFF, GO_ON, SUB_AGENT_DIED

SOON, LONG = 90.0, 7_200.0
"""Seconds until a limit resets, as the server has it."""


class Faulty(Model):
    """Works on a task of three steps; `fault` answers in its place where it wants to."""

    words = "Done."

    def __init__(self, fault: Callable[[Faulty, str], Answer | None], *, work: str = "true") -> None:
        super().__init__()
        self.fault = fault
        self.work = work
        self.begun = 0.0
        self.asked = ""

    def respond(self, request: Recorded) -> Answer:
        seen = len(self.requests)
        answer = super().respond(request)
        if len(self.requests) == seen:
            return answer
        self.begun = self.begun or time.time()
        self.asked = json.dumps(request.body)
        return self.fault(self, self.asked) or answer

    def turn(self, number: int) -> str:
        """One call for each time that it is told to go on."""
        sent = json.dumps(self.requests[-1].body)
        if "its check" in sent and "state.txt" in sent:
            return "" if "exists-now" in sent else "echo 1 > state.txt; echo exists-now"
        return self.work if sent.count("work-begun") == 0 else ""


def overloaded(model: Faulty, asked: str) -> Answer | None:
    if '"contents"' in asked and len(model.requests) > 10:  # Gemini CLI's own tries: it begins anew
        return None
    return None if GO_ON in asked else _error(529, "overloaded_error", "Overloaded")


def limited(model: Faulty, asked: str) -> Answer | None:
    left = int(model.begun + SOON - time.time())
    if left <= 0:
        return None
    words = f"The usage limit has been reached. Try again in {left} seconds."
    said = {"type": "usage_limit_reached", "message": words, "plan_type": "plus"}
    body = {
        "type": "error",
        "error": {**said, "resets_at": int(model.begun + SOON), "resets_in_seconds": left},
    }
    headers = (
        ("Content-Type", "application/json"),
        ("anthropic-ratelimit-unified-status", "rejected"),
        ("anthropic-ratelimit-unified-reset", str(int(model.begun + SOON))),
        ("anthropic-ratelimit-unified-representative-claim", "five_hour"),
        ("x-should-retry", "false"),
    )
    return Answer(429, headers, json.dumps(body).encode())


def limited_for_long(model: Faulty, asked: str) -> Answer | None:
    model.begun = max(model.begun, time.time() + LONG - SOON)
    return limited(model, asked)


def silent(model: Faulty, asked: str) -> Answer | None:
    return stream(Step.HANG)


def well(model: Faulty, asked: str) -> Answer | None:
    return None


def _error(status: int, kind: str, message: str) -> Answer:
    body = {"type": "error", "error": {"type": kind, "message": message}}
    return Answer(status, (("Content-Type", "application/json"),), json.dumps(body).encode())


CODEX = next(one for one in PROGRAMS if one.agent == "codex")
IN_CODE_MODE = replace(CODEX, command=(*CODEX.command[:-1], "-m", "gpt-5.6-sol", CODEX.command[-1]))
"""A model of Codex's own catalogue, whose calls are scripts."""
ALL = [
    *(pytest.param(one, id=one.agent) for one in PROGRAMS),
    pytest.param(IN_CODE_MODE, id="codex in code mode"),
]


@dataclass(frozen=True)
class Night:
    fault: Callable[[Faulty, str], Answer | None]
    options: tuple[str, ...] = ()
    check: str = ""
    work: str = "echo work-begun"
    code: int = 0
    said: tuple[str, ...] = ("done",)


NIGHTS: Mapping[str, Night] = {
    "overload": Night(overloaded, said=("done", "waits until", "resumed: after a fault of its model")),
    "limit": Night(limited, ("--on-limit", "wait"), said=("done", "waits until", "resumed 1 time")),
    "long limit": Night(
        limited_for_long,
        ("--on-limit", "stop"),
        code=3,
        said=("not done, exit code 6: limit reached, resets", "(--on-limit stop)"),
    ),
    "stall": Night(
        silent, ("--max-silence", "12"), code=3, said=("not done, exit code 4: it was silent for",)
    ),
    "loop": Night(well, work=CALL, code=3, said=("not done, exit code 4: it is stuck",)),
    "red check": Night(
        well, check="grep -q 1 state.txt", said=("done", "2 checks, 1 red, the last green", "resumed 1 time")
    ),
}


BY_ITSELF = {
    ("loop", "gemini-cli"): "it ends a model that repeats itself, with exit code 0",
    ("loop", "qwen-code"): "it ends a model that repeats itself, with exit code 1",
    **{
        ("limit", agent): "its own tries outlast a limit of 90 seconds"
        for agent in ("gemini-cli", "mistral-vibe", "qwen-code", "kimi-code")
    },
}
"""Nights in which the program needs nobody."""


async def laid_out(program: Program, where: dict[str, Any], check: str = "") -> Path:
    """The file of a night with one task of the program, in a repository with a commit."""
    names = ("-c", "user.name=n", "-c", "user.email=e@x")
    commit = ("git", *names, "commit", "-q", "--allow-empty", "-m", "begin")
    subprocess.run(commit, check=True, **where)
    where["env"] |= {"CLAUDE_CODE_MAX_RETRIES": "1", "AGENT_TUI_RECOVERY__BACKOFF_BASE": "0.1"}
    tasks = Path(where["cwd"]).parent / "nightly.toml"
    line = f"check = {json.dumps(check)}\n" if check else ""
    tasks.write_text(
        f'workspace = "work"\n[[tasks]]\nname = "one"\ncommand = {json.dumps(program.command)}\n{line}'
    )
    return tasks


async def morning(where: dict[str, Any]) -> str:
    _, said, _ = await run((*OURS, "night"), where)
    print(said)
    return said


@pytest.mark.slow
@pytest.mark.parametrize("program", ALL)
@pytest.mark.parametrize("name", NIGHTS)
async def test_a_night_comes_to_its_report(name: str, program: Program) -> None:
    night = NIGHTS[name]
    if why := BY_ITSELF.get((name, program.agent)):
        pytest.skip(why)
    async with (
        Faulty(night.fault, work=night.work) as model,
        home_of(program.agent, program.command[0], model) as where,
    ):
        tasks = await laid_out(program, where, night.check)
        code, _, told = await run((*OURS, "supervise", "--tasks", str(tasks), *night.options), where)
        said = await morning(where)
    assert code == night.code, told + said
    assert all(words in said for words in night.said), told + said


@pytest.mark.slow
@pytest.mark.parametrize("program", ALL)
async def test_a_night_whose_supervisor_was_killed_goes_on(program: Program) -> None:
    def hangs(model: Faulty, asked: str) -> Answer | None:
        if CUT_OFF[:30] in asked or "work-begun" not in asked:
            return None
        reached.set()
        return stream(Step.HANG)

    reached = asyncio.Event()
    async with (
        Faulty(hangs, work="echo work-begun") as model,
        home_of(program.agent, program.command[0], model) as where,
    ):
        tasks = await laid_out(program, where)
        line = (*OURS, "supervise", "--tasks", str(tasks))
        first = await asyncio.create_subprocess_exec(*line, stderr=asyncio.subprocess.DEVNULL, **where)
        await asyncio.wait_for(reached.wait(), PATIENCE)
        record = next(Path(where["env"]["AGENT_TUI_STATE_DIR"]).glob("nights/*/001-one"))
        await asyncio.to_thread(until, lambda: bool(TaskFolder(record).session))
        first.send_signal(signal.SIGKILL)
        await first.wait()
        code, _, told = await run(line, where)
        said = await morning(where)
    assert code == 0, told + said
    assert "resumed: it was cut off" in said


class Delegating(Faulty):
    """Leaves the task to a sub-agent of Codex's, whose model is overloaded for good."""

    def __init__(self) -> None:
        super().__init__(well)

    def respond(self, request: Recorded) -> Answer:
        asked = json.dumps(request.body)
        if not request.path.endswith("/responses"):
            return super().respond(request)
        if '"author": "/root", "recipient": "/root/helper"' in asked:
            return _error(400, "invalid_request_error", "The helper's model is gone")
        self.requests.append(request)
        number = len(self.requests)
        given = {
            "spawn_agent": {"task_name": "helper", "message": "the task of a helper", "fork_turns": "none"},
            "wait_agent": {"timeout_ms": 10_000},
        }
        name = {1: "spawn_agent", 2: "wait_agent"}.get(number)
        if name is None:
            content = [{"type": "output_text", "text": self.words}]
            return self.response(
                number, {"type": "message", "role": "assistant", "id": f"m{number}", "content": content}
            )
        item = {"type": "function_call", "namespace": "collaboration", "name": name}
        item |= {"id": f"f{number}", "call_id": f"c{number}", "arguments": json.dumps(given[name])}
        return self.response(number, item)


@pytest.mark.slow
async def test_a_sub_agent_of_codex_that_died_is_named_and_the_agent_is_told() -> None:
    async with Delegating() as model, home_of("codex", "codex", model) as where:
        tasks = await laid_out(IN_CODE_MODE, where)
        code, _, told = await run((*OURS, "supervise", "--tasks", str(tasks)), where)
        said = await morning(where)
    assert code == 0, told + said
    assert "a sub-agent died: " in said
    assert "The helper's model is gone" in said
    assert SUB_AGENT_DIED[:40] in json.dumps(model.requests[-1].body)
