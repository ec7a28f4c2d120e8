"""A process for work that may take too much memory or time, or never end: forked, bounded, and ended whatever it does.

It hears no signal of the terminal, writes to no stream of ours, and ends with us. What it has to say goes through a
socket, as bytes that are no code.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

_GONE = 0.5
"""Seconds to wait for the end of a process that was killed."""
_DEATH_SIGNAL = 1
"""Of `prctl`: the signal when the parent dies."""
_PIECE = 1 << 18


def fork(serve: Callable[[socket.socket], object], memory: int) -> tuple[int, socket.socket]:
    """Begin `serve` with one end of a socket; the number of its process, and the other end. Raises `OSError`.

    `memory`: bytes of address space that it may take beside what the program takes already.
    """
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            ours.close()
            _bind(memory)
            serve(theirs)
            code = 0
        finally:
            os._exit(code)
    theirs.close()
    return pid, ours


def end(pid: int) -> None:
    """End the process. One that its file system does not let go of is left behind: it is killed already."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    ends = time.monotonic() + _GONE
    with suppress(ChildProcessError):
        while os.waitpid(pid, os.WNOHANG)[0] == 0 and time.monotonic() < ends:
            time.sleep(0.002)


def carried_out(work: Callable[[], bytes], *, seconds: float, memory: int) -> bytes:
    """The result of `work`, in a process of its own. Raises `TimeoutError`, and `MemoryError` if there is no
    result.
    """
    pid, channel = fork(lambda theirs: theirs.sendall(work()), memory)
    said = bytearray()
    ends = time.monotonic() + seconds
    try:
        with channel:
            while True:
                channel.settimeout(max(0.001, ends - time.monotonic()))
                piece = channel.recv(_PIECE)
                said += piece
                if not piece:
                    break
    finally:
        end(pid)
    if not said:
        raise MemoryError
    return bytes(said)


def _bind(memory: int) -> None:
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    null = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(null, stream)
    if sys.platform == "linux":
        import ctypes
        import resource

        ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGKILL)
        with suppress(OSError):  # without /proc nobody knows what it takes already
            pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
            most = pages * resource.getpagesize() + memory
            _, hard = resource.getrlimit(resource.RLIMIT_AS)
            if hard == resource.RLIM_INFINITY or most < hard:
                resource.setrlimit(resource.RLIMIT_AS, (most, hard))
