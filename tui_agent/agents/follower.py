"""The process in which a supervised agent's session is read, so that nothing that stands in it can hold up its end.

A file system may hang, a text may take a regular expression minutes, a recording may fill the memory: the process has
bounds, and is ended with the run whatever it does. Without it the agent goes on, and nothing of it is judged.
"""

from __future__ import annotations

import asyncio
import json
import socket
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pydantic import BaseModel, ConfigDict

from tui_agent import bounded_process
from tui_agent.agents.followed import Followed, Lost
from tui_agent.core import events
from tui_agent.core.recovery.policy import RecoveryPolicy
from tui_agent.terminal_text import one_line

MEMORY = 4 << 30
"""Bytes of address space that reading may take beside what the program takes."""
_PATIENCE = 120.0
"""Seconds for one look: a session that is gone on with is read whole."""
_LAST_LOOK = 10.0
"""Seconds for what the agent wrote last."""
_BEGINNING = 10.0
"""Seconds to list the sessions that are there already."""
_LONGEST = 1 << 24
"""Bytes of an answer."""
_MOST = 200
"""Verdicts of one look that are passed on, the newest."""


class Stand(BaseModel):
    """The session as far as it is known."""

    model_config = ConfigDict(frozen=True)

    told: tuple[events.VerdictReached | None, ...] = ()
    """Verdicts that are new, and None for a call that succeeded."""
    session: str = ""
    path: str = ""
    size: int = 0
    """Bytes of its file."""
    replied: bool = False
    """The model has replied in this attempt."""
    stopped: bool = False
    """A person has stopped the agent."""
    fault: events.Fault | None = None
    """The failed call of the model with which the attempt ends."""
    unanswered: str = ""
    """The words of the failed call with which the attempt ends; empty if an answer came."""
    calls: int = 0
    failed: int = 0
    spent: float | None = None
    tokens: int | None = None
    window: float | None = None
    """Percent of the window of use that are used up, as its records say."""
    lost: tuple[Lost, ...] = ()
    loss: str = ""
    """A sentence about records that are not understood; empty if they are."""


class Follower:
    """Asks the process. It begins with `with`, before there are threads, and is ended with it."""

    def __init__(self, agent: str, workspace: Path, policy: RecoveryPolicy) -> None:
        self._followed = Followed(agent, workspace, policy)
        self._pid = 0
        self._turn = asyncio.Lock()
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self.stand = Stand()
        """As it was said last."""
        self.why = ""
        """Why nothing more is known of the session; empty while it is followed."""

    def __enter__(self) -> Self:
        self._pid, self._channel = bounded_process.fork(self._serve, MEMORY)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()
        self._channel.close()

    async def begin(self, *, goes_on: bool) -> None:
        """An attempt begins; see `Followed.begin`."""
        await self._ask(_BEGINNING, do="begin", goes_on=goes_on)

    async def look(self) -> tuple[events.VerdictReached | None, ...]:
        """New verdicts and successes; see `Stand.told`."""
        return await self._ask(_PATIENCE, do="look")

    async def end(self) -> None:
        """The attempt is over: what the agent wrote last is read."""
        await self._ask(_LAST_LOOK, do="end")

    async def _ask(self, patience: float, **request: Any) -> tuple[events.VerdictReached | None, ...]:
        if self.why:
            return ()
        try:
            async with asyncio.timeout(patience), self._turn:
                reader, writer = await self._connected()
                writer.write(json.dumps(request).encode() + b"\n")
                await writer.drain()
                answer = await reader.readuntil(b"\n")
            self.stand = Stand.model_validate_json(answer)
        except TimeoutError:
            self.why = f"its files could not be read within {patience:g} seconds"
        except (OSError, EOFError, ValueError):
            self.why = "reading its files failed, or took too much memory"
        else:
            return self.stand.told
        self._end()
        return ()

    async def _connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._streams is None:
            self._channel.setblocking(False)
            self._streams = await asyncio.open_connection(sock=self._channel, limit=_LONGEST)
        return self._streams

    def _end(self) -> None:
        if self._pid:
            bounded_process.end(self._pid)
            self._pid = 0

    def _serve(self, channel: socket.socket) -> None:
        _serve(channel, self._followed)


# --- in the process ---------------------------------------------------------------------------------------------------


def _serve(channel: socket.socket, followed: Followed) -> None:
    """Answer each request, a line of JSON, until the other end is closed."""
    with channel, channel.makefile("rb") as requests:
        for line in requests:
            request = json.loads(line)
            told: list[events.VerdictReached | events.ToolSucceeded] = []
            match request["do"]:
                case "begin":
                    followed.begin(goes_on=request["goes_on"])
                case "look":
                    told = followed.look()
                case _:
                    followed.end()
            channel.sendall(_stand(followed, told).model_dump_json().encode() + b"\n")


def _stand(followed: Followed, told: list[events.VerdictReached | events.ToolSucceeded]) -> Stand:
    calls, failed = followed.calls()
    session = followed.session
    return Stand(
        told=tuple(one if isinstance(one, events.VerdictReached) else None for one in told[-_MOST:]),
        session="" if session is None else session.session_id,
        path="" if session is None else str(session.path),
        size=followed.size(),
        replied=followed.replied(),
        stopped=followed.stopped(),
        fault=followed.fault(),
        unanswered=one_line(followed.unanswered(), 200),
        calls=calls,
        failed=failed,
        spent=followed.spent(),
        tokens=followed.tokens(),
        window=followed.window(),
        lost=followed.lost(),
        loss="" if session is None else session.loss,
    )
