"""The pages in docs/embedding, each with the real package of its framework and a scripted server on loopback.

The model asks for the same failing call four times and gives up. Each page has to tell the failures, hold the fourth
call back, give the model the note, and leave a journal that is a session.
"""

from __future__ import annotations

import asyncio
import importlib
import itertools
import json
from collections.abc import Callable
from importlib.metadata import packages_distributions
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests import anthropic_server
from tests.openai_server import Answer, OpenAIServer, Recorded, json_answer
from tui_agent.core import events
from tui_agent.formats.importers.load import load_transcripts

PAGES = Path(__file__).resolve().parents[2] / "docs" / "embedding"
TASK = "build it"
ANSWER = "I gave up."
FAULT = "no rule to make target 'all'"
PARAMETERS = {"type": "object", "properties": {"target": {"type": "string"}}, "required": ["target"]}
ASKED = {"target": "all"}


def build(target: str) -> str:
    """Build a target.

    Args:
        target: its name
    """
    raise RuntimeError(f"no rule to make target '{target}'")


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], ModuleType]:
    """Imports a page if its framework is there."""
    monkeypatch.syspath_prepend(str(PAGES))

    def imported(name: str, framework: str) -> ModuleType:
        if framework not in packages_distributions():  # a folder of tests may have its name
            pytest.skip(f"{framework} is not installed (docs/EMBEDDING.md)")
        return importlib.import_module(name)

    return imported


def chat(calls: dict[str, dict[str, Any]], text: str | None = None) -> Answer:
    """A whole reply of OpenAI's API, with calls by their names."""
    asked = [
        {
            "id": f"call_{next(NUMBERS)}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(given)},
        }
        for name, given in calls.items()
    ]
    message = {"role": "assistant", "content": text, **({"tool_calls": asked} if asked else {})}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if asked else "stop"}
    usage = {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}
    head = {"id": "r", "object": "chat.completion", "created": 1, "model": "served"}
    return json_answer({**head, "choices": [choice], "usage": usage})


NUMBERS = itertools.count(1)


def assert_told(journal: Path, sent: list[str]) -> None:
    """`sent`: what the model was sent with each request, as text."""
    (run,) = load_transcripts(journal)
    assert run.report.clean
    told = run.events
    started = next(event for event in told if isinstance(event, events.RunStarted))
    assert started.task == TASK
    failed = [event for event in told if isinstance(event, events.ToolFailed)]
    assert len(failed) == 3
    assert all(FAULT in event.failure.message for event in failed)
    (refused,) = (event for event in told if isinstance(event, events.ToolRefused))
    assert refused.refusal == "blocked"
    assert [event.rule for event in told if isinstance(event, events.VerdictReached)][:1] == [
        "attempts.guide"
    ]
    ended = told[-1]
    assert isinstance(ended, events.RunFinished)
    assert (ended.outcome, ended.answer) == ("answered", ANSWER)
    notes = [event.text for event in told if isinstance(event, events.NotePrepared) and event.text]
    first = json.dumps(notes[0], ensure_ascii=False)[1:60]
    assert [first in text for text in sent] == [False, False, True, False, False]
    assert json.dumps(refused.reason, ensure_ascii=False)[1:-1] in sent[4]


async def served(journal: Path, run: Callable[[str], Any], last: Answer | None = None) -> None:
    """Run against a server of OpenAI's API."""
    script = [chat({"build": ASKED}) for _ in range(4)] + [last or chat({}, ANSWER)]
    async with OpenAIServer(script) as server:
        answer = await asyncio.to_thread(run, server.url)
        sent = [json.dumps(request.body, ensure_ascii=False) for request in server.requests]
    assert answer == ANSWER
    assert_told(journal, sent)


SPECIFICATION = {"type": "function", "function": {"name": "build", "parameters": PARAMETERS}}


async def test_openai(page: Any, tmp_path: Path) -> None:
    loop = page("openai_loop", "openai")
    from openai import OpenAI

    journal = tmp_path / "run.jsonl"

    def run(url: str) -> str:
        with OpenAI(base_url=url, api_key="none") as client:
            return str(loop.run(client, "served", TASK, {"build": build}, [SPECIFICATION], journal))

    await served(journal, run)


async def test_anthropic(page: Any, tmp_path: Path) -> None:
    loop = page("anthropic_loop", "anthropic")
    from anthropic import Anthropic

    journal = tmp_path / "run.jsonl"
    block = {"type": "tool_use", "id": "toolu_1", "name": "build", "input": ASKED}

    def reply(content: dict[str, Any], stop: str) -> Answer:
        usage = {"input_tokens": 9, "output_tokens": 2}
        head = {"id": "m", "type": "message", "role": "assistant", "model": "served", "stop_reason": stop}
        return json_answer({**head, "content": [content], "usage": usage, "stop_sequence": None})

    script = [reply({**block, "id": f"toolu_{number}"}, "tool_use") for number in range(4)]
    script.append(reply({"type": "text", "text": ANSWER}, "end_turn"))

    def run(url: str) -> str:
        tool = {"name": "build", "input_schema": PARAMETERS}
        with Anthropic(base_url=url.removesuffix("/v1"), api_key="none") as client:
            return str(loop.run(client, "served", TASK, {"build": build}, [tool], journal))

    async with OpenAIServer(script) as server:
        assert await asyncio.to_thread(run, server.url) == ANSWER
        sent = [json.dumps(request.body["messages"][-1], ensure_ascii=False) for request in server.requests]
    assert_told(journal, sent)


