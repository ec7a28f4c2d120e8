"""Attacks by a model's server, through the real litellm in its own process: what it sends, and where it leads."""

from __future__ import annotations

import asyncio
import gzip
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests import openai_server as served
from tests.adversarial.attack import Attack, attack, attacks
from tests.kept_host import KeptHost, kept_host
from tests.models.test_hosted import listen
from tests.openai_server import DONE, Answer, OpenAIServer, Step, chunk
from tui_agent.core.events import FaultKind
from tui_agent.models.protocol import ModelRequest, Reply

pytestmark = pytest.mark.asyncio(loop_scope="module")

SOON = 60.0
MEMORY = 1_500_000
"""Kilobytes that the host may take; it has about 300,000 when it does nothing."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def host() -> AsyncIterator[KeptHost]:
    async with kept_host(OPENAI_API_KEY="sk-real-0123456789abcdef") as model:
        yield model


def peak(host: KeptHost) -> int:
    """The most memory that the host ever had, in kilobytes."""
    status = Path(f"/proc/{host.pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])


async def ask(host: KeptHost, url: str, **changes: Any) -> Any:
    fields = {
        "model": "openai/attack",
        "messages": [{"role": "user", "content": "PROMPT-TEXT"}],
        "api_base": url,
        "silence_timeout": 20.0,
    }
    async with asyncio.timeout(SOON):
        return await listen(host, ModelRequest(**{**fields, **changes}))


def sse(*steps: bytes | Step) -> Answer:
    return served.stream(*steps)


def zipped(body: bytes, kind: str = "text/event-stream", status: int = 200) -> Answer:
    return Answer(status, (("Content-Type", kind), ("Content-Encoding", "gzip")), body)


def bomb(line: bytes, times: int) -> bytes:
    """`line` that often, compressed without having all of it in memory."""
    import zlib

    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    parts = [packer.compress(line * 1024) for _ in range(times // 1024)]
    return b"".join([*parts, packer.flush()])


def delta_of(size: int) -> Answer:
    return sse(chunk({"role": "assistant", "content": "x" * size}), chunk(finish="stop"), DONE)


def many_calls(count: int, *, ids: str = "call_{}") -> Answer:
    def steps() -> Iterator[bytes]:
        for start in range(0, count, 500):
            yield chunk({
                "tool_calls": [
                    {
                        "index": index, "id": ids.format(index), "type": "function",
                        "function": {"name": "list_dir", "arguments": "{}"},
                    }
                    for index in range(start, min(count, start + 500))
                ]
            })  # fmt: skip

    return sse(*steps(), chunk(finish="tool_calls"), DONE)


def call_of(arguments: str) -> Answer:
    return served.calls([("bash", arguments)], size=1 << 16)


@dataclass(frozen=True)
class Sent:
    """What a server sends, and what must become of it."""

    answer: Callable[[], Answer]
    becomes: FaultKind | Callable[[Reply], bool]


BAD = FaultKind.BAD_OUTPUT


@attacks(
    Attack(
        "delta_of_100_mb",
        "One delta of 100 MB",
        "A fault that says how much is too much, in bounded memory",
        fell="the host took it all, several times over",
        slow=True,
        value=Sent(lambda: delta_of(100_000_000), BAD),
    ),
    Attack(
        "delta_of_2_mb",
        "One delta of 2 MB",
        "Taken whole",
        slow=True,
        value=Sent(lambda: delta_of(2_000_000), lambda reply: len(reply.text) == 2_000_000),
    ),
    Attack(
        "gzip_bomb",
        "A reply of 130 KB that unpacks to 130 MB of spaces",
        "A fault, in bounded memory",
        fell="2 GB of spaces took 6.4 GB",
        slow=True,
        value=Sent(lambda: zipped(bomb(b" " * 1024, 1 << 17)), BAD),
    ),
    Attack(
        "gzip_bomb_of_lines",
        "A reply of 2 MB that unpacks to 500 MB of empty lines",
        "A fault, in bounded memory",
        fell="as the bomb of spaces",
        slow=True,
        value=Sent(lambda: zipped(bomb(b": \n" * 341 + b"\n", 1 << 19)), BAD),
    ),
    Attack(
        "gzip_broken",
        "A reply that says it is compressed and is not",
        "A fault",
        slow=True,
        value=Sent(lambda: zipped(b"data: {}\n\n"), BAD),
    ),
    Attack(
        "error_body_of_54_mb",
        "An error whose body has 54 MB",
        "The fault of its status, at once",
        fell="it stalled the call for 36 s",
        slow=True,
        value=Sent(
            lambda: served.raw(
                b'{"error": {"message": "' + b"x" * 54_000_000, status=400, content_type="application/json"
            ),
            FaultKind.BAD_REQUEST,
        ),
    ),
    Attack(
        "calls_100000",
        "100,000 tool calls in one reply",
        "A fault that says how many are too many",
        fell="each was carried out or refused in turn, for minutes",
        slow=True,
        value=Sent(lambda: many_calls(100_000), BAD),
    ),
    Attack(
        "calls_1000000",
        "1,000,000 tool calls in one reply",
        "A fault that says how many are too many, in bounded memory",
        slow=True,
        value=Sent(lambda: many_calls(1_000_000), BAD),
    ),
    Attack(
        "arguments_of_50_mb",
        "Arguments of 50 MB in one call",
        "A fault that says how much is too much, in bounded memory",
        slow=True,
        value=Sent(lambda: call_of('{"command": "' + "x" * 50_000_000 + '"}'), BAD),
    ),
    Attack(
        "calls_1000",
        "1,000 tool calls in one reply",
        "Taken, each by itself",
        slow=True,
        value=Sent(lambda: many_calls(1_000), lambda reply: len(reply.calls) == 1_000),
    ),
    Attack(
        "ids_repeated",
        "50 tool calls that all have one id",
        "Taken, each by itself",
        slow=True,
        value=Sent(lambda: many_calls(50, ids="same"), lambda reply: len(reply.calls) == 50),
    ),
    Attack(
        "index_far_off",
        "Indexes of calls that are negative, huge and no numbers",
        "Taken or a fault, never a host that dies",
        slow=True,
        value=Sent(
            lambda: sse(
                *(
                    chunk(
                        {
                            "tool_calls": [
                                {
                                    "index": index,
                                    "id": f"i{number}",
                                    "function": {"name": "a", "arguments": "{}"},
                                }
                            ]
                        }
                    )
                    for number, index in enumerate((-1, 10**18, None))
                ),
                chunk(finish="tool_calls"),
                DONE,
            ),
            lambda reply: True,
        ),
    ),
    Attack(
        "arguments_nested",
        "Arguments nested 100,000 deep",
        "Taken as text; refused as a call that does not fit",
        slow=True,
        value=Sent(
            lambda: call_of('{"a":' * 100_000 + "1" + "}" * 100_000), lambda reply: len(reply.calls) == 1
        ),
    ),
    Attack(
        "chunk_nested",
        "A piece of the stream that is nested 100,000 deep",
        "A fault",
        slow=True,
        value=Sent(lambda: sse(b"data: " + b"[" * 100_000 + b"]" * 100_000 + b"\n\n", DONE), BAD),
    ),
    Attack(
        "lone_surrogates",
        "Text and arguments with halves of surrogate pairs, apart and in the wrong order",
        "Taken, with a replacement character for each",
        slow=True,
        value=Sent(
            lambda: sse(
                b'data: {"choices":[{"index":0,"delta":{"content":"a\\udc00\\ud800b\\ud83d"}}]}\n\n',
                b'data: {"choices":[{"index":0,"delta":{"content":"\\ude00c"}}]}\n\n',
                chunk(finish="stop"),
                DONE,
            ),
            lambda reply: reply.text.encode() != b"" and reply.text.endswith("\U0001f600c"),
        ),
    ),
    Attack(
        "not_utf8",
        "A stream of bytes that are no UTF-8",
        "Taken or a fault, never a host that dies",
        slow=True,
        value=Sent(
            lambda: sse(
                b'data: {"choices":[{"index":0,"delta":{"content":"\xff\xfe\x80"}}]}\n\n',
                chunk(finish="stop"),
                DONE,
            ),
            lambda reply: True,
        ),
    ),
    Attack(
        "wrong_types",
        "Pieces whose fields are lists, numbers and null where others send text",
        "Taken or a fault, never a host that dies",
        slow=True,
        value=Sent(
            lambda: sse(
                b'data: {"choices":[{"index":0,"delta":{"content":[1,2]}}]}\n\n',
                b'data: {"choices":{"a":1}}\n\n',
                b'data: {"choices":[{"delta":{"tool_calls":"x"}}]}\n\n',
                b"data: null\n\n",
                b"data: 17\n\n",
                chunk(finish="stop"),
                DONE,
            ),
            BAD,
        ),
    ),
    Attack(
        "usage_absurd",
        "Usage of minus five, of 10^30 and of text",
        "The reply is taken; nothing breaks on its numbers",
        slow=True,
        value=Sent(
            lambda: sse(
                chunk({"content": "hello"}),
                chunk(finish="stop"),
                b'data: {"choices":[],"usage":{"prompt_tokens":-5,"completion_tokens":1e30,"total_tokens":"many"}}\n\n',
                DONE,
            ),
            lambda reply: True,
        ),
    ),
    Attack(
        "headers_huge",
        "200 KB of headers",
        "A fault or a reply, at once",
        slow=True,
        value=Sent(
            lambda: Answer(200, tuple((f"X-{n}", "y" * 1_000) for n in range(200)), b"{}"),
            FaultKind.CONNECTION,
        ),
    ),
)
async def test_what_is_sent(row: Attack, host: KeptHost) -> None:
    sent: Sent = row.value
    begun = time.monotonic()
    async with OpenAIServer(sent.answer()) as server:
        heard = await ask(host, server.url)
        assert heard.fault is not None or heard.reply is not None
        if heard.fault is not None:
            assert len(heard.fault.message) < 2_000
            assert isinstance(sent.becomes, FaultKind) or row.name in {
                "index_far_off",
                "not_utf8",
                "usage_absurd",
            }
        elif not isinstance(sent.becomes, FaultKind):
            assert sent.becomes(heard.reply)
        else:
            assert row.name in {"wrong_types", "headers_huge"}, heard.reply
        server.answer_with(served.text("still here"))
        assert (await ask(host, server.url)).text == "still here"
    assert time.monotonic() - begun < SOON
    assert peak(host) < MEMORY


@attacks(
    Attack("redirect_301", "301 to another host", "Nothing is sent there", slow=True, value=301),
    Attack(
        "redirect_307",
        "307 to another host",
        "Nothing is sent there, and the fault names the place",
        fell="the whole prompt was sent there",
        slow=True,
        value=307,
    ),
    Attack(
        "redirect_308", "308 to another host", "Nothing is sent there", fell="as 307", slow=True, value=308
    ),
)
async def test_redirected(row: Attack, host: KeptHost) -> None:
    async with OpenAIServer(served.text("stolen")) as thief:
        away = Answer(row.value, (("Location", thief.url + "/chat/completions"),), b"")
        async with OpenAIServer(away) as server:
            for model in ("openai/attack", "anthropic/attack"):
                heard = await ask(host, server.url, model=model)
                assert heard.fault is not None
                assert heard.fault.kind is FaultKind.BAD_REQUEST
                assert thief.url in heard.fault.message
        assert thief.requests == []


@attack(
    "A stream that never ends: pieces of content, comments, and one byte at a time",
    "Ended by the total, the silence, or the size",
    slow=True,
)
async def test_endless_streams(host: KeptHost) -> None:
    async with OpenAIServer(sse(*[chunk({"content": "word "})] * 20_000, Step.HANG)) as server:
        heard = await ask(host, server.url, silence_timeout=1.0, total_timeout=3.0)
        assert heard.fault is not None
        server.answer_with(sse(Step.KEEP_ALIVE))
        heard = await ask(host, server.url, silence_timeout=1.0)
        assert heard.fault is not None
        assert heard.fault.kind is FaultKind.TIMEOUT


@attack(
    "A server that sends one byte a moment, without end: in the status line, in the headers, in a piece",
    "Ended by the silence that the call allows",
    slow=True,
)
async def test_dripping(host: KeptHost) -> None:
    beginnings = (
        b"",
        b"HTTP/1.1 200 OK\r\nX-Slow: ",
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\ndata: {",
    )
    for beginning in beginnings:

        async def drip(
            reader: asyncio.StreamReader, writer: asyncio.StreamWriter, beginning: bytes = beginning
        ) -> None:
            try:
                writer.write(beginning)
                while True:
                    writer.write(b"H" if not beginning else b"x")
                    await writer.drain()
                    await asyncio.sleep(0.05)
            except OSError:
                writer.close()

        server = await asyncio.start_server(drip, "127.0.0.1", 0)
        async with server:
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
            begun = time.monotonic()
            heard = await ask(host, url, silence_timeout=1.0)
            assert heard.fault is not None
            assert time.monotonic() - begun < 15


@attack(
    "`Retry-After` of years, of minus one, of a date in the past, of text and of infinity",
    "A fault with a wait that the policy bounds, never a call that sleeps",
    slow=True,
)
async def test_retry_after(host: KeptHost) -> None:
    for value in ("999999999", "-1", "Thu, 01 Jan 1970 00:00:00 GMT", "soon", "inf", "nan", "1e400"):
        answer = Answer(429, (("Retry-After", value), ("Content-Type", "application/json")), b'{"error": {}}')
        async with OpenAIServer(answer) as server:
            begun = time.monotonic()
            heard = await ask(host, server.url)
            assert heard.fault is not None
            assert heard.fault.kind is FaultKind.RATE_LIMIT
            assert len(server.requests) == 1
            assert time.monotonic() - begun < 15
            wait = heard.fault.retry_after
            assert wait is None or 0 <= wait < float("inf")


@attack(
    "A server that repeats the key, the prompt and a traceback in its error",
    "The fault shows no key and is one short text",
    slow=True,
)
async def test_key_repeated(host: KeptHost) -> None:
    body = json.dumps({"error": {"message": "bad key sk-real-0123456789abcdef " + "trace\n" * 10_000}})
    async with OpenAIServer(Answer(401, (("Content-Type", "application/json"),), body.encode())) as server:
        heard = await ask(host, server.url)
        assert heard.fault is not None
        assert "sk-real" not in heard.fault.model_dump_json()
        assert len(heard.fault.message) < 2_000


@attack(
    "The connection is cut at places all along a reply",
    "A fault or the whole reply each time; half a reply is never taken for one",
    slow=True,
)
async def test_cut_anywhere(host: KeptHost) -> None:
    whole = served.calls([("bash", '{"command": "echo one two three"}')], size=8).steps
    body = b"".join(step for step in whole if isinstance(step, bytes))
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
    complete = body.index(b'"tool_calls"', body.rindex(b"finish_reason") - 200)
    cuts: list[int] = list(range(0, len(head + body), max(1, len(head + body) // 24)))
    sent = 0

    async def cut(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write((head + body)[:sent])
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(cut, "127.0.0.1", 0)
    async with server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        for sent in cuts:
            heard = await ask(host, url)
            if sent < len(head) + complete:
                assert heard.reply is None, sent
                assert heard.fault is not None
            elif heard.reply is not None:
                assert heard.reply.calls[0].arguments == '{"command": "echo one two three"}'


@attack(
    "The host that makes the calls is killed before, during and after a reply",
    "A fault each time, and the next call works",
    slow=True,
)
async def test_host_killed(host: KeptHost) -> None:
    import os
    import signal

    async with OpenAIServer(sse(chunk({"content": "x"}), Step.HANG)) as server:
        request = ModelRequest(
            model="openai/x", messages=[{"role": "user", "content": "x"}], api_base=server.url
        )
        async with asyncio.timeout(SOON), aclosing(host.stream(request)) as stream:
            await anext(stream)
            assert host.pid is not None
            os.kill(host.pid, signal.SIGKILL)
            with pytest.raises(Exception, match="host"):
                await anext(stream)
        server.answer_with(served.text("again"))
        assert (await ask(host, server.url)).text == "again"


@attack(
    "A compressed reply that is honest",
    "Taken whole: the guard refuses no server that compresses",
    slow=True,
)
async def test_honest_compression(host: KeptHost) -> None:
    steps = served.text("hello there").steps
    body = gzip.compress(b"".join(step for step in steps if isinstance(step, bytes)))
    async with OpenAIServer(zipped(body)) as server:
        assert (await ask(host, server.url)).text == "hello there"
