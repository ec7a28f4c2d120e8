"""Remarks never stand on a card, the prompt, or the keys of a screen above."""

from __future__ import annotations

import pytest
from textual.geometry import Region
from textual.widgets._toast import Toast

from tests.console.live_harness import live
from tui_agent.console.screens.ask import AskScreen
from tui_agent.console.screens.field import FieldScreen, Judged
from tui_agent.console.screens.table import TableScreen

LONG = "Interrupted: a message goes at once, F5 goes on, F10 does one step, /stop ends the run. " * 3


@pytest.mark.parametrize("size", [(60, 20), (80, 24), (120, 40)])
async def test_a_remark_leaves_cards_prompt_and_screens_alone(size: tuple[int, int]) -> None:
    async with live(size) as console:

        def toasts() -> list[Region]:
            found = [
                console.app.screen.find_widget(toast)
                for toast in console.app.screen.query(Toast)
                if toast.parent.display
            ]
            return [place.visible_region for place in found if place.visible_region.area]

        async def says(text: str) -> None:
            console.app.notify(text, markup=False, timeout=60)
            await console.until(toasts)
            await console.pilot.pause()
            await console.pilot.pause()

        for text in ("Short.", LONG, LONG):
            await says(text)
        assert not any(region.overlaps(console.screen.prompt.region) for region in toasts())

        # A card that comes below remarks takes its rows from them.
        console.ask(preview="line\n" * 60)
        await console.card_appears()
        await console.until(lambda: not any(region.overlaps(console.card.region) for region in toasts()))
        assert toasts(), "the newest one is still to be read"

        async def take(_: object) -> str:
            return ""

        screens = [
            AskScreen("Sure?", "Why not. " * 60, ("y", "yes"), ("n", "no")),
            FieldScreen("A value", "About it. " * 40, "x", (), lambda _: Judged(""), take),
            TableScreen("[a]", "About it.", "a = 1\n", take),
        ]
        for screen in screens:
            console.app.push_screen(screen)
            await console.until(lambda screen=screen: console.app.screen is screen and screen.is_mounted)
            await says(LONG)
            box = next(child for child in screen.children if child.id is None and child.region.area)
            await console.until(
                lambda box=box: all(region.bottom <= box.region.y + 1 for region in toasts()) and toasts()
            )
            await console.pilot.resize_terminal(size[0] - 4, size[1])
            await console.until(
                lambda box=box: all(region.bottom <= box.region.y + 1 for region in toasts()) and toasts()
            )
            await console.pilot.resize_terminal(*size)
            console.app.pop_screen()
            await console.pilot.pause()


@pytest.mark.parametrize("resized", [False, True])
async def test_of_several_remarks_that_do_not_fit_the_newest_are_shown_whole(resized: bool) -> None:
    async with live((80, 24) if resized else (60, 20)) as console:
        for text in ("The first one. " * 7, "The second one. " * 7, "The third one. " * 2):
            console.app.notify(text.strip(), timeout=60)
        await console.until(lambda: len(console.screen.query(Toast)) == 3)
        await console.pilot.resize_terminal(60, 20)

        def whole() -> list[str]:
            """The remarks that are on the screen, and in how many of their rows."""
            toasts = [toast for toast in console.screen.query(Toast) if toast.parent.display]
            places = [console.screen.find_widget(toast) for toast in toasts]
            return [f"{place.visible_region.height} of {place.region.height}" for place in places]

        await console.until(lambda: whole() == ["7 of 7", "4 of 4"])
        assert "The third one." in console.shown()


async def test_a_remark_stands_once_however_many_screens_there_are() -> None:
    async with live((80, 24)) as console:

        def on_top_alone() -> bool:
            stack = console.app.screen_stack
            having = [
                screen
                for screen in stack
                if any(rack.display and rack.query(Toast) for rack in screen.query("ToastRack"))
            ]
            return having == stack[-1:]

        console.app.notify("Said once.", timeout=60)
        await console.until(on_top_alone)
        for title in ("A screen", "One above"):
            console.app.push_screen(AskScreen(title, "Why not.", ("y", "yes"), ("n", "no")))
            await console.until(lambda title=title: title in console.shown() and on_top_alone())
        console.app.pop_screen()
        await console.until(lambda: "A screen" in console.shown() and on_top_alone())


async def test_a_remark_that_is_repeated_stands_there_once_as_the_newest() -> None:
    async with live() as console:
        for text in ("One.", "Two.", "One.", "One."):
            console.app.notify(text, markup=False)
            await console.pilot.pause()
        await console.until(lambda: console.remarks() == "Two.\nOne.")
        await console.until(lambda: (console.shown().count("One."), console.shown().count("Two.")) == (1, 1))
