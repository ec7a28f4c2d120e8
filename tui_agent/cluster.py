"""Work side by side, in processes of this machine or of a Dask cluster. The one place that knows Dask.

Whatever the place, a piece of work is a function and one value, both of which can be pickled, and what comes back is
the same.
"""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor, wait
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from multiprocessing import active_children, get_context
from queue import Empty, SimpleQueue
from typing import IO, TYPE_CHECKING, Any, Protocol, TypeVar
from urllib.parse import urlsplit

from tui_agent import __version__, installed

if TYPE_CHECKING:
    from distributed import Client

LOCAL = "local"
"""Processes of this machine, without Dask."""
DASK_HERE = "dask"
"""A Dask cluster on this machine, for as long as the command runs."""

CONNECT = 10.0
"""Seconds in which a scheduler has to answer."""
LOOK = 1.0
"""Seconds after which it is looked whether something takes too long, or workers have come or gone."""
STRAGGLES = 3.0
"""A piece that takes so many times the longest that has ended is begun a second time, on another worker."""
LEAST_STRAGGLE = 10.0
"""Seconds before that."""

Item = TypeVar("Item")
Result = TypeVar("Result")


class ClusterError(Exception):
    """The cluster cannot be used; the message says why, and what to do."""


class _Pool(Protocol):
    moves: bool
    """A piece can be begun a second time, on another worker."""

    def submit(
        self, function: Callable[[Item], Result], item: Item, elsewhere: str = ""
    ) -> tuple[str, Future[Result]]:
        """Begin a piece; its name, and its future. `elsewhere`: the name of the same piece, on whose worker it is not
        to run.
        """

    def places(self) -> int:
        """How many pieces can run at a time."""


@dataclass
class _Begun:
    """A piece that is under way. `since` in seconds of the monotonic clock."""

    item: Any
    since: float
    name: str
    copies: int = 1


def spread(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    cluster: str = LOCAL,
    processes: int = 1,
    *,
    repeatable: bool = True,
) -> Iterator[tuple[int, Future[Result]]]:
    """Carry `function` out on each item: the item's position and its ended future, as they end.

    `items` are taken as places get free, so that neither they nor their results pile up: one ahead, or none
    if they are not `repeatable`. `processes` counts if `cluster` is no address. A worker that is killed loses
    nothing: its items run again. Under Dask, an item that takes far longer than all others is begun a second
    time if it is `repeatable`, and the first result counts. Raises `ClusterError`.
    """
    ended: SimpleQueue[tuple[int, Future[Result]]] = SimpleQueue()
    begun: dict[int, _Begun] = {}
    waiting = enumerate(items)
    more, longest = True, 0.0
    suspects: list[tuple[int, Item]] = []
    with _pool(cluster, processes) as pool:

        def begin(position: int, item: Item, elsewhere: str = "") -> str:
            name, future = pool.submit(function, item, elsewhere)
            future.add_done_callback(lambda done: ended.put((position, done)))
            return name

        while True:
            room, before = max(0, pool.places() + repeatable - len(begun)), len(begun)
            for position, item in islice(waiting, room if more else 0):
                begun[position] = _Begun(item, time.monotonic(), begin(position, item))
            more = more and len(begun) == before + room
            if not begun:
                break
            try:
                position, future = ended.get(timeout=LOOK)
            except Empty:
                limit = time.monotonic() - max(LEAST_STRAGGLE, STRAGGLES * longest)
                for position, piece in begun.items():
                    if pool.moves and repeatable and not more and piece.copies == 1 and piece.since < limit:
                        begin(position, piece.item, piece.name)
                        piece.copies += 1
                continue
            ended_piece = begun.get(position)
            if ended_piece is None:
                continue  # its other copy was first
            ended_piece.copies -= 1
            if ended_piece.copies and future.exception() is not None:
                continue
            del begun[position]
            if isinstance(future.exception(), BrokenExecutor):
                suspects.append((position, ended_piece.item))
                continue
            longest = max(longest, time.monotonic() - ended_piece.since)
            yield position, future
    for position, item in suspects:  # a process of their own shows which of them it was that ended one
        with _processes(1) as alone:
            future = alone.submit(function, item)
            wait([future])
        yield position, future


