"""What a hook of another agent costs: one event to the keeper and back, beside `python -c pass`, alone and 50 at once.

`python benchmarks/hook_latency.py [--rounds N]`. Times are of whole processes, in milliseconds.
"""

from __future__ import annotations

import argparse
import json
import os
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


def at_once(command: list[str], texts: list[bytes]) -> list[float]:
    taken: list[float] = []
    threads = [
        threading.Thread(target=lambda text=text: taken.append(timed(command, text))) for text in texts
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(taken)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=100)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory(prefix="hooks") as folder:
        os.environ |= {"XDG_RUNTIME_DIR": folder, "AGENT_TUI_STATE_DIR": f"{folder}/state"}
        hook = [sys.executable, "-I", "-S", door.__file__, "claude-code"]
        nothing = [sys.executable, "-c", "pass"]
        print(f"the first one, which starts the keeper: {timed(hook, event(0, folder)):.0f} ms")
        pairs = [(timed(nothing), timed(hook, event(number, folder))) for number in range(rounds)]
        empty, answered = (statistics.median(column) for column in zip(*pairs, strict=True))
        limit = 1.5 * empty + 60
        print(
            f"python -c pass {empty:.1f} ms, a hook {answered:.1f} ms: "
            f"{answered / empty:.2f} times; limit {limit:.0f} ms"
        )
        plain = at_once(nothing, [b""] * AT_ONCE)
        many = at_once(hook, [event(number, folder) for number in range(AT_ONCE)])
        print(f"{AT_ONCE} at once, the slowest: python -c pass {plain[-1]:.0f} ms, a hook {many[-1]:.0f} ms")
        for place in Path(folder, "agent-tui").glob("hooks-*"):
            place.unlink()  # the keeper ends when its socket is gone


if __name__ == "__main__":
    main()
