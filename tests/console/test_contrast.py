"""Every text on the screen stands off its real ground by 4.5:1 (WCAG AA), in every theme."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial

import pytest
from rich.color import Color as RichColor
from textual.color import Color
from textual.widget import Widget

from tests.console.live_harness import LiveSession, live
from tests.console.panes.stories import Story, answered, backing_off, streaming, tripped, troubled
from tests.console.test_themes import OURS, THEMES
from tests.console.waiting import wear
from tui_agent.config.settings import Settings
from tui_agent.console.looks.welcome import welcome
from tui_agent.console.panes import RingPane
from tui_agent.console.screens.diff import DiffScreen
from tui_agent.console.screens.fork import ForkScreen
from tui_agent.console.screens.help import HelpScreen
from tui_agent.console.screens.pick import PickScreen
from tui_agent.core.events import Mode, ModeChanged
from tui_agent.frontend.lines.diff import file_diff
from tui_agent.frontend.lines.passages import Row
from tui_agent.session.fork_point import ForkPoint
from tui_agent.store.summary import SessionRow

LEAST = 4.5
FULL_COLOUR = [name for name in OURS if not THEMES[name].ansi]
TEXTUALS = ["atom-one-light", "solarized-dark", "textual-dark"]
"""Themes of Textual's: yellow on grey, grounds that lie far apart, and one that gives hardly a colour."""


def channel(value: int) -> float:
    share = value / 255
    return share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4


def luminance(colour: RichColor) -> float:
    red, green, blue = colour.get_truecolor()
    return 0.2126 * channel(red) + 0.7152 * channel(green) + 0.0722 * channel(blue)


def ratio(one: RichColor, other: RichColor) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def weak(console: LiveSession) -> Iterator[str]:
    """What is on the screen and too faint: the text, its colours, the ratio. What lies below a modal screen is not
    meant to be read."""
    ground = Color.parse(console.app.current_theme.background or "black").rich_color
    strips = console.app.screen._compositor.render_strips()
    if console.app.screen.is_modal:
        region = next(
            iter(console.app.screen.query("ReportPane, FramedScreen > Vertical, CommandPalette > Vertical"))
        ).region
        strips = [strip.crop(region.x, region.right) for strip in strips[region.y : region.bottom]]
    for strip in strips:
        for text, style, _ in strip:
            if style is None or not any(character.isalnum() for character in text):
                continue
            front, back = style.color, style.bgcolor or ground
            assert front is not None, text
            if style.reverse:
                front, back = back, front
            if style.dim or ratio(front, back) < LEAST:
                yield f"{text.strip()!r} {front.name} on {back.name}: {ratio(front, back):.1f}"


async def faint(
    console: LiveSession,
    looks: str | Mapping[str, Callable[[], Awaitable[None]]],
    flashing: Widget | None = None,
    themes: Sequence[str] = FULL_COLOUR,
) -> list[str]:
    """What is too faint now, or at each of the looks, in any theme; also while a widget flashes."""
    await console.until(lambda: set(themes) <= set(console.app.theme_names))
    found = set()
    for theme in themes:
        await wear(console.app, console.pilot, theme)
        for what, show in [(looks, None)] if isinstance(looks, str) else looks.items():
            if show is not None:
                await show()
            found |= {f"{theme}, {what}: {fault}" for fault in weak(console)}
            if flashing is not None:
                flashing.add_class("-flash")
                await console.pilot.pause()
                found |= {f"{theme}, {what} that flashes: {fault}" for fault in weak(console)}
                flashing.remove_class("-flash")
    return sorted(found)


async def test_the_text_of_a_run_is_legible_on_its_real_ground() -> None:
    async with live((160, 48)) as console:

        async def show(story: Callable[[], Story]) -> None:
            console.session.state = story().state
            console.screen.draw()
            await console.pilot.pause()

        looks = {
            story.__name__: partial(show, story)
            for story in (answered, backing_off, tripped, troubled, streaming)
        }
        assert await faint(console, looks, console.screen.query_one(RingPane)) == []


async def test_a_list_to_pick_from_and_fields_are_legible_on_their_real_ground() -> None:
    point = ForkPoint(
        9, 9, 0.0, "note prepared", 1, "combined", "openai/gpt-5", open=True, note="Look first."
    )
    rows = [Row("openai/gpt-5", "OPENAI_API_KEY is set", 1), Row("ollama/qwen3", "on this machine", 2)]
    async with live() as console:
        shown = []
        for screen in (PickScreen("Models", rows), ForkScreen(point)):
            await console.app.push_screen(screen)
            shown += await faint(console, type(screen).__name__)
            await console.press("escape")
        await console.press("ctrl+p")
        await console.until(lambda: "Keys, commands" in console.shown())
        shown += await faint(console, "palette")
        await console.type("zzz")
        await console.until(lambda: "No matches" in console.shown())
        assert [*shown, *await faint(console, "empty palette")] == []


@pytest.mark.parametrize("kind", ["ask", "escalate", "gate"])
async def test_the_text_of_a_card_is_legible_on_its_real_ground(kind: str) -> None:
    async with live() as console:
        console.session.record(ModeChanged(mode=Mode.STEP))
        getattr(console, kind)()
        await console.card_appears()
        waiting = await faint(console, "card that waits")
        await console.press("f8")
        themes = FULL_COLOUR if kind == "gate" else [*FULL_COLOUR, *TEXTUALS]
        assert [*waiting, *await faint(console, "card", themes=themes)] == []


async def test_the_text_around_is_legible_on_its_real_ground() -> None:
    async with live() as console:
        assert console.screen.dashboard is not None
        earlier = [SessionRow("s", title="Make the tests green.", outcome="answered", failures=3)]
        console.screen.dashboard.greet(welcome(Settings(model="openai/gpt-5-mini"), earlier))
        await console.until(lambda: "Earlier here" in console.shown())
        assert await faint(console, "first screen") == []
        console.screen.say("A remark.")
        console.screen.say("A fault.", "error")
        console.session.start()
        for text in ("first", "second"):
            await console.say(text)
        await console.press("up")
        await console.until(lambda: "send all now" in console.shown())
        shown = await faint(console, "queue")
        await console.press("escape")
        console.screen.prompt.use_vim(True)
        console.screen.prompt.put("one line\nanother one")
        await console.press("escape", "V", "k")
        await console.until(lambda: "VISUAL LINE" in console.shown())
        shown += await faint(console, "selection")
        await console.press("d")
        await console.type("/mo")
        shown += await faint(console, "completion")
        diff = "@@ -1,4 +1,4 @@ class A:\n-def f(x): # a comment\n+async def f(x): # comment\n"
        diff += '-    return "text", 12\n+    raise ValueError(b"text", 12)\n @cached\n # a comment\n'
        await console.app.push_screen(
            DiffScreen([file_diff(name, diff) for name in ("a.py", "b.py")], "Changes")
        )
        shown += await faint(console, "changes")
        await console.press("v")
        shown += await faint(console, "changes side by side")
        await console.press("escape")
        await console.app.push_screen(HelpScreen())
        assert [*shown, *await faint(console, "help")] == []
