"""The answer of another agent to one prompt: pieces of text, calls, questions, and the end, in the order in which they
came.

What is sent and what is recorded is decided elsewhere.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tui_agent.acp_client.calls import AgentCall
from tui_agent.core import events
from tui_agent.core.names import UPDATE_PLAN
from tui_agent.core.projections.plan import STATUSES
from tui_agent.formats.importers.values import content_text, number_at, value_at
from tui_agent.terminal_text import one_line

MOST_WAITING = 2_000
"""Messages that may wait to be looked at; then nothing more is read of the agent."""


@dataclass(frozen=True)
class Piece:
    """A piece of its words."""

    text: str = ""
    reasoning: str = ""


@dataclass(frozen=True)
class News:
    """Something new of a call, which it changed already."""

    call: AgentCall


@dataclass(frozen=True)
class Beneath:
    """The first word of a sub-agent that a call has started; the others come in `turn`."""

    call: AgentCall
    turn: Turn


@dataclass(frozen=True)
class Permission:
    """A question of the agent's: may this call run? `options` are as it sent them."""

    request: int | str
    call: AgentCall
    options: list[dict[str, Any]]


@dataclass(frozen=True)
class Aside:
    """Something that belongs to no reply."""

    event: events.Event


@dataclass(frozen=True)
class Usage:
    """Tokens in its window, and USD of its session so far, as far as it says."""

    tokens: int | None
    cost: float | None


@dataclass(frozen=True)
class Ended:
    """The end, with the protocol's reason; or the fault that ended it."""

    reason: str = ""
    fault: events.Fault | None = None


Severity = Literal["info", "warning", "error"]
Item = Piece | News | Beneath | Permission | Aside | Usage | Ended
_PARENTS = (("_meta", "claudeCode", "parentToolUseId"), ("_meta", "parentToolCallId"))
"""Places of the call whose sub-agent speaks (Claude Code, Qwen Code)."""


