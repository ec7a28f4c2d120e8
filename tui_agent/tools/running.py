"""One command from its start to its last byte: the supervisor on its leash, the time limit, the stream of
output.

The supervisor (`supervisor`, a process of its own) starts the command and ends what is left of it; here is
our end of its three pipes. What a tool makes of the result is in `shell`.
"""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import contextvars
import os
import re
import secrets
import select
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Protocol

from tui_agent import processes
from tui_agent.sandbox.inside import Inside
from tui_agent.sandbox.mechanisms import Sandbox
from tui_agent.sandbox.taken_back import TakenBack
from tui_agent.tools.environment import command_environment
from tui_agent.tools.workspace import os_failure, quoted

_SWEEPING = 10.0
"""Seconds beyond the grace in which the supervisor must be done."""
_IDLE = 0.1
"""Seconds between looks at an output in which nothing comes."""
_PIECE, _PAUSE = 16_000, 0.1
"""Characters of output for the screen at once, and seconds between them."""
_MUCH = 256_000
"""Characters after which a long output is shown more slowly."""
_PIECE_THEN, _PAUSE_THEN = 2_000, 1.0
"""The same as `_PIECE` and `_PAUSE`, from then on."""
_MARK = "_AGENT_TUI_CALL"
"""A variable by which all that a command started is known, should its supervisor be killed."""


class Sink(Protocol):
    """Takes a command's output, in a thread of its own."""

    def feed(self, data: bytes) -> None: ...


@dataclass(frozen=True)
class CommandEnd:
    """How a command ended; `code` is None when nobody could see it."""

    code: int | None
    timed_out: bool
    taken: tuple[TakenBack, ...] = ()
    """Files that the sandbox took back."""
    persisted: bool = False
    """True if it was ended for writing such a file again and again."""


async def run_command(
    argv: list[str],
    cwd: Path,
    seconds: float | None,
    grace: float,
    capture: Sink,
    progress: Callable[[str], None],
    *,
    sandbox: Sandbox,
    git_settings: bool = True,
    reports: bool = True,
) -> CommandEnd:
    """Run to the end, for `seconds` (None: as long as it takes), or until cancelled; in each case nothing of the
    command runs afterwards.

    `grace` is the time in seconds between SIGTERM and SIGKILL. Output goes to `capture`, pieces of it to
    `progress`. `git_settings`: whether mounts protect the settings of repositories from it. `reports`: whether the
    sandbox reports what it took back. Raises `ToolError` when the command could not be started.
    """
    inside = Inside(sandbox, git_settings=git_settings, reports=reports)
    async with inside:
        ended = await _run(argv, cwd, seconds, grace, capture, progress, inside, sandbox)
    return replace(ended, taken=tuple(inside.taken), persisted=inside.ended)


async def _run(
    argv: list[str],
    cwd: Path,
    seconds: float | None,
    grace: float,
    capture: Sink,
    progress: Callable[[str], None],
    inside: Inside,
    sandbox: Sandbox,
) -> CommandEnd:
    with contextlib.ExitStack() as stack:
        (leash_end, leash), (status, status_end), (output, output_end) = (
            processes.pipe(stack) for _ in range(3)
        )
        mark = secrets.token_hex(8)
        try:
            child = await processes.start(
                [*processes.supervised(grace, status_end.fileno(), sandbox.gate), *inside.wrap(argv)],
                stdin=leash_end,
                stdout=output_end,
                stderr=output_end,
                pass_fds=(status_end.fileno(),),
                cwd=cwd,
                env={**command_environment(os.environ, sandbox.passed), **sandbox.environment(), _MARK: mark},
            )
        except OSError as error:
            raise os_failure(error, f"start a command in {quoted(os.fspath(cwd))}") from None
        except asyncio.CancelledError:
            # asyncio has killed the supervisor, perhaps after the command had begun.
            await processes.uncancelled(_end_marked(mark))
            raise
        for end in (leash_end, status_end, output_end):
            end.close()
        pump = _Pump(output, capture, progress)
        inside.look_after(leash.close)
        timed_out = False
        try:
            async with asyncio.timeout(seconds):
                await child.process.wait()
        except TimeoutError:
            timed_out = True
        finally:
            leash.close()
            await processes.uncancelled(_gone(child, status, pump, grace, mark))
        return CommandEnd(pump.exit_code, timed_out)


async def _gone(child: processes.Child, status: BinaryIO, pump: _Pump, grace: float, mark: str) -> None:
    """Wait until the supervisor has ended everything, and end it by force should it not."""
    try:
        async with asyncio.timeout(grace + _SWEEPING):
            await child.process.wait()
    except TimeoutError:
        await child.end()
    os.set_blocking(status.fileno(), False)
    # A command can write into this pipe too, through /proc.
    reported = re.search(rb"^exit (\d{1,3})$", status.read() or b"", re.MULTILINE)
    if reported is not None:
        pump.exit_code = int(reported[1])
    if child.code != 0:
        # The supervisor was killed; its command ends with it, what the command started does not.
        await _end_marked(mark)
    await pump.finished()


async def _end_marked(mark: str) -> None:
    """End all that was started with this mark."""
    await asyncio.to_thread(processes.kill_marked, f"{_MARK}={mark}")


class _Pump:
    """Reads a command's output in a thread of its own, so that gigabytes of it cost the event loop next to
    nothing.

    All goes to the capture; pieces go to `progress`, on the event loop, a few times a second, and sparsely
    once there was much, because a screen shows only the end.
    """

    def __init__(self, output: BinaryIO, capture: Sink, progress: Callable[[str], None]) -> None:
        self.exit_code: int | None = None
        self._output = output
        self._capture = capture
        self._progress = progress
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._pending = ""
        self._skipped = False
        self._sent = 0
        self._last = 0.0
        self._loop = asyncio.get_running_loop()
        # A plain thread has no context variables, and what `progress` starts would inherit their absence.
        self._context = contextvars.copy_context()
        self._done = asyncio.Event()
        self._stop = threading.Event()
        threading.Thread(target=self._run, name="command-output", daemon=True).start()

    async def finished(self) -> None:
        """Wait for the rest of the output, once nothing can write any more. Bounded, should something
        still hold it.
        """
        self._stop.set()
        await self._done.wait()

    def _run(self) -> None:
        try:
            while True:
                ready, _, _ = select.select([self._output], [], [], _IDLE)
                if ready:
                    data = os.read(self._output.fileno(), 1 << 16)
                    if not data:
                        break
                    self._capture.feed(data)
                    self._show(self._decoder.decode(data))
                elif self._stop.is_set():
                    break
                self._flush()
            self._show(self._decoder.decode(b"", final=True))
            self._flush(now=True)
        finally:
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._done.set, context=self._context)

    def _show(self, text: str) -> None:
        self._pending += text
        room = _PIECE if self._sent < _MUCH else _PIECE_THEN
        if len(self._pending) > room:
            self._pending, self._skipped = self._pending[-room:], True

    def _flush(self, *, now: bool = False) -> None:
        moment = time.monotonic()
        if not self._pending or not (
            now or moment - self._last >= (_PAUSE if self._sent < _MUCH else _PAUSE_THEN)
        ):
            return
        piece = f"\n[...]\n{self._pending}" if self._skipped else self._pending
        self._sent += len(piece)
        self._pending, self._skipped, self._last = "", False, moment
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(
                self._progress, piece.replace("\0", "\ufffd"), context=self._context
            )
