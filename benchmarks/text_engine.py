"""Lines of our own against Textual's `Content`, and our colours of code against `textual.highlight`.

    python benchmarks/text_engine.py [--lines 2000] [--repeat 7]

The same styled lines are wrapped, cut and made into strips by both, the same code is coloured by both: milliseconds of
a processor, the fastest of all repetitions. Then in how many lines the results differ, and what an import costs.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from rich.style import Style as RichStyle
from textual.app import App
from textual.content import Content
from textual.css.styles import RulesMap
from textual.highlight import highlight as textual_highlight
from textual.style import Style
from textual.visual import RenderOptions

from tui_agent.console.panes.strips import Palette, to_strip
from tui_agent.frontend.lines.highlight import highlight
from tui_agent.frontend.lines.styled import Line, Span, clip, text_of, wrap_spans

WIDTH = 76
TEXTS = {
    "words": "The test in tests/test_tax.py fails: 3 of 12 assertions, the newest in round_half_up. ",
    "cells of two": "テストは失敗しました tests/test_tax.py の三つの項目 round_half_up を見る ",
    "one word": "a" * 90,
}


def lines_of(text: str, count: int) -> list[list[Span]]:
    """Lines of about 240 characters, each of six spans in three styles."""
    styles = ("", "bold accent", "muted")
    words = (text * (240 // len(text) + 1))[:240]
    return [
        [Span(words[start : start + 40], styles[(start // 40 + number) % 3]) for start in range(0, 240, 40)]
        for number in range(count)
    ]


def milliseconds(work: Callable[[], object], repeat: int) -> float:
    """The fastest of so many times."""
    taken = []
    for _ in range(repeat):
        began = time.process_time()
        work()
        taken.append(time.process_time() - began)
    return 1000 * min(taken)


def import_time(module: str) -> float:
    """What the import adds to a process that has Textual."""
    code = (
        f"import textual.app, time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"
    )
    runs = [float(subprocess.check_output([sys.executable, "-c", code])) for _ in range(5)]
    return 1000 * min(runs)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=2_000)
    parser.add_argument("--repeat", type=int, default=7)
    given = parser.parse_args()
    repeat = given.repeat
    app = App[None]()
    palette = Palette.of(app)
    colours = {
        "": Style(),
        "bold accent": Style.from_rich_style(palette.style("bold accent")),
        "muted": Style.from_rich_style(palette.style("muted")),
    }
    base = RichStyle()
    options = RenderOptions(lambda style: colours.get(str(style), Style()), RulesMap())

    def content_of(line: list[Span] | Line) -> Content:
        return Content.assemble(*((span.text, colours[span.style]) for span in line))

    def row(what: str, ours: Callable[[], object], theirs: Callable[[], object]) -> None:
        mine, other = milliseconds(ours, repeat), milliseconds(theirs, repeat)
        print(f"  {what:28} ours {mine:8.1f} ms   Textual's {other:8.1f} ms   {other / mine:5.1f} times")

    for name, text in TEXTS.items():
        lines = lines_of(text, given.lines)
        contents = [content_of(line) for line in lines]
        wrapped = [piece for line in lines for piece in wrap_spans(line, WIDTH)]
        pieces = [content_of(line) for line in wrapped]
        print(f"{name}: {len(lines):,} lines of 240 characters, {len(wrapped):,} rows")
        row(
            "make",
            lambda lines=lines: [tuple(line) for line in lines],
            lambda lines=lines: list(map(content_of, lines)),
        )
        row(
            "wrap",
            lambda lines=lines: [wrap_spans(line, WIDTH) for line in lines],
            lambda contents=contents: [content.wrap(WIDTH) for content in contents],
        )
        row(
            "cut with an ellipsis",
            lambda lines=lines: [clip(line, WIDTH) for line in lines],
            lambda contents=contents: [content.truncate(WIDTH, ellipsis=True) for content in contents],
        )
        row(
            "rows to strips",
            lambda wrapped=wrapped: [to_strip(line, palette, base, WIDTH) for line in wrapped],
            lambda pieces=pieces: [content.render_strips(WIDTH, 1, Style(), options) for content in pieces],
        )
        other = sum(
            [text_of(row) for row in wrap_spans(line, WIDTH)]
            != [row.plain.rstrip() for row in content.wrap(WIDTH)]
            for line, content in zip(lines, contents, strict=True)
        )
        print(f"  wrapped otherwise: {other:,} of {len(lines):,} lines")
    code = Path(__file__).read_text(encoding="utf-8")
    print(f"this file in colours, {len(code.splitlines())} lines")
    row("highlight", lambda: highlight(code, "python"), lambda: textual_highlight(code, language="python"))
    for module in ("tui_agent.frontend.lines.highlight", "textual.highlight"):
        print(f"  import {module}: {import_time(module):.1f} ms")


if __name__ == "__main__":
    main()