@contextmanager
def _pool(cluster: str, processes: int) -> Iterator[_Pool]:
    if cluster == LOCAL:
        pool = _Processes(processes)
        try:
            yield pool
        except BaseException:  # what is under way would be waited for
            for child in active_children():
                child.terminate()
            raise
        finally:
            pool.executor.shutdown(cancel_futures=True)
    else:
        with connected(cluster, processes) as client:
            yield _Dask(client)


class _Processes:
    """Processes of this machine. When one is killed, the others of its pool end too; there is a new pool then."""

    moves = False

    def __init__(self, processes: int) -> None:
        self._processes = processes
        self.executor = _processes(processes)

    def submit(
        self, function: Callable[[Item], Result], item: Item, elsewhere: str = ""
    ) -> tuple[str, Future[Result]]:
        """See `_Pool.submit`; they need no names."""
        try:
            return "", self.executor.submit(function, item)
        except BrokenExecutor:
            self.executor = _processes(self._processes)
            return "", self.executor.submit(function, item)

    def places(self) -> int:
        """See `_Pool.places`."""
        return self._processes


def _processes(count: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(
        count, get_context("spawn"), initializer=_end_with_parent, initargs=(os.getpid(),)
    )


def _end_with_parent(parent: int) -> None:
    """No process outlives the one that it works for, and Ctrl+C, which reaches all of them, ends it without a word."""
    signal.signal(signal.SIGINT, lambda *_: os._exit(1))

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, name="parent", daemon=True).start()


# --- Dask ------------------------------------------------------------------------------------------------------


def is_open(cluster: str) -> bool:
    """True if the address is of another machine, and its connections are known by no certificate."""
    address = urlsplit(cluster if "://" in cluster else f"tcp://{cluster}")
    local = cluster in {LOCAL, DASK_HERE} or address.scheme == "inproc"
    here = (address.hostname or "").startswith("127.") or address.hostname in {"localhost", "::1"}
    return not (local or here) and address.scheme not in {"tls", "wss"}


@contextmanager
def connected(cluster: str, processes: int = 1) -> Iterator[Client]:
    """A client of the cluster that is named, or of one of `processes` workers that is started here.

    The one that is started here takes no stranger's work: its connections are encrypted and known by certificate.
    Raises `ClusterError`.
    """
    try:
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise ClusterError(
            f"--cluster works by Dask, which is not installed: {installed.adding('cluster')}. Without it, "
            f"--cluster {LOCAL} uses the processes of this machine."
        ) from error
    with ExitStack() as stack:
        if cluster == DASK_HERE:
            own = LocalCluster(
                n_workers=processes,
                threads_per_worker=1,
                dashboard_address="127.0.0.1:0",
                worker_dashboard_address="127.0.0.1:0",
                security=True,
                silence_logs="ERROR",
                memory_limit=0,
            )
            client = Client(stack.enter_context(own), set_as_default=False)
        else:
            try:
                client = Client(cluster, timeout=CONNECT, set_as_default=False)
            except (OSError, ValueError) as error:
                raise ClusterError(
                    f"No Dask scheduler answers at {cluster} ({error}). Start one (`dask scheduler`), and workers "
                    f"(`dask worker {cluster} --nthreads 1`), and name it as --cluster tcp://HOST:8786."
                ) from error
        stack.callback(client.close)
        if cluster != DASK_HERE:
            _check_workers(client, cluster)
        yield client


def _check_workers(client: Client, address: str) -> None:
    workers = client.scheduler_info()["workers"]
    start = f"`dask worker {address} --nthreads 1` starts one for a core."
    if not workers:
        raise ClusterError(f"The scheduler at {address} has no worker. {start}")
    if many := [name for name, worker in workers.items() if worker["nthreads"] != 1]:
        raise ClusterError(
            f"The worker {many[0]} runs several threads in one process, which wait for each other here. {start}"
        )
    versions = client.run(installed_version, on_error="return")
    for name, version in versions.items():
        if version != __version__:
            has = f"agent-tui {version}" if isinstance(version, str) else f"no agent-tui ({version})"
            raise ClusterError(
                f"The worker {name} has {has}, and this is {__version__}. Install the same one there: results of two "
                "versions are not mixed."
            )


def installed_version() -> str:
    """The resources of a worker."""
    return __version__


