"""The real litellm in the real model host, against a server that does everything a server can do wrong."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import signal
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests import openai_server as served
from tests.anthropic_server import event
from tests.kept_host import HIDDEN_KEY, KeptHost
from tests.models.offered import BASH, LONGEST
from tests.openai_server import Answer, OpenAIServer, Step, chunk
from tui_agent.core.events import Fault, FaultKind
from tui_agent.models.hosted import HostedModel
from tui_agent.models.local_servers import is_nearby
from tui_agent.models.protocol import Delta, ModelFault, ModelRequest, Reply

pytestmark = pytest.mark.asyncio(loop_scope="session")


@dataclass
class Bench:
    """The host, and one server for all tests of this file."""

    model: HostedModel
    server: OpenAIServer

    def request(self, **changes: Any) -> ModelRequest:
        fields = {
            "model": "local-model",
            "messages": [{"role": "user", "content": "hello"}],
            "tools": [BASH],
            "api_base": self.server.url,
            "silence_timeout": 20.0,
        }
        return ModelRequest(**{**fields, **changes})


@dataclass
class Heard:
    """What one call gave."""

    deltas: list[Delta] = field(default_factory=list)
    reply: Reply | None = None
    fault: Fault | None = None

    @property
    def text(self) -> str:
        return "".join(delta.text for delta in self.deltas)


async def listen(model: HostedModel, request: ModelRequest) -> Heard:
    heard = Heard()
    try:
        async with asyncio.timeout(LONGEST), aclosing(model.stream(request)) as stream:
            async for piece in stream:
                if isinstance(piece, Reply):
                    assert heard.reply is None
                    heard.reply = piece
                else:
                    assert heard.reply is None
                    heard.deltas.append(piece)
    except ModelFault as raised:
        heard.fault = raised.fault
    return heard


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def bench(host: KeptHost) -> AsyncIterator[Bench]:
    async with OpenAIServer(served.text("x")) as server:
        yield Bench(host, server)


async def ask(bench: Bench, *script: Answer, **changes: Any) -> Heard:
    bench.server.answer_with(script)
    return await listen(bench.model, bench.request(**changes))


# --- replies -------------------------------------------------------------------------------------------------


async def test_text_and_reasoning_stream_apart_and_usage_is_the_server_s(bench: Bench) -> None:
    heard = await ask(bench, served.text("Hello there, operator.", reasoning="A greeting is due."))
    assert heard.reply is not None
    assert heard.text == heard.reply.text == "Hello there, operator."
    assert "".join(delta.reasoning for delta in heard.deltas) == heard.reply.reasoning == "A greeting is due."
    assert heard.reply.finish_reason == "stop"
    assert (heard.reply.prompt_tokens, heard.reply.completion_tokens) == (11, 7)
    assert heard.reply.cost is None, "nobody knows the price of a server of one's own"


async def test_a_bare_name_and_an_api_base_reach_any_server_without_a_key(bench: Bench) -> None:
    for name in ("local-model", "Qwen/Qwen2.5-7B", "openai/local-model", "gpt-4o"):
        heard = await ask(bench, served.text("fine"), model=name)
        assert heard.text == "fine"
        (sent,) = bench.server.requests
        assert sent.path == "/v1/chat/completions"
        assert sent.body["model"] == name.removeprefix("openai/")
        assert heard.reply is not None
        assert heard.reply.cost is None


async def test_the_request_carries_tools_and_nothing_private(bench: Bench) -> None:
    await ask(bench, served.text("fine"))
    (sent,) = bench.server.requests
    assert set(sent.body) == {"model", "messages", "tools", "tool_choice", "stream", "stream_options"}
    assert sent.body["tool_choice"] == "auto"
    assert sent.body["tools"] == [BASH]
    assert sent.body["stream_options"] == {"include_usage": True}


async def test_without_tools_none_are_sent(bench: Bench) -> None:
    await ask(bench, served.text("fine"), tools=[])
    assert "tools" not in bench.server.requests[0].body


async def test_calls_in_many_pieces_are_put_together_in_order(bench: Bench) -> None:
    wanted = [("bash", '{"command": "ls -la"}'), ("bash", '{"command": "pwd"}'), ("grep", '{"pattern": "ä"}')]
    heard = await ask(bench, served.calls(wanted, say="Look:"))
    assert heard.reply is not None
    assert [(call.name, call.arguments) for call in heard.reply.calls] == wanted
    assert [call.id for call in heard.reply.calls] == ["call_0", "call_1", "call_2"]
    assert heard.reply.text == "Look:"
    assert heard.reply.finish_reason == "tool_calls"


async def test_repeated_names_and_missing_ids_do_no_harm(bench: Bench) -> None:
    heard = await ask(bench, served.calls([("bash", '{"command": "ls"}')], repeat_names=True, ids=False))
    assert heard.reply is not None
    (call,) = heard.reply.calls
    assert (call.name, call.arguments) == ("bash", '{"command": "ls"}')
    assert call.id


async def test_broken_arguments_come_as_they_are(bench: Bench) -> None:
    heard = await ask(bench, served.calls([("bash", '{"command": ')]))
    assert heard.reply is not None
    (call,) = heard.reply.calls
    assert call.arguments == '{"command": '


async def test_a_call_cut_at_the_length_limit_stays_broken(bench: Bench) -> None:
    heard = await ask(bench, served.calls([("bash", '{"command": "rm -r')], finish="length"))
    assert heard.reply is not None
    assert heard.reply.finish_reason == "length"
    with pytest.raises(json.JSONDecodeError):
        json.loads(heard.reply.calls[0].arguments)


@pytest.mark.parametrize("word", ["length", "max_tokens", "MAX_TOKENS", "model_length"])
async def test_a_text_cut_at_the_length_limit_says_so_whatever_the_server_calls_it(
    bench: Bench, word: str
) -> None:
    heard = await ask(bench, served.text("The answer is", finish=word))
    assert heard.reply is not None
    assert (heard.reply.text, heard.reply.finish_reason) == ("The answer is", "length")


@pytest.mark.parametrize(
    "answer",
    [served.text("", reasoning="Hm", finish="length"), served.calls([("bash", "")], finish="length")],
    ids=["thoughts alone", "half a call"],
)
async def test_a_reply_that_says_nothing_until_its_limit_comes_as_such(bench: Bench, answer: Answer) -> None:
    heard = await ask(bench, answer)
    assert heard.reply is not None
    assert (heard.reply.text, heard.reply.calls, heard.reply.finish_reason) == ("", (), "length")


async def test_a_call_without_a_name_is_kept(bench: Bench) -> None:
    heard = await ask(bench, served.calls([("", '{"command": "ls"}'), ("my tool!", "{}")]))
    assert heard.reply is not None
    assert [(call.name, call.arguments) for call in heard.reply.calls] == [
        ("", '{"command": "ls"}'),
        ("my tool!", "{}"),
    ]


async def test_what_the_server_read_from_its_cache_is_counted(bench: Bench) -> None:
    pieces = (chunk({"content": "hi"}), chunk(finish="stop"))
    usage = chunk(usage=(1000, 5), cached=900, choices=False)
    heard = await ask(bench, served.stream(*pieces, usage, served.DONE))
    assert heard.reply is not None
    assert (heard.reply.prompt_tokens, heard.reply.cached_tokens) == (1000, 900)
    heard = await ask(bench, served.text("hi"))
    assert heard.reply is not None
    assert heard.reply.cached_tokens is None


async def test_a_server_that_refuses_stream_options_is_asked_without_and_remembered(bench: Bench) -> None:
    answer = served.text("fine", usage=None).refusing("stream_options")
    for requests in (2, 1):
        heard = await ask(bench, answer, model="without-options")
        assert heard.text == "fine"
        assert len(bench.server.requests) == requests
        assert heard.reply is not None
        assert (heard.reply.prompt_tokens, heard.reply.completion_tokens) == (None, None), "not estimated"


async def test_a_burst_comes_in_few_pieces_and_whole(bench: Bench) -> None:
    words = "".join(f"{number} " for number in range(500))
    steps = [chunk({"content": f"{number} "}) for number in range(500)]
    heard = await ask(bench, served.stream(*steps, chunk(finish="stop"), served.DONE))
    assert heard.text == words
    assert len(heard.deltas) < 250, "how few depends on how busy the machine is"


async def test_a_redirect_is_refused_with_its_address_and_nothing_is_sent_there(bench: Bench) -> None:
    async with OpenAIServer(served.text("stolen")) as elsewhere:
        heard = await ask(bench, Answer(307, (("Location", f"{elsewhere.url}/chat/completions"),), b""))
        assert heard.fault is not None
        assert heard.fault.kind is FaultKind.BAD_REQUEST
        assert elsewhere.url in heard.fault.message
        assert elsewhere.requests == []


async def test_a_reply_that_unpacks_without_end_is_given_up(bench: Bench) -> None:
    body = gzip.compress(b" " * (12 << 20), 1)
    headers = (("Content-Type", "text/event-stream"), ("Content-Encoding", "gzip"))
    heard = await ask(bench, Answer(200, headers, body))
    assert heard.fault is not None
    assert "more than 8 MB" in heard.fault.message


async def test_a_request_of_many_megabytes_goes_through(bench: Bench) -> None:
    heard = await ask(bench, served.text("read"), messages=[{"role": "user", "content": "long " * 1_000_000}])
    assert heard.text == "read"


async def test_calls_at_the_same_time_do_not_mix(bench: Bench) -> None:
    bench.server.answer_with([served.text(letter * 300, size=3) for letter in "abc"])
    every = await asyncio.gather(*(listen(bench.model, bench.request()) for _ in range(3)))
    assert sorted(heard.text for heard in every) == ["a" * 300, "b" * 300, "c" * 300]


async def test_strange_text_survives_the_pipes(bench: Bench) -> None:
    words = "zwei\nZeilen\r\n\u2028 \x00 \x1b[31m [/red] 🙂 "
    steps = [chunk({"content": piece}) for piece in (words, "\ud83d", "\ude42 and \ud83d")]
    asked = [{"role": "user", "content": words + "\ud83d"}]
    heard = await ask(bench, served.stream(*steps, chunk(finish="stop"), served.DONE), messages=asked)
    assert heard.reply is not None
    assert heard.reply.text == heard.text == words + "🙂 and "
    assert bench.server.requests[0].body["messages"][0]["content"] == words + "?"


# --- faults --------------------------------------------------------------------------------------------------

OVERFLOW = (
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."
)
HTML = b"<!DOCTYPE html><html><head><title>Sign in</title></head><body>hotel wifi</body></html>"
SAID = chunk({"content": "Hel"})

FAULTS: dict[str, tuple[Answer, FaultKind, dict[str, Any]]] = {
    "400": (
        served.error(400, "tools.0: bad schema"),
        FaultKind.BAD_REQUEST,
        {"status": 400, "message": "tools.0: bad schema."},
    ),
    "401": (served.error(401, "wrong key"), FaultKind.AUTH, {"status": 401}),
    "402": (served.error(402), FaultKind.QUOTA, {"status": 402}),
    "403": (served.error(403), FaultKind.PERMISSION, {"status": 403}),
    "404": (served.error(404), FaultKind.NOT_FOUND, {"status": 404}),
    "408": (served.error(408), FaultKind.TIMEOUT, {"status": 408}),
    "409": (served.error(409), FaultKind.SERVER, {"status": 409}),
    "413": (served.error(413), FaultKind.CONTEXT_OVERFLOW, {"status": 413}),
    "422": (served.error(422), FaultKind.BAD_REQUEST, {"status": 422}),
    "429": (
        served.error(429, "slow", retry_after=7),
        FaultKind.RATE_LIMIT,
        {"status": 429, "retry_after": 7.0, "message": "slow."},
    ),
    "429 without Retry-After": (served.error(429), FaultKind.RATE_LIMIT, {"retry_after": None}),
    "429 empty purse": (served.error(429, code="insufficient_quota"), FaultKind.QUOTA, {"status": 429}),
    "500": (served.error(500), FaultKind.SERVER, {"status": 500}),
    "502 web page": (
        served.raw(HTML, status=502),
        FaultKind.SERVER,
        {"message": "the server answered with a web page (Sign in)."},
    ),
    "503": (served.error(503, retry_after=2), FaultKind.SERVER, {"status": 503, "retry_after": 2.0}),
    "504": (served.error(504), FaultKind.TIMEOUT, {"status": 504}),
    "529": (served.error(529), FaultKind.OVERLOADED, {"status": 529}),
    "context overflow": (
        served.error(400, OVERFLOW, code="context_length_exceeded"),
        FaultKind.CONTEXT_OVERFLOW,
        {"message": OVERFLOW},
    ),
    "content policy": (
        served.error(400, "content management policy", code="content_policy_violation"),
        FaultKind.CONTENT_POLICY,
        {},
    ),
    "web page as 200": (served.raw(HTML), FaultKind.BAD_OUTPUT, {}),
    "other json as 200": (served.raw(b'{"a": 1}', content_type="application/json"), FaultKind.BAD_OUTPUT, {}),
    "garbage": (served.raw(b"\x00\xff\xfe", content_type="text/event-stream"), FaultKind.BAD_OUTPUT, {}),
    "nothing": (served.raw(b""), FaultKind.BAD_OUTPUT, {}),
    "empty stream": (served.stream(), FaultKind.BAD_OUTPUT, {}),
    "only the end": (served.stream(served.DONE), FaultKind.BAD_OUTPUT, {}),
    "empty choices": (served.stream(chunk(choices=False), served.DONE), FaultKind.BAD_OUTPUT, {}),
    "cut at once": (served.stream(Step.CUT), FaultKind.STREAM_CUT, {}),
}

FAULTS_IN_STREAM = {
    "closed cleanly without a finish": (served.stream(SAID), FaultKind.STREAM_CUT),
    "reset": (served.stream(SAID, Step.CUT), FaultKind.STREAM_CUT),
    "dropped": (served.stream(SAID, Step.DROP), FaultKind.STREAM_CUT),
    "silence": (served.stream(SAID, Step.HANG), FaultKind.TIMEOUT),
    "keep-alives only": (served.stream(SAID, Step.KEEP_ALIVE), FaultKind.TIMEOUT),
    "broken json": (served.stream(SAID, b"data: {oops\n\n", served.DONE), FaultKind.BAD_OUTPUT),
    "an error event": (
        served.stream(
            SAID, b'data: {"error": {"message": "it broke", "type": "server_error"}}\n\n', served.DONE
        ),
        FaultKind.SERVER,
    ),
}


SAID_NOTHING = frozenset(
    {
        "garbage",
        "web page as 200",
        "other json as 200",
        "nothing",
        "empty stream",
        "only the end",
        "empty choices",
    }
)
"""These are asked once more without streaming, for the fault that such a stream hides."""


@pytest.mark.parametrize(
    ("name", "answer", "kind", "details"), [(name, *row) for name, row in FAULTS.items()], ids=FAULTS
)
async def test_a_failed_call_is_one_typed_fault_and_one_request(
    bench: Bench, name: str, answer: Answer, kind: FaultKind, details: dict[str, Any]
) -> None:
    heard = await ask(bench, answer)
    assert heard.fault is not None
    assert heard.fault.kind is kind
    assert {name: getattr(heard.fault, name) for name in details} == details
    assert heard.fault.message
    assert heard.fault.advice
    assert heard.text == ""
    assert len(bench.server.requests) == 1 + (name in SAID_NOTHING), "litellm does not retry by itself"


@pytest.mark.parametrize(("answer", "kind"), FAULTS_IN_STREAM.values(), ids=FAULTS_IN_STREAM)
async def test_a_stream_that_breaks_is_a_typed_fault_after_what_was_said(
    bench: Bench, answer: Answer, kind: FaultKind
) -> None:
    # Only a silence is waited for: else a machine with much to do would be taken for one.
    silence = 0.3 if kind is FaultKind.TIMEOUT else 20.0
    heard = await ask(bench, answer, silence_timeout=silence, prompt_timeout=20.0)
    assert heard.text == "Hel"
    assert heard.fault is not None
    assert heard.fault.kind is kind
    assert len(bench.server.requests) == 1


async def test_silence_before_the_first_word_is_a_timeout_and_the_server_sees_us_go(bench: Bench) -> None:
    heard = await ask(bench, served.stream(Step.HANG), silence_timeout=0.3)
    assert heard.fault is not None
    assert heard.fault.kind is FaultKind.TIMEOUT
    assert heard.fault.message == "the model was silent for 0.3 s."
    await asyncio.wait_for(bench.server.requests[0].gone.wait(), 10)


async def test_a_server_nearby_may_take_its_time_for_the_prompt_and_no_longer(bench: Bench) -> None:
    slow = served.stream(Step.PROCESS, SAID, served.chunk(finish="stop"), served.DONE)
    heard = await ask(bench, slow, silence_timeout=0.3, prompt_timeout=20.0)
    assert heard.fault is None
    assert heard.text == "Hel"
    heard = await ask(bench, served.stream(Step.HANG), silence_timeout=0.2, prompt_timeout=0.4)
    assert heard.fault is not None
    assert heard.fault.kind is FaultKind.TIMEOUT
    assert heard.fault.message == "no word of a reply came within 0.4 s."


async def test_once_a_reply_has_begun_its_silence_is_as_short_as_ever(bench: Bench) -> None:
    heard = await ask(bench, served.stream(SAID, Step.HANG), silence_timeout=0.3, prompt_timeout=20.0)
    assert heard.fault is not None
    assert heard.fault.message == "the model was silent for 0.3 s."


@pytest.mark.parametrize(
    ("address", "near"),
    [
        ("http://127.0.0.1:8080/v1", True),
        ("http://localhost:11434", True),
        ("http://[::1]:8080", True),
        ("http://192.168.1.20:8000/v1", True),
        ("http://10.0.0.7/v1", True),
        ("http://llama:8080/v1", True),
        ("http://box.local:8080/v1", True),
        ("https://api.openai.com/v1", False),
        ("https://8.8.8.8/v1", False),
        ("https://gateway.example.com", False),
        ("not an address", False),
        ("http://[", False),
        ("", False),
    ],
)
def test_a_server_is_nearby_by_its_address(address: str, near: bool) -> None:
    assert is_nearby(address) is near


async def test_a_reply_that_never_ends_is_stopped_by_the_total(bench: Bench) -> None:
    heard = await ask(bench, served.stream(SAID, Step.HANG), total_timeout=1.0)
    assert heard.fault is not None
    assert heard.fault.message == "the reply was not complete after 1 s."


@pytest.mark.parametrize(
    "address", ["http://127.0.0.1:9/v1", "http://no-such-host.invalid/v1", "https://127.0.0.1:{port}/v1"]
)
async def test_a_server_that_is_not_there_is_a_connection_fault(bench: Bench, address: str) -> None:
    port = bench.server.url.split(":")[2].split("/")[0]
    heard = await ask(bench, served.text("x"), api_base=address.format(port=port))
    assert heard.fault is not None
    assert heard.fault.kind is FaultKind.CONNECTION
    assert heard.fault.status is None, "no invented 500"
    assert "--api-base" in heard.fault.advice


@pytest.mark.parametrize(
    ("model", "variable"),
    [
        ("gpt-4o", "OPENAI_API_KEY"),
        ("openai/anything", "OPENAI_API_KEY"),
        ("cohere/command", "COHERE_API_KEY"),
    ],
)
async def test_a_missing_key_is_named_before_anything_is_sent(
    bench: Bench, model: str, variable: str
) -> None:
    heard = await ask(bench, served.text("x"), model=model, api_base=None)
    assert heard.fault is not None
    assert heard.fault.kind is FaultKind.AUTH
    assert variable in heard.fault.message
    assert variable in heard.fault.advice
    assert bench.server.requests == []


async def test_a_name_that_nobody_knows_is_not_found(bench: Bench) -> None:
    heard = await ask(bench, served.text("x"), model="gtp-11", api_base=None)
    assert heard.fault is not None
    assert heard.fault.kind is FaultKind.NOT_FOUND
    assert "gtp-11" in heard.fault.advice
    assert "--api-base" in heard.fault.advice


async def test_a_key_that_a_server_repeats_is_not_shown(bench: Bench) -> None:
    heard = await ask(bench, served.error(401, f"the key {HIDDEN_KEY} is wrong"))
    assert heard.fault is not None
    assert HIDDEN_KEY not in heard.fault.message
    assert "the key" in heard.fault.message


# --- another protocol ----------------------------------------------------------------------------------------


def opened(**usage: int) -> bytes:
    message = {"id": "m", "type": "message", "role": "assistant", "model": "claude", "content": []}
    usage = {"input_tokens": 25, "output_tokens": 1, **usage}
    return event("message_start", message={**message, "usage": usage})


def block(index: int, content: dict[str, Any], *deltas: dict[str, Any]) -> list[bytes]:
    return [
        event("content_block_start", index=index, content_block=content),
        *(event("content_block_delta", index=index, delta=delta) for delta in deltas),
        event("content_block_stop", index=index),
    ]


GREETING = block(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": "Hel"})
ANTHROPIC = "anthropic/claude-sonnet-4-5"


async def test_anthropic_s_protocol_gives_the_same_kind_of_reply(bench: Bench) -> None:
    pieces = [{"type": "input_json_delta", "partial_json": part} for part in ('{"comm', 'and": "ls"}')]
    ending = event("message_delta", delta={"stop_reason": "tool_use"}, usage={"output_tokens": 15})
    call = block(1, {"type": "tool_use", "id": "tu_1", "name": "bash", "input": {}}, *pieces)
    heard = await ask(
        bench, served.stream(opened(), *GREETING, *call, ending, event("message_stop")), model=ANTHROPIC
    )
    (sent,) = bench.server.requests
    assert sent.path == "/v1/messages", "though the api base ends in /v1"
    assert heard.text == "Hel"
    assert heard.reply is not None
    assert [(each.id, each.name, each.arguments) for each in heard.reply.calls] == [
        ("tu_1", "bash", '{"command": "ls"}')
    ]
    assert (heard.reply.prompt_tokens, heard.reply.completion_tokens) == (25, 15)
    assert heard.reply.cost is not None
    assert 0 < heard.reply.cost < 0.01


async def test_anthropic_s_cut_reply_and_cache_come_in_the_same_words(bench: Bench) -> None:
    call = block(
        1,
        {"type": "tool_use", "id": "tu_1", "name": "bash", "input": {}},
        {"type": "input_json_delta", "partial_json": '{"comm'},
    )
    ending = event("message_delta", delta={"stop_reason": "max_tokens"}, usage={"output_tokens": 15})
    answer = served.stream(
        opened(cache_read_input_tokens=20), *GREETING, *call, ending, event("message_stop")
    )
    heard = await ask(bench, answer, model=ANTHROPIC)
    assert heard.reply is not None
    assert heard.reply.finish_reason == "length"
    assert [each.arguments for each in heard.reply.calls] == ['{"comm']
    assert heard.reply.cached_tokens == 20


@pytest.mark.parametrize(
    ("answer", "kind", "message"),
    [
        (served.stream(opened(), *GREETING), FaultKind.STREAM_CUT, "ended before the reply was complete"),
        (served.stream(opened(), *GREETING, Step.CUT), FaultKind.STREAM_CUT, "in the middle of the reply"),
        (
            served.stream(
                opened(),
                *GREETING,
                event("error", error={"type": "overloaded_error", "message": "Overloaded"}),
            ),
            FaultKind.OVERLOADED,
            "Overloaded",
        ),
        (served.error(529, "Overloaded", kind="overloaded_error"), FaultKind.OVERLOADED, "Overloaded"),
        (served.error(429, "slow down", retry_after=3), FaultKind.RATE_LIMIT, "slow down"),
        (served.error(401, "invalid x-api-key"), FaultKind.AUTH, "invalid x-api-key"),
        (served.error(400, "Your credit balance is too low"), FaultKind.QUOTA, "credit balance"),
        (
            served.error(400, "prompt is too long: 9 tokens > 8 maximum"),
            FaultKind.CONTEXT_OVERFLOW,
            "too long",
        ),
    ],
)
async def test_anthropic_s_failures_are_the_same_kinds_of_faults(
    bench: Bench, answer: Answer, kind: FaultKind, message: str
) -> None:
    heard = await ask(bench, answer, model=ANTHROPIC)
    assert heard.fault is not None
    assert heard.fault.kind is kind
    assert message in heard.fault.message
    assert not heard.fault.message.startswith("b'")
    assert heard.fault.status in {None, answer.status}
    assert len(bench.server.requests) == 1


# --- cancelling ----------------------------------------------------------------------------------------------


async def test_closing_the_stream_closes_the_connection(bench: Bench) -> None:
    bench.server.answer_with(served.stream(SAID, Step.HANG))
    async with aclosing(bench.model.stream(bench.request())) as stream:
        first = await anext(stream)
        assert isinstance(first, Delta)
    await asyncio.wait_for(bench.server.requests[0].gone.wait(), 10)


async def test_cancelling_the_caller_closes_the_connection_and_the_next_call_works(bench: Bench) -> None:
    bench.server.answer_with(served.stream(SAID, Step.HANG), served.text("next"))
    task = asyncio.ensure_future(listen(bench.model, bench.request()))
    while not bench.server.requests:
        await asyncio.sleep(0.01)
    (sent,) = bench.server.requests
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(sent.gone.wait(), 10)
    assert (await listen(bench.model, bench.request())).text == "next"


# --- what the host knows -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "known"), [("gpt-4o", True), ("claude-sonnet-4-5", True), ("nobody-s-model", False)]
)
async def test_the_window_of_a_known_model_is_reported_less_room_for_the_reply(
    bench: Bench, model: str, known: bool
) -> None:
    tokens = await bench.model.context_tokens(model)
    if known:
        assert tokens is not None
        assert 50_000 < tokens < 1_000_000
    else:
        assert tokens is None
    if model == "gpt-4o":
        assert tokens == 128_000 - 16_384


async def test_the_host_printed_nothing_and_is_still_the_first_one(
    bench: Bench, capfd: pytest.CaptureFixture[str]
) -> None:
    first = bench.model.pid
    await ask(bench, served.error(500))
    await ask(bench, served.stream(SAID, Step.CUT))
    assert bench.model.pid == first
    assert capfd.readouterr() == ("", "")


@pytest.mark.process
async def test_a_host_killed_in_mid_stream_is_a_fault_and_the_next_one_starts_clean(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.server.answer_with(served.stream(SAID, Step.HANG), served.text("again"))
    first = bench.model.pid
    assert first is not None
    async with aclosing(bench.model.stream(bench.request())) as stream:
        await anext(stream)
        os.kill(first, signal.SIGKILL)
        with pytest.raises(ModelFault, match="by signal 9") as raised:
            await anext(stream)
    assert raised.value.fault.kind is FaultKind.CONNECTION
    # The folder that it starts in gives it neither modules nor keys.
    (tmp_path / "litellm.py").write_text("raise SystemExit('a trap')")
    (tmp_path / ".env").write_text("OPENAI_API_KEY=sk-from-the-project\n")
    monkeypatch.chdir(tmp_path)
    assert (await listen(bench.model, bench.request())).text == "again"
    assert bench.server.requests[1].headers["authorization"] == "Bearer none"
    assert bench.model.pid not in {None, first}
    with pytest.raises(ProcessLookupError):
        os.kill(first, 0)
