"""Servers of every make: real litellm in its host process against each one's own wire form, over loopback.

One table of what a server can do, one column a make; what a make does not know is left out.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio

from tests.kept_host import KeptHost
from tests.models.offered import BASH, LONGEST
from tests.openai_server import Answer, Recorded, error, json_answer
from tests.servers import MAKES, Make, ModelServer, Said
from tests.servers.anthropic import Anthropic
from tests.servers.chat import LlamaCpp
from tests.servers.make import FaultName, event
from tui_agent.core.events import Fault, FaultKind
from tui_agent.models.prompt_cache import marked
from tui_agent.models.protocol import ModelFault, ModelRequest, Reply

pytestmark = pytest.mark.asyncio(loop_scope="session")


QUICK = {"anthropic", "openai", "gemini", "llama.cpp"}
"""Makes whose wire forms differ most; the others are tried in full by the slow tests."""


def each(make: Make, *more: Any) -> Any:
    """A row for a make."""
    names = "-".join([make.name, *map(str, more)])
    return pytest.param(make, *more, id=names, marks=() if make.name in QUICK else pytest.mark.slow)


EACH = [each(make) for make in MAKES]


@dataclass
class Bench:
    """The host, and one server for all tests of this file."""

    model: KeptHost
    server: ModelServer

    async def ask(self, make: Make, *said: Said, **changes: Any) -> tuple[str, Reply | Fault]:
        """What streamed, and how the call ended."""
        self.server.say(*said, make=make)
        fields = {
            "model": make.model,
            "messages": [{"role": "user", "content": "hello"}],
            "tools": [BASH],
            "api_base": self.server.url,
            "silence_timeout": 20.0,
        }
        streamed = ""
        try:
            request = ModelRequest(**{**fields, **changes})
            async with asyncio.timeout(LONGEST), aclosing(self.model.stream(request)) as stream:
                async for piece in stream:
                    if isinstance(piece, Reply):
                        return streamed, piece
                    streamed += piece.text
        except ModelFault as raised:
            return streamed, raised.fault
        raise AssertionError("the stream ended without a word")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def bench(host: KeptHost) -> AsyncIterator[Bench]:
    async with ModelServer(MAKES[0]) as server:
        yield Bench(host, server)


LS, PWD = ("bash", {"command": "ls -la"}), ("bash", {"command": "pwd"})

REPLIES = {
    "text": Said("Hello there, operator. Ä🙂"),
    "one call": Said(calls=(LS,)),
    "parallel calls": Said("Look:", calls=(LS, PWD)),
    "a call with reasoning": Said("So:", reasoning="Let me think about it.", calls=(LS,)),
    "text with reasoning": Said("It is done.", reasoning="Nothing is left to do."),
}


@pytest.mark.parametrize("said", REPLIES.values(), ids=REPLIES)
@pytest.mark.parametrize("make", EACH)
async def test_a_reply_is_read_whole(bench: Bench, make: Make, said: Said) -> None:
    streamed, reply = await bench.ask(make, said)
    assert isinstance(reply, Reply), reply
    assert streamed == reply.text == said.text
    assert reply.reasoning == said.reasoning
    assert [(call.name, call.arguments) for call in reply.calls] == said.arguments
    assert len({call.id for call in reply.calls}) == len(said.calls)
    assert all(len(call.id) < 64 for call in reply.calls), "no signature hides in an id"
    assert (reply.prompt_tokens, reply.completion_tokens) == said.usage
    assert len(bench.server.requests) == 1


FAULTS: dict[FaultName, set[FaultKind]] = {
    "rate_limit": {FaultKind.RATE_LIMIT},
    "overloaded": {FaultKind.OVERLOADED, FaultKind.SERVER},
    "overflow": {FaultKind.CONTEXT_OVERFLOW},
    "auth": {FaultKind.AUTH},
    "not_found": {FaultKind.NOT_FOUND},
    "cut": {FaultKind.STREAM_CUT},
}


def _faults() -> Iterator[Any]:
    for make in MAKES:
        for name in FAULTS:
            if name == "cut" or make.fault(name) is not None:
                yield each(make, name)


@pytest.mark.parametrize(("make", "name"), _faults())
async def test_a_fault_is_of_its_kind_whoever_sends_it_and_is_asked_for_once(
    bench: Bench, make: Make, name: FaultName
) -> None:
    _, fault = await bench.ask(make, Said(fault=name))
    assert isinstance(fault, Fault), fault
    assert fault.kind in FAULTS[name]
    assert fault.retry_after == (make.retry_after if name == "rate_limit" else None)
    assert fault.advice
    assert not set(fault.message) & set("{}\\"), "words, and no body of an answer"
    assert len(bench.server.requests) == 1


REFUSING = [make for make in MAKES if make.name != "ollama"]
"""Ollama's models refuse in plain text."""


