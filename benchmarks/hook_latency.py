"""What a hook of another agent costs: one event to the daemon and back, beside `python -c pass`, alone and 50 at once.

`python benchmarks/hook_latency.py [--rounds N] [--crowds N]`. Times are of whole processes, in milliseconds; processor
time is that of the processes without the daemon, and depends less on what else the machine does. Both kinds take turns.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from tui_agent.agents import door

AT_ONCE = 50


def event(number: int, folder: str) -> bytes:
    call = {"tool_name": "Bash", "tool_input": {"command": f"make {number % 7}"}, "tool_use_id": f"t{number}"}
    ended = {**call, "tool_response": "Exit code 2\nno rule"}
    common = {"session_id": "bench", "cwd": folder, "hook_event_name": "PostToolBatch"}
    return json.dumps({**common, "tool_calls": [ended]}).encode()


def timed(command: list[str], text: bytes = b"") -> float:
    begun = time.perf_counter()
    subprocess.run(command, input=text, stdout=subprocess.DEVNULL, check=True)
    return (time.perf_counter() - begun) * 1_000


def busy(command: list[str], text: bytes = b"") -> float:
    """The processor time of one."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    timed(command, text)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1_000


def at_once(command: list[str], texts: list[bytes]) -> list[float]:
    taken: list[float] = []
    threads = [
        threading.Thread(target=lambda text=text: taken.append(timed(command, text))) for text in texts
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return taken


def p99(taken: list[float]) -> float:
    return sorted(taken)[-1 - len(taken) // 100]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--crowds", type=int, default=5, help=f"times that {AT_ONCE} begin at once")
    options = parser.parse_args()
    rounds = options.rounds
    with tempfile.TemporaryDirectory(prefix="hooks") as folder:
        os.environ |= {"XDG_RUNTIME_DIR": folder, "AGENT_TUI_STATE_DIR": f"{folder}/state"}
        hook = [sys.executable, "-I", "-S", door.__file__, "claude-code"]
        nothing = [sys.executable, "-c", "pass"]
        print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
        print(f"the first one, which starts the daemon: {timed(hook, event(0, folder)):.0f} ms")
        pairs = [(timed(nothing), timed(hook, event(number, folder))) for number in range(rounds)]
        empty, answered = (statistics.median(column) for column in zip(*pairs, strict=True))
        limit = 1.5 * empty + 60
        print(
            f"python -c pass {empty:.1f} ms, a hook {answered:.1f} ms: "
            f"{answered / empty:.2f} times; limit {limit:.0f} ms"
        )
        pairs = [(busy(nothing), busy(hook, event(number, folder))) for number in range(rounds)]
        empty, answered = (statistics.median(column) for column in zip(*pairs, strict=True))
        print(f"processor time: python -c pass {empty:.1f} ms, a hook {answered:.1f} ms")
        plain: list[float] = []
        many: list[float] = []
        for _ in range(options.crowds):
            plain += at_once(nothing, [b""] * AT_ONCE)
            many += at_once(hook, [event(number, folder) for number in range(AT_ONCE)])
        print(
            f"{AT_ONCE} at once, {options.crowds} times, p99: "
            f"python -c pass {p99(plain):.0f} ms, a hook {p99(many):.0f} ms; limit 300 ms"
        )
        for place in Path(folder, "agent-tui").glob("hooks-*"):
            place.unlink()  # the daemon ends when its socket is gone


if __name__ == "__main__":
    main()
