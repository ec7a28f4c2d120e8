"""What a console costs that waits for an answer, beside one whose run is done: the same program, one after another.

    python benchmarks/waiting_console.py [--seconds 20] [--rounds 2]

A card is open in one console (an approval), a question in another; the third has answered. Prints processor shares of
the program without its children, and the ratio to the console that is done. Exit code 1 beyond twice that.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.terminal import Terminal

ROOT = Path(__file__).resolve().parents[1]
LIMIT = 2.0
"""Of a waiting console's cost to that of one that is done. Both are tenths of a per cent."""

_HEAD = 'title = "Waiting"\ntask = "Go on."\n\n[[turns]]\n'

CONSOLES = {
    "done": (_HEAD + 'text = "All is well."\n', b"DONE"),
    "an approval": (_HEAD + 'calls = [{ tool = "bash", args = { command = "sleep 1" } }]\n', b"WAITING"),
    "a question": (
        _HEAD + 'calls = [{ tool = "ask_operator", args = { question = "Which one?" } }]\n',
        b"WAITING",
    ),
}
"""By name: what the model says, and the badge that follows."""


def share(folder: Path, script: str, badge: bytes, seconds: float) -> float:
    """Processor time of a console that shows `badge`, in per cent of a core."""
    scenario = folder / "scenario.toml"
    scenario.write_text(script, encoding="utf-8")
    command = [sys.executable, "-m", "tui_agent", "go on", "--model", f"scripted:{scenario}"]
    env = {"PYTHONPATH": str(ROOT), "AGENT_TUI_STATE_DIR": str(folder), "XDG_CONFIG_HOME": str(folder)}
    workspace = folder / "workspace"
    workspace.mkdir(exist_ok=True)
    with Terminal([*command, "--workspace", str(workspace)], (120, 40), env) as terminal:
        terminal.wait_for(badge, 60.0)
        terminal.drain(4.0)
        before = terminal.cpu()
        terminal.drain(seconds)
        return (terminal.cpu() - before) / seconds * 100


def main() -> int:
    """Measure all, in turn; exit code 1 where the limit is not kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    measured: dict[str, list[float]] = {name: [] for name in CONSOLES}
    with tempfile.TemporaryDirectory() as temporary:
        for _ in range(options.rounds):
            for name, (script, badge) in CONSOLES.items():
                measured[name].append(share(Path(temporary), script, badge, options.seconds))
    done = median(measured["done"])
    good = True
    for name, shares in measured.items():
        ratio = median(shares) / done if done else 0.0
        good &= ratio <= LIMIT
        print(f"{name:<12} {median(shares):.2f} % of a processor, {ratio:.1f} times done   limit {LIMIT}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
