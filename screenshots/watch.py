"""The picture of `agent-tui watch` beside a real agent: Codex at the left, its model a script on this machine.

    PATH=…/with/codex:$PATH python screenshots/watch.py [--out DIR]

Both run in tmux; the picture is taken when our policy would ask. The agent is really there: nothing is drawn for it.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from screenshots.make import to_png  # noqa: E402
from tests.agents.test_real_agents import Model, home_of  # noqa: E402
from tests.openai_server import Answer, Recorded, Step  # noqa: E402

AGENT = (
    "codex exec --dangerously-bypass-approvals-and-sandbox --dangerously-bypass-hook-trust 'run nope.py' 2>&1"
)
LEFT, RIGHT, HEIGHT = 62, 100, 40
PATIENCE = 90.0
"""Seconds until the card has come."""
TMUX = ("tmux", "-L", f"agent-tui-picture-{os.getpid()}")


class Slow(Model):
    """Says nothing after the third failure, so that the question stands."""

    def respond(self, request: Recorded) -> Answer:
        answer = super().respond(request)
        return replace(answer, steps=(Step.HANG,)) if len(self.requests) > 3 else answer


def tmux(*arguments: str) -> str:
    """What tmux says."""
    return subprocess.run([*TMUX, *arguments], check=True, capture_output=True, text=True).stdout


async def both() -> tuple[list[str], list[str]]:
    """The rows of the agent and of the watching console, with their colours."""
    async with Slow() as model, home_of("codex", "codex", model) as where:
        env = [f"{name}={value}" for name, value in where["env"].items()]
        run = ["env", "-i", *env, "TERM=tmux-256color", "COLORTERM=truecolor", "sh", "-c"]
        watch = f"{shlex.quote(sys.executable)} -m tui_agent watch codex"
        for name, width, command in (("agent", LEFT, AGENT), ("watch", RIGHT, f"PYTHONPATH={ROOT} {watch}")):
            size = ("-x", str(width), "-y", str(HEIGHT), "-c", str(where["cwd"]))
            tmux("new-session", "-d", "-s", name, *size, shlex.join([*run, f"{command}; sleep 600"]))
            while name == "agent" and not model.requests:
                await asyncio.sleep(0.2)
        try:
            async with asyncio.timeout(PATIENCE):
                while "would ask" not in tmux("capture-pane", "-p", "-t", "watch"):
                    await asyncio.sleep(0.5)
            await asyncio.sleep(2.0)
            return tuple(
                tmux("capture-pane", "-e", "-p", "-t", name).split("\n") for name in ("agent", "watch")
            )
        finally:
            tmux("kill-server")


def picture(left: list[str], right: list[str]) -> str:
    """Both beside each other as an SVG."""
    console = Console(record=True, width=LEFT + RIGHT + 3, file=open(os.devnull, "w"), force_terminal=True)  # noqa: SIM115, PTH123
    for place in range(HEIGHT):
        row = Text.from_ansi(left[place] if place < len(left) else "", end="")
        row.truncate(LEFT, pad=True)
        beside = Text.from_ansi(right[place] if place < len(right) else "", end="")
        console.print(Text.assemble(row, (" │ ", "bright_black"), beside), soft_wrap=True)
    return console.export_svg(title="codex exec │ agent-tui watch codex")


def main() -> None:
    """Make the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "screenshots")
    svg = parser.parse_args().out / "watch.svg"
    svg.write_text(picture(*asyncio.run(both())), encoding="utf-8")
    print(to_png(svg) or svg)
    if svg.with_suffix(".png").exists():
        svg.unlink()


if __name__ == "__main__":
    main()
