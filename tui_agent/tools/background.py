"""Commands that run beside the conversation: started by `bash`, read and stopped by id, ended with the session.

Each has its supervisor, so that nothing of it outlives this program. What they write is kept in a file each, masked,
and what was not read yet in bounded memory.
"""

from __future__ import annotations

import asyncio
import codecs
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar, Literal

from tui_agent.core.events import BackgroundEnded, BackgroundStarted, Event, Notice
from tui_agent.core.projections.background import in_words
from tui_agent.core.tool_facts import Effect, ToolFacts, Use, Uses
from tui_agent.sandbox.inside import in_words as taken_back_in_words
from tui_agent.tools.encoding import printable
from tui_agent.tools.errors import ToolError
from tui_agent.tools.output import KEPT_BYTES
from tui_agent.tools.running import run_command
from tui_agent.tools.tool import TextMask, ToolContext, ToolOutput, schema, text
from tui_agent.tools.workspace import Workspace, os_failure, quoted

MOST_RUNNING = 8
_REMEMBERED = 50
"""Ended commands whose output can still be read."""
_GRACE = 2.0
"""Seconds between SIGTERM and SIGKILL."""
_FIRST_LOOK = 0.25
"""Seconds in which a command that fails at once is still seen to fail by the call that starts it."""
LONGEST_WAIT = 600
"""Seconds that `bash_output` waits at most."""


class _Output:
    """The output of one command: all of it in a file, the unread end of it in memory. Fed from the pump's
    thread.
    """

    def __init__(self, file: Path, mask: TextMask | None, unread_limit: int) -> None:
        """Raises `OSError` if the file cannot be made."""
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._stream = os.fdopen(
            os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb", buffering=0
        )
        self._mask = mask
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._limit = unread_limit
        self._lock = Lock()
        self._unread = ""
        self._skipped = 0
        self._kept = 0
        self.lost = 0
        """Bytes beyond what is kept."""
        self.trouble = ""
        """Why the file lacks what was written from some point on."""

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        if self._kept > KEPT_BYTES:
            self.lost += len(data)
        else:
            text = self._decoder.decode(data)
            self._add(text if self._mask is None else self._mask.feed(text))

    def close(self) -> None:
        """After the last byte."""
        rest = self._decoder.decode(b"", final=True)
        self._add(rest if self._mask is None else self._mask.feed(rest) + self._mask.flush())
        with suppress(OSError):
            self._stream.close()

    def _add(self, text: str) -> None:
        text = printable(text).replace("\0", "\ufffd").replace("\r\n", "\n")
        if not text:
            return
        data = text.encode("utf-8", "replace")
        self._kept += len(data)
        if not self.trouble:
            self._keep(data)
        with self._lock:
            self._unread += text
            excess = len(self._unread) - self._limit
            if excess > self._limit // 4:
                self._unread = self._unread[excess:]
                self._skipped += excess

    def _keep(self, data: bytes) -> None:
        try:
            while data:
                data = data[self._stream.write(data) :]
        except OSError as error:
            why = os.strerror(error.errno or 0)
            self.trouble = f"the output's file ends early, and what came later is not kept: {why}"

    @property
    def waits(self) -> bool:
        """Something was not read yet."""
        return bool(self._unread)

    def take(self) -> tuple[str, int]:
        """The output since the last look, and the number of characters before it that are only in the file."""
        with self._lock:
            text, skipped = self._unread, self._skipped
            self._unread, self._skipped = "", 0
        return text, skipped


@dataclass
class _Command:
    id: str
    text: str
    output: _Output
    file: Path
    started: float
    task: asyncio.Task[None] | None = None
    how: Literal["exited", "timed_out", "stopped", "operator", "session_closed"] = "exited"
    ended: BackgroundEnded | None = None


