"""A reply's Markdown as lines, drawn while it comes in: what closed is parsed once and never changes.

A block closes at an empty line before unindented text, at a heading, at a fence and at a patch. The one that
still grows is drawn by `markdown` too, as if it ended with the text, and a bounded part of it each time. So
appending always costs the same, however long the text.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from tui_agent.console.panes.growing import may_close, unfinished, unfinished_code
from tui_agent.console.panes.markdown import code_lines, draw_markdown
from tui_agent.frontend.lines.highlight import LIMIT
from tui_agent.frontend.lines.styled import Line, Span, breaks, wrap_spans
from tui_agent.terminal_text import sanitize

CHUNK = 2_000
"""Characters after which an unfinished source line is drawn in pieces: a paragraph of any length stays linear."""

SPLIT = 1_000
"""Characters after which a block also closes between two unindented lines (not within a table): parsing stays short."""

PARSED = 6_000
"""Characters of a block up to which it is parsed when it closes, so that hostile text costs little; a longer one stays
plain. Code may be as long as what is highlighted."""

GROWING = 2_500
"""Cost of the open block up to which all of it is drawn with each text. Of a costlier one its complete lines are, each
time it has grown by `SHARE` (a table up to twice this: with each row), up to `PARSED`; what follows stays plain."""

SHARE = 1 / 8

LINE = 20
"""The share of a source line in the cost, which is counted in characters: short lines cost more than long
ones.
"""

_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")
_HEADING = re.compile(r"#{1,6} ")

_PATCH = "diff --git "
_PATCH_FENCE = "~" * 40
"""Around a patch that stands in the text bare: its signs are no bullets."""
_IN_PATCH = re.compile(
    r"[-+ @\\]|(diff|index|new|deleted|old|similarity|dissimilarity|rename|copy|Binary|GIT) "
)


class _Reach(NamedTuple):
    """How far an open block is drawn as Markdown once it is too long to be drawn with each text."""

    source: int = 0
    """Source lines of the block."""
    plain: int = 0
    """The end of the plain lines that it replaces."""
    cost: int = 0
    """Of parsing the block up to there."""


class Prose:
    """Lines of a text that grows. `feed` is given the whole text each time."""

    def __init__(self, width: int) -> None:
        self.width = max(4, width)
        self._reset()

    def _reset(self) -> None:
        self.text = ""
        self._done = 0
        self._lines: list[Line] = []
        self._tail: list[Line] = []
        self._start = 0
        self._block: list[str] = []
        self._size = 0
        self._fence = ""
        self._blank = False
        self._continuing = False
        self._reach = _Reach()
        self._shown: list[Line] = []
        self._shown_to = 0
        self._drawn: list[Line] = []
        self._drawn_source = ""
        self._drawn_reach: _Reach | None = None

    @property
    def lines(self) -> list[Line]:
        """All lines: those of closed blocks, and those of the open one."""
        return [*self._lines[: self._start], *self._shown, *self._lines[self._shown_to :], *self._tail]

    def __len__(self) -> int:
        return len(self._lines) - (self._shown_to - self._start) + len(self._shown) + len(self._tail)

    def __getitem__(self, index: int) -> Line:
        if index < self._start:
            return self._lines[index]
        index -= self._start
        if index < len(self._shown):
            return self._shown[index]
        index += self._shown_to - len(self._shown)
        complete = len(self._lines)
        return self._lines[index] if index < complete else self._tail[index - complete]

    @property
    def settled(self) -> int:
        """Lines of closed blocks: they will not change however the text goes on."""
        return self._start

    def feed(self, text: str) -> None:
        """Draw what is new in `text`; a text that does not go on from the last one is drawn anew."""
        rest = self._take_in(text)
        self._tail = [] if self._draw_open(rest) or not rest else self._plain(rest)

    def _take_in(self, text: str) -> str:
        """Draw the source lines that are complete. Returns the beginning of the next one."""
        if not text.startswith(self.text):
            self._reset()
        self.text = text
        while (end := text.find("\n", self._done)) >= 0:
            self._complete(end)
            self._done = end + 1
        while len(text) - self._done > CHUNK and self._draw_chunk():
            pass
        rest = sanitize(text[self._done :])
        line = rest.partition("\n")[0]
        if self._blank and line.strip() and text[self._done] == line[0] and not self._fence:
            self._begin(rest)
        return rest

    def finish(self, text: str) -> list[Line]:
        """All lines of a text that is complete, without blank ones around it."""
        self._take_in(text)
        if self._done < len(text):
            self._complete(len(text))
            self._done = len(text)
        self._close()
        self._shown, self._shown_to, self._tail = [], self._start, []
        lines = self._lines
        first = next((number for number, line in enumerate(lines) if line), len(lines))
        last = len(lines)
        while last > first and not lines[last - 1]:
            last -= 1
        return lines[first:last]

    def _complete(self, end: int) -> None:
        """Take the source line that ends at `end`."""
        while end - self._done > CHUNK and self._draw_chunk():
            pass
        rest = sanitize(self.text[self._done : end])
        if self._continuing:
            self._continuing = False
            self._keep(rest, joined=True)
            self._lines.extend(self._plain(rest))
            self._extend()
            return
        for line in rest.split("\n"):
            self._take(line)

    def _take(self, line: str) -> None:
        """Add a complete source line to the block that it belongs to, and draw it plainly."""
        fence = _FENCE.match(line)
        if self._fence == _PATCH_FENCE and line and not _IN_PATCH.match(line):
            self._close()
        if self._fence:
            self._keep(line)
            if fence is not None and line.strip() == fence[1] and fence[1].startswith(self._fence):
                self._fence = ""
                if not line[0].isspace():
                    self._close()
            else:
                self._lines.extend(self._plain(line))
                self._extend()
            return
        if not line.strip():
            self._blank = True
            return
        self._begin(line)
        if line.startswith(_PATCH):
            self._fence = _PATCH_FENCE
            self._keep(f"{_PATCH_FENCE}diff")
        self._keep(line)
        if fence is not None:
            self._fence = fence[1]
            return
        self._lines.extend(self._plain(line))
        self._extend()
        if _HEADING.match(line):
            self._close()

    def _begin(self, line: str) -> None:
        """Close the block before `line` if it begins another, and keep the empty line between them."""
        unindented = not line[0].isspace()
        long = self._size > SPLIT and not line.startswith("|")
        starts = _FENCE.match(line) or _HEADING.match(line) or line.startswith(_PATCH)
        if unindented and (self._blank or long or starts):
            self._close()
        if self._blank:
            self._blank = False
            if self._block:
                self._keep("")
            if self._lines:
                self._lines.append(())
            if not self._block:
                self._start = len(self._lines)

    def _keep(self, line: str, *, joined: bool = False) -> None:
        """Remember the source of the open block, for when it closes; not beyond what is parsed then."""
        self._size += len(line) + 1
        if self._size > self._limit:
            self._block = [""]
        elif joined:
            self._block[-1] += line
        else:
            self._block.append(line)

    def _close(self) -> None:
        """Draw the open block as Markdown, in place of its plain lines."""
        if self._block and self._size <= self._limit:
            drawn = draw_markdown("\n".join(self._block), self.width)
            self._lines[self._start :] = drawn or self._lines[self._start :]
        self._start = len(self._lines)
        self._block, self._size, self._fence = [], 0, ""
        self._reach = _Reach(plain=self._start)

    def _extend(self) -> None:
        """A source line is complete: say how far the open block is drawn from now on."""
        cost, grown = self._cost, self._cost - self._reach.cost
        row = cost <= 2 * GROWING and self._block[-1].startswith("|")
        if cost <= GROWING or row or (cost <= PARSED and grown >= SHARE * self._reach.cost):
            self._reach = _Reach(len(self._block), len(self._lines), cost)

    def _draw_open(self, rest: str) -> bool:
        """Draw the open block as Markdown, or its beginning. Returns whether `rest` is shown, or kept back, by that."""
        reach = self._reach
        whole = self._cost + len(rest) <= GROWING
        self._shown, self._shown_to = [], self._start
        if self._size + len(rest) > self._limit or not (whole or reach.source):
            return False
        if whole:
            source = self._source(self._block, rest, self._continuing)
        elif reach == self._drawn_reach:
            source = self._drawn_source
        else:
            source = self._source(self._block[: reach.source], "")
        self._drawn_reach = None if whole else reach
        if source != self._drawn_source:
            self._drawn_source = source
            self._drawn = draw_markdown(source, self.width, growing=True) if source.strip() else []
        if source.strip() and not self._drawn:
            return False
        self._shown, self._shown_to = self._drawn, len(self._lines) if whole else reach.plain
        row = rest.startswith("|") and reach.cost == self._cost
        return whole or row or (bool(self._fence) and may_close(rest))

    def _source(self, lines: list[str], rest: str, continuing: bool = False) -> str:
        """The part of the open block that is parsed: `lines`, and the beginning of one (`continuing`: of the
        last of them).
        """
        if continuing:
            lines, rest = lines[:-1], lines[-1] + rest
        *more, rest = rest.split("\n")
        prepared = unfinished_code if self._fence else unfinished
        return "\n".join(prepared([*lines, *more], rest))

    @property
    def _cost(self) -> int:
        return self._size + LINE * len(self._block)

    @property
    def _limit(self) -> int:
        return LIMIT if self._block and _FENCE.match(self._block[0]) else PARSED

    def _draw_chunk(self) -> bool:
        """Draw the beginning of a long unfinished line, up to the next break in any case."""
        raw = self.text[self._done : self._done + CHUNK]
        safe = sanitize(raw)
        pieces = breaks(safe, self.width - 2 if self._fence else self.width)
        cut = pieces[-1][0] if len(pieces) > 1 and len(safe) == len(raw) else len(safe)
        if not self._continuing and safe.strip() and not self._fence:
            self._begin(safe)
        self._keep(safe[:cut], joined=self._continuing)
        self._lines.extend(self._plain(safe[:cut]))
        self._continuing = True
        self._done += cut if len(safe) == len(raw) else len(raw)
        return True

    def _plain(self, line: str) -> list[Line]:
        """A source line of the open block."""
        if self._fence:
            return code_lines([[Span(line, "code")]], self.width)
        return wrap_spans([Span(line)], self.width) if line.strip() else []