@pytest.mark.parametrize("make", REFUSING, ids=lambda make: make.name)
async def test_a_refusal_is_the_model_s_words_or_the_filter_s_fault_and_never_an_empty_reply(
    bench: Bench, make: Make
) -> None:
    _, end = await bench.ask(make, Said(refusal="I cannot help with that."))
    if isinstance(end, Reply):
        assert end.text == "I cannot help with that."
    else:
        assert end.kind is FaultKind.CONTENT_POLICY


@pytest.mark.parametrize("make", EACH)
async def test_a_stream_without_a_byte_is_asked_for_once_more_without_streaming(
    bench: Bench, make: Make
) -> None:
    streamed, reply = await bench.ask(make, Said(fault="empty"))
    if make.name == "openai-responses":
        assert isinstance(reply, Fault)
        assert reply.kind is FaultKind.STREAM_CUT
        return
    assert isinstance(reply, Reply), reply
    assert streamed == reply.text == "late"
    assert (reply.prompt_tokens, reply.completion_tokens) == (11, 7)
    first, second = bench.server.requests
    assert make.streamed(first)
    assert not make.streamed(second)


class Strict(LlamaCpp):
    """A server that refuses what it does not know in a message, as Groq's does."""

    name = "strict"

    def answer(self, said: Said, request: Recorded) -> Answer:
        """See `Make`."""
        if any("reasoning_content" in message for message in request.body["messages"]):
            return error(
                400,
                "'messages.1' : property 'reasoning_content' is unsupported",
                kind="invalid_request_error",
            )
        return super().answer(said, request)


