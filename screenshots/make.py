"""Pictures of the console, made from the running program: SVG always, PNG where a headless Chromium is there.

    python screenshots/make.py [--out DIR] [--only NAME…] [--theme NAME]

Each picture is a demo at a moment (a condition on the state) in a terminal of a given size. The pictures of this folder
are in Fira Code (the package `fonts-firacode`): in another font frames have gaps.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tui_agent.console.looks.captions import Captions  # noqa: E402
from tui_agent.console.program import ConsoleApp  # noqa: E402
from tui_agent.console.screens.live import LiveScreen  # noqa: E402
from tui_agent.frontend.arguments import ConsoleArguments  # noqa: E402

if TYPE_CHECKING:
    from textual.pilot import Pilot

    from tui_agent.core.state import RunState

# Tracebacks in the pictures name the system's Python where there is one, and nobody's home.
os.environ["PATH"] = os.pathsep.join(["/usr/bin", "/bin", os.environ.get("PATH", "")])

PATIENCE = 90.0
"""Seconds that a moment may take to come."""

Moment = Callable[["RunState"], bool]
Act = Callable[["Pilot[None]"], Awaitable[None]]


def escalated(state: RunState) -> bool:
    """A card waits for an answer."""
    return state.escalation is not None


def approving(state: RunState) -> bool:
    """A card waits for an approval."""
    return bool(state.approvals)


def done(state: RunState) -> bool:
    """The run has its outcome."""
    return str(state.phase) == "done"


def at_work(state: RunState) -> bool:
    """In the middle of things."""
    return state.run.iteration >= 2 and str(state.phase) == "tools"


def backing_off(state: RunState) -> bool:
    """A retry waits."""
    return str(state.phase) == "backoff"


def never(state: RunState) -> bool:
    """Something else than the state decides (`stepped`)."""
    return False


async def nothing(pilot: Pilot[None]) -> None:
    """Take the picture as it is."""


def press(*keys: str) -> Act:
    """Press keys before the picture is taken."""

    async def act(pilot: Pilot[None]) -> None:
        await pilot.press(*keys)

    return act


@dataclass(frozen=True)
class Picture:
    """One picture: its file's name, the demo, the terminal's size, the moment, what is pressed before it."""

    name: str
    demo: str
    size: tuple[int, int]
    moment: Moment
    act: Act = nothing
    theme: str = ""
    options: dict[str, object] = field(default_factory=dict)
    answer: bool = False
    """Answer whatever is asked on the way."""
    caption: str = ""
    """Name of the caption that is shown then; the ones before it are read on the way."""


ADVICE = "parse_price is in shop/pricing.py"
ANSWERS = {"approvals": "2.0.0: an option is gone"}
"""By demo; else the advice."""

HOUR = (96, 28)
"""Size of the terminal in docs/FIRST_HOUR.md."""

PICTURES = (
    Picture("escalation", "recovery", (120, 40), escalated),
    Picture("escalation-80x24", "recovery", (80, 24), escalated),
    Picture("escalation-200x60", "recovery", (200, 60), escalated),
    Picture("approval", "approvals", (120, 40), approving, answer=True),
    Picture("recovered", "recovery", (120, 40), done, answer=True),
    Picture("breaker", "breaker", (120, 40), done, answer=True),
    Picture("backoff", "parallel", (120, 40), backing_off, answer=True),
    Picture("why", "recovery", (120, 40), escalated, press("f9")),
    Picture("panes-80x24", "recovery", (80, 24), done, press("f2"), answer=True),
    Picture("dashboard", "recovery", (120, 40), done, press("f2"), answer=True),
    Picture("step", "recovery", (120, 40), never, options={"step": True}),
    Picture("help", "recovery", (120, 40), at_work, press("f1")),
    Picture("light", "recovery", (120, 40), escalated, theme="agent-light"),
    Picture("hour-begun", "recovery", HOUR, never, caption="begun"),
    Picture("hour-failed", "recovery", HOUR, never, caption="failed"),
    Picture("hour-recovered", "recovery", HOUR, never, caption="recovered"),
    Picture("hour-asked", "recovery", HOUR, escalated, caption="question"),
    Picture("hour-done", "recovery", HOUR, done, caption="done", answer=True),
)


async def take(picture: Picture, out: Path, theme: str) -> Path:
    """Run the demo up to the moment; write the SVG."""
    with tempfile.TemporaryDirectory() as state_dir:
        options = {
            "state_dir": Path(state_dir),
            "theme": theme or picture.theme or "agent-dark",
            "captions": bool(picture.caption),
            **picture.options,
        }
        app = ConsoleApp(ConsoleArguments(overrides=options, demo=picture.demo))
        async with app.run_test(size=picture.size) as pilot:
            await until(app, pilot, picture)
            await settled(app, pilot)
            await picture.act(pilot)
            await pilot.pause(0.6)
            path = out / f"{picture.name}.svg"
            path.write_text(app.export_screenshot(title="agent-tui"), encoding="utf-8")
            await app.close_sessions()
    return path


async def first_session(app: ConsoleApp, pilot: Pilot[None]) -> LiveScreen:
    """The first session's screen, once it has taken the place of the first frame."""
    deadline = time.monotonic() + PATIENCE
    while not isinstance(screen := app.screen_stack[0], LiveScreen):
        await pilot.pause()
        if time.monotonic() > deadline:
            raise TimeoutError(f"no session was opened in {PATIENCE:.0f} s")
    return screen


