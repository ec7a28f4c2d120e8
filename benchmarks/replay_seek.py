"""Replay of a long session: how long opening takes, how long a seek takes anywhere, and how much memory it costs.

Run by hand: `python benchmarks/replay_seek.py [--events 100000]`. Exits with 1 where a budget is missed.
Budgets: opening < 1.5 s, any seek < 50 ms, reducing ≥ 50,000 events a second.
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.long_session import write_long_session
from tui_agent.core.fold import fold
from tui_agent.session.replay import Replay
from tui_agent.store.journal import read_journal

T = TypeVar("T")

OPEN_BUDGET = 1.5
SEEK_BUDGET = 0.050
FOLD_BUDGET = 50_000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--seeks", type=int, default=1_000)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.jsonl"
        size = write_long_session(path, chosen.events)
        print(f"session: {chosen.events:,} events, {size / 1e6:.1f} MB")
        return measure(path, chosen.seeks)


def measure(path: Path, seeks: int) -> int:
    before = _memory()
    opening, replay = _timed(lambda: Replay.open(path, prepare=False))
    preparing, _ = _timed(replay.prepare)
    grown = _memory() - before
    choose = random.Random(1)
    places = [choose.randint(0, replay.length) for _ in range(seeks)]
    places += [replay.length, 0, replay.length, 1, replay.length // 2]
    times = sorted(_seek(replay, place) for place in places)
    middle = replay.length // 2
    stepping = sum(_seek(replay, place) for place in range(middle, middle + 2000)) / 2000
    back = sorted(_seek(replay, place) for place in range(replay.length, replay.length - 500, -1))
    after = _memory() - before
    events = read_journal(path).events
    reducing = min(_timed(lambda: fold(events))[0] for _ in range(3))
    rate = len(events) / reducing
    print(
        f"opening: {opening:.2f} s (budget {OPEN_BUDGET} s); until every seek is quick: {opening + preparing:.2f} s"
    )
    print(f"memory: {grown:.0f} MB")
    print(
        f"{len(times):,} random seeks: median {_ms(times[len(times) // 2])}, p99 {_ms(times[len(times) * 99 // 100])}, "
        f"worst {_ms(times[-1])} (budget {_ms(SEEK_BUDGET)}); memory after them {after:.0f} MB"
    )
    print(f"one event on: {_ms(stepping)}; one event back: median {_ms(back[250])}, worst {_ms(back[-1])}")
    print(f"reducing: {rate:,.0f} events/s (budget {FOLD_BUDGET:,})")
    missed = opening > OPEN_BUDGET or times[-1] > SEEK_BUDGET or back[-1] > SEEK_BUDGET or rate < FOLD_BUDGET
    return 1 if missed else 0


def _seek(replay: Replay, place: int) -> float:
    return _timed(lambda: replay.state_at(place))[0]


def _timed(work: Callable[[], T]) -> tuple[float, T]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.2f} ms"


def _memory() -> float:
    """The largest this process has been, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    sys.exit(main())
