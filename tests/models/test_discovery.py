"""What can be used now: servers on this machine, found without keys and without waiting, and litellm's table."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import pytest_asyncio

from tests.openai_server import Answer, OpenAIServer, Recorded, Step, raw, stream
from tests.servers import ModelServer, Said
from tests.servers.chat import LlamaCpp, LmStudio, Vllm
from tests.servers.make import WINDOW
from tests.servers.ollama import Ollama
from tui_agent.config.settings import Settings
from tui_agent.models.catalogue import known, models_of
from tui_agent.models.discovery import discover
from tui_agent.models.local_servers import find_servers

ROOT = Path(__file__).resolve().parents[2]
LONGEST = 30.0
"""Seconds; what takes longer hangs."""


class Odd(OpenAIServer):
    """Answers every question in the same odd way."""

    def __init__(self, answer: Answer) -> None:
        super().__init__()
        self.answer = answer

    def respond(self, request: Recorded) -> Answer:
        self.requests.append(request)
        return self.answer


def root(server: OpenAIServer) -> str:
    return server.url.removesuffix("/v1")


@pytest_asyncio.fixture
async def usual() -> AsyncIterator[dict[str, str]]:
    """A server of each make, where it usually listens."""
    makes = {"Ollama": Ollama(), "llama.cpp": LlamaCpp(), "LM Studio": LmStudio(), "vLLM": Vllm()}
    async with AsyncExitStack() as stack:
        yield {
            name: root(await stack.enter_async_context(ModelServer(make, Said("hi"))))
            for name, make in makes.items()
        }


async def test_servers_of_each_make_are_found_with_their_models_and_windows(usual: dict[str, str]) -> None:
    found = await asyncio.wait_for(find_servers((), usual, LONGEST), LONGEST)
    assert {server.make: [(one.name, one.window) for one in server.models] for server in found} == {
        "Ollama": [("ollama_chat/qwen3:8b", None)],
        "llama.cpp": [("openai/qwen3-8b", WINDOW)],
        "LM Studio": [("openai/qwen3-8b", WINDOW)],
        "vLLM": [("openai/Qwen/Qwen3-8B", WINDOW)],
    }
    assert all(server.api_base for server in found)


ODD = [
    ("a server that says nothing", stream(Step.HANG)),
    ("one that drips for ever", stream(Step.KEEP_ALIVE)),
    ("one that hangs up", stream(Step.CUT)),
    ("a web page", raw(b"<html>It works!</html>")),
    ("JSON of something else", raw(b'{"data": {"id": 7}, "models": 3}', content_type="application/json")),
    ("nonsense in a list", raw(b'{"data": [1, {"id": 7}, null]}', content_type="application/json")),
    ("JSON without end", raw(b"[" * 100_000, content_type="application/json")),
    ("a redirect", Answer(302, (("Location", "http://127.0.0.1:9/v1/models"),), b"")),
]


@pytest.mark.parametrize("answer", [row[1] for row in ODD], ids=[row[0] for row in ODD])
async def test_what_is_no_model_server_is_left_out_and_keeps_nobody_waiting(
    answer: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-0123456789")
    async with Odd(answer) as server:
        began = time.monotonic()
        found = await find_servers([f"{server.url}/"], {}, patience=0.5)
        assert time.monotonic() - began < LONGEST
        assert sum(len(one.models) for one in found) == 0
        assert {request.method for request in server.requests} == {"GET"}
        assert "sk-secret" not in str([request.headers for request in server.requests])


async def test_the_list_joins_profiles_aliases_servers_and_providers_with_keys() -> None:
    async with ModelServer(Vllm(), Said("hi")) as server:
        settings = Settings(
            model="quick",
            profiles={
                "careful": {"model": "anthropic/claude-sonnet-4-5", "context_tokens": 9_000},
                "here": {"model": "openai/Qwen/Qwen3-8B", "api_base": f"{root(server)}/v1"},
            },
            aliases={"quick": "openai/gpt-4o"},
        )
        found = await discover(settings, {"OPENAI_API_KEY": "x"}, {})
    assert found.chosen is not None
    assert (found.chosen.name, found.chosen.model.name, found.chosen.lacks) == ("quick", "openai/gpt-4o", "")
    assert [(one.name, one.lacks) for one in found.profiles] == [
        ("careful", "ANTHROPIC_API_KEY"),
        ("here", ""),
    ]
    assert [one.model.name for one in found.aliases] == ["openai/gpt-4o"]
    assert [one.make for one in found.servers] == ["vLLM"]
    assert [(one.name, one.variable) for one in found.providers] == [("openai", "OPENAI_API_KEY")]


def test_the_table_knows_windows_and_prices_by_the_names_that_are_used() -> None:
    sonnet = known("anthropic/claude-sonnet-4-5")
    assert (sonnet.window, sonnet.input, sonnet.output, sonnet.cached) == (200_000, 3.0, 15.0, 0.3)
    assert known("openai/no-such-model").window is None
    assert known("mistral/gpt-4o").window is None, "another provider's model of that name"
    names = [model.name for model in models_of("openai")]
    assert "openai/gpt-4o" in names
    assert not [name for name in names if "embedding" in name or "realtime" in name]
    assert len(names) == len(set(names))


def test_looking_imports_neither_litellm_nor_a_screen() -> None:
    code = (
        "import asyncio, sys\n"
        "from tui_agent.config.settings import Settings\n"
        "from tui_agent.models.discovery import discover\n"
        "asyncio.run(discover(Settings(model='openai/gpt-4o'), {'OPENAI_API_KEY': 'x'}, {}))\n"
        "print(sorted({'litellm', 'textual', 'openai'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
