"""First paint of `agent-tui` against a bare Textual app (must be ≤ 1.25 times), each in a terminal of its own.

    python benchmarks/first_paint.py [--runs 15]

The time from the start of the process to the first frame on the wire; medians of alternating runs.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

from terminal import Terminal

ROOT = Path(__file__).resolve().parents[1]
LIMIT = 1.25

BARE = """
from textual.app import App
from textual.widgets import Static

class Bare(App):
    def compose(self):
        yield Static("first paint", markup=False)

Bare().run()
"""


def paint(command: list[str], marker: bytes, env: dict[str, str]) -> float:
    """Milliseconds from the start to the marker on the screen."""
    with Terminal(command, env=env) as terminal:
        return (terminal.wait_for(marker) - terminal.started) * 1000


def main() -> int:
    """Compare; exit code 1 where the limit is not kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=15)
    runs = parser.parse_args().runs
    bare: list[float] = []
    ours: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        env = {
            "PYTHONPATH": str(ROOT),
            "AGENT_TUI_STATE_DIR": folder,
            "XDG_CONFIG_HOME": folder,
            "AGENT_TUI_MODEL": "openai/none",
        }
        script = Path(folder) / "bare.py"
        script.write_text(BARE, encoding="utf-8")
        for number in range(runs + 1):
            pair = (
                paint([sys.executable, str(script)], b"first paint", env),
                paint([sys.executable, "-m", "tui_agent"], b"Conversation", env),
            )
            if number:  # the first fills the caches
                bare.append(pair[0])
                ours.append(pair[1])
    ratio = statistics.median(ours) / statistics.median(bare)
    print(f"bare Textual app  {statistics.median(bare):6.0f} ms  (fastest {min(bare):.0f})")
    print(f"agent-tui         {statistics.median(ours):6.0f} ms  (fastest {min(ours):.0f})")
    print(f"ratio             {ratio:6.2f}     (limit {LIMIT}; of the fastest {min(ours) / min(bare):.2f})")
    return 0 if ratio <= LIMIT else 1


if __name__ == "__main__":
    raise SystemExit(main())
