"""Watching another agent's session: opening a long one, a line until it is on the screen, what each line costs.

    python benchmarks/watch.py [--megabytes 30] [--lines 200]

The long session is made of exchanges like those of real recordings: most bytes are results of reads. Opening is timed
in seconds of processor, imports done, until the state of the last event is there. A line is timed from its writing
until it is painted, in the console without a terminal; the limit is for the median.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

OPEN_LIMIT = 2.0
"""Seconds for a session of 30 MB."""
LINE_LIMIT = 0.1
"""Seconds from a line to its draw."""
RESULT = 14_000
"""Bytes of a result, twice in its line, as recorders write it."""


def exchange(number: int, parent: str) -> list[dict[str, Any]]:
    """A call and its result; every seventh fails."""
    at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(1_767_323_000 + number)) + ".000Z"
    common = {"sessionId": "s", "cwd": "/w", "isSidechain": False, "timestamp": at}
    if not number:
        message: dict[str, Any] = {"role": "user", "content": "Make the tests pass"}
        return [{"type": "user", "uuid": "r0", "parentUuid": None, "message": message, **common}]
    failed = number % 7 == 0
    given = {"command": f"pytest tests/{number}"} if failed else {"file_path": f"src/{number}.py"}
    call = {"type": "tool_use", "id": f"t{number}", "name": "Bash" if failed else "Read", "input": given}
    reply = {"role": "assistant", "id": f"m{number}", "model": "claude", "content": [call]}
    text = f"Exit code 1\n{number} failed" if failed else f"line of file {number}\n" * (RESULT // 20)
    result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": text, "is_error": failed}
    return [
        {"type": "assistant", "uuid": f"a{number}", "parentUuid": parent, "message": reply, **common},
        {
            "type": "user",
            "uuid": f"r{number}",
            "parentUuid": f"a{number}",
            "message": {"role": "user", "content": [result]},
            "toolUseResult": "Error" if failed else {"file": {"content": text}},
            **common,
        },
    ]


def made_up(path: Path, megabytes: float) -> int:
    """Write a session; how many exchanges it has."""
    size, number = 0, 0
    with path.open("w") as file:
        while size < megabytes * 2**20:
            for record in exchange(number, f"r{number - 1}"):
                size += file.write(json.dumps(record) + "\n")
            number += 1
    return number


def add(path: Path, number: int) -> None:
    """One exchange more."""
    with path.open("a") as file:
        file.writelines(json.dumps(record) + "\n" for record in exchange(number, f"r{number - 1}"))


def opened(path: Path) -> tuple[float, int]:
    """Seconds of processor until the last state is there, and the events."""
    from tui_agent.session.replay import Replay
    from tui_agent.store.journal_index import EventList
    from tui_agent.watch.watched import Watched

    start = time.process_time()
    watched = Watched(path)
    watched.update(time.time())
    Replay(EventList(watched.events)).state_at(len(watched.events))
    return time.process_time() - start, len(watched.events)


def a_line(path: Path, first: int, lines: int) -> list[float]:
    """Seconds of processor that each exchange takes, from the first to the last."""
    from tui_agent.watch.watched import Watched

    watched = Watched(path)
    watched.update(time.time())
    taken = []
    for number in range(first, first + lines):
        add(path, number)
        start = time.process_time()
        watched.update(time.time())
        taken.append(time.process_time() - start)
    return taken


async def to_the_pane(path: Path, first: int, lines: int) -> list[float]:
    """Seconds from each exchange to the draw that shows it."""
    from tui_agent.console.program import ConsoleApp
    from tui_agent.console.screens.watch import WatchScreen
    from tui_agent.frontend.arguments import ConsoleArguments

    taken = []
    state = {"state_dir": str(path.parent / "state")}
    app = ConsoleApp(ConsoleArguments(overrides=state, watch=(str(path),)))
    async with app.run_test(size=(120, 40)) as pilot:
        screen = app.shown
        while not (isinstance(screen, WatchScreen) and screen.state is not None and screen.state.seq):
            await pilot.pause(0.05)
        for number in range(first, first + lines):
            await asyncio.sleep(0.05 + number % 5 / 50)
            start = time.perf_counter()
            add(path, number)
            while screen.state is None or screen.state.run.iteration < number:
                await pilot.pause(0.001)
            await screen.redrawing.on_screen(1.0)
            taken.append(time.perf_counter() - start)
    return taken


def idle(path: Path, seconds: float = 5.0) -> float:
    """The share of a core that looking at a file takes which does not grow."""
    from tui_agent.watch.following import follow
    from tui_agent.watch.watched import Watched

    watched = Watched(path)
    watched.update(time.time())
    begin, start = time.perf_counter(), time.process_time()
    for _ in follow(watched):
        if time.perf_counter() - begin > seconds:
            break
    return (time.process_time() - start) / seconds


def main() -> int:
    """Print a table; 0 where the limits are kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, default=30.0)
    parser.add_argument("--lines", type=int, default=200)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path, short = Path(folder) / "long.jsonl", Path(folder) / "short.jsonl"
        exchanges = made_up(path, args.megabytes)
        made_up(short, 0.001)
        opened(short)
        seconds, events = opened(path)
        early = statistics.median(a_line(short, 1, args.lines))
        late = statistics.median(a_line(path, exchanges, args.lines))
        pane = sorted(asyncio.run(to_the_pane(short, args.lines + 1, min(args.lines, 60))))
        resting = idle(path)
    median, worst = statistics.median(pane), pane[int(len(pane) * 0.95)]
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{args.megabytes:.0f} MB, {exchanges:,} exchanges, {events:,} events, {size:.0f} MB of memory")
    print(f"opened in           {seconds:6.2f} s   (limit {OPEN_LIMIT} s)")
    print(
        f"two lines cost      {early * 1_000:6.2f} ms in a short session, {late * 1_000:.2f} ms behind {exchanges:,}"
    )
    print(
        f"line to pane        {median * 1_000:6.0f} ms, 95th of 100 {worst * 1_000:.0f} ms (limit {LINE_LIMIT} s)"
    )
    print(f"nothing new         {resting * 100:6.2f} % of a core")
    kept = seconds < OPEN_LIMIT * args.megabytes / 30 and median < LINE_LIMIT and late < early * 3
    print("limits kept" if kept else "limits MISSED")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
