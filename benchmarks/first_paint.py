"""First paint of `agent-tui` against a bare Textual app (must be ≤ 1.05 times), each in a terminal of its own.

    python benchmarks/first_paint.py [--runs 15]

From the start of the process to the first frame, in alternating runs: the time on the clock, and that of a processor,
which other programs on the machine disturb less.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from terminal import Terminal

ROOT = Path(__file__).resolve().parents[1]
LIMIT = 1.05

BARE = """
from textual.app import App
from textual.widgets import Static

class Bare(App):
    def compose(self):
        yield Static("first paint", markup=False)

Bare().run()
"""

DRIVER = """
import os, time
from pathlib import Path
from textual.drivers.linux_driver import LinuxDriver

class Painting(LinuxDriver):
    painted = False

    def write(self, data):
        if os.environ["MARKER"] in data and not self.painted:
            self.painted = True
            Path(os.environ["PAINTED"]).write_text(str(time.process_time()))
        super().write(data)
"""
"""A driver that notes the processor's time of the first frame that shows the marker."""


class Spent(NamedTuple):
    """Milliseconds to the first paint: on the clock, and of a processor."""

    wall: float
    cpu: float


def paint(command: list[str], marker: str, folder: Path, env: dict[str, str]) -> Spent:
    """From the start to the marker on the screen."""
    painted = folder / "painted"
    env = {**env, "TEXTUAL_DRIVER": "painting:Painting", "MARKER": marker, "PAINTED": str(painted)}
    with Terminal(command, env=env) as terminal:
        wall = terminal.wait_for(marker.encode()) - terminal.started
        return Spent(wall * 1000, float(painted.read_text(encoding="ascii")) * 1000)


def main() -> int:
    """Compare; exit code 1 where the limit is not kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=15)
    count = parser.parse_args().runs
    bare: list[Spent] = []
    ours: list[Spent] = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        env = {
            "PYTHONPATH": f"{ROOT}:{folder}",
            "AGENT_TUI_STATE_DIR": temporary,
            "XDG_CONFIG_HOME": temporary,
            "AGENT_TUI_MODEL": "openai/none",
        }
        (folder / "painting.py").write_text(DRIVER, encoding="utf-8")
        script = folder / "bare.py"
        script.write_text(BARE, encoding="utf-8")
        for number in range(count + 1):
            pair = (
                paint([sys.executable, str(script)], "first paint", folder, env),
                paint([sys.executable, "-m", "tui_agent"], "Conversation", folder, env),
            )
            if number:  # the first fills the caches
                bare.append(pair[0])
                ours.append(pair[1])
    by_clock = compared(
        "on the clock", *(statistics.median(spent.wall for spent in runs) for runs in (bare, ours))
    )
    compared("the fastest of them", *(min(spent.wall for spent in runs) for runs in (bare, ours)))
    by_processor = compared(
        "of a processor", *(statistics.median(spent.cpu for spent in runs) for runs in (bare, ours))
    )
    print(f"limit {LIMIT}")
    return 0 if max(by_clock, by_processor) <= LIMIT else 1


def compared(name: str, bare: float, ours: float) -> float:
    """Print a line of the result; ours over the bare app's."""
    print(f"{name:<20} bare Textual app {bare:5.0f} ms, agent-tui {ours:5.0f} ms: ratio {ours / bare:.2f}")
    return ours / bare


if __name__ == "__main__":
    raise SystemExit(main())