async def test_a_server_that_does_not_take_reasoning_back_is_asked_without_it_from_then_on(
    bench: Bench,
) -> None:
    call = {"id": "a", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
    carried = {"provider": "openai", "reasoning": "I wonder."}
    messages = [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": None, "tool_calls": [call], "carried": carried},
        {"role": "tool", "tool_call_id": "a", "content": "ok"},
    ]
    for expected in (2, 1):
        _, reply = await bench.ask(Strict(), Said("fine"), model="openai/strict", messages=messages)
        assert isinstance(reply, Reply), reply
        assert len(bench.server.requests) == expected
    assert "reasoning_content" not in str(bench.server.requests[-1].body)


async def test_a_history_with_calls_goes_to_anthropic_with_tools_that_none_is_to_call(bench: Bench) -> None:
    call = {"id": "a", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a", "content": "ok"},
        {"role": "user", "content": "Sum it up."},
    ]
    _, reply = await bench.ask(MAKES[0], Said("fine"), tools=[], messages=messages)
    assert isinstance(reply, Reply), reply
    (sent,) = bench.server.requests
    assert [tool["name"] for tool in sent.body["tools"]] == ["bash"]
    assert sent.body["tool_choice"]["type"] == "none"


# --- prompt caches -------------------------------------------------------------------------------------------

CLAUDE, GPT = MAKES[:2]
TURN = {"role": "assistant", "content": "I wait."}
CONVERSATION = [
    {"role": "system", "content": "Be brief."},
    *({"role": "user", "content": f"Word {number}"} if number % 2 else TURN for number in range(1, 12)),
    {"role": "user", "content": "a note for this call only"},
]


async def test_marks_are_four_at_most_and_a_longer_conversation_finds_one_where_the_shorter_had_its_last() -> (
    None
):
    ends = []
    for turns in range(2, len(CONVERSATION) + 1, 2):
        marks = [at for at, each in enumerate(marked(CONVERSATION[:turns])) if "cache_control" in each]
        assert len(marks) <= 4
        assert marks[0] == 0
        assert not ends or ends[-1] in marks
        ends.append(marks[-1])
    assert ends == [1, 3, 5, 7, 9, 11]
    assert "cache_control" not in str(CONVERSATION)


async def test_claude_gets_marks_for_its_cache_before_what_no_later_request_holds(bench: Bench) -> None:
    _, reply = await bench.ask(CLAUDE, Said("ok"), messages=CONVERSATION, ephemeral=1)
    assert isinstance(reply, Reply), reply
    (sent,) = bench.server.requests
    assert sent.body["system"][0]["cache_control"] == {"type": "ephemeral"}
    blocks = [block for message in sent.body["messages"] for block in message["content"]]
    assert [block["text"] for block in blocks if "cache_control" in block] == ["Word 7", "Word 9", "Word 11"]
    assert blocks[-1]["text"] == "a note for this call only"
    await bench.ask(CLAUDE, Said("ok"), messages=CONVERSATION, prompt_caching="off")
    assert "cache_control" not in str(bench.server.requests[-1].body)


@pytest.mark.parametrize("make", [each(make) for make in MAKES if "claude" not in make.model])
async def test_a_provider_that_caches_by_itself_gets_no_marks(bench: Bench, make: Make) -> None:
    _, reply = await bench.ask(make, Said("ok"), messages=CONVERSATION, ephemeral=1)
    assert isinstance(reply, Reply), reply
    (sent,) = bench.server.requests
    assert "cache_control" not in str(sent.body)
    await bench.ask(GPT, Said("ok"), messages=CONVERSATION, prompt_caching="on")
    assert "cache_control" in str(bench.server.requests[-1].body)


async def test_cached_tokens_are_counted_and_cost_what_the_provider_takes_for_them(bench: Bench) -> None:
    said = Said("ok", usage=(2_600, 10), cached=(2_000, 500))
    _, reply = await bench.ask(CLAUDE, said, messages=CONVERSATION)
    assert isinstance(reply, Reply), reply
    assert (reply.prompt_tokens, reply.cached_tokens, reply.cache_write_tokens) == (2_600, 2_000, 500)
    # Per million: 3 USD, 0.30 read, 3.75 written, 15 for the reply.
    assert reply.cost == pytest.approx((100 * 3 + 2_000 * 0.3 + 500 * 3.75 + 10 * 15) / 1e6)
    _, reply = await bench.ask(GPT, said, messages=CONVERSATION)
    assert isinstance(reply, Reply), reply
    assert (reply.cached_tokens, reply.cost) == (2_000, None)


IN_STREAM: dict[str, tuple[str, bytes, FaultKind, str]] = {
    "ollama, a runner that dies": (
        "ollama",
        b'{"error": "llama runner process has terminated: exit status 2"}\n',
        FaultKind.SERVER,
        "llama runner process has terminated: exit status 2.",
    ),
    "ollama, a prompt that is too long": (
        "ollama",
        b'{"error": "the input length exceeds the context length"}\n',
        FaultKind.CONTEXT_OVERFLOW,
        "the input length exceeds the context length.",
    ),
    "ollama, another server at its address": (
        "ollama",
        b'{"id": "chatcmpl-1", "choices": []}\n',
        FaultKind.BAD_OUTPUT,
        "",
    ),
    "llama.cpp, an overflow in the stream": (
        "llama.cpp",
        event(LlamaCpp.overflow),
        FaultKind.CONTEXT_OVERFLOW,
        "the request exceeds the available context size, try increasing it.",
    ),
    "gemini, an overload in the stream": (
        "gemini",
        event({"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}),
        FaultKind.OVERLOADED,
        "UNAVAILABLE - The model is overloaded.",
    ),
    "responses, a failed one": (
        "openai-responses",
        event(
            {
                "type": "response.failed",
                "sequence_number": 1,
                "response": {
                    "id": "resp_1",
                    "object": "response",
                    "created_at": 1,
                    "model": "gpt-5",
                    "output": [],
                    "status": "failed",
                    "error": {"code": "server_error", "message": "The model broke."},
                },
            },
            "response.failed",
        ),
        FaultKind.STREAM_CUT,
        "The model broke.",
    ),
}


@pytest.mark.parametrize(("name", "line", "kind", "message"), IN_STREAM.values(), ids=IN_STREAM)
async def test_a_fault_under_status_200_is_told_by_its_words(
    bench: Bench, name: str, line: bytes, kind: FaultKind, message: str
) -> None:
    make = next(make for make in MAKES if make.name == name)
    _, fault = await bench.ask(make, Said(raw=line))
    assert isinstance(fault, Fault), fault
    assert fault.kind is kind
    assert message in fault.message


class Unsigned(Anthropic):
    """Anthropic, with thinking switched on for a history that another model began."""

    def answer(self, said: Said, request: Recorded) -> Answer:
        """See `Make`."""
        if request.body.get("thinking"):
            words = (
                "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. "
                "When `thinking` is enabled, a final `assistant` message must start with a thinking block."
            )
            body = {"type": "error", "error": {"type": "invalid_request_error", "message": words}}
            return json_answer(body, 400)
        return super().answer(said, request)


async def test_a_history_without_thoughts_goes_on_without_thinking(bench: Bench) -> None:
    call = {"id": "a", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a", "content": "ok"},
    ]
    thinks = {"messages": messages, "parameters": {"reasoning_effort": "low"}}
    _, reply = await bench.ask(Unsigned(), Said("fine"), **thinks)
    assert isinstance(reply, Reply), reply
    first, second = bench.server.requests
    assert first.body["thinking"]
    assert "thinking" not in second.body
