"""One worker against two: `python benchmarks/cluster.py [RECORDINGS…]`. Takes three minutes on two free cores.

Recordings are analysed under all policies, and cases of the bench are run, by one worker and by two, in turn: workers
of a Dask cluster, whose start does not count, and for the bench also processes, whose start does. The best of several
tries counts, since others use the machine. Prints for each number of workers the seconds, the processor time of the
workers (with the commands that they run) and of this process (which gives the work out, and holds the scheduler), how
many cores were busy, and the largest memory of a worker after each try. Then how much of half of the one worker's
time the two reach, and how much of what the cores of this machine can give: the processor time of all processes with
one worker, divided among the cores.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from distributed import Client, LocalCluster

from tui_agent.cluster import LOCAL
from tui_agent.core.names import POLICIES
from tui_agent.lab.bench import bench
from tui_agent.lab.bench.bench import Plan
from tui_agent.lab.bench.case import all_cases

TRIES = 3
CORES = os.cpu_count() or 1


def usage() -> tuple[float, float]:
    """Processor seconds of this process and of those that it waited for, and its megabytes."""
    times = os.times()
    status = Path("/proc/self/status").read_text()
    resident = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return times.user + times.system + times.children_user + times.children_system, int(
        resident.split()[1]
    ) / 1024


def warm(number: int) -> int:
    """Import what the work takes, which a worker does once."""
    from tui_agent.formats.importers import load
    from tui_agent.lab.bench import run

    return number + len(run.__name__ + load.__name__)


class Try(NamedTuple):
    """Seconds, processor seconds of the workers and of this process, and megabytes of the largest worker."""

    took: float
    workers: float
    own: float
    memory: float


def in_turn(once: Callable[[int], Try]) -> dict[int, list[Try]]:
    """The same work by one worker and by two."""
    tries: dict[int, list[Try]] = {1: [], 2: []}
    for _ in range(TRIES):
        for workers, made in tries.items():
            made.append(once(workers))
    return tries


def report(name: str, tries: dict[int, list[Try]], runs: int) -> None:
    """What came of it."""
    best = {workers: min(made) for workers, made in tries.items()}
    for workers, one in best.items():
        memory = " ".join(f"{each.memory:.0f}" for each in tries[workers])
        print(
            f"{name}: {workers} {'worker' if workers == 1 else 'workers'} {one.took:.2f} s (of "
            f"{', '.join(f'{each.took:.2f}' for each in tries[workers])}); processor a run "
            f"{1000 * one.workers / runs:.1f} ms + {1000 * one.own / runs:.1f} ms of this process; "
            f"{(one.workers + one.own) / one.took:.2f} cores busy{f'; memory {memory} MB' if one.memory else ''}"
        )
    total = best[1].workers + best[1].own
    print(
        f"{name}: {100 * best[1].took / (2 * best[2].took):.0f} % of half of one worker's time, "
        f"{100 * total / (CORES * best[2].took):.0f} % of what {CORES} cores can give"
    )


def on_dask(name: str, work: Callable[[str], Iterable[Any]], runs: int) -> None:
    """Measure work that gets the scheduler's address."""
    with ExitStack() as stack:
        clients = {}
        for workers in (1, 2):
            made = LocalCluster(
                n_workers=workers, threads_per_worker=1, dashboard_address="127.0.0.1:0", memory_limit=0
            )
            clients[workers] = client = stack.enter_context(Client(stack.enter_context(made)))
            client.gather(client.map(warm, range(4 * workers), pure=False))

        def once(workers: int) -> Try:
            client = clients[workers]
            before, own, began = processor(client), time.process_time(), time.monotonic()
            for _ in work(client.scheduler.address):
                pass
            took, own = time.monotonic() - began, time.process_time() - own
            largest = max(megabytes for _, megabytes in client.run(usage).values())
            return Try(took, processor(client) - before, own, largest)

        report(name, in_turn(once), runs)


def processor(client: Client) -> float:
    """Seconds of all workers so far."""
    return sum(used for used, _ in client.run(usage).values())


def in_processes(name: str, work: Callable[[int], Any], runs: int) -> None:
    """Measure work that gets the number of processes."""

    def once(workers: int) -> Try:
        (before, _), own, began = usage(), time.process_time(), time.monotonic()
        work(workers)
        took, own = time.monotonic() - began, time.process_time() - own
        return Try(took, usage()[0] - before - own, own, 0.0)

    report(name, in_turn(once), runs)


def main() -> None:
    print(f"load before: {' '.join(f'{one:.2f}' for one in os.getloadavg())}, {CORES} cores")
    files = [Path(given) for given in sys.argv[1:]]
    if files:
        from tui_agent.formats.importers.load import find_transcripts, load_transcripts
        from tui_agent.lab.analysis.runs import reports

        found = find_transcripts(files)
        runs = sum(len(load_transcripts(file)) for file in found)
        size = sum(file.stat().st_size for file in found) / 2**20
        print(f"analyze: {len(found)} files, {runs} runs, {size:.0f} MiB, {len(POLICIES)} policies")
        on_dask("analyze, Dask", lambda address: reports(files, cluster=address), runs)
    cases = tuple(case.id for case in all_cases())[::6]
    policies = ("retries", "combined", "gemini-cli", "forge", "without-ring", "notes-only")
    plan = Plan(cases, ("repeats", "adapts-when-hinted"), policies, ("absent",), (1,))
    runs = len(list(plan.runs()))
    print(f"bench: {len(cases)} cases, {runs} runs")

    def bench_once(jobs: int, cluster: str) -> Iterable[Any]:
        with tempfile.TemporaryDirectory() as out:
            return bench.run(plan, Path(out), jobs, lambda *_: None, cluster=cluster)

    on_dask("bench, Dask", lambda address: bench_once(2, address), runs)
    in_processes("bench, processes", lambda workers: bench_once(workers, LOCAL), runs)
    print(f"load after: {' '.join(f'{one:.2f}' for one in os.getloadavg())}")


if __name__ == "__main__":
    main()
