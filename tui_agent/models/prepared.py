"""Keeps litellm imported for the next runs of the same user, and forks a model host for each (`python -m …`).

Holds no key and no conversation: each caller hands over its environment, which only the fork made for it ever has.
Linux alone, where the kernel says who connects. A caller of another user, in another namespace or in a sandbox gets
nothing; one whose environment the import would have read otherwise, or whose code is newer, starts a host of its own.
"""

from __future__ import annotations

import gc
import importlib
import os
import selectors
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from pydantic import BaseModel

from tui_agent.models import host, litellm_setup
from tui_agent.models.borrowed import AGAIN, CALLERS, LARGEST_REQUEST, NO, STREAMS, code_in_use
from tui_agent.secret_names import named_like_a_secret

_NAMESPACES = ("mnt", "net", "pid", "user", "ipc")
_RESTRICTIONS = ("NoNewPrivs", "Seccomp")
_MOST_NAMES = 60_000
"""Bytes: what a pipe takes at once."""
_PATIENCE = 2.0
"""Seconds that a caller has for its request."""
_READ_UNSEEN = ("PYTHONPATH", "SSL_CERT_DIR", "OPENSSL_CONF", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "TZ")
"""Variables that the interpreter and libraries read by themselves."""


@dataclass
class Prepared:
    """What is lent: litellm, and what its import depended on."""

    litellm: Any
    code: str
    """`code_in_use` before the import."""
    read: dict[str, str | None] = field(default_factory=dict)
    """Variables that the import read, with their values then."""

    unbuilt: dict[str, type[BaseModel]] = field(default_factory=dict)
    """Classes whose checks pydantic builds when they are first used, by their names."""

    def look(self) -> None:
        """Find what is there and not built."""
        self.unbuilt = {
            f"{kind.__module__}:{kind.__qualname__}": kind
            for kind in _kinds_of(BaseModel)
            if not kind.__pydantic_complete__
        }

    def learn(self, names: list[str]) -> None:
        """Import and build what a fork had to for its calls (modules and classes), so that the next has it at once."""
        with _recorded_reads() as read:
            for name in names:
                if name.partition(".")[0] == "keyring":
                    continue  # which chooses its backend as it is imported, by all of the environment
                with suppress(Exception):
                    if kind := self.unbuilt.get(name):
                        kind.model_rebuild()
                    elif ":" not in name:
                        importlib.import_module(name)
        self.read = read | self.read
        self.look()
        gc.freeze()

    def built_since(self) -> list[str]:
        """In a fork: the classes that it had to build."""
        return [name for name, kind in self.unbuilt.items() if kind.__pydantic_complete__]

    def others(self, environment: Mapping[str, str]) -> list[str]:
        """The variables of which the import would have read something else in this environment."""
        return [name for name, value in self.read.items() if environment.get(name) != value]


