"""Terminals that can do less: no glyphs, no colours, sixteen colours; and an operator who wants nothing to move."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rich.cells import get_character_cell_size
from rich.color import Color as RichColor
from rich.segment import Segment
from rich.style import Style
from textual.color import Color

from tests.console.live_harness import live
from tests.console.panes.stories import Story
from tests.console.terminal import ROOT, Terminal
from tests.console.waiting import wear
from tests.store.session_events import write_session
from tui_agent.console.looks.option_row import Option
from tui_agent.console.program import first_theme
from tui_agent.console.screens.field import FieldScreen, Judged, Selection, Values
from tui_agent.console.screens.pick import PickScreen
from tui_agent.console.terminal.uncoloured import Uncoloured
from tui_agent.frontend.arguments import ConsoleArguments
from tui_agent.frontend.ascii_glyphs import AsciiGlyphs, ascii_glyphs
from tui_agent.frontend.lines.passages import Row

COLOUR = re.compile(rb"\x1b\[(?:[0-9;]*;)?(?:3[0-8]|4[0-8]|9[0-7]|10[0-7])(?:;[0-9;]*)?m")


def drawn_literals() -> Iterator[str]:
    for path in sorted((ROOT / "tui_agent" / "console").rglob("*.py")):
        if path.name not in {"ascii_glyphs.py", "terminal_input.py"}:
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    yield node.value


def test_every_sign_of_the_console_has_one_as_wide_in_ascii() -> None:
    table = AsciiGlyphs(letters=True)
    signs = {char for text in drawn_literals() for char in text if not char.isascii()}
    frames = {chr(code) for code in range(0x2500, 0x25A0)}  # what borders, bars and scrollbars are made of
    wrong = {
        sign: table[ord(sign)]
        for sign in signs | frames
        if len(table[ord(sign)]) != get_character_cell_size(sign)
        or not table[ord(sign)].isascii()
        or table[ord(sign)] == "?"
    }
    assert wrong == {}


@pytest.mark.parametrize(
    ("wanted", "environ", "shown"),
    [
        ("auto", {"LC_ALL": "en_US.UTF-8"}, "✓ naïve 漢 ─ 🙂"),
        ("auto", {}, "✓ naïve 漢 ─ 🙂"),
        ("auto", {"LANG": "C"}, "v na?ve ?? - ??"),
        ("auto", {"LC_ALL": "C", "LANG": "en_US.UTF-8"}, "v na?ve ?? - ??"),
        ("auto", {"LANG": "de_DE.ISO-8859-1"}, "v na?ve ?? - ??"),
        ("unicode", {"LC_ALL": "C"}, "✓ naïve 漢 ─ 🙂"),
        ("ascii", {"LANG": "en_US.utf8"}, "v naïve 漢 - ??"),
    ],
)
def test_the_locale_decides_unless_the_setting_does(wanted: str, environ: dict[str, str], shown: str) -> None:
    table = ascii_glyphs(wanted, environ)
    assert (table.text("✓ naïve 漢 ─ 🙂") if table else "✓ naïve 漢 ─ 🙂") == shown.replace("na?ve", "naive")


def test_what_stands_out_by_its_ground_is_reversed_without_colours() -> None:
    plain, bright = Style(color="#c0c0c0", bgcolor="#101010"), Style(bold=True, bgcolor="#4080ff")
    shown = Uncoloured().apply(
        [Segment("a", plain), Segment("b", bright), Segment("c")], Color.parse("#101010")
    )
    assert [segment.text for segment in shown] == ["a", "b", "c"]
    styles = [segment.style for segment in shown]
    assert all(style is None or (style.color is None and style.bgcolor is None) for style in styles)
    assert [bool(style and style.reverse) for style in styles] == [False, True, False]
    assert (
        Uncoloured()
        .apply([Segment("d", Style(bgcolor=RichColor.default()))], Color.parse("#101010"))[0]
        .style
    )


def test_sixteen_colours_are_the_terminals_own_unless_a_theme_is_wanted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("AGENT_TUI_THEME", raising=False)
    assert first_theme(ConsoleArguments(), few_colours=True).ansi
    assert not first_theme(ConsoleArguments(), few_colours=False).ansi
    assert (
        first_theme(ConsoleArguments(overrides={"theme": "agent-light"}), few_colours=True).name
        == "agent-light"
    )


@pytest.mark.parametrize(("theme", "shows"), [("terminal", "underline"), ("agent-dark", "reverse")])
async def test_what_is_chosen_stands_out_where_no_ground_shows_it(
    theme: str, shows: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a list to pick from, and among options, in the terminal's own colours or without any."""
    if shows == "reverse":
        monkeypatch.setenv("NO_COLOR", "1")

    def judge(_: Values) -> Judged:
        return Judged("")

    async def take(_: Values) -> str:
        return ""

    options = Selection("", (Option("a", "chosen"), Option("b", "other")), "a")
    async with live((80, 24)) as console:
        await console.until(lambda: theme in console.app.theme_names)
        await wear(console.app, console.pilot, theme)
        for screen in (
            PickScreen("Models", [Row("chosen", "", 1), Row("other", "", 2)]),
            FieldScreen("Rule", "", "", (options,), judge, take),
        ):
            await console.app.push_screen(screen)
            await console.until(lambda: "other" in console.shown())
            found = {
                segment.text.strip(): bool(segment.style and getattr(segment.style, shows))
                for strip in console.app.screen._compositor.render_strips()
                for segment in strip
            }
            assert (found["chosen"], found["other"]) == (True, False), screen
            await console.press("escape")
        await console.press("ctrl+p")
        await console.until(lambda: "Go on by itself" in console.shown())
        found = {
            segment.text.strip(): bool(segment.style and getattr(segment.style, shows))
            for strip in console.app.screen._compositor.render_strips()
            for segment in strip
        }
        assert (found["help  F1"], found["auto  F5"]) == (True, False)


