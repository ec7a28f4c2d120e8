"""A scripted agent of the Agent Client Protocol in the test's own process: its turns are data.

agent = OtherAgent([say("I look."), called("c1", "execute", command="ls"), ended("c1", "a.txt"), say("Done.")])
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tui_agent.acp.wire import Wire
from tui_agent.acp_client.agent import Agent, Running
from tui_agent.acp_client.entries import AgentEntry
from tui_agent.acp_client.session import SessionAgent
from tui_agent.config.settings import Settings
from tui_agent.core import events
from tui_agent.core.state import SessionFacts
from tui_agent.runtime.operator import (
    ApprovalReply,
    EscalationReply,
    GateReply,
    RequestOutline,
    ServerReply,
)
from tui_agent.runtime.waiting import Wait
from tui_agent.session.opening import open_session
from tui_agent.session.session import Session

LIMIT = 60.0
"""Seconds that only what hangs needs."""
Message = dict[str, Any]
YES_NO = [
    {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]


class Ask(NamedTuple):
    """A permission request, whose answer is waited for. `meanwhile`: updates that are sent behind it at once."""

    call: Message
    options: Sequence[Message] = YES_NO
    meanwhile: Sequence[Message] = ()
    waits: bool = True


class Stop(NamedTuple):
    """The end of a turn: its reason, or an error."""

    reason: str = "end_turn"
    error: Message | None = None


class Die(NamedTuple):
    """The agent's process ends."""


class Hang(NamedTuple):
    """Nothing more comes until the turn is cancelled."""


class Raw(NamedTuple):
    """Bytes as they are."""

    line: bytes


Step = Message | Ask | Stop | Die | Hang | Raw


def say(text: str) -> Message:
    return {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}


def think(text: str) -> Message:
    return {"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": text}}


def called(key: str, kind: str = "execute", status: str = "in_progress", **given: Any) -> Message:
    told = {"toolCallId": key, "title": f"{kind} {key}", "kind": kind, "status": status}
    return {"sessionUpdate": "tool_call", **told, **({"rawInput": given} if given else {})}


def ended(key: str, text: str = "", status: str = "completed", **more: Any) -> Message:
    content = [{"type": "content", "content": {"type": "text", "text": text}}] if text else []
    told = {"toolCallId": key, "status": status, "content": content, **more}
    return {"sessionUpdate": "tool_call_update", **told}


