"""The console over a long session: the time from its start to the first picture, and a key while it is still read.

    python benchmarks/replay_open.py [--events 100000]

In a terminal of its own. Budget: the first picture < 1.5 s after the start of the process. Exits with 1 where missed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.long_session import write_long_session
from benchmarks.terminal import Terminal

BUDGET = 1.5


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=100_000)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        journal = Path(folder) / "sessions" / "bench" / "events.jsonl"
        write_long_session(journal, chosen.events)
        worst = max(
            _picture(journal.parent, place, chosen.events) for place in (0, 1, chosen.events * 9 // 10)
        )
    return 1 if worst > BUDGET else 0


def _picture(session: Path, place: int, events: int) -> float:
    """Seconds until the scrubber shows a place in the session, opened at event `place`."""
    command = [sys.executable, "-m", "tui_agent", "replay", str(session), "--at", str(place)]
    with Terminal([*command, "--state-dir", str(session.parents[1])], env={"PYTHONUTF8": "1"}) as terminal:
        picture = terminal.wait_for(f"/{events}".encode()) - terminal.started
        seen = len(terminal.seen)
        key = terminal.send(b"\x1b[C")
        echo = terminal.wait_for(b"vent ", start=seen) - key
        print(
            f"at event {place}: first picture {picture:.2f} s (budget {BUDGET} s), a key {echo * 1000:.0f} ms"
        )
        return picture


if __name__ == "__main__":
    sys.exit(main())