@dataclass
class BackgroundCommands:
    """Those of one session. `record` takes the events of their starts and ends; `started`: how many there were."""

    record: Callable[[Event], Any] = lambda event: event
    started: int = 0
    _commands: dict[str, _Command] = field(default_factory=dict)

    def running(self) -> list[str]:
        """Ids of those that run."""
        return [one.id for one in self._commands.values() if one.ended is None]

    async def start(
        self, argv: list[str], command: str, context: ToolContext, seconds: float | None, limit: int
    ) -> str:
        """Start one and say its id; `limit` in characters of unread output. Raises `ToolError`."""
        running = self.running()
        if len(running) >= MOST_RUNNING:
            raise ToolError(
                f"{len(running)} commands run in the background already: {self._listed()}. Stop one with bash_stop."
            )
        self.started += 1
        name = f"b{self.started}"
        file = context.output_dir / f"background-{name}.txt"
        try:
            output = _Output(file, context.new_mask(), limit)
        except OSError as error:
            raise os_failure(error, f"keep the command's output in {quoted(str(file))}") from None
        one = _Command(name, command, output, file, time.monotonic())
        self._commands[name] = one
        for old in [each.id for each in self._commands.values() if each.ended is not None][:-_REMEMBERED]:
            del self._commands[old]
        self.record(
            BackgroundStarted(id=name, command=command, call_id=context.call_id, output_file=str(file))
        )
        one.task = asyncio.get_running_loop().create_task(
            self._run(one, argv, context, seconds), name=f"background-{name}"
        )
        await asyncio.wait({one.task}, timeout=_FIRST_LOOK)
        return name

    async def _run(self, one: _Command, argv: list[str], context: ToolContext, seconds: float | None) -> None:
        code = None
        try:
            ended = await run_command(
                argv,
                context.workspace.root,
                seconds,
                _GRACE,
                one.output,
                lambda _: None,
                sandbox=context.sandbox,
            )
            code, one.how = ended.code, "timed_out" if ended.timed_out else one.how
            one.output.feed(taken_back_in_words(ended.taken).encode())
        except ToolError as error:
            one.output.feed(error.message.encode())
        except asyncio.CancelledError:
            # Only `_end` cancels it, and waits for it.
            pass
        finally:
            await asyncio.to_thread(one.output.close)
            if one.output.trouble:
                self.record(
                    Notice(severity="warning", text=f"Background command {one.id}: {one.output.trouble}")
                )
            one.ended = BackgroundEnded(
                id=one.id,
                command=one.text,
                how=one.how,
                code=code,
                duration=time.monotonic() - one.started,
                output_file=str(one.file),
            )
            self.record(one.ended)

    async def stop(self, name: str, how: Literal["stopped", "operator", "session_closed"]) -> bool:
        """End one with all it started; False if it had ended. Raises `ToolError` if there is none."""
        one = self._named(name)
        if one.ended is not None or one.task is None:
            return False
        one.how = how
        one.task.cancel()
        await asyncio.wait({one.task})
        return True

    async def close(self) -> None:
        """End all that run."""
        await asyncio.gather(*(self.stop(name, "session_closed") for name in self.running()))

    async def read(self, name: str, wait: float) -> str:
        """The output of one since it was read last, after its state; waits `wait` seconds for news."""
        one = self._named(name)
        deadline = time.monotonic() + wait
        while one.ended is None and not one.output.waits and (left := deadline - time.monotonic()) > 0:
            if one.task is not None:
                await asyncio.wait({one.task}, timeout=min(0.1, left))
        text, skipped = one.output.take()
        parts = [self._state(one)]
        if skipped:
            where = "partly lost" if one.output.trouble else f"only in {one.file} (use read_file)"
            parts.append(f"[... {skipped:,} characters before this are {where} ...]")
        parts.append(text.rstrip("\n") or "(no output since it was read last)")
        if one.output.trouble:
            parts.append(f"[{one.output.trouble}]")
        if one.output.lost:
            parts.append(f"[{one.output.lost:,} bytes beyond the first {KEPT_BYTES:,} were not kept]")
        return "\n".join(parts)

    def whole_output(self, name: str) -> str:
        """The file with all that one wrote, once nothing is added any more."""
        one = self._named(name)
        return "" if one.ended is None else str(one.file)

    def _state(self, one: _Command) -> str:
        shown = one.text if len(one.text) <= 200 else f"{one.text[:200]}..."
        if one.ended is None:
            return f"{one.id} (`{shown}`) has been running for {time.monotonic() - one.started:.0f} s."
        return f"{one.id} (`{shown}`) {in_words(one.ended)}."

    def _named(self, name: str) -> _Command:
        one = self._commands.get(name)
        if one is None:
            known = ", ".join(self._commands)
            there = (
                f"Started so far: {known}." if known else "None was started since this session was opened."
            )
            raise ToolError(
                f"There is no background command {quoted(name[:40])}. {there} Those of an earlier process "
                "ended with it; what they wrote is in their files."
            )
        return one

    def _listed(self) -> str:
        return ", ".join(
            f"{one.id} (`{one.text[:60]}`)" for one in self._commands.values() if one.ended is None
        )


