"""A model host that a prepared process forks for us (`prepared`), as `hosted` uses it: three pipes, an end, a code.

The prepared process is started by whoever finds none, and stays for some time after its last fork. Where anything
speaks against it, nothing is borrowed, and `hosted` starts a host of its own.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import socket
import stat
import struct
import subprocess
import sys
import warnings
import zlib
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

from tui_agent.processes import without_secrets

PREPARED = [sys.executable, "-P", "-m", "tui_agent.models.prepared"]
"""The command line of what forks hosts, without its arguments."""
STREAMS = 3
"""Pipes that are handed over: standard input, output and error."""
LARGEST_REQUEST = 1 << 17
"""Bytes: what a socket takes at once."""
AGAIN, NO = b"again\n", b"no\n"
"""Answers: this one ends, ask the next; none will ever fit."""
_PATIENCE = 60.0
"""Seconds: a prepared process that has just been started imports litellm first."""
_AT_A_TERMINAL = 300.0
"""Seconds to stay where nothing is set: a person who answers and starts again, not a day with 200 MB taken."""
_INSTALLED = f"{sys.executable}\n{Path(__file__).parent}".encode()
SOCKET = f"model-host-{zlib.crc32(_INSTALLED):08x}"
"""One for each installation: two of them would send each other's away."""
CALLERS = 16
"""Callers that may wait to be answered."""


def stay(minutes: float | None, *, at_terminal: bool) -> float:
    """Seconds that a prepared process stays: `minutes` where they are set, else some for a person at a terminal, and
    none for scripts, in CI, or where the home cannot be written to (a container, a sandbox).
    """
    if minutes is not None:
        return 60 * minutes
    person = at_terminal and not os.environ.get("CI") and os.access(Path("~").expanduser(), os.W_OK)
    return _AT_A_TERMINAL if person else 0.0


