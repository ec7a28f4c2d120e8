"""A screen as text that can be kept: its rows, and for each theme the style of each run of cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import textual
from rich.segment import Segments
from rich.style import Style
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode
from textual._compositor import visible_screen_stack
from textual.app import App
from textual.geometry import Region
from textual.pilot import Pilot
from textual.screen import Screen
from textual.scrollbar import ScrollBarRender
from textual.strip import Strip

from tests.console.waiting import until, wear

THEMES = ("agent-dark", "agent-light", "terminal")
"""A dark one, a light one, and the sixteen colours of the terminal itself."""

DRAWN_BY = "8.2"
"""The release of Textual that drew what is kept; others may draw a frame or a scroll bar otherwise."""

SAME_TEXTUAL = textual.__version__.rpartition(".")[0] == DRAWN_BY


class ScreenExtension(SingleFileSnapshotExtension):
    """A text file for each picture."""

    _write_mode = WriteMode.TEXT
    file_extension = "txt"


class EmptyScrollBar(ScrollBarRender):
    """A scroll bar without its thumb, whose place goes by heights that are estimated until they are drawn."""

    @classmethod
    def render_bar(cls, *args: Any, **options: Any) -> Segments:
        return super().render_bar(*args, **{**options, "window_size": 0})


async def in_themes(app: App[Any], pilot: Pilot[Any], themes: Sequence[str] = THEMES) -> str:
    """The rows of the screen once, then the styles in each theme. A theme changes colours alone.

    The last theme stays: the next picture begins with it, since a change of theme takes longer than all else.
    """
    app.animation_level = "none"  # a spinner stands
    text = ""
    styles: dict[str, str] = {}
    for theme in sorted(themes, key=lambda theme: theme != app.theme):
        await wear(app, pilot, theme)
        rows, styles[theme] = await _settled(app, pilot)
        seen = "\n".join(rows)
        text = text or seen
        assert seen == text, f"{theme} changes the text:\n{text}\n{seen}"
    return "\n".join([text, *(f"--- {theme}\n{styles[theme]}" for theme in themes)]) + "\n"


async def at_every_size(app: App[Any], pilot: Pilot[Any], themes: Sequence[str] = THEMES) -> str:
    """The rows at the smallest and at a usual size; at the one between, where it was opened, the styles as well."""
    app.animation_level = "none"
    size = app.size
    parts = []
    for other in ((60, 20), (120, 40)):
        await pilot.resize_terminal(*other)
        await until(pilot, lambda other=other: app.screen.size == other)
        rows, _ = await _settled(app, pilot)
        parts.append("\n".join(rows))
    await pilot.resize_terminal(*size)
    await until(pilot, lambda: app.screen.size == size)
    return "\n".join([*parts, await in_themes(app, pilot, themes)])


async def _settled(app: App[Any], pilot: Pilot[Any]) -> tuple[list[str], str]:
    """What is drawn once two looks see the same."""
    for field in app.screen.query("TextArea, Input"):
        field.cursor_blink = False
    seen: list[tuple[list[str], str]] = []

    def rests() -> bool:
        seen.append(_drawn(app))
        return len(seen) > 1 and seen[-1] == seen[-2]

    await until(pilot, rests)
    return seen[-1]


def _drawn(app: App[Any]) -> tuple[list[str], str]:
    """The rows, and their styles: a legend, then for each row runs of `LENGTHletter`."""
    names: dict[str, str] = {}
    rows, runs = [], []
    for strip in _strips(app.screen):
        rows.append(strip.text.rstrip())
        row: list[tuple[str, int]] = []
        for segment in strip:
            letter = names.setdefault(_name(segment.style), _letter(len(names)))
            if row and row[-1][0] == letter:
                row[-1] = letter, row[-1][1] + segment.cell_length
            else:
                row.append((letter, segment.cell_length))
        runs.append(" ".join(f"{length}{letter}" for letter, length in row))
    legend = [f"{letter} {name}" for name, letter in names.items()]
    return rows, "\n".join([*legend, *_folded(runs)])


def _strips(screen: Screen[Any]) -> list[Strip]:
    """The whole screen; of one that stands over another, what is its own."""
    visible_screen_stack.set([])  # not what can be seen through it
    strips = screen._compositor.render_strips()
    if not screen.is_modal:
        return strips
    own = Region.from_union([child.region for child in screen.children if child.display])
    return [strip.crop(own.x, own.right) for strip in strips[own.y : own.bottom]]


def _name(style: Style | None) -> str:
    """Colours and attributes, without links and meta data, which differ from run to run."""
    if style is None:
        return "none"
    colours = [colour.name if colour else "-" for colour in (style.color, style.bgcolor)]
    flags = [
        flag for flag in ("bold", "dim", "italic", "underline", "strike", "reverse") if getattr(style, flag)
    ]
    return " ".join([*colours, *flags])


def _letter(number: int) -> str:
    return chr(ord("a") + number) if number < 26 else f"{chr(ord('A') + number // 26 - 1)}{number % 26}"


def _folded(runs: list[str]) -> list[str]:
    """Equal rows that follow each other on one line."""
    lines: list[str] = []
    begin = 0
    for end in range(1, len(runs) + 1):
        if end == len(runs) or runs[end] != runs[begin]:
            place = f"{begin + 1}" if end - begin == 1 else f"{begin + 1}-{end}"
            lines.append(f"{place}: {runs[begin]}")
            begin = end
    return lines
