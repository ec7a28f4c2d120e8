"""How long a prompt may be: learnt from the server, from its fault's figures, and never sent twice in vain."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.kept_host import KeptHost
from tests.openai_server import Answer, Recorded
from tests.runtime.test_reasoning import run, session_at
from tests.servers import Make, ModelServer, Said
from tests.servers.chat import LlamaCpp, LmStudio, OpenAIChat, Vllm
from tests.servers.make import WINDOW
from tests.servers.ollama import Ollama
from tui_agent.core.events import Outcome
from tui_agent.models.server_window import server_window, window_in

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.parametrize("make", [LlamaCpp(), Vllm(), LmStudio(), Ollama()], ids=lambda make: make.name)
async def test_a_server_says_with_which_window_it_runs_its_model(make: Make) -> None:
    async with ModelServer(make) as server:
        assert await server_window(server.url, make.model.partition("/")[2]) == WINDOW


@pytest.mark.parametrize(
    "facts", [{}, {"/v1/models": {"data": "odd"}}, {"/props": [1]}, {"/v1/models": {"data": [None]}}]
)
async def test_a_server_that_says_nothing_sensible_is_one_that_says_nothing(facts: dict[str, Any]) -> None:
    make = OpenAIChat()
    make.facts = facts
    async with ModelServer(make) as server:
        assert await server_window(server.url, "gpt-4o") is None
    assert await server_window("http://127.0.0.1:9/v1", "gpt-4o") is None


@pytest.mark.parametrize(
    ("said", "tokens"),
    [
        (8192, 8192),
        (8192.0, 8192),
        (True, None),
        ("8192", None),
        (1, None),
        (0, None),
        (-1, None),
        (2**70, None),
    ],
)
def test_a_window_is_a_number_of_tokens_that_some_model_has(said: object, tokens: int | None) -> None:
    assert window_in({"data": [{"id": "m", "context_length": said}]}, "m") == tokens


class Unsure(LlamaCpp):
    """A llama.cpp that does not tell its window beforehand."""

    facts = {}


class Old(Unsure):
    """One that answers a stream that is too long with status 200 and nothing."""

    def answer(self, said: Said, request: Recorded) -> Answer:
        """See `Make`."""
        if said.fault == "overflow" and self.streamed(request):
            return super().answer(Said(fault="empty"), request)
        return super().answer(said, request)


WORK = [Said(calls=(("bash", {"command": f"seq {n} 1200"}),)) for n in range(1, 4)]


@pytest.mark.parametrize("make", [Unsure(), Old()], ids=["by status 400", "by an empty stream"])
async def test_an_overflow_shrinks_the_window_to_the_fault_s_own_figures_and_is_remembered(
    host: KeptHost, tmp_path: Path, make: Make
) -> None:
    overflow = Said(fault="overflow")
    script = [*WORK, overflow, *([overflow] if isinstance(make, Old) else []), Said("Counted.")]
    async with ModelServer(make, *script) as server:
        session = await session_at(server, host, tmp_path, compact_at=0)
        assert await run(session, "Count.") == "Counted."
        messages = [request.body["messages"] for request in server.requests]
        assert len(str(messages[-1])) < 0.8 * len(str(messages[-2]))
        learned = session.state.windows[make.model]
        assert learned is not None
        assert learned <= WINDOW
        assert session.state.run.request_tokens <= learned

        # The next run of the session begins within it.
        server.say(Said("Again."))
        assert await run(session, "Once more: " + "x" * 4_000) == "Again."
        await session.close()
        assert len(server.requests) == 1
        assert session.state.run.request_budget == learned


async def test_a_newest_result_that_alone_is_too_big_is_cut_in_the_middle(
    host: KeptHost, tmp_path: Path
) -> None:
    async with ModelServer(
        LlamaCpp(), Said(calls=(("bash", {"command": "seq 1 4000"}),)), Said("Seen.")
    ) as server:
        session = await session_at(server, host, tmp_path)
        assert await run(session, "Count.") == "Seen."
        await session.close()
        (result,) = [
            each["content"] for each in server.requests[-1].body["messages"] if each["role"] == "tool"
        ]
        assert "characters left out" in result
        assert result.startswith("1\n2\n")
        assert "4000" in result[-40:]


async def test_an_overflow_that_nothing_can_shrink_is_not_sent_again(host: KeptHost, tmp_path: Path) -> None:
    async with ModelServer(Unsure(), Said(fault="overflow")) as server:
        session = await session_at(server, host, tmp_path)
        await session.submit("Hello.")
        finished = await session.wait()
        await session.close()
        assert finished is not None
        assert (finished.outcome, finished.rule) == (Outcome.PARTIAL, "model.degrade")
        assert len(server.requests) == 1


@pytest.mark.parametrize("own", [True, False], ids=["context_tokens", "the server's window"])
async def test_a_budget_that_holds_no_request_is_refused_with_the_figures(
    host: KeptHost, tmp_path: Path, own: bool
) -> None:
    class Tiny(LlamaCpp):
        facts = {"/props": {"default_generation_settings": {"n_ctx": 1_024}}}

    async with ModelServer(Tiny() if not own else Unsure(), Said("never")) as server:
        session = await session_at(server, host, tmp_path, **({"context_tokens": 900} if own else {}))
        await session.submit("Hello.")
        finished = await session.wait()
        await session.close()
        assert finished is not None
        assert (finished.outcome, finished.rule) == (Outcome.MODEL_FAILED, "window.too_small")
        assert ("900 tokens" if own else "768 tokens") in finished.reason
        assert not server.requests


class Lazy(Ollama):
    """An Ollama that loads its model with the first call, and knows only then with which window."""

    def __init__(self) -> None:
        self.facts = {"/api/ps": {"models": []}, "/api/show": {"parameters": ""}}

    def answer(self, said: Said, request: Recorded) -> Answer:
        """See `Make`."""
        other = {"name": "nomic:latest", "context_length": 2_048}
        loaded = {"name": "qwen3:8b", "model": "qwen3:8b", "context_length": WINDOW}
        self.facts = {**self.facts, "/api/ps": {"models": [other, loaded]}}
        return super().answer(said, request)


async def test_a_server_that_loads_its_model_with_the_first_call_is_asked_again_after_it(
    host: KeptHost, tmp_path: Path
) -> None:
    async with ModelServer(Lazy(), Said(calls=(("list_dir", {}),)), Said("Empty.")) as server:
        session = await session_at(server, host, tmp_path)
        assert await run(session, "What is there?") == "Empty."
        await session.close()
        assert session.state.windows[Ollama.model] == WINDOW - WINDOW // 4
