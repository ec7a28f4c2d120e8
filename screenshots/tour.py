"""The animated tour of the README, made from the running program: `python screenshots/tour.py [--out FILE]`.

The `recovery` demo goes from its first call to its answer. A frame is taken whenever something changed; waits are
shortened, and all goes faster than it went. Needs a headless Chromium and Pillow.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "screenshots")]

from make import ADVICE, PATIENCE, browse, escalated, first_session, size_of  # noqa: E402
from textual.pilot import Pilot  # noqa: E402

from tui_agent.console.program import ConsoleApp  # noqa: E402
from tui_agent.frontend.arguments import ConsoleArguments  # noqa: E402

if TYPE_CHECKING:
    from PIL import Image

SIZE = (104, 30)
WIDTH = 960
"""Pixels."""
SPEED = 2.5
"""How much faster than the run the tour goes."""
SHORTEST, LONGEST = 0.06, 0.6
"""Seconds that a frame stays, unless it is held."""
EVERY = 0.25
"""Seconds between two looks at the program."""
COLOURS = 128
A_SHEET = 12
"""Frames that the browser draws at once; a page may not be of any height."""


class Film:
    """Frames with the seconds that each stays."""

    def __init__(self, app: ConsoleApp, pilot: Pilot[None]) -> None:
        self._app, self._pilot = app, pilot
        self.frames: list[str] = []
        self.seconds: list[float] = []
        self._since = time.monotonic()

    def take(self) -> None:
        """One more frame, if anything changed."""
        now = time.monotonic()
        frame = self._app.export_screenshot(title="agent-tui")
        if self.frames and _content(frame) == _content(self.frames[-1]):
            return
        if self.frames:
            self.seconds.append(min(LONGEST, max(SHORTEST, (now - self._since) / SPEED)))
        self.frames.append(frame)
        self._since = now

    def hold(self, seconds: float) -> None:
        """The newest frame stays."""
        self.seconds.append(seconds)
        self.frames.append(self.frames[-1])
        self._since = time.monotonic()

    async def watch(self, seconds: float) -> None:
        """Take frames while the program goes on."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            await self._pilot.pause(EVERY)
            self.take()

    async def press(self, *keys: str) -> None:
        for key in keys:
            await self._pilot.press(key)
            await self._pilot.pause(0.02)
            self.take()


def _content(frame: str) -> str:
    """The drawing without the names that differ in each export."""
    return frame[frame.index("<text") :].translate(str.maketrans("", "", "0123456789"))


async def film() -> Film:
    """The demo: it fails, tries, asks; the operator looks why and answers; it recovers."""
    with tempfile.TemporaryDirectory() as state_dir:
        options = {"state_dir": Path(state_dir), "theme": "agent-dark", "captions": False}
        app = ConsoleApp(ConsoleArguments(overrides=options, demo="recovery"))
        async with app.run_test(size=SIZE) as pilot:
            screen = await first_session(app, pilot)
            made = Film(app, pilot)
            began = time.monotonic()
            while screen.state is None or not escalated(screen.state) or screen.card_host.card is None:
                await made.watch(EVERY)
                if time.monotonic() - began > PATIENCE:
                    raise TimeoutError("the question did not come")
            await made.watch(1.0)
            made.hold(2.5)
            await made.press("f9")
            await made.watch(0.6)
            made.hold(3.0)
            await made.press("escape")
            if not screen.card_host.card.has_focus_within:
                await made.press("f8")
            for letter in ADVICE:
                await made.press(
                    {" ": "space", "_": "underscore", "/": "slash", ".": "full_stop"}.get(letter, letter)
                )
            made.hold(0.8)
            await made.press("enter")
            while str(screen.state.phase) != "done":
                await made.watch(EVERY)
                if time.monotonic() - began > 2 * PATIENCE:
                    raise TimeoutError("the run did not end")
            await made.watch(2.0)
            made.hold(4.0)
            made.seconds.append(0.5)
            await app.close_sessions()
            return made


def to_gif(made: Film, out: Path) -> None:
    """The frames as the browser draws them, one palette for all."""
    from PIL import Image

    pictures: list[Image.Image] = []
    with tempfile.TemporaryDirectory() as folder:
        for begin in range(0, len(made.frames), A_SHEET):
            sheet = made.frames[begin : begin + A_SHEET]
            pictures += _drawn(sheet, Path(folder))
    # By how far colours lie apart, not by how often they occur: the violet of a note is rare.
    palette = _all_colours(pictures).quantize(COLOURS, Image.Quantize.MAXCOVERAGE)
    first, *rest = (picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in pictures)
    first.save(
        out,
        save_all=True,
        append_images=rest,
        duration=[round(1000 * seconds) for seconds in made.seconds],
        loop=0,
        optimize=True,
    )


def _all_colours(pictures: list[Image.Image]) -> Image.Image:
    """A picture that holds the colours of frames from the whole tour."""
    from PIL import Image

    chosen = pictures[:: max(1, len(pictures) // 10)]
    width, height = pictures[0].size
    whole = Image.new("RGB", (width, height * len(chosen)))
    for number, picture in enumerate(chosen):
        whole.paste(picture, (0, height * number))
    return whole


def _drawn(frames: list[str], folder: Path) -> list[Image.Image]:
    """The frames below each other on one page, and the page cut up again."""
    from PIL import Image

    width, height = size_of(frames[0])
    scaled = round(height * WIDTH / width)
    tags = []
    for number, frame in enumerate(frames):
        (folder / f"{number}.svg").write_text(frame, encoding="utf-8")
        tags.append(f'<img src="{number}.svg" width="{WIDTH}" height="{scaled}" style="display:block">')
    page = folder / "page.html"
    page.write_text(f'<body style="margin:0;background:#000">{"".join(tags)}</body>', encoding="utf-8")
    browse(page, folder / "page.png", WIDTH, scaled * len(frames))
    with Image.open(folder / "page.png") as sheet:
        return [
            sheet.convert("RGB").crop((0, scaled * number, WIDTH, scaled * (number + 1)))
            for number in range(len(frames))
        ]


def main() -> None:
    """Make the tour."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "screenshots" / "tour.gif")
    out = parser.parse_args().out
    made = asyncio.run(film())
    to_gif(made, out)
    print(f"{out}: {len(made.frames)} frames, {sum(made.seconds):.0f} s, {out.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