_ID = text("The id that bash gave, such as b1.")


@dataclass(frozen=True)
class BashOutput:
    """`bash_output(id, wait?)`: the news of a command in the background."""

    commands: BackgroundCommands
    name: ClassVar[str] = "bash_output"
    effect: ClassVar[Effect] = Effect.READ
    uses: ClassVar[Uses] = {"id": Use.SAYS, "wait": Use.SAYS}
    facts: ClassVar[ToolFacts] = ToolFacts(subject="id")
    description: ClassVar[str] = (
        "What a command in the background wrote since you read it last, and whether it still runs, with its exit "
        "code once it has ended. A message says when one ends: instead of asking again and again, wait."
    )
    parameters: ClassVar[dict[str, Any]] = schema(
        "id",
        id=_ID,
        wait={
            "type": "number",
            "minimum": 0,
            "maximum": LONGEST_WAIT,
            "description": "Seconds to wait for new output or its end, where there is none yet (default 0).",
        },
    )

    def preview(self, arguments: dict[str, Any], workspace: Workspace) -> str:
        """Which command is read."""
        return f"read the output of {arguments['id']}"

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolOutput:
        """Raises `ToolError` if there is no such command."""
        name = str(arguments["id"])
        said = await self.commands.read(name, float(arguments.get("wait", 0)))
        return ToolOutput(said, output_file=self.commands.whole_output(name))


@dataclass(frozen=True)
class BashStop:
    """`bash_stop(id)`: ends a command in the background. It can only end what `bash` started, so it asks nobody."""

    commands: BackgroundCommands
    name: ClassVar[str] = "bash_stop"
    effect: ClassVar[Effect] = Effect.READ
    uses: ClassVar[Uses] = {"id": Use.SAYS}
    facts: ClassVar[ToolFacts] = ToolFacts(subject="id", acts=True)
    description: ClassVar[str] = "End a command in the background, with everything it started."
    parameters: ClassVar[dict[str, Any]] = schema("id", id=_ID)

    def preview(self, arguments: dict[str, Any], workspace: Workspace) -> str:
        """Which command is ended."""
        return f"stop {arguments['id']}"

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolOutput:
        """Raises `ToolError` if there is no such command."""
        name = str(arguments["id"])
        ended = await self.commands.stop(name, "stopped")
        said = f"{'' if ended else 'It had ended already. '}{await self.commands.read(name, 0)}"
        return ToolOutput(said, output_file=self.commands.whole_output(name))


def started_in_words(name: str, said: str, limit: float | None) -> str:
    """The result of the call that started a command; `said` is what `read` gives at once."""
    until = f", after {limit:g} s" if limit is not None else ""
    return (
        f"Started in the background as {name}: it runs until it ends, until you stop it with bash_stop{until}, or "
        f"until the session ends. Read it with bash_output.\n{said}"
    )
