"""The animated pictures of `watch` and of the night shift: `python screenshots/films.py [watch] [night] [--out DIR]`.

A stand-in for Claude Code writes sessions as it does, so that neither a model nor a key is needed; what looks on,
supervises and reports is the real program. Needs tmux for the night, a headless Chromium and Pillow, as `tour.py`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "screenshots")]

from tour import Film, to_gif  # noqa: E402

from tests.agents.conftest import AGENT  # noqa: E402
from tui_agent.console.program import ConsoleApp  # noqa: E402
from tui_agent.console.screens.watch import WatchScreen  # noqa: E402
from tui_agent.frontend.arguments import ConsoleArguments  # noqa: E402

WATCHED = (110, 30)
NIGHT = (124, 46)
PATIENCE = 90.0
"""Seconds until what is waited for has come."""
TMUX = ("tmux", "-L", f"agent-tui-film-{os.getpid()}")
FAILS = [("wait", 2.0), ("fail", 1), ("wait", 3.0), ("fail", 1), ("wait", 3.0), ("fail", 1), ("wait", 60.0)]
PLAYS: dict[str, list[Any]] = {
    "001-parser": [
        [("wait", 2.0), ("fail", 1), ("answer", "The parser is ported.")],
        [("wait", 2.0), ("write", ("state.txt", "1")), ("answer", "Now its check passes.")],
    ],
    "002-release": [[("wait", 2.0), ("fail", 6), ("wait", 30.0)]],
}
"""By the folder of a task: each start of its agent, as steps."""
TASKS = "\n".join(
    [
        "workspace = 'work'",
        *(
            f"[[tasks]]\nname = '{name}'\ncommand = 'claude -p {name}'\ncheck = 'grep -q 1 state.txt'\n"
            for name in ("parser", "release")
        ),
    ]
)


@contextmanager
def home(play: Any) -> Iterator[tuple[Path, dict[str, str]]]:
    """A folder with the stand-in and what it plays, and the environment in which it runs."""
    with tempfile.TemporaryDirectory(prefix="film") as name:
        folder = Path(name)
        for place in ("bin", "work", ".claude"):
            (folder / place).mkdir()
        agent = folder / "bin" / "claude"
        agent.write_text(AGENT.format(python=sys.executable), encoding="utf-8")
        agent.chmod(0o700)
        ours = folder / "bin" / "agent-tui"
        ours.write_text(f'#!/bin/sh\nexec {sys.executable} -m tui_agent "$@"\n', encoding="utf-8")
        ours.chmod(0o700)
        (folder / "play.json").write_text(json.dumps(play), encoding="utf-8")
        yield (
            folder,
            {
                **os.environ,
                "HOME": name,
                "PYTHONPATH": str(ROOT),
                "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
                "STAND_IN": name,
                "CLAUDE_CONFIG_DIR": f"{name}/.claude",
                "AGENT_TUI_STATE_DIR": f"{name}/state",
                "AGENT_TUI_RECOVERY__BACKOFF_BASE": "0.5",
                "PS1": "$ ",
            },
        )


async def watch() -> Film:
    """An agent fails three times in the same way, and the console beside it says what our policy would do."""
    with home([FAILS]) as (folder, environment):
        agent = await asyncio.create_subprocess_exec(
            *("claude", "-p", "fix it"),
            cwd=folder / "work",
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
        )
        session = folder / ".claude" / "projects" / "proj" / "s1.jsonl"
        try:
            async with asyncio.timeout(PATIENCE):
                while not session.exists():
                    await asyncio.sleep(0.05)
            options = {"state_dir": folder / "state", "theme": "agent-dark", "captions": False}
            app = ConsoleApp(ConsoleArguments(overrides=options, watch=(str(session),)))
            async with app.run_test(size=WATCHED) as pilot:
                made = Film(app, pilot)
                began = time.monotonic()
                while not (isinstance(board := next(iter(app.tabs), None), WatchScreen) and board.questions):
                    await made.watch(0.5)
                    if time.monotonic() - began > PATIENCE:
                        raise TimeoutError("the question did not come")
                await made.watch(2.0)
                made.hold(3.0)
                await made.press("f9")
                await made.watch(0.6)
                made.hold(3.0)
                made.seconds.append(0.5)
                await app.close_sessions()
                return made
        finally:
            agent.kill()
            await agent.wait()


class Rows:
    """Frames of a terminal in tmux with the seconds that each stays."""

    def __init__(self) -> None:
        self.frames: list[str] = []
        self.seconds: list[float] = []
        self._last = ""

    def take(self, stays: float = 0.4) -> str:
        """Look at the terminal; one more frame, if anything changed."""
        text = tmux("capture-pane", "-e", "-p", "-t", "night")
        if text != self._last:
            console = Console(record=True, width=NIGHT[0], file=open(os.devnull, "w"), force_terminal=True)  # noqa: SIM115, PTH123
            rows = text.split("\n")[: NIGHT[1]]
            for row in [*rows, *[""] * (NIGHT[1] - len(rows))]:
                console.print(Text.from_ansi(row), soft_wrap=True)
            self.frames.append(console.export_svg(title="agent-tui supervise, agent-tui night"))
            self.seconds.append(stays)
            self._last = text
        return text


def tmux(*arguments: str) -> str:
    """What tmux says."""
    return subprocess.run([*TMUX, *arguments], check=True, capture_output=True, text=True).stdout


def night() -> Rows:
    """Two tasks run by themselves: one is sent back by its check, one is stuck; in the morning both are reported."""
    with home(PLAYS) as (folder, environment):
        (folder / "nightly.toml").write_text(TASKS, encoding="utf-8")
        names = ("-c", "user.name=n", "-c", "user.email=e@x")
        for words in (("init", "-q"), ("commit", "-q", "--allow-empty", "-m", "begin")):
            subprocess.run(["git", *names, "-C", folder / "work", *words], check=True, capture_output=True)
        kept = ("PATH", "HOME", "PYTHONPATH", "STAND_IN", "CLAUDE_CONFIG_DIR", "PS1")
        given = [
            f"{name}={value}" for name, value in environment.items() if name in kept or "AGENT_TUI" in name
        ]
        size = ("-x", str(NIGHT[0]), "-y", str(NIGHT[1]), "-c", str(folder))
        tmux("new-session", "-d", "-s", "night", *size, "env", *given, "sh")
        made = Rows()
        try:
            for line, stays in (
                ("agent-tui supervise --tasks nightly.toml --until 07:00", 2.0),
                ("agent-tui night", 6.0),
            ):
                for letter in line:
                    tmux("send-keys", "-t", "night", "-l", letter)
                    made.take(0.04)
                tmux("send-keys", "-t", "night", "Enter")
                began = time.monotonic()
                while not made.take().rstrip().endswith(("$", "q leaves")):
                    time.sleep(0.3)
                    if time.monotonic() - began > PATIENCE:
                        raise TimeoutError(line)
                made.seconds[-1] = stays
        finally:
            tmux("kill-server")
    return made


def main() -> None:
    """Make the pictures that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=[], metavar="watch|night")
    parser.add_argument("--out", type=Path, default=ROOT / "screenshots")
    arguments = parser.parse_args()
    for name in arguments.names or ["watch", "night"]:
        made = asyncio.run(watch()) if name == "watch" else night()
        out = arguments.out / f"{name}.gif"
        to_gif(made, out)
        print(
            f"{out}: {len(made.frames)} frames, {sum(made.seconds):.0f} s, {out.stat().st_size / 1e6:.1f} MB"
        )


if __name__ == "__main__":
    main()
