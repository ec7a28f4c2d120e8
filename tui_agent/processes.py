"""Child processes: started in a session of their own, and ended so that nothing of them is left.

A leaf for everything that runs a program beside the event loop: commands, searches, hooks, git, the model
host. What is run, and what is made of its output, is said there.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import time
from collections.abc import Collection, Coroutine, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, Any, BinaryIO, TypeVar

from tui_agent.secret_names import named_like_a_secret

_SUPERVISOR = Path(__file__).with_name("tools") / "supervisor.py"
PIPE, DEVNULL = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
_STREAM_LIMIT = 1 << 16
_PIECE = 1 << 18
T = TypeVar("T")


def without_secrets(environment: Mapping[str, str], passed: Collection[str] = ()) -> dict[str, str]:
    """The variables that are not named like secrets, and those that are `passed` by name."""
    return {
        name: value for name, value in environment.items() if name in passed or not named_like_a_secret(name)
    }


def own_program(name: str, workspace: Path | None = None) -> str | None:
    """A program that is run unasked (git, rg, …): by the absolute folders of PATH that are not in the
    workspace, since a checkout may bring one of that name along. Last is the folder of our interpreter, into
    which a wheel may have put it.
    """
    root = os.path.realpath(workspace or os.sep)
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    for folder in (*folders, os.fspath(Path(sys.executable).parent)):
        found = shutil.which(name, path=folder) if Path(folder).is_absolute() else None
        if found and (root == os.sep or not Path(os.path.realpath(folder)).is_relative_to(root)):
            return found
    return None


def supervised(grace: float, status: int, gate: Sequence[str] = (), leash: int | None = None) -> list[str]:
    """The beginning of a command line, of what runs one command and leaves nothing of it behind. What it takes is said
    in `tools/supervisor.py`.
    """
    beginning = [sys.executable, "-I", "-S", os.fspath(_SUPERVISOR), str(grace), str(status), *gate]
    return beginning if leash is None else [*beginning, f"--leash={leash}"]


async def uncancelled(work: Coroutine[Any, Any, T]) -> T:
    """Await bounded work also when cancelled meanwhile; the cancellation goes on afterwards."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
    return task.result()


class Child:
    """A running process, the leader of a session and group of its own. Made by `start`."""

    def __init__(self, transport: asyncio.SubprocessTransport, process: asyncio.subprocess.Process) -> None:
        self._transport = transport
        self.process = process

    @property
    def code(self) -> int | None:
        """The exit code, negative for a signal; None while it runs."""
        return self.process.returncode

    async def output(self, request: bytes = b"", limit: int | None = None) -> tuple[bytes, bytes]:
        """Send `request` and read both outputs to their ends; of each only the first `limit` bytes are kept."""
        sending = asyncio.ensure_future(self.send(request))
        try:
            out, errors = await asyncio.gather(
                beginning(self.process.stdout, limit), beginning(self.process.stderr, limit)
            )
            await self.process.wait()
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
        return out, errors

    async def send(self, request: bytes) -> None:
        """Write all of its standard input. A process that does not read it is no error."""
        if self.process.stdin is not None:
            with suppress(BrokenPipeError, ConnectionResetError):
                self.process.stdin.write(request)
                await self.process.stdin.drain()
            self.process.stdin.close()

    async def end(self, grace: float = 0.0) -> None:
        """End it with all of its group, and reap it, also when cancelled meanwhile.

        `grace`: seconds between SIGTERM and SIGKILL; 0: SIGKILL at once.
        """
        await uncancelled(self._end(grace))

    async def _end(self, grace: float) -> None:
        try:
            if grace > 0 and self.code is None:
                self._signal(signal.SIGTERM)
                with suppress(TimeoutError):
                    async with asyncio.timeout(grace):
                        await self.process.wait()
        finally:  # a loop that is given up cancels this too
            self._signal(signal.SIGKILL)
            # An output that is not read any more would hold back the news of the end. Closing the whole transport
            # here would ask for the exit code itself, and whoever waits for it might come too late.
            for number in range(3):
                pipe = self._transport.get_pipe_transport(number)
                if pipe is not None:
                    pipe.close()
            try:
                await self.process.wait()
            finally:
                self._transport.close()

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, number)


async def start(
    argv: Sequence[str],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: int | IO[bytes] = PIPE,
    stdout: int | IO[bytes] = PIPE,
    stderr: int | IO[bytes] = PIPE,
    pass_fds: Sequence[int] = (),
    limit: int = _STREAM_LIMIT,
) -> Child:
    """Start a program. `limit`: bytes of a line that its streams take. Raises `OSError`."""
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.subprocess_exec(
        lambda: asyncio.subprocess.SubprocessStreamProtocol(limit=limit, loop=loop),
        *argv,
        cwd=cwd,
        env=env,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        pass_fds=tuple(pass_fds),
        start_new_session=True,
    )
    process = asyncio.subprocess.Process(transport, protocol, loop)
    _keep_niceness(process.pid)
    return Child(transport, process)


def pipe(stack: ExitStack) -> tuple[BinaryIO, BinaryIO]:
    """Open a pipe for reading and writing, without buffers; the stack closes its ends."""
    reading, writing = os.pipe()
    return (
        stack.enter_context(os.fdopen(reading, "rb", buffering=0)),
        stack.enter_context(os.fdopen(writing, "wb", buffering=0)),
    )


async def own_pipes(out: int, longest: int) -> tuple[asyncio.StreamReader, asyncio.WriteTransport]:
    """Read what a parent writes to our stdin, in lines of `longest` bytes at most, and write to it by `out`."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(longest)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin.buffer)
    transport, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, os.fdopen(out, "wb", buffering=0))
    return reader, transport


def lower_priority(niceness: int) -> None:
    """Leave the processor to others: this process, and all that it starts."""
    os.nice(niceness)
    _keep_niceness("self")


def _keep_niceness(process: int | str) -> None:
    """Linux shares the processor by sessions first, and a new one begins without the niceness of its processes."""
    if (niceness := os.nice(0)) > 0:
        with suppress(OSError):
            Path(f"/proc/{process}/autogroup").write_text(str(niceness))


def kill_marked(variable: str) -> None:
    """End every process that was started with this variable (`NAME=value`), if /proc tells them. Blocks until
    none is left, or for five seconds.
    """
    deadline = time.monotonic() + 5.0
    while (marked := _started_with(os.fsencode(variable))) and time.monotonic() < deadline:
        for pid in marked:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.005)


def _started_with(variable: bytes) -> list[int]:
    found: list[int] = []
    with suppress(OSError), os.scandir("/proc") as entries:
        for entry in entries:
            # Of a process that has ended, or is another user's, nothing can be read.
            with suppress(OSError):
                if entry.name.isdigit() and variable in Path(entry.path, "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
    return found


def limit_memory(child: Child, size: int) -> None:
    """Let a process have `size` bytes of address space at most, if the system can limit others (Linux)."""
    if sys.platform == "linux":
        import resource

        with suppress(OSError):
            resource.prlimit(child.process.pid, resource.RLIMIT_AS, (size, size))


async def beginning(stream: asyncio.StreamReader | None, limit: int | None = None) -> bytes:
    """The first `limit` bytes of a stream, which is read to its end."""
    kept: list[bytes] = []
    room = limit
    while stream is not None and (piece := await stream.read(_PIECE)):
        piece = piece if room is None else piece[:room]
        if piece:
            kept.append(piece)
        if room is not None:
            room -= len(piece)
    return b"".join(kept)
