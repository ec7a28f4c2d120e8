"""The tool that runs commands: watched over, streamed, bounded in time and size, and gone when it ends.

The command itself is started and ended by `supervisor`, a process of its own on a leash, so that nothing outlives the
call, and not even this program's death leaves anything behind.
"""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import os
import select
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

from tui_agent.tools.encoding import printable
from tui_agent.tools.environment import command_environment
from tui_agent.tools.output import DEFAULT_LIMIT, Capture
from tui_agent.tools.tool import Effect, ToolContext, ToolError, ToolOutput
from tui_agent.tools.workspace import Workspace, os_failure

DEFAULT_TIMEOUT = 120.0
LONGEST_TIMEOUT = 3_600.0
"""Seconds."""

_LONGEST_COMMAND = 120_000
"""Bytes: Linux takes no single argument above 128 KiB."""
_GRACE = 2.0
"""Seconds between SIGTERM and SIGKILL."""
_SWEEPING = 10.0
"""Seconds beyond the grace in which the supervisor must be done."""
_IDLE = 0.1
"""Seconds between looks at an output in which nothing comes."""
_PIECE, _PAUSE = 16_000, 0.1
"""Characters of output for the screen at once, and seconds between them,"""
_MUCH = 256_000
"""until so many were shown; then:"""
_PIECE_THEN, _PAUSE_THEN = 2_000, 1.0
_SUPERVISOR = Path(__file__).with_name("supervisor.py")


@dataclass(frozen=True)
class Bash:
    """`bash(command, timeout?)`. `timeout` is the default in seconds, `output_limit` is in characters."""

    timeout: float = DEFAULT_TIMEOUT
    output_limit: int = DEFAULT_LIMIT
    grace: float = _GRACE
    name: ClassVar[str] = "bash"
    effect: ClassVar[Effect] = Effect.COMMAND

    @property
    def longest(self) -> float:
        """The longest time a call may ask for, in seconds."""
        return max(LONGEST_TIMEOUT, self.timeout)

    @property
    def description(self) -> str:
        """What the model sees."""
        return (
            "Run a command with bash in the workspace and return its output (stdout and stderr as they come). Each call "
            "is a new shell in the workspace's root: cd and variables do not last. There is no input and no terminal, so "
            "use options that ask nothing. What is still running when the command ends, in the background too, is ended. "
            f"It is stopped after `timeout` seconds (default {self.timeout:g}). Prefer the other tools for reading, "
            "searching and editing files."
        )

    @property
    def parameters(self) -> dict[str, Any]:
        """JSON Schema of the arguments."""
        return {
            "type": "object",
            "properties": {
                "command": {"type": "string", "minLength": 1, "description": "The command, as for bash -c."},
                "timeout": {
                    "type": "number",
                    "minimum": 1,
                    "maximum": self.longest,
                    "description": f"Seconds until it is stopped (default {self.timeout:g}).",
                },
            },
            "required": ["command"],
            "additionalProperties": False,
        }

    def preview(self, arguments: dict[str, Any], workspace: Workspace) -> str:
        """The whole command, where it runs, and for how long at most."""
        timeout = float(arguments.get("timeout", self.timeout))
        return f"{arguments['command']}\n\n(in {workspace.root}, for at most {timeout:g} s)"

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolOutput:
        """The output of a command that ended with exit code 0.

        Raises `ToolError`: any other exit code (`exit code N` and the end of the output stand in the message), a
        time-out (`unknown_effect`). Cancellation ends the command and all it started before it goes on.
        """
        timeout = float(arguments.get("timeout", self.timeout))
        argv = _shell_argv(str(arguments["command"]))
        capture = Capture(context.output_dir, self.name, self.output_limit)
        try:
            ended = await _execute(
                argv, context.workspace.root, timeout, self.grace, capture, context.progress
            )
        except BaseException:
            await asyncio.to_thread(capture.discard)
            raise
        text, whole = await asyncio.to_thread(capture.finish)
        text = printable(text).replace("\0", "\ufffd").rstrip("\n")
        if ended.timed_out:
            until = f" Its output until then:\n{text}" if text else " It had written nothing."
            raise ToolError(
                f"The command did not end within {timeout:g} s and was stopped, with everything it had started. It may "
                f"have done a part of its work: check that before you run it again.{until}",
                unknown_effect=True,
                output_file=whole,
            )
        if ended.code is None:
            raise ToolError(
                f"The command was killed from outside before it ended; what it did is not known.\n{text}".rstrip(),
                unknown_effect=True,
                output_file=whole,
            )
        if ended.code != 0:
            raise ToolError(
                f"The command failed with exit code {ended.code}{_meaning(ended.code)}.\n{text or '(no output)'}",
                output_file=whole,
            )
        return ToolOutput(text or "(no output)", output_file=whole)


