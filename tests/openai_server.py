"""A scripted loopback server that speaks OpenAI's chat protocol, streaming or not, and every way to do it badly.

    async with OpenAIServer([text("Hello"), error(429, retry_after=1)]) as server:
        ...  # use server.url as the api base; server.requests holds what came in

Each request takes the next answer of the script; the last one is given for ever. Nothing but asyncio is needed.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import Any, Self


class Step(Enum):
    """What a streaming answer may do besides sending bytes."""

    HANG = auto()
    """Say nothing more until the client goes."""
    PROCESS = auto()
    """Say nothing for a second, as while a long prompt is processed; then go on."""
    CUT = auto()
    """Reset the connection."""
    KEEP_ALIVE = auto()
    """Send comments for ever, never content."""
    DROP = auto()
    """Close the connection in the middle of the body."""


@dataclass(frozen=True)
class Pause:
    """Say nothing for so many seconds; then go on."""

    seconds: float


@dataclass(frozen=True)
class Answer:
    """One answer: a status with a body, or a stream of steps. `refuses` names a request key that gets a 400."""

    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    steps: tuple[bytes | Step | Pause, ...] = ()
    refuses: str = ""

    def refusing(self, key: str) -> Answer:
        """The same answer from a server that does not know a key of the request."""
        return replace(self, refuses=key)


@dataclass
class Recorded:
    """A request as it came in. `gone` is set when the client closed before the answer was over."""

    method: str
    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    gone: asyncio.Event = field(default_factory=asyncio.Event)


# --- answers -------------------------------------------------------------------------------------------------

DONE = b"data: [DONE]\n\n"
COMMENT = b": keep-alive\n\n"


def chunk(
    delta: dict[str, Any] | None = None,
    *,
    finish: str | None = None,
    usage: tuple[int, int] | None = None,
    cached: int | None = None,
    choices: bool = True,
) -> bytes:
    """One server-sent event with a `chat.completion.chunk`."""
    data: dict[str, Any] = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "served-model",
        "choices": [{"index": 0, "delta": delta or {}, "finish_reason": finish}] if choices else [],
    }
    if usage is not None:
        prompt, completion = usage
        data["usage"] = {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
        }
        if cached is not None:
            data["usage"]["prompt_tokens_details"] = {"cached_tokens": cached}
    return b"data: " + json.dumps(data).encode() + b"\n\n"


def stream(*steps: bytes | Step) -> Answer:
    """A streaming answer made of these steps; ended properly unless a step ends it otherwise."""
    return Answer(headers=(("Content-Type", "text/event-stream"),), steps=steps)


def text(
    words: str,
    *,
    size: int = 4,
    reasoning: str = "",
    finish: str | None = "stop",
    usage: tuple[int, int] | None = (11, 7),
) -> Answer:
    """Text in pieces of `size` characters, a finish reason and a usage chunk."""
    steps: list[bytes | Step] = [chunk({"role": "assistant", "content": ""})]
    if reasoning:
        steps.extend(chunk({"reasoning_content": piece}) for piece in pieces(reasoning, size))
    steps.extend(chunk({"content": piece}) for piece in pieces(words, size))
    steps.extend(_ending(finish, usage))
    return stream(*steps)


def calls(
    wanted: Sequence[tuple[str, str]],
    *,
    size: int = 3,
    say: str = "",
    ids: bool = True,
    repeat_names: bool = False,
    finish: str | None = "tool_calls",
    usage: tuple[int, int] | None = (11, 7),
) -> Answer:
    """Tool calls, (name, arguments as text) each, their arguments interleaved in pieces of `size` characters."""
    steps: list[bytes | Step] = [chunk({"role": "assistant", "content": say or None})]
    for index, (name, _) in enumerate(wanted):
        opening: dict[str, Any] = {
            "index": index,
            "type": "function",
            "function": {"name": name, "arguments": ""},
        }
        if ids:
            opening["id"] = f"call_{index}"
        steps.append(chunk({"tool_calls": [opening]}))
    parts = [pieces(arguments, size) for _, arguments in wanted]
    for at in range(max((len(each) for each in parts), default=0)):
        for index, (name, _) in enumerate(wanted):
            if at < len(parts[index]):
                function = {"arguments": parts[index][at]}
                if repeat_names:
                    function["name"] = name
                steps.append(chunk({"tool_calls": [{"index": index, "function": function}]}))
    steps.extend(_ending(finish, usage))
    return stream(*steps)


def error(
    status: int,
    message: str = "it failed",
    *,
    code: str | None = None,
    kind: str = "error",
    retry_after: float | None = None,
) -> Answer:
    """An error in OpenAI's form."""
    body = {"error": {"message": message, "type": kind, "code": code, "param": None}}
    return json_answer(body, status, retry_after=retry_after)