@pytest.mark.process
def test_a_run_is_drawn_in_ascii_without_colour_and_without_motion(start: Callable[..., Terminal]) -> None:
    """Conversation, panes, card and help, on a terminal in the C locale."""
    console = start(
        *("-m", "tui_agent", "demo", "approvals"),
        LC_ALL="C",
        NO_COLOR="1",
        NO_MOTION="1",
        TERM="xterm-256color",
    )
    console.shows("The agent asks", "partial answer")
    console.send(b"\x1bOP")  # F1
    console.shows("Commands and their keys", "Up/Down scroll")
    console.send(b"\x11")
    console.shows("A run is under way")
    console.send(b"q\r")
    assert console.code() == 0
    assert console.output.isascii()
    assert COLOUR.findall(console.output) == []
    assert b"\x1b[?12h" not in console.output


@pytest.mark.process
def test_sixteen_colours_are_all_that_is_sent_where_there_are_no_more(start: Callable[..., Terminal]) -> None:
    console = start("-m", "tui_agent", "--model", "scripted:recovery", TERM="xterm", COLORTERM="")
    console.until(lambda: b"READY" in console.output)
    console.send(b"\x11")
    assert console.code() == 0
    assert b"38;2;" not in console.output
    assert b"38;5;" not in console.output
    assert COLOUR.search(console.output)


@pytest.mark.process
@pytest.mark.parametrize(("columns", "counts"), [(80, False), (120, True)])
def test_the_list_of_sessions_fits_the_terminal(
    start: Callable[..., Terminal], tmp_path: Path, columns: int, counts: bool
) -> None:
    story = Story().run(
        "A task with a title that goes on for longer than any terminal has columns to show it in."
    )
    (call,) = story.reply("I look.", ("bash", {"command": "ls"}))
    story.fail(call, "exit code 2").judge()
    write_session(tmp_path / "state" / "sessions" / "20261124-131648-6ec9", story.events, stamped=True)
    listed = start("-m", "tui_agent", "sessions", size=(columns, 24), COLUMNS="")
    assert listed.code() == 0
    (line,) = [line for line in listed.output.decode().splitlines() if "A task with" in line]
    assert len(line) <= columns
    assert line.endswith("…")
    assert ("recovered" in line) is counts