@dataclass(frozen=True)
class _Ended:
    """How a command ended; `code` is None when nobody could see it."""

    code: int | None
    timed_out: bool


async def _execute(
    argv: list[str],
    cwd: Path,
    timeout: float,
    grace: float,
    capture: Capture,
    progress: Callable[[str], None],
) -> _Ended:
    """Run to the end, the time-out or cancellation; in each case nothing of the command runs afterwards."""
    with contextlib.ExitStack() as stack:
        (leash_end, leash), (status, status_end), (output, output_end) = (_pipe(stack) for _ in range(3))
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-I", "-S", os.fspath(_SUPERVISOR), str(grace), str(status_end.fileno()), *argv,
                stdin=leash_end, stdout=output_end, stderr=output_end, pass_fds=(status_end.fileno(),), cwd=cwd,
                env=command_environment(os.environ), start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise os_failure(error, f"start a command in {cwd}") from None
        for end in (leash_end, status_end, output_end):
            end.close()
        pump = _Pump(output, capture, progress)
        timed_out = False
        try:
            async with asyncio.timeout(timeout):
                await process.wait()
        except TimeoutError:
            timed_out = True
        finally:
            leash.close()
            await _to_the_end(_gone(process, status, pump, grace))
        return _Ended(pump.exit_code, timed_out)


async def _gone(process: asyncio.subprocess.Process, status: BinaryIO, pump: _Pump, grace: float) -> None:
    """Wait until the supervisor has ended everything, and end it by force should it not."""
    try:
        async with asyncio.timeout(grace + _SWEEPING):
            await process.wait()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    reported = dict(line.split() for line in status.read().decode().splitlines())
    if "exit" in reported:
        pump.exit_code = int(reported["exit"])
    elif "pid" in reported:
        # The supervisor was killed; its command was told to die with it, what the command started was not.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(int(reported["pid"]), signal.SIGKILL)
    await pump.finished()


async def _to_the_end(work: Coroutine[Any, Any, None]) -> None:
    """Await bounded work also when cancelled meanwhile; the cancellation goes on afterwards."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            cancelled = error
    task.result()
    if cancelled is not None:
        raise cancelled


class _Pump:
    """Reads a command's output in a thread of its own, so that gigabytes of it cost the event loop next to nothing.

    All goes to the capture; pieces go to `progress`, on the event loop, a few times a second, and sparsely once there
    was much, because a screen shows only the end.
    """

    def __init__(self, output: BinaryIO, capture: Capture, progress: Callable[[str], None]) -> None:
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
        self._done = asyncio.Event()
        self._stop = threading.Event()
        threading.Thread(target=self._run, name="command-output", daemon=True).start()

    async def finished(self) -> None:
        """Wait for the rest of the output, once nothing can write any more. Bounded, should something still hold it."""
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
                self._loop.call_soon_threadsafe(self._done.set)

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
            self._loop.call_soon_threadsafe(self._progress, piece.replace("\0", "\ufffd"))


def _pipe(stack: contextlib.ExitStack) -> tuple[BinaryIO, BinaryIO]:
    reading, writing = os.pipe()
    return (
        stack.enter_context(open(reading, "rb", buffering=0)),  # noqa: PTH123 - a descriptor, not a path
        stack.enter_context(open(writing, "wb", buffering=0)),  # noqa: PTH123
    )


def _shell_argv(command: str) -> list[str]:
    """The command line. Raises `ToolError` for a command that the system could not take."""
    if "\0" in command:
        raise ToolError(
            "The command holds a NUL character, which no command line can. Use $'\\0' or printf '\\0'."
        )
    try:
        size = len(os.fsencode(command))
    except UnicodeEncodeError:
        raise ToolError("The command holds half of a surrogate pair, which is no character.") from None
    if size > _LONGEST_COMMAND:
        raise ToolError(
            f"The command has {size:,} bytes; {_LONGEST_COMMAND:,} are possible. Write it to a script with write_file "
            "and run that."
        )
    bash = shutil.which("bash")
    return [bash, "--noprofile", "--norc", "-c", command] if bash else ["sh", "-c", command]


def _meaning(code: int) -> str:
    """What a code above 128 stands for, by the shell's convention."""
    try:
        return f" ({signal.Signals(code - 128).name})" if code > 128 else ""
    except ValueError:
        return ""