async def until(app: ConsoleApp, pilot: Pilot[None], picture: Picture) -> None:
    """Wait for the moment; answer what is asked on the way where the picture wants that."""
    screen = await first_session(app, pilot)
    waited = 0.0
    while (state := screen.state) is None or not picture.moment(state):
        await pilot.pause(0.05)
        waited += 0.05
        if waited > PATIENCE:
            raise TimeoutError(f"{picture.name}: its moment did not come in {PATIENCE:.0f} s")
        if (
            picture.answer
            and screen.live.operator.questions
            and not (screen.state and picture.moment(screen.state))
        ):
            answer(screen, ANSWERS.get(picture.demo, ADVICE))
        if picture.caption and read(screen, picture.caption):
            break
        if picture.options.get("step") and stepped(screen):
            break


async def settled(app: ConsoleApp, pilot: Pilot[None]) -> None:
    """Wait until the card of an open question has the keys."""
    screen = await first_session(app, pilot)
    for _ in range(200):
        card = None if screen.card_host is None else screen.card_host.card
        if not screen.live.operator.questions or (card is not None and card.has_focus_within):
            return
        await pilot.pause(0.05)


def read(screen: LiveScreen, wanted: str) -> bool:
    """Whether this caption is shown; another one is read."""
    for captions in screen.query(Captions):
        if captions.shown is not None and captions.shown.moment == wanted:
            return True
        captions.go_on()
    return False


def stepped(screen: LiveScreen) -> bool:
    """Let requests go until one waits that carries a note."""
    gate = screen.live.operator.waiting_gate
    if gate is not None and gate.note is None:
        screen.live.operator.open_gate()
    return gate is not None and gate.note is not None


def answer(screen: LiveScreen, words: str) -> None:
    """Say yes, or these words."""
    from tui_agent.frontend.operator import ApprovalQuestion, EscalationQuestion
    from tui_agent.runtime.operator import ApprovalReply, EscalationReply

    for question in list(screen.live.operator.questions):
        if isinstance(question, ApprovalQuestion):
            question.settle(ApprovalReply("once"))
        elif isinstance(question, EscalationQuestion):
            question.settle(EscalationReply("answer", words))


def size_of(svg: str) -> tuple[int, int]:
    """Width and height of an SVG in pixels."""
    box = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg)
    if box is None:
        raise ValueError("an SVG without a viewBox")
    return round(float(box[1])), round(float(box[2]))


def to_png(svg: Path) -> Path | None:
    """The SVG as a browser shows it, at its own size; None without a browser."""
    png = svg.with_suffix(".png")
    return png if browse(svg, png, *size_of(svg.read_text(encoding="utf-8"))) else None


def browse(page: Path, png: Path, width: int, height: int) -> bool:
    """Have a headless Chromium draw the page; False where there is none."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        return False
    with tempfile.TemporaryDirectory() as profile:
        subprocess.run(
            [
                chromium,
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--hide-scrollbars",
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                f"--user-data-dir={profile}",
                f"--screenshot={png}",
                f"--window-size={width},{height}",
                str(page),
            ],
            check=True,
            capture_output=True,
            timeout=120,
        )
    return True


def main() -> None:
    """Make the pictures that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "screenshots")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--theme", default="")
    parser.add_argument("--demo", default="", help="another demo for all pictures")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for picture in PICTURES:
        if arguments.only and picture.name not in arguments.only:
            continue
        if arguments.demo:
            picture = dataclasses.replace(picture, demo=arguments.demo)
        svg = asyncio.run(take(picture, arguments.out, arguments.theme))
        print(to_png(svg) or svg)


if __name__ == "__main__":
    main()