def staying() -> int | None:
    """The prepared process that stays for this user now, by its id; None: there is none."""
    if sys.platform != "linux":
        return None
    with suppress(OSError), socket.socket(socket.AF_UNIX) as asked:
        asked.connect(str(_folder() / SOCKET))
        pid, _, _ = struct.unpack("3i", asked.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        return int(pid)
    return None


def code_in_use() -> str:
    """What a host would load: this interpreter, our files and litellm's, by the times of their changes."""
    here = Path(__file__).resolve().parent
    ours = [
        each for folder in ("models", "core", "config", "") for each in (here.parent / folder).glob("*.py")
    ]
    found = importlib.util.find_spec("litellm")
    litellm = Path(found.origin).parent if found is not None and found.origin else here
    times = [path.stat().st_mtime_ns for path in (*sorted(ours), litellm, litellm.parent)]
    return json.dumps([sys.executable, sys.version, str(here), *times])


_Lender = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Borrowed:
    """A host that is running. Made by `borrow`; the names are those of a process of asyncio's."""

    def __init__(
        self,
        pid: int,
        lender: _Lender,
        stdin: asyncio.StreamWriter,
        stdout: asyncio.StreamReader,
        stderr: asyncio.StreamReader,
    ) -> None:
        self.pid = pid
        self.stdin, self.stdout, self.stderr = stdin, stdout, stderr
        self.returncode: int | None = None
        self._said, self._lender = lender
        self._waiting = asyncio.ensure_future(self._wait())

    @property
    def process(self) -> Borrowed:
        """As `processes.Child` has it."""
        return self

    async def _wait(self) -> int:
        try:
            self.returncode = int(await self._said.readline())
        except (ValueError, OSError):
            self.returncode = -9  # whoever forked it has gone, and it with it
        self._lender.close()
        return self.returncode

    async def wait(self) -> int:
        """Until it has ended; its exit code, negative for a signal."""
        return await asyncio.shield(self._waiting)

    def kill(self) -> None:
        """End it by force."""
        if self.returncode is None:
            with suppress(OSError, RuntimeError):
                self._lender.write_eof()

    async def end(self) -> None:
        """End it by force, and wait for that."""
        self.kill()
        self.stdin.close()
        await self.wait()


async def borrow(environment: Mapping[str, str], stay: float, limit: int) -> Borrowed | None:
    """A host with this environment, from a process that stays `stay` seconds; None where there is none to have.

    `limit`: bytes of a line of its output.
    """
    if sys.platform != "linux":
        return None
    request = {"code": code_in_use(), "environment": dict(environment), "folder": str(Path.cwd())}
    text = json.dumps(request).encode() + b"\n"
    answer = AGAIN
    for _ in range(2):  # one that does not fit goes, and the next is made for us
        with suppress(OSError, ValueError, TimeoutError):
            if answer == AGAIN and len(text) <= LARGEST_REQUEST:
                lender, streams = await _asked(text, environment, stay)
                try:
                    answer = await asyncio.wait_for(lender[0].readline(), _PATIENCE)
                    return await _taken(int(answer), lender, streams, limit)
                except BaseException:
                    lender[1].close()
                    for stream in streams:
                        os.close(stream)
                    raise
    return None


async def _asked(text: bytes, environment: Mapping[str, str], stay: float) -> tuple[_Lender, tuple[int, ...]]:
    """The lender, which has the request, and our ends of the three pipes. Raises `OSError`."""
    theirs, ours = zip(
        *(os.pipe() if not number else os.pipe()[::-1] for number in range(STREAMS)), strict=True
    )
    try:
        connection = await asyncio.to_thread(_connected, _folder(), environment, stay)
        sent = socket.send_fds(connection, [text], theirs)
        connection.sendall(text[sent:])
        return await asyncio.open_unix_connection(sock=connection), ours
    except BaseException:
        for stream in ours:
            os.close(stream)
        raise
    finally:
        for stream in theirs:
            os.close(stream)


async def _taken(pid: int, lender: _Lender, streams: tuple[int, ...], limit: int) -> Borrowed:
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.connect_write_pipe(
        lambda: asyncio.streams.FlowControlMixin(loop), os.fdopen(streams[0], "wb", buffering=0)
    )
    stdin = asyncio.StreamWriter(transport, protocol, None, loop)
    readers = []
    for stream in streams[1:]:
        reader = asyncio.StreamReader(limit=limit, loop=loop)
        pipe = os.fdopen(stream, "rb", buffering=0)
        await loop.connect_read_pipe(partial(asyncio.StreamReaderProtocol, reader, loop=loop), pipe)
        readers.append(reader)
    return Borrowed(pid, lender, stdin, *readers)


def _folder() -> Path:
    """The folder of the socket: this user's alone. Raises `OSError`."""
    from platformdirs import user_runtime_path

    with warnings.catch_warnings(action="ignore"):  # of a folder in place of one that is not set
        folder = user_runtime_path("agent-tui")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) != 0o700:
        raise PermissionError(f"{folder} is not a folder of this user's alone")
    return folder


def _connected(folder: Path, environment: Mapping[str, str], stay: float) -> socket.socket:
    """A connection to the prepared process, which is started where there is none. Raises `OSError`."""
    import fcntl

    path = folder / SOCKET
    with (folder / f"{SOCKET}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two who find none start one
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(str(path))
        except (FileNotFoundError, ConnectionRefusedError):
            _start(path, environment, stay)
            connection.connect(str(path))
    return connection


def _start(path: Path, environment: Mapping[str, str], stay: float) -> None:
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(CALLERS)
        number = str(listener.fileno())
        # Through a shell that ends at once: it is nobody's child, and nobody has to reap it.
        subprocess.run(
            ["/bin/sh", "-c", '"$@" &', "sh", *PREPARED, number, str(path), str(stay)],
            env=without_secrets(environment),
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[listener.fileno()],
            start_new_session=True,
            check=True,
        )