class OtherAgent:
    """Answers each prompt with the next turn; a turn without an end ends with `end_turn`."""

    def __init__(self, *turns: Sequence[Step], loads: bool = True, greeting: Message | None = None) -> None:
        self.turns = [*turns]
        self.greeting = {"protocolVersion": 1, "agentCapabilities": {"loadSession": loads}} | (greeting or {})
        self.prompts: list[str] = []
        self.got: list[Message] = []
        self.outcomes: list[Message] = []
        self.starts = 0
        self.opens: Message = {"sessionId": "theirs"}
        self.offers: Sequence[Message] = ()
        """Updates behind the opening of a session."""
        self.answers: dict[str, Message] = {}
        """Answers to other methods."""
        self._cancelled = asyncio.Event()
        self._waiting: dict[int, asyncio.Future[Message]] = {}
        self._number = 0

    async def start(self, entry: AgentEntry, workspace: Path) -> Running:
        """In the place of a process."""
        self.starts += 1
        mine, its = socket.socketpair()
        reader, writer = await asyncio.open_connection(sock=its)
        serving = asyncio.create_task(self._serve(reader, writer))

        async def end() -> None:
            serving.cancel()
            writer.close()
            await asyncio.gather(serving, return_exceptions=True)

        async def last_words() -> str:
            return "the agent has ended (exit code 9): boom"

        return Running(Wire(*await asyncio.open_connection(sock=mine), answers=False), last_words, end)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        async with asyncio.TaskGroup() as tasks:
            while line := await reader.readline():
                message = json.loads(line)
                self.got.append(message)
                if message.get("method") == "session/prompt":
                    tasks.create_task(self._prompted(message))
                elif message.get("method") == "session/cancel":
                    self._cancelled.set()
                elif "method" in message:
                    self._answer(message["id"], self._result(message["method"]))
                    if message["method"] in {"session/new", "session/load"}:
                        self.update(*self.offers)
                else:
                    self._waiting.pop(message["id"]).set_result(message)

    def _result(self, method: str) -> Message:
        if method in self.answers:
            return self.answers[method]
        opens = {"initialize": self.greeting, "session/new": self.opens, "session/load": self.opens}
        return opens.get(method, {})

    def update(self, *updates: Message) -> None:
        """Send updates at any time."""
        for one in updates:
            self._send({"method": "session/update", "params": {"sessionId": "theirs", "update": one}})

    def asked(self, method: str) -> list[Message]:
        """The parameters of all requests with this method."""
        return [one["params"] for one in self.got if one.get("method") == method]

    def _send(self, message: Message) -> None:
        self._writer.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def _answer(self, request: int, result: Message) -> None:
        self._send({"id": request, "error" if "code" in result else "result": result})

    async def _prompted(self, request: Message) -> None:
        self.prompts.append(request["params"]["prompt"][0]["text"])
        self._cancelled.clear()
        turn = self.turns.pop(0) if self.turns else [say("Nothing more.")]
        for step in [*turn, Stop()]:
            match step:
                case Ask():
                    self._number += 1
                    answer = self._waiting[self._number] = asyncio.get_running_loop().create_future()
                    params = {"sessionId": "theirs", "toolCall": step.call, "options": [*step.options]}
                    asked = {"id": self._number, "method": "session/request_permission", "params": params}
                    self._send(asked)
                    answer.add_done_callback(
                        lambda told: self.outcomes.append(told.result()["result"]["outcome"])
                    )
                    self.update(*step.meanwhile)
                    if step.waits:
                        await answer
                case Stop():
                    self._answer(request["id"], step.error or {"stopReason": step.reason})
                    return
                case Die():
                    self._writer.close()
                    return
                case Hang():
                    await self._cancelled.wait()
                    self._answer(request["id"], {"stopReason": "cancelled"})
                    return
                case Raw():
                    self._writer.write(step.line + b"\n")
                case _:
                    self.update(step)


class Person:
    """An operator who gives these answers, in their order; `asked` are the questions."""

    def __init__(self, *answers: ApprovalReply | EscalationReply) -> None:
        self.answers = [*answers]
        self.asked: list[events.Event] = []
        self.present = True

    async def approve(self, asked: events.ApprovalAsked) -> ApprovalReply:
        self.asked.append(asked)
        answer = self.answers.pop(0)
        assert isinstance(answer, ApprovalReply)
        return answer

    async def answer(self, raised: events.EscalationRaised) -> EscalationReply:
        self.asked.append(raised)
        answer = self.answers.pop(0)
        assert isinstance(answer, EscalationReply)
        return answer

    async def consult(self, asked: events.ServerAsked) -> ServerReply:
        return ServerReply("decline")

    async def gate(self, outline: RequestOutline) -> GateReply:
        return GateReply(outline.note)


class _NoWait(Wait):
    async def wait(self, seconds: float, until: float | None = None) -> None:
        """Time passes at once."""


THEIRS = AgentEntry("theirs", ("theirs",))


@asynccontextmanager
async def session_with(
    folder: Path,
    agent: OtherAgent,
    person: Person | None = None,
    resume: Path | None = None,
    entry: AgentEntry = THEIRS,
    **options: Any,
) -> AsyncIterator[tuple[Session, list[events.Event]]]:
    """A session whose steps the agent takes, with its events; its workspace is `folder`/work."""
    (folder / "work").mkdir(exist_ok=True)
    chosen = {"sandbox": {"mode": "off"}, "mcp": False, "agent": "theirs", **options}
    settings = Settings(workspace=folder / "work", state_dir=folder / "state", **chosen)
    heard: list[events.Event] = []

    def find(facts: SessionFacts) -> SessionAgent:
        known = facts.agent.session if facts.agent is not None else ""
        return SessionAgent(settings, Agent(entry, Path(facts.workspace), known, agent.start))

    session = await open_session(
        settings,
        person or Person(),
        resume=resume,
        listener=lambda event, _: heard.append(event),
        wait=_NoWait,
        agent=find,
    )
    try:
        yield session, heard
    finally:
        await asyncio.wait_for(session.close(), LIMIT)