async def test_langgraph(page: Any, tmp_path: Path) -> None:
    pytest.importorskip("langchain_openai", reason="langchain-openai is not installed (docs/EMBEDDING.md)")
    graph = page("langgraph_tools", "langgraph")
    from langchain_core.tools import tool
    from langchain_openai import ChatOpenAI

    journal = tmp_path / "run.jsonl"

    def run(url: str) -> str:
        model = ChatOpenAI(base_url=url, api_key="none", model="served")
        return str(graph.run(model, TASK, [tool(build)], journal))

    await served(journal, run)


async def test_pydantic_ai(page: Any, tmp_path: Path) -> None:
    toolset = page("pydantic_ai_toolset", "pydantic_ai")
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.toolsets import FunctionToolset

    journal = tmp_path / "run.jsonl"

    def run(url: str) -> str:
        model = OpenAIChatModel("served", provider=OpenAIProvider(base_url=url, api_key="none"))
        return str(toolset.run(model, TASK, FunctionToolset([build]), ["build"], journal))

    await served(journal, run)


async def test_openai_agents(page: Any, tmp_path: Path) -> None:
    tools = page("openai_agents_tools", "agents")
    from agents import OpenAIChatCompletionsModel, function_tool
    from openai import AsyncOpenAI

    journal = tmp_path / "run.jsonl"

    def run(url: str) -> str:
        model = OpenAIChatCompletionsModel("served", AsyncOpenAI(base_url=url, api_key="none"))
        return str(tools.run(model, TASK, [function_tool(build, failure_error_function=None)], journal))

    await served(journal, run)


async def test_smolagents(page: Any, tmp_path: Path) -> None:
    agent = page("smolagents_agent", "smolagents")
    from smolagents import OpenAIModel, tool

    journal = tmp_path / "run.jsonl"

    def run(url: str) -> str:
        model = OpenAIModel("served", api_base=url, api_key="none")
        return str(agent.Guarded([tool(build)], model, TASK, journal, verbosity_level=0).run(TASK))

    await served(journal, run, chat({"final_answer": {"answer": ANSWER}}))


def test_mini_swe_agent(page: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSWEA_GLOBAL_CONFIG_DIR", str(tmp_path))
    monkeypatch.setenv("MSWEA_SILENT_STARTUP", "1")
    agent = page("mini_swe_agent", "minisweagent")
    from minisweagent.environments.local import LocalEnvironment
    from minisweagent.models.test_models import DeterministicModel, make_output

    command = f"""echo "{FAULT}" >&2; exit 2"""
    submits = f"echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; echo '{ANSWER}'"
    outputs = [make_output("", [{"command": one}]) for one in (*[command] * 4, submits)]
    sent: list[str] = []

    class Model(DeterministicModel):  # type: ignore[misc, unused-ignore]
        def query(self, messages: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
            sent.append(json.dumps(messages[-2:], ensure_ascii=False))
            return dict(super().query(messages, **more))

    journal = tmp_path / "run.jsonl"
    made = agent.Guarded(
        Model(outputs=outputs), LocalEnvironment(), TASK, journal,
        system_template="s", instance_template="{{task}}", cost_limit=0.0,
    )  # fmt: skip
    assert made.run(TASK)["submission"].strip() == ANSWER
    made.guard.answered(ANSWER)
    assert_told(journal, sent)


async def test_claude_agent_sdk(page: Any, tmp_path: Path) -> None:
    hooks = page("claude_agent_hooks", "claude_agent_sdk")
    journal = tmp_path / "run.jsonl"
    options, guard = hooks.guarded(TASK, journal, model="served")
    said: list[str] = [""]

    async def happened(event: str, **data: Any) -> dict[str, Any]:
        (matcher,) = options.hooks[event]
        (hook,) = matcher.hooks
        given = {"hook_event_name": event, "tool_name": "build", "tool_input": ASKED, **data}
        answer = await hook(given, "toolu_1", {"signal": None})
        said.append(json.dumps(answer))
        return dict(answer)

    for _ in range(3):
        assert await happened("PreToolUse") == {}
        said.pop()
        await happened("PostToolUseFailure", error=FAULT)
    denied = await happened("PreToolUse")
    assert denied["hookSpecificOutput"]["permissionDecision"] == "deny"
    guard.answered(ANSWER)
    assert_told(journal, said)


@pytest.mark.process
async def test_claude_agent_sdk_with_its_program(page: Any, tmp_path: Path) -> None:
    hooks = page("claude_agent_hooks", "claude_agent_sdk")
    from claude_agent_sdk import ResultMessage, query

    journal = tmp_path / "run.jsonl"
    command = {"command": f'echo "{FAULT}" >&2; exit 2'}
    script = [anthropic_server.calls([("Bash", command)], first=number) for number in range(4)]
    async with Answering([*script, anthropic_server.says(ANSWER)]) as server:
        environment = {
            "ANTHROPIC_BASE_URL": server.url.removesuffix("/v1"),
            "ANTHROPIC_API_KEY": "none",
            "HOME": str(tmp_path),
            "CLAUDE_CONFIG_DIR": str(tmp_path / "config"),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        }
        settings = {
            "env": environment,
            "cwd": str(tmp_path),
            "allowed_tools": ["Bash"],
            "setting_sources": [],
        }
        options, guard = hooks.guarded(TASK, journal, model="claude-sonnet-4-5", **settings)
        async for message in query(prompt=TASK, options=options):
            if isinstance(message, ResultMessage):
                guard.answered(message.result)
        said = [json.dumps(request.body["messages"][-1], ensure_ascii=False) for request in server.requests]
    assert_told(journal, said)


class Answering(OpenAIServer):
    """Answers what the program asks beside the task (titles, counts) without taking it from the script."""

    def respond(self, request: Recorded) -> Answer:
        if request.method == "POST" and not request.body.get("tools"):
            return anthropic_server.says("ok")
        return super().respond(request)