class Turn:
    """One prompt's answer, which grows. Messages come in by `put`; `next` gives them one by one."""

    def __init__(self, workspace: Path, taken: set[str], *, beneath: bool = False) -> None:
        """`taken`: ids of the session's calls so far, to which those of this turn are added; `beneath`: it is a
        sub-agent's.
        """
        self._workspace = workspace
        self._taken = taken
        self._came: asyncio.Queue[dict[str, Any] | Ended] = asyncio.Queue(MOST_WAITING)
        self._back: deque[Item] = deque()
        self.calls: dict[str, AgentCall] = {}
        self._beneath = beneath
        self._lanes: dict[str, Turn] = {}
        """Turns of sub-agents, by the calls that started them."""
        self._inner: dict[str, Turn] = {}
        """The same by calls of theirs."""
        self.left = False
        """Nobody looks at it any more."""
        self.broken = False
        """The agent says that it has failed, and ends the turn as if it had answered (codex-acp)."""
        self.heard = False
        """The agent has answered with something."""

    async def put(self, message: dict[str, Any] | Ended) -> None:
        """Add an update, a question (`request` is its id), or the end. Waits while too many are not looked at."""
        if not self.left:
            await self._came.put(message)

    def put_back(self, *items: Item) -> None:
        """Let these be the next ones, in their order."""
        self._back.extendleft(reversed(items))

    @property
    def waits(self) -> bool:
        """Something can be had at once."""
        return bool(self._back) or not self._came.empty()

    async def next(self) -> Item:
        """The next thing that is known. What says nothing is left out."""
        while not self._back:
            item = self._read(await self._came.get())
            if item is not None:
                return item
        return self._back.popleft()

    def leave(self) -> None:
        """Let go of it, and of whoever waits to add to it."""
        self.left = True
        while not self._came.empty():
            self._came.get_nowait()

    def _read(self, message: dict[str, Any] | Ended) -> Item | None:
        if isinstance(message, Ended):
            return message
        self.heard = True
        if not self._beneath and (item := self._of_lane(message)) is not None:
            return item if isinstance(item, Beneath) else None
        if "request" in message:
            return self._question(message["request"], message)
        return self._update(message)

    def _of_lane(self, message: dict[str, Any]) -> Beneath | Turn | None:
        """The turn that a message went to, if it is a sub-agent's; None: it is the agent's own."""
        told = message.get("toolCall") if "request" in message else message
        named, said = value_at(told, "toolCallId"), (value_at(told, *path) for path in _PARENTS)
        parent = next((one for one in said if isinstance(one, str)), "")
        own = named if isinstance(named, str) else ""
        lane = self._inner.get(own) or self._inner.get(parent) or self._lanes.get(parent)
        call, begun = self.calls.get(parent), None
        if lane is None and call is not None and not call.ended:
            call.update({"status": "in_progress"})  # whatever it says of itself
            lane = self._lanes[parent] = Turn(self._workspace, set(), beneath=True)
            begun = Beneath(call, lane)
        if lane is not None:
            if own:
                self._inner[own] = lane
            lane.put_soon(message)
        return begun or lane

    def put_soon(self, message: dict[str, Any]) -> None:
        """As `put`, without waiting: what is too much is left out."""
        if not self.left and not self._came.full():
            self._came.put_nowait(message)

    def _question(self, request: int | str, params: dict[str, Any]) -> Item | None:
        told, options = params.get("toolCall"), params.get("options")
        found = [one for one in options if isinstance(one, dict)] if isinstance(options, list) else []
        given = told if isinstance(told, dict) else {"toolCallId": f"asked-{request}"}
        call = self._call(given, anew=True)
        call.asked += 1
        return Permission(request, call, found)

    def _call(self, told: dict[str, Any], *, anew: bool = False) -> AgentCall:
        """The call that something is told of. `anew`: one that has ended is not meant, for ids come again."""
        named = one_line(str(told.get("toolCallId") or f"call-{len(self.calls)}"), 200)
        call = self.calls.get(named)
        if call is None or (anew and call.ended):
            key = named
            while key in self._taken:  # an agent may count its calls anew in each turn
                key = f"{key}+"
            self._taken.add(key)
            call = self.calls[named] = AgentCall(key, self._workspace)
        call.update(told)
        return call

    def _plan(self, entries: object) -> Item | None:
        """A plan as a call of our own tool for plans; nothing for an empty one."""
        listed = entries if isinstance(entries, list) else []
        steps = [
            {"step": said, "status": status if (status := value_at(one, "status")) in STATUSES else "pending"}
            for one in listed
            if (said := content_text(value_at(one, "content")).strip())
        ]
        told = {"toolCallId": f"plan-{len(self.calls)}", "name": UPDATE_PLAN, "status": "completed"}
        return News(self._call(told | {"rawInput": {"plan": steps}})) if steps else None

    def _update(self, update: dict[str, Any]) -> Item | None:
        match update.get("sessionUpdate"):
            case "agent_message_chunk":
                return Piece(text=content_text(update.get("content")))
            case "agent_thought_chunk":
                return Piece(reasoning=content_text(update.get("content")))
            case "tool_call":
                return News(self._call(update, anew=True))
            case "tool_call_update":
                return News(self._call(update))
            case "plan":
                return self._plan(update.get("entries"))
            case "usage_update":
                used, cost = number_at(update, "used"), number_at(update, "cost", "amount")
                return Usage(None if used is None else int(used), cost)
            case "session_info_update":
                status = value_at(update, "_meta", "codex", "threadStatus", "type")
                self.broken = self.broken or status == "systemError"
                return None
            case "notice":
                words = (update.get("title"), update.get("description"))
                text = "\n".join(one for one in words if isinstance(one, str) and one)
                told = update.get("severity")
                severity: Severity = told if told in {"warning", "error"} else "info"
                return Aside(events.Notice(text=text, severity=severity)) if text else None
            case "compaction_update":
                status = one_line(str(update.get("status") or ""), 40)
                return Aside(events.Notice(text=f"The agent summarises its conversation: {status}."))
            case _:
                return None
