"""How long a key takes on the board while many runs are under way: `python benchmarks/fleet_board.py [--runs 200]`.

So many scripted runs at once, by real workers with real tools and journals, in a terminal of its own; the cursor moves
from run to run, and the time counts until the last line says which one it is on (p99 ≤ 50 ms). At the end: how every
run ended, and the shortest, median and longest time that one took, which tells whether any was starved.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from terminal import Terminal

ROOT = Path(__file__).resolve().parents[1]
LIMIT = 50.0
"""Milliseconds."""
SCENARIO = """
title = "Steps"
task = "t"
[pace]
pause = 0.4
"""
TURN = """
[[turns]]
calls = [{{ tool = "write_file", args = {{ path = "out.txt", content = "{number}\\n" }} }}]
usage = {{ prompt = 100, completion = 10, cost = 0.001 }}
[[turns]]
calls = [{{ tool = "read_file", args = {{ path = "missing-{number}.txt" }} }}]
usage = {{ prompt = 100, completion = 10, cost = 0.001 }}
"""
TURNS = 8


def written(folder: Path, runs: int) -> Path:
    """The file of tasks."""
    script = SCENARIO + "".join(TURN.format(number=number) for number in range(TURNS))
    (folder / "steps.toml").write_text(script + '[[turns]]\ntext = "Done."\n', encoding="utf-8")
    lines = []
    for number in range(runs):
        (folder / f"w{number}").mkdir()
        lines.append(json.dumps({"task": f"Part {number}", "workspace": f"w{number}", "id": name(number)}))
    tasks = folder / "tasks.jsonl"
    tasks.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tasks


def name(number: int) -> str:
    """The name of a run; with the colon behind it, it stands in the last line alone."""
    return f"λ{number:03}"


def ended(folder: Path) -> list[dict[str, object]]:
    """The results that are kept."""
    kept = folder / "tasks.fleet" / "runs.jsonl"
    lines = kept.read_text(encoding="utf-8").splitlines() if kept.is_file() else []
    return [said["result"] for line in lines if (said := json.loads(line))["result"]]


def main() -> int:
    """Measure; exit code 1 where the limit is not kept or a run did not end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    runs = parser.parse_args().runs
    print(f"load before: {' '.join(f'{one:.2f}' for one in os.getloadavg())}, {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        command = [
            sys.executable,
            "-m",
            "tui_agent",
            "fleet",
            str(written(folder, runs)),
            "--at-once",
            str(runs),
        ]
        command += ["--model", f"scripted:{folder / 'steps.toml'}", "--approve", "all", "--sandbox", "off"]
        env = {"PYTHONPATH": str(ROOT), "AGENT_TUI_STATE_DIR": made, "XDG_CONFIG_HOME": made}
        with Terminal(command, env=env) as terminal:
            began = terminal.wait_for(f"{runs} running".encode(), 60.0)
            terminal.drain(2.0)
            times, at, step = [], 0, 1
            while len(ended(folder)) < runs and time.perf_counter() - began < 600:
                if not 0 <= at + step < min(runs, 30):
                    step = -step
                at += step
                start = len(terminal.seen)
                sent = terminal.send(b"\x1b[B" if step > 0 else b"\x1b[A")
                if not ended(folder):
                    times.append((terminal.wait_for(f"{name(at)}:".encode(), 5.0, start) - sent) * 1000)
                terminal.drain(0.05)
            took = time.perf_counter() - began
        results = ended(folder)
    times.sort()
    p99 = times[int(len(times) * 0.99)]
    print(
        f"{runs} runs at once: key to screen n {len(times)}  median {statistics.median(times):.1f}  p99 {p99:.1f}  "
        f"worst {times[-1]:.1f} ms   limit {LIMIT:.0f} (p99)"
    )
    lasted = sorted(float(str(result["duration_s"])) for result in results)
    outcomes = {str(result["outcome"]) for result in results}
    print(f"{len(results)} of {runs} ended ({', '.join(outcomes)}) in {took:.0f} s", end="; ")
    print(f"a run took {lasted[0]:.1f} to {lasted[-1]:.1f} s, median {statistics.median(lasted):.1f}")
    print(f"load after: {' '.join(f'{one:.2f}' for one in os.getloadavg())}")
    return 0 if p99 <= LIMIT and len(results) == runs and outcomes == {"answered"} else 1


if __name__ == "__main__":
    sys.exit(main())
