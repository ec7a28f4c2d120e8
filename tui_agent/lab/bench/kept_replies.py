"""Replies of a real model, kept by what was read before each, so that the same conversation is never asked about twice.

Runs under several policies read the same until the policies differ, and then get the same replies: what differs
afterwards comes of the policies, and not of the draw. Without a model behind it the runs are played again from what is
kept.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tui_agent.core.names import FaultKind
from tui_agent.core.values import Fault
from tui_agent.models.protocol import Delta, Model, ModelFault, ModelRequest, Reply

REPLIES = "replies.jsonl"
_BY_CHANCE = re.compile(r"\b\d+\.\d+ ?s\b|\b0x[0-9a-f]{6,}\b")
"""Times and addresses, which say nothing and are never the same."""


def whole_lines(path: Path) -> list[bytes]:
    """The lines of a file that grows by lines; a torn last one, which a kill leaves, is cut off."""
    if not path.is_file():
        return []
    text = path.read_bytes()
    whole = text[: text.rfind(b"\n") + 1]
    if whole != text:
        path.write_bytes(whole)
    return whole.splitlines()


def add_line(path: Path, value: object) -> None:
    """One more line of JSON, which is on the disk when this returns."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(value, ensure_ascii=False) + "\n")
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Nobody else adds to the folder's replies meanwhile. Raises `BlockingIOError` if somebody does already."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / REPLIES).open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield


class KeptReplies:
    """The file of the replies: a line each, with the run's case and sample, and the digest of what was read."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / REPLIES
        self._known: dict[tuple[str, str], Reply] = {}
        for line in whole_lines(self._path):
            kept = json.loads(line)
            self._known[kept["run"], kept["read"]] = Reply.model_validate(kept["reply"])

    @property
    def cost(self) -> float:
        """Of all replies, in USD."""
        return sum(reply.cost or 0.0 for reply in self._known.values())

    def get(self, run: str, read: str) -> Reply | None:
        return self._known.get((run, read))

    def add(self, run: str, read: str, reply: Reply) -> None:
        self._known[run, read] = reply
        add_line(self._path, {"run": run, "read": read, "reply": reply.model_dump(exclude_defaults=True)})


@dataclass
class RememberedModel:
    """Implements `models.protocol.Model` for one run: the opening, then replies that are kept, else the ones of the
    model, which are kept.
    """

    run: str
    replies: KeptReplies
    workspace: Path
    opening: Reply
    """The first reply, which nobody is asked for."""
    model: Model | None = None
    opened: bool = field(default=False, init=False)
    missed: int = field(default=0, init=False)
    """Requests to which no reply is kept, and no model was there."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Delta | Reply, None]:
        """See `protocol.Model`."""
        if not self.opened:
            self.opened = True
            yield self.opening
            return
        read = self._digest(request)
        kept = self.replies.get(self.run, read)
        if kept is not None:
            yield kept
            return
        if self.model is None:
            self.missed += 1
            raise ModelFault(Fault(kind=FaultKind.BAD_REQUEST, message="No reply to this request is kept."))
        async with aclosing(self.model.stream(request)) as stream:
            async for piece in stream:
                if isinstance(piece, Reply):
                    self.replies.add(self.run, read, piece)
                yield piece

    def _digest(self, request: ModelRequest) -> str:
        """Of the conversation. The system prompt and the tools in front are the same for all, and change with the
        program."""
        said = [(message["role"], message.get("content")) for message in request.messages[1:]]
        text = json.dumps(said, ensure_ascii=False).replace(str(self.workspace), "WORKSPACE")
        return hashlib.sha256(_BY_CHANCE.sub("#", text).encode()).hexdigest()[:24]

    async def start(self) -> None:
        """See `protocol.Model`."""
        if self.model is not None:
            await self.model.start()

    async def context_tokens(
        self, model: str, api_base: str | None = None, api_key_variable: str | None = None
    ) -> int | None:
        """See `protocol.Model`."""
        return None

    async def close(self) -> None:
        """See `protocol.Model`."""
        if self.model is not None:
            await self.model.close()
