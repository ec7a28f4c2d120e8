"""One worker against two: `python benchmarks/cluster.py [RECORDINGS…]`.

Recordings are analysed under all policies, and cases of the bench are run, on a Dask cluster of this machine of one
worker and of two, in turn; the best of several tries counts, since others use the machine. The start of the cluster
does not count. Prints seconds, the share of the ideal (half of the time),
the workers' processor time a run, and the largest memory of a worker after each of the repetitions.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from distributed import Client, LocalCluster

from tui_agent.bench import bench
from tui_agent.bench.bench import Plan
from tui_agent.bench.case import all_cases
from tui_agent.core.names import POLICIES

REPEATS = 3


def usage() -> tuple[float, float]:
    """Processor seconds so far, and megabytes, of this process."""
    times = os.times()
    status = Path("/proc/self/status").read_text()
    resident = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return times.user + times.system + times.children_user + times.children_system, int(
        resident.split()[1]
    ) / 1024


def warm(number: int) -> int:
    """Import what the work takes, which a worker does once."""
    from tui_agent.bench import run
    from tui_agent.formats.importers import load

    return number + len(run.__name__ + load.__name__)


def measure(name: str, work: Callable[[str], Iterable[Any]], runs: int) -> None:
    """Seconds of the same work, which gets the scheduler's address, on one worker and on two, in turn."""
    took: dict[int, list[float]] = {1: [], 2: []}
    memory: dict[int, list[float]] = {1: [], 2: []}
    with ExitStack() as stack:
        clients = {}
        for workers in took:
            made = LocalCluster(
                n_workers=workers, threads_per_worker=1, dashboard_address="127.0.0.1:0", memory_limit=0
            )
            clients[workers] = client = stack.enter_context(Client(stack.enter_context(made)))
            client.gather(client.map(warm, range(4 * workers), pure=False))
        before = {workers: processor(client) for workers, client in clients.items()}
        for _ in range(REPEATS):
            for workers, client in clients.items():
                began = time.monotonic()
                for _ in work(client.scheduler.address):
                    pass
                took[workers].append(time.monotonic() - began)
                memory[workers].append(max(megabytes for _, megabytes in client.run(usage).values()))
        for workers, client in clients.items():
            used = 1000 * (processor(client) - before[workers]) / REPEATS / runs
            print(
                f"{name}: {workers} {'worker' if workers == 1 else 'workers'} {min(took[workers]):.2f} s (of "
                f"{', '.join(f'{one:.2f}' for one in took[workers])}), {used:.1f} ms of processor a run, memory "
                f"{' '.join(f'{megabytes:.0f}' for megabytes in memory[workers])} MB"
            )
    print(f"{name}: {100 * min(took[1]) / (2 * min(took[2])):.0f} % of the ideal")


def processor(client: Client) -> float:
    """Seconds of all workers so far."""
    return sum(used for used, _ in client.run(usage).values())


def main() -> None:
    print(f"load before: {' '.join(f'{one:.2f}' for one in os.getloadavg())}, {os.cpu_count()} cores")
    files = [Path(given) for given in sys.argv[1:]]
    if files:
        from tui_agent.analysis.runs import reports
        from tui_agent.formats.importers.load import find_transcripts, load_transcripts

        found = find_transcripts(files)
        runs = sum(len(load_transcripts(file)) for file in found)
        size = sum(file.stat().st_size for file in found) / 2**20
        print(f"analyze: {len(found)} files, {runs} runs, {size:.0f} MiB, {len(POLICIES)} policies")
        measure("analyze", lambda address: reports(files, cluster=address), runs)
    cases = tuple(case.id for case in all_cases())[::12]
    plan = Plan(cases, ("repeats", "adapts-when-hinted"), ("retries", "combined"), ("absent",), (1,))
    print(f"bench: {bench.all_runs(plan)} runs")

    def bench_once(address: str) -> Iterable[Any]:
        with tempfile.TemporaryDirectory() as out:
            return bench.run(plan, Path(out), 2, lambda *_: None, cluster=address)

    measure("bench", bench_once, bench.all_runs(plan))


if __name__ == "__main__":
    main()