class _Dask:
    """A cluster. A piece whose worker is killed runs again elsewhere, three times at most (`allowed-failures`)."""

    moves = True

    def __init__(self, client: Client) -> None:
        self._client = client
        self._executor = client.get_executor(pure=False)
        self._places, self._looked = 0, float("-inf")
        self._prefix, self._begun = f"agent-tui-{secrets.token_hex(4)}", 0

    def submit(
        self, function: Callable[[Item], Result], item: Item, elsewhere: str = ""
    ) -> tuple[str, Future[Result]]:
        """See `_Pool.submit`."""
        self._begun += 1
        name = f"{self._prefix}-{self._begun}"
        if not elsewhere:
            return name, self._executor.submit(function, item, key=name)
        running = self._client.processing()
        others = [worker for worker, names in running.items() if elsewhere not in names]
        return name, self._executor.submit(function, item, key=name, workers=others, allow_other_workers=True)

    def places(self) -> int:
        """See `_Pool.places`; workers come and go."""
        if time.monotonic() - self._looked > LOOK:
            self._places = max(1, sum(self._client.nthreads().values()))
            self._looked = time.monotonic()
        return self._places


# --- processes on a cluster ------------------------------------------------------------------------------------


PATIENCE = 30.0
"""Seconds without a line after which a process on a worker ends: whoever started it is gone."""


Heard = Callable[[list[bytes] | None], None]
"""Gets lines as they come, and None once when there are no more: the process has ended, or its worker is lost. It is
called in a thread.
"""


class RemoteProcess:
    """A Python module that runs as a process beside a worker of a cluster, with its lines in and out."""

    def __init__(self, client: Client, worker: str, module: str, heard: Heard) -> None:
        from distributed import Queue

        self.worker = worker
        name = f"agent-tui-{secrets.token_hex(8)}"
        self._client, self._heard = client, heard
        self._in, self._out = Queue(f"{name}-in", client=client), Queue(f"{name}-out", client=client)
        self._task = client.submit(
            run_process, module, name, key=name, workers=[worker], pure=False, allow_other_workers=False
        )
        self._lines: SimpleQueue[bytes | None] = SimpleQueue()
        self._threads = [
            threading.Thread(target=work, name=name, daemon=True) for work in (self._write, self._read)
        ]
        for thread in self._threads:
            thread.start()

    def send(self, line: bytes) -> None:
        """Queue a line for its standard input."""
        self._lines.put(line)

    def close(self) -> None:
        """Forget it: its standard input ends. Blocks until its threads have ended."""
        self._lines.put(None)
        for thread in self._threads:
            thread.join()

    def _write(self) -> None:
        while True:
            try:
                line = self._lines.get(timeout=LOOK)
            except Empty:
                if self._task.done() or self.worker not in self._client.nthreads():
                    self._out.put([])
                    return
                continue
            self._in.put([] if line is None else [line])
            if line is None:
                return

    def _read(self) -> None:
        try:
            while lines := self._out.get():
                self._heard(lines)
        finally:
            self._heard(None)


def run_process(module: str, name: str) -> None:
    """On a worker: run a module, and carry lines between it and the queues of that name."""
    from distributed import Queue, get_client

    client = get_client()
    taken, given = Queue(f"{name}-in", client=client), Queue(f"{name}-out", client=client)
    child = subprocess.Popen(
        [sys.executable, "-m", module],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    heard = time.monotonic()

    def watch() -> None:
        while child.poll() is None and time.monotonic() - heard < PATIENCE:
            time.sleep(LOOK)
        taken.put([])

    lines: SimpleQueue[bytes] = SimpleQueue()
    threads = [
        threading.Thread(target=_read_lines, args=(child.stdout, lines), daemon=True),
        threading.Thread(target=_give_lines, args=(lines, given), daemon=True),
    ]
    for thread in [*threads, threading.Thread(target=watch, daemon=True)]:
        thread.start()
    with child:
        while (wanted := taken.get()) and child.stdin is not None:
            heard = time.monotonic()
            with suppress(BrokenPipeError):
                child.stdin.write(b"".join(wanted))
                child.stdin.flush()
    for thread in threads:
        thread.join()


def _read_lines(stream: IO[bytes] | None, lines: SimpleQueue[bytes]) -> None:
    for line in stream or ():
        lines.put(line)
    lines.put(b"")


def _give_lines(lines: SimpleQueue[bytes], given: Any) -> None:
    """Those that came meanwhile together; an empty list says that there are no more."""
    while batch := [lines.get()]:
        while not lines.empty():
            batch.append(lines.get())
        there = [line for line in batch if line]
        if there:
            given.put(there)
        if len(there) < len(batch):
            given.put([])
            return