def _kinds_of(kind: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """All classes that were made of one."""
    for each in kind.__subclasses__():
        yield each
        yield from _kinds_of(each)


@contextmanager
def _recorded_reads() -> Iterator[dict[str, str | None]]:
    """The variables that are read inside, with the values that they have at the beginning; going through all of them
    reads them all.
    """
    kind = type(os.environ)
    before = dict(os.environ)
    read = {name: before.get(name) for name in _READ_UNSEEN}
    get, go_through = kind.__getitem__, kind.__iter__

    def noted(self: Any, name: str) -> str:
        read.setdefault(name, before.get(name))
        return get(self, name)

    def all_noted(self: Any) -> Iterator[str]:
        read.update(before)
        return go_through(self)

    def use(reader: Callable[..., str], walker: Callable[..., Iterator[str]]) -> None:
        for name, method in (("__getitem__", reader), ("__iter__", walker)):
            setattr(kind, name, method)

    use(noted, all_noted)
    try:
        yield read
    finally:
        use(get, go_through)
        for name in litellm_setup.QUIET_ENVIRONMENT:  # the same whatever the caller has
            read.pop(name, None)


def prepare() -> Prepared:
    """Import litellm. Raises what the import raises."""
    code = code_in_use()
    with _recorded_reads() as read:
        litellm = litellm_setup.load()
    prepared = Prepared(litellm, code, read)
    prepared.look()
    return prepared


class Lender:
    """Forks hosts for callers until nobody has come for `stay` seconds."""

    def __init__(self, listener: socket.socket, path: Path, prepared: Prepared, stay: float) -> None:
        self._listener = listener
        self._path = path
        self._place = path.stat().st_ino
        self._prepared = prepared
        self._stay = stay
        self._lent: dict[int, socket.socket] = {}
        """The caller's connection of each fork, by its process id."""
        self._selector = selectors.DefaultSelector()
        self._selector.register(listener, selectors.EVENT_READ, self._callers)
        self._open = True
        self._ends = time.monotonic() + stay

    def serve(self) -> None:
        """Lend until the time is over and every fork has ended."""
        while self._lent or (self._open and time.monotonic() < self._ends):
            patience = None if self._lent else self._ends - time.monotonic()
            for key, _ in self._selector.select(patience):
                key.data()
            if self._open and not self._path.exists():
                self._close()  # taken away: the next caller will not find us
        self._close()

    def _close(self) -> None:
        """Take no more callers; those who have come already start a host of their own."""
        if self._open:
            self._open = False
            self._selector.unregister(self._listener)
            with suppress(OSError):
                if self._path.stat().st_ino == self._place:
                    self._path.unlink()
            self._listener.close()

    def _callers(self) -> None:
        with suppress(OSError, ValueError):
            caller, _ = self._listener.accept()
            try:
                caller.settimeout(_PATIENCE)
                answer = self._lend(caller) if is_ours(caller) else NO
                caller.sendall(answer)
            except (OSError, ValueError):
                answer = NO
            if not answer[0:1].isdigit():
                caller.close()

    def _lend(self, caller: socket.socket) -> bytes:
        """Fork a host for the caller: its process id, or why there is none. Raises `OSError`, `ValueError`."""
        request, streams = _request(caller)
        try:
            others = self._prepared.others(request.environment)
            if any(map(named_like_a_secret, others)):
                return NO
            if others or request.code != self._prepared.code:
                self._close()
                return AGAIN
            if len([*Path("/proc/self/task").iterdir()]) > 1:
                return NO  # a fork would not have the other threads
            own = os.getpid()
            learnt, learns = os.pipe()
            process = os.fork()
            if process == 0:
                self._become_host(own, streams, request, learns)
            os.close(learns)
            self._lent[process] = caller
            end = os.pidfd_open(process)
            self._selector.register(end, selectors.EVENT_READ, lambda: self._ended(process, end, learnt))
            self._selector.register(caller, selectors.EVENT_READ, lambda: self._given_back(process))
            return b"%d\n" % process
        finally:
            _close_all(streams)

    def _become_host(self, parent: int, streams: list[int], request: _Request, learns: int) -> NoReturn:
        """In the fork: only the caller's pipes and environment are left, and its model host begins."""
        try:
            for caller in self._lent.values():
                caller.close()
            self._listener.close()
            self._selector.close()
            for target, stream in enumerate((*streams, learns)):
                os.dup2(stream, target)
            os.closerange(STREAMS + 1, os.sysconf("SC_OPEN_MAX"))
            os.setsid()
            os.environ.clear()
            os.environ.update(request.environment)
            os.environ.update(litellm_setup.QUIET_ENVIRONMENT)
            with suppress(OSError):
                os.chdir(request.folder)
            known = len(sys.modules)

            def tell() -> None:
                names = [*list(sys.modules)[known:], *self._prepared.built_since()]
                os.write(STREAMS, "\n".join(names).encode()[:_MOST_NAMES])

            host.serve(parent, lambda: self._prepared.litellm, tell)
        finally:
            os._exit(1)

    def _given_back(self, process: int) -> None:
        """The caller has gone, or wants it ended; one that says something more is answered by nobody."""
        self._selector.unregister(self._lent[process])
        os.kill(process, signal.SIGKILL)

    def _ended(self, process: int, end: int, learnt: int) -> None:
        self._selector.unregister(end)
        os.close(end)
        _, status = os.waitpid(process, 0)
        caller = self._lent.pop(process)
        self._ends = time.monotonic() + self._stay
        with suppress(KeyError):
            self._selector.unregister(caller)
        with suppress(OSError):
            caller.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))
        caller.close()
        with os.fdopen(learnt, "rb") as told:
            self._prepared.learn(told.read().decode("utf-8", "replace").splitlines())


def is_ours(caller: socket.socket) -> bool:
    """Whether the process that connected is this user's, in our namespaces and no more restricted than we are."""
    process, user, _ = struct.unpack("3i", caller.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    if user != os.getuid():
        return False
    try:
        return _surroundings(process) == _surroundings(os.getpid())
    except OSError:
        return False


def _surroundings(process: int) -> list[object]:
    """Namespaces and restrictions of a process. Raises `OSError`."""
    own = Path(f"/proc/{process}")
    lines = (own / "status").read_text().splitlines()
    spaces = [(own / "ns" / name).stat().st_ino for name in _NAMESPACES]
    return [*spaces, *(line for line in lines if line.startswith(_RESTRICTIONS))]


class _Request(BaseModel):
    code: str
    environment: dict[str, str]
    folder: str


def _request(caller: socket.socket) -> tuple[_Request, list[int]]:
    """The caller's request and its three pipes. Raises `OSError`, `ValueError` where it is none."""
    text, streams, _, _ = socket.recv_fds(caller, LARGEST_REQUEST, STREAMS)
    try:
        while not text.endswith(b"\n"):
            piece = caller.recv(LARGEST_REQUEST)
            text += piece
            if not piece or len(text) > LARGEST_REQUEST:
                break
        request = _Request.model_validate_json(text)
        if len(streams) == STREAMS:
            return request, streams
    except BaseException:
        _close_all(streams)
        raise
    _close_all(streams)
    raise ValueError("the pipes are missing")


def _close_all(streams: list[int]) -> None:
    for stream in streams:
        os.close(stream)


def main() -> None:
    """Serve at the socket that was inherited: its number, its path, and the seconds to stay are the arguments."""
    number, path, stay = sys.argv[1:]
    listener = socket.socket(fileno=int(number))
    # Again: from now on the kernel names us, and not who started us, to whoever connects.
    listener.listen(CALLERS)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    prepared = prepare()
    # What is there stays, so that forks share its memory.
    gc.collect()
    gc.freeze()
    Lender(listener, Path(path), prepared, float(stay)).serve()


if __name__ == "__main__":
    main()
