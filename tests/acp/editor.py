"""A client of the Agent Client Protocol in the test's own process, over a pair of sockets: what it was sent is kept.

Each update and request is read by the SDK's models, as a typed client would.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from acp import schema

from tests.scripted_model import scripted_model
from tui_agent.acp.wire import Wire
from tui_agent.acp_agent.program import serve
from tui_agent.frontend.arguments import ConsoleArguments
from tui_agent.models.protocol import Model

LIMIT = 60.0
"""Seconds that only what hangs needs."""
Message = dict[str, Any]
NEW_KINDS = frozenset({"notice", "compaction_update"})
"""Updates of newer schemas than the SDK's."""


class Refusal(Exception):
    """A request was answered with an error."""

    def __init__(self, error: Message) -> None:
        super().__init__(error["message"])
        self.code, self.message, self.data = error["code"], error["message"], error.get("data")


class Editor:
    """A client. `answers` are option ids, or answers whole, for what it is asked; None: it does not answer."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self.writer = reader, writer
        self.got: list[Message] = []
        self.asked: list[Message] = []
        self.answers: deque[str | Message | None] = deque()
        self.choose: Callable[[list[Message]], str] | None = None
        """Chooses among options once there are no answers left."""
        self._waiting: dict[int, asyncio.Future[Message]] = {}
        self._number = 0
        self._changed = asyncio.Event()
        self.reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        while line := await self._reader.readline():
            message = json.loads(line)
            self.got.append(message)
            if "method" in message:
                self._take(message)
            elif message["id"] in self._waiting:
                self._waiting.pop(message["id"]).set_result(message)
            self._changed.set()
        self._changed.set()

    def _take(self, message: Message) -> None:
        match message["method"]:
            case "session/update":
                if message["params"]["update"]["sessionUpdate"] not in NEW_KINDS:
                    schema.SessionNotification.model_validate(message["params"])
                return
            case "session/request_permission":
                schema.RequestPermissionRequest.model_validate(message["params"])
        self.asked.append(message)
        answer = self.answers.popleft() if self.answers else None
        if answer is None and self.choose is not None:
            answer = self.choose(message["params"]["options"])
        if isinstance(answer, str):
            answer = {"outcome": {"outcome": "selected", "optionId": answer}}
        if answer is not None:
            key = "error" if "code" in answer else "result"
            self.send({"jsonrpc": "2.0", "id": message["id"], key: answer})

    def send(self, message: object) -> None:
        self.raw(json.dumps(message).encode())

    def raw(self, line: bytes) -> None:
        self.writer.write(line + b"\n")

    def begin(self, method: str, **params: Any) -> asyncio.Future[Message]:
        """Send a request; its answer to come."""
        return self.begin_with(method, params)

    def begin_with(self, method: str, params: object) -> asyncio.Future[Message]:
        """The same, whatever the parameters are."""
        self._number += 1
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._waiting[self._number] = answer
        self.send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        return answer

    async def ends(self, answer: asyncio.Future[Message]) -> Message:
        """The result of a request. Raises `Refusal`."""
        found = await asyncio.wait_for(answer, LIMIT)
        if "error" in found:
            raise Refusal(found["error"])
        result: Message = found["result"]
        return result

    async def request(self, method: str, **params: Any) -> Message:
        return await self.ends(self.begin(method, **params))

    def notify(self, method: str, **params: Any) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    async def until(self, holds: Callable[[], Any]) -> None:
        """Wait until something holds of what came."""
        while not holds():
            self._changed.clear()
            await asyncio.wait_for(self._changed.wait(), LIMIT)

    # --- a session ------------------------------------------------------------------------------------------

    async def initialize(self, **capabilities: Any) -> Message:
        return await self.request("initialize", protocolVersion=1, clientCapabilities=capabilities)

    async def new(self, folder: Path) -> str:
        made = await self.request("session/new", cwd=str(folder), mcpServers=[])
        return str(made["sessionId"])

    def ask(self, session: str, text: str) -> asyncio.Future[Message]:
        return self.begin("session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}])

    async def prompt(self, session: str, text: str) -> Message:
        return await self.ends(self.ask(session, text))

    def updates(self, kind: str = "") -> list[Message]:
        """The updates that came, or those of one kind."""
        found = [one["params"]["update"] for one in self.got if one.get("method") == "session/update"]
        return [one for one in found if kind in {"", one["sessionUpdate"]}]

    def said(self, kind: str = "agent_message_chunk") -> str:
        return "".join(one["content"]["text"] for one in self.updates(kind))

    def call(self, name: str) -> Message:
        """Everything that was said of the newest call whose title begins so."""
        called = [one for one in self.updates("tool_call") if one["title"].startswith(name)][-1]
        for update in self.updates("tool_call_update"):
            if update["toolCallId"] == called["toolCallId"]:
                called = {**called, **update}
        return called


@asynccontextmanager
async def connected(
    folder: Path, turns: Iterable[Mapping[str, Any] | str] | Model, **options: Any
) -> AsyncIterator[Editor]:
    """A client of an agent with these turns, or this model; its workspace is `folder`/work. The agent's end is waited
    for.
    """
    (folder / "work").mkdir(exist_ok=True)
    model = scripted_model(turns) if isinstance(turns, Iterable) else turns
    chosen = {"model": "scripted", "sandbox": "off", "state_dir": folder / "state", **options}
    mine, its = socket.socketpair()
    agent = asyncio.create_task(
        serve(Wire(*await asyncio.open_connection(sock=its)), ConsoleArguments(chosen), model)
    )
    editor = Editor(*await asyncio.open_connection(sock=mine))
    try:
        yield editor
    finally:
        editor.writer.close()
        assert await asyncio.wait_for(agent, LIMIT) == []
        editor.reading.cancel()