def json_answer(
    body: object,
    status: int = 200,
    *,
    retry_after: float | None = None,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """A body of JSON."""
    named = {"Content-Type": "application/json", **(headers or {})}
    if retry_after is not None:
        named["Retry-After"] = f"{retry_after:g}"
    return Answer(status, tuple(named.items()), json.dumps(body).encode())


def raw(body: bytes, *, status: int = 200, content_type: str = "text/html") -> Answer:
    """Any body at all."""
    return Answer(status, (("Content-Type", content_type),), body)


def pieces(words: str, size: int) -> list[str]:
    """The text in pieces of `size` characters."""
    return [words[at : at + size] for at in range(0, len(words), size)]


def _ending(finish: str | None, usage: tuple[int, int] | None) -> Iterable[bytes]:
    if finish is not None:
        yield chunk(finish=finish)
    if usage is not None:
        yield chunk(usage=usage, choices=False)
    yield DONE


# --- the server ----------------------------------------------------------------------------------------------


class OpenAIServer:
    """The server; `url` is its api base. `answer_with` sets a new script at any time."""

    def __init__(self, script: Answer | Iterable[Answer] = ()) -> None:
        self.requests: list[Recorded] = []
        self.questions: list[Recorded] = []
        """What was asked beside them: about models and windows."""
        self._script: list[Answer] = []
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._port = 0
        self.answer_with(script)

    def answer_with(self, script: Answer | Iterable[Answer], *more: Answer) -> None:
        """Forget the requests and give these answers from now on."""
        self._script = [script, *more] if isinstance(script, Answer) else [*script, *more]
        self.requests.clear()

    def on(self, port: int) -> Self:
        """Listen on this port instead of a free one."""
        self._port = port
        return self

    @property
    def url(self) -> str:
        """The api base, as `--api-base` wants it."""
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(
            self._accept, "127.0.0.1", self._port, limit=64 * 1024 * 1024
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await self._serve(reader, writer)
        writer.close()
        self._tasks.discard(task)

    def respond(self, request: Recorded) -> Answer:
        """The answer to a request, which is kept where it is a model call."""
        if request.path == "/api/show":
            self.questions.append(request)
            return error(404)
        if request.method == "GET":
            self.questions.append(request)
            models = {"object": "list", "data": [{"id": "served-model", "object": "model"}]}
            return json_answer(models)
        self.requests.append(request)
        answer = self._script[0]
        if answer.refuses and answer.refuses in request.body:
            return error(400, f"Unrecognized request argument supplied: {answer.refuses}")
        if len(self._script) > 1:
            self._script.pop(0)
        return answer

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await _read(reader)
        answer = self.respond(request)
        watch = asyncio.ensure_future(_watch(reader, request))
        try:
            await _write(writer, answer, request)
        finally:
            watch.cancel()


async def _read(reader: asyncio.StreamReader) -> Recorded:
    start = await reader.readexactly(1)
    if start == b"\x16":
        raise ConnectionError("this server speaks no TLS")
    head = (start + await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.strip().split("\r\n")
    method, path, _ = first.split(" ", 2)
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Recorded(method, path, headers, json.loads(body) if body else {})


async def _watch(reader: asyncio.StreamReader, request: Recorded) -> None:
    """Nothing more comes from a client that waits; an end of file says that it is gone."""
    with suppress(OSError):
        await reader.read()
    request.gone.set()


async def _write(writer: asyncio.StreamWriter, answer: Answer, request: Recorded) -> None:
    headers = [*answer.headers, ("Connection", "close")]
    if answer.body is not None:
        headers.append(("Content-Length", str(len(answer.body))))
    else:
        headers.append(("Transfer-Encoding", "chunked"))
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers)
    writer.write(f"HTTP/1.1 {answer.status} Scripted\r\n{lines}\r\n".encode())
    if answer.body is not None:
        writer.write(answer.body)
        await writer.drain()
        return
    for step in answer.steps:
        if not await _step(writer, step, request):
            return
    writer.write(b"0\r\n\r\n")
    await writer.drain()


async def _step(writer: asyncio.StreamWriter, step: bytes | Step | Pause, request: Recorded) -> bool:
    """Do one step; false when the answer is over with it."""
    match step:
        case bytes():
            await _send(writer, step)
        case Step.HANG:
            await writer.drain()
            await request.gone.wait()
            return False
        case Step.PROCESS:
            await writer.drain()
            await asyncio.sleep(1.0)
        case Pause():
            await writer.drain()
            await asyncio.sleep(step.seconds)
        case Step.CUT:
            await writer.drain()
            writer.transport.abort()
            return False
        case Step.DROP:
            await writer.drain()
            return False
        case Step.KEEP_ALIVE:
            while not request.gone.is_set():
                await _send(writer, COMMENT)
                with suppress(TimeoutError):
                    await asyncio.wait_for(request.gone.wait(), 0.02)
            return False
    return True


async def _send(writer: asyncio.StreamWriter, piece: bytes) -> None:
    writer.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
    await writer.drain()
