"""What was found is marked where it stands, and gone through match by match."""

from __future__ import annotations

import pytest
from rich.style import Style
from textual.geometry import Offset
from textual.selection import Selection

from tests.console.live_harness import LiveSession, live
from tui_agent.console.panes.found import best, matches, pattern_of
from tui_agent.console.panes.strips import Palette
from tui_agent.core.events import IterationFinished, IterationStarted, ReplyFinished


@pytest.mark.parametrize(
    ("words", "rows", "found"),
    [
        (["price"], ["a Price", "no", "price"], [[(0, 2, 7)], [(2, 0, 5)]]),
        (["grey pebble"], ["the grey", "  pebble"], [[(0, 4, 8), (1, 2, 8)]]),
        (["grey pebble"], ["grey   pebble"], [[(0, 0, 13)]]),
        (["src/longname.py"], ["src/long", "name.py"], [[(0, 0, 8), (1, 0, 7)]]),
        (["a.c"], ["abc a.c"], [[(0, 4, 7)]]),
        (["one", "one two"], ["one two one"], [[(0, 0, 7)], [(0, 8, 11)]]),
        (["x"], ["no"], []),
    ],
)
def test_words_are_found_also_where_a_line_was_broken_within_them(
    words: list[str], rows: list[str], found: list[list[tuple[int, int, int]]]
) -> None:
    pattern = pattern_of(words)
    assert pattern is not None
    assert [list(map(tuple, match.parts)) for match in matches(((0, row) for row in rows), pattern)] == found


def test_margins_are_no_part_of_the_text() -> None:
    pattern = pattern_of(["abcd"])
    assert pattern is not None
    (match,) = matches([(4, "  │ ab"), (4, "  │ cd")], pattern)
    assert [tuple(part) for part in match.parts] == [(0, 4, 6), (1, 4, 6)]


def test_of_several_words_the_line_that_has_the_most_comes_first() -> None:
    pattern = pattern_of(["red", "blue"])
    assert pattern is not None
    assert best(matches([(0, "red red"), (0, "blue"), (0, "blue and red")], pattern)) == 3
    assert pattern_of(["", "  "]) is None


def segments(console: LiveSession) -> list[tuple[str, Style]]:
    """What is drawn on the screen, each text with its style."""
    strips = console.app.screen._compositor.render_strips()
    return [(segment.text, segment.style or Style()) for strip in strips for segment in strip]


def marked(console: LiveSession, style: str) -> list[str]:
    """What is marked in this style of the theme."""
    wanted = Palette.of(console.app).style(style)
    return [
        text
        for text, drawn in segments(console)
        if drawn.reverse and drawn.color == wanted.color and not text.endswith((" Esc ", " End "))
    ]


async def test_matches_are_marked_and_gone_through_one_by_one() -> None:
    async with live((60, 24)) as console:
        console.session.start("sort the pebbles")
        for number in range(1, 4):
            console.session.record(
                ReplyFinished(
                    text=f"A pebble and a Pebble.\n\n{'long ' * 9}grey pebble {number}." + "\n\nnothing" * 30,
                    model="m",
                ),
                IterationFinished(iteration=number),
                IterationStarted(iteration=number + 1),
            )
        await console.say("/find grey pebble 2")
        await console.until(lambda: "step 2 · the model" in console.shown())
        await console.press("enter")
        await console.until(lambda: marked(console, "accent reverse bold"))
        assert marked(console, "accent reverse bold") == ["grey", "pebble 2"], "also where it is wrapped"
        await console.press("escape")
        await console.say("/find pebble")
        await console.until(lambda: "step 3 · the model" in console.shown())
        await console.press("down", "enter")  # of step 2
        await console.until(lambda: "n next · N previous · Esc" in console.shown())
        await console.until(lambda: marked(console, "accent reverse bold") == ["pebble"])
        assert marked(console, "warn reverse")[:2] == ["Pebble", "pebble"]
        await console.press("n")
        await console.until(lambda: marked(console, "accent reverse bold") == ["Pebble"])
        await console.press("n", "n")
        await console.until(lambda: "pebble 3." in console.shown())
        assert marked(console, "accent reverse bold") == ["pebble"]
        await console.press("n", "n", "n")
        await console.until(lambda: "no further match" in console.shown())
        await console.press(*["N"] * 8)
        await console.until(lambda: "» sort the pebbles" in console.shown())
        assert marked(console, "accent reverse bold") == ["pebble"]
        interrupts = console.session.done.count(("interrupt",))
        await console.press("escape")
        await console.until(lambda: console.screen.focused is console.screen.prompt)
        await console.press("n")
        await console.until(lambda: not marked(console, "accent reverse bold"))
        assert console.prompt == "n", "again a letter like any other"
        assert console.session.done.count(("interrupt",)) == interrupts


async def test_what_the_mouse_selects_stands_on_another_ground() -> None:
    async with live((60, 24)) as console:
        console.session.start("sort the pebbles")
        await console.until(lambda: "sort the pebbles" in console.shown())
        pane = console.screen.dashboard.pane("conversation")
        console.screen.selections = {pane: Selection(Offset(3, 0), Offset(7, 0))}
        ground = console.screen.get_component_rich_style("screen--selection").bgcolor
        await console.until(
            lambda: [text for text, style in segments(console) if style.bgcolor == ground] == ["sort"]
        )
