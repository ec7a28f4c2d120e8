"""What a provider gives with its reasoning goes back to it, through the loop and a resume; and to nobody else."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.kept_host import KeptHost
from tests.runtime.scripted import ScriptedOperator
from tests.runtime.session_harness import replayed
from tests.servers import MAKES, Make, ModelServer, Said
from tests.servers.anthropic import REDACTED
from tests.servers.anthropic import SIGNATURE as THINKING_SIGNATURE
from tests.servers.gemini import SIGNATURE as THOUGHT_SIGNATURE
from tests.servers.openrouter import OpenRouter
from tests.servers.responses import ENCRYPTED
from tui_agent.config.settings import Settings
from tui_agent.core.events import Outcome
from tui_agent.models.choose import ModelByName
from tui_agent.session.opening import open_session
from tui_agent.session.session import Session

pytestmark = pytest.mark.asyncio(loop_scope="session")

THOUGHT = "The file says it; I shall look."
LOOK = Said(reasoning=THOUGHT, calls=(("list_dir", {}),))
BY_NAME = {make.name: make for make in MAKES}


async def session_at(
    server: ModelServer, host: KeptHost, folder: Path, resume: Path | None = None, **more: Any
) -> Session:
    workspace = folder / "workspace"
    workspace.mkdir(exist_ok=True)
    fields = {"model": server.make.model, "approve": "all", **more}
    settings = Settings(
        **fields, sandbox="off", api_base=server.url, workspace=workspace, state_dir=folder / "state"
    )
    return await open_session(settings, ScriptedOperator(present=False), ModelByName(settings, host), resume)


async def run(session: Session, task: str) -> str:
    await session.submit(task)
    finished = await asyncio.wait_for(session.wait(), 60)
    assert finished is not None
    assert finished.outcome is Outcome.ANSWERED, finished.reason
    return finished.answer


def came_back(make: Make, body: dict[str, Any]) -> Any:
    """What of its reasoning the server was given back with the first call of the conversation."""
    match make.name:
        case "anthropic":
            (first, *_) = [each for each in body["messages"] if each["role"] == "assistant"]
            return [block for block in first["content"] if "thinking" in block["type"]]
        case "openai-responses":
            items = body["input"]
            at = next(at for at, item in enumerate(items) if item.get("type") == "function_call")
            return items[at - 1]
        case "gemini":
            (first, *_) = [each for each in body["contents"] if each["role"] == "model"]
            return [
                part.get("thoughtSignature") or part.get("thought_signature")
                for part in first["parts"]
                if part.get("functionCall") or part.get("function_call")
            ]
        case "openrouter":
            return next(each for each in body["messages"] if each.get("tool_calls")).get("reasoning_details")
        case "ollama":
            return next(each for each in body["messages"] if each.get("tool_calls")).get("thinking")
        case _:
            first = next(each for each in body["messages"] if each.get("tool_calls"))
            return first.get(getattr(make, "reasoning_field", "reasoning_content"))


EXPECTED: dict[str, Any] = {
    "anthropic": [
        {"type": "thinking", "thinking": THOUGHT, "signature": THINKING_SIGNATURE},
        {"type": "redacted_thinking", "data": REDACTED},
    ],
    "openai-responses": {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": THOUGHT}],
        "encrypted_content": ENCRYPTED,
    },
    "gemini": [THOUGHT_SIGNATURE],
    "mistral": None,
    "deepseek": THOUGHT,
    "ollama": THOUGHT,
    "llama.cpp": THOUGHT,
    "vllm": THOUGHT,
    "lm_studio": THOUGHT,
    "openrouter": OpenRouter().details(LOOK),
}


@pytest.mark.parametrize("name", EXPECTED)
async def test_reasoning_goes_back_as_its_provider_demands_also_after_a_resume(
    host: KeptHost, tmp_path: Path, name: str
) -> None:
    make = BY_NAME[name]
    async with ModelServer(make, LOOK, Said("An empty folder.")) as server:
        session = await session_at(server, host, tmp_path)
        assert await run(session, "What is there?") == "An empty folder."
        await session.close()
        assert replayed(session) == session.state
        assert len(server.requests) == 2
        assert came_back(make, server.requests[1].body) == EXPECTED[name]

        server.say(Said("Still empty."))
        resumed = await session_at(server, host, tmp_path, resume=session.folder)
        assert await run(resumed, "And now?") == "Still empty."
        await resumed.close()
        (again,) = server.requests
        assert came_back(make, again.body) == EXPECTED[name]
        assert "carried" not in json.dumps(again.body)


async def test_another_provider_gets_nothing_of_it(host: KeptHost, tmp_path: Path) -> None:
    async with ModelServer(BY_NAME["anthropic"], LOOK, Said("Empty.")) as server:
        session = await session_at(server, host, tmp_path)
        await run(session, "What is there?")
        session.set_model(BY_NAME["llama.cpp"].model)
        server.say(Said("Nothing."), make=BY_NAME["llama.cpp"])
        await session.close()
        other = await session_at(server, host, tmp_path, resume=session.folder)
        await run(other, "And now?")
        await other.close()
        sent = json.dumps(server.requests[0].body)
        assert THINKING_SIGNATURE not in sent
        assert "thinking" not in sent
        assert "reasoning_content" not in sent
