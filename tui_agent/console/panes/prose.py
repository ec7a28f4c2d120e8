"""A reply's Markdown as lines, drawn while it comes in: work is done once for each source line.

Deliberately light: headings, emphasis, inline code, lists, quotes, rules, fences and tables, each decided by
its own source line, so that a growing text never changes what was drawn before its last line (its last table).
"""

from __future__ import annotations

import re

from tui_agent.console.panes.highlight import highlight
from tui_agent.console.panes.ink import Line, Span, breaks, wrap_spans
from tui_agent.console.panes.table import draw_table, is_row
from tui_agent.console.sanitize import sanitize

CHUNK = 2_000
"""Characters after which an unfinished source line is drawn in pieces: a paragraph of any length stays linear."""
_TABLE_ROWS = 200

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})[ \t]*([\w+#.-]*)")
_HEADING = re.compile(r"^ {0,3}(#{1,6})[ \t]+(.*?)[ \t#]*$")
_RULE = re.compile(r"^ {0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}$")
_ITEM = re.compile(r"^([ \t]*)([-*+]|\d{1,9}[.)])[ \t]+(.*)$")
_QUOTE = re.compile(r"^ {0,3}>[ \t]?(.*)$")
_INLINE = re.compile(
    r"`(?P<code>[^`]+)`"
    r"|\*\*(?P<bold>[^*\s](?:[^*]*[^*\s])?)\*\*"
    r"|(?<!\w)__(?P<bold2>[^_\s](?:[^_]*[^_\s])?)__(?!\w)"
    r"|\*(?P<italic>[^*\s](?:[^*]*[^*\s])?)\*"
    r"|(?<!\w)_(?P<italic2>[^_\s](?:[^_]*[^_\s])?)_(?!\w)"
    r"|~~(?P<strike>[^~]+)~~"
    r"|\[(?P<label>[^\]\[]+)\]\((?P<url>[^()\s]+)\)"
)
_EMPHASIS = {"bold": "bold", "bold2": "bold", "italic": "italic", "italic2": "italic", "strike": "strike"}


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
        self._fence = ""
        self._language = ""
        self._fence_start = 0
        self._fence_lines: list[str] = []
        self._table: list[str] = []
        self._continuing = False

    @property
    def lines(self) -> list[Line]:
        """All lines: the settled ones and those of the last source line."""
        return [*self._lines, *self._tail]

    def __len__(self) -> int:
        return len(self._lines) + len(self._tail)

    def __getitem__(self, index: int) -> Line:
        settled = len(self._lines)
        return self._lines[index] if index < settled else self._tail[index - settled]

    @property
    def settled(self) -> int:
        """Lines that will not change however the text goes on (until a fence's end colours it)."""
        return len(self._lines)

    def feed(self, text: str) -> None:
        """Draw what is new in `text`; a text that does not go on from the last one is drawn anew."""
        if not text.startswith(self.text):
            self._reset()
        self.text = text
        while (end := text.find("\n", self._done)) >= 0:
            while end - self._done > CHUNK and self._settle_chunk():
                pass
            self._settle(sanitize(text[self._done : end]))
            self._done = end + 1
        while len(text) - self._done > CHUNK and self._settle_chunk():
            pass
        self._tail = self._unsettled(sanitize(text[self._done :]))

    def finish(self, text: str) -> list[Line]:
        """All lines of a text that is complete, without blank ones around it."""
        self.feed(text)
        if self._done < len(text):
            self._settle(sanitize(text[self._done :]))
            self._done = len(text)
        self._flush_table()
        self._colour_fence()
        self._tail = []
        lines = self._lines
        first = next((number for number, line in enumerate(lines) if line), len(lines))
        last = len(lines)
        while last > first and not lines[last - 1]:
            last -= 1
        return lines[first:last]

    # --- settling --------------------------------------------------------------------------------------------

    def _settle(self, line: str) -> None:
        """One complete source line."""
        if self._continuing:
            self._continuing = False
            self._lines.extend(wrap_spans(inline(line), self.width))
            return
        for piece in line.split("\n"):
            if self._table and (not is_row(piece) or self._fence):
                self._flush_table()
            if not self._fence and is_row(piece):
                self._table.append(piece)
                if len(self._table) >= _TABLE_ROWS:
                    self._flush_table()
                continue
            self._lines.extend(self._source(piece))

    def _settle_chunk(self) -> bool:
        """Draw the beginning of a long unfinished line, up to where it is broken anyway."""
        raw = self.text[self._done : self._done + CHUNK]
        safe = sanitize(raw)
        self._flush_table()
        if self._fence:
            self._fence_lines.clear()
            self._language = ""
            width = self.width - 2
        else:
            width = self.width
        pieces = breaks(safe, width)
        cut = pieces[-1][0] if len(pieces) > 1 and len(safe) == len(raw) else len(safe)
        head = safe[:cut]
        if self._fence:
            self._lines.extend(self._code([Span(head, "code")]))
        elif self._continuing:
            self._lines.extend(wrap_spans(inline(head), self.width))
        else:
            self._lines.extend(self._source(head))
            self._continuing = True
        self._done += cut if len(safe) == len(raw) else len(raw)
        return True

    def _unsettled(self, line: str) -> list[Line]:
        """Lines for the last, unfinished source line; nothing is remembered of them."""
        if self._continuing:
            return wrap_spans(inline(line), self.width) if line else []
        if self._fence:
            return self._code([Span(line, "code")]) if line and not self._closes(line) else []
        if self._table or is_row(line):
            return draw_table([*self._table, *([line] if is_row(line) else [])], self.width)
        if not line or _FENCE.match(line):
            return []
        return self._block(line)

    def _source(self, line: str) -> list[Line]:
        if self._fence:
            if self._closes(line):
                self._colour_fence()
                self._fence = ""
                return []
            self._fence_lines.append(line)
            return self._code([Span(line, "code")])
        fence = _FENCE.match(line)
        if fence is not None:
            self._fence, self._language = fence.group(1), fence.group(2)
            self._fence_start, self._fence_lines = len(self._lines), []
            return []
        if not line.strip():
            return [()] if self._lines and self._lines[-1] else []
        return self._block(line)

    def _closes(self, line: str) -> bool:
        mark = line.strip()
        return len(mark) >= len(self._fence) and mark == self._fence[0] * len(mark)

    def _colour_fence(self) -> None:
        """The fence is complete: its lines again, in colours."""
        if not self._fence or not self._fence_lines:
            return
        coloured = highlight("\n".join(self._fence_lines), self._language)
        if coloured is not None:
            del self._lines[self._fence_start :]
            for spans in coloured:
                self._lines.extend(self._code(spans))
        self._fence_lines = []

    def _flush_table(self) -> None:
        if self._table:
            self._lines.extend(draw_table(self._table, self.width))
            self._table = []

    # --- drawing ---------------------------------------------------------------------------------------------

    def _code(self, spans: list[Span]) -> list[Line]:
        """One source line of code on its ground, behind a bar that says so without colour."""
        back = " on:code-background"
        lines: list[Line] = []
        for line in wrap_spans(spans, self.width - 2) or [()]:
            tinted = (Span(span.text, span.style + back) for span in line)
            lines.append((Span("▏ ", "faint" + back), *tinted, Span("", back.strip())))
        return lines

    def _block(self, line: str) -> list[Line]:
        """One source line outside fences and tables."""
        if heading := _HEADING.match(line):
            style = "accent bold underline" if len(heading.group(1)) == 1 else "accent bold"
            return wrap_spans(inline(heading.group(2), style), self.width)
        if _RULE.match(line):
            return [(Span("─" * self.width, "faint"),)]
        if item := _ITEM.match(line):
            return self._item(item)
        if quote := _QUOTE.match(line):
            body = wrap_spans(inline(quote.group(1), "muted italic"), self.width - 2)
            return [(Span("▎ ", "faint"), *spans) for spans in body]
        return wrap_spans(inline(line.strip() if line[:1] == " " else line), self.width)

    def _item(self, item: re.Match[str]) -> list[Line]:
        depth = min(len(item.group(1)), max(0, self.width // 2 - 4))
        mark = "• " if item.group(2) in "-*+" else f"{item.group(2)} "
        indent = depth + len(mark)
        body = wrap_spans(inline(item.group(3)), max(1, self.width - indent)) or [()]
        first: Line = (Span(" " * depth), Span(mark, "accent"), *body[0])
        return [first, *((Span(" " * indent), *spans) for spans in body[1:])]


def inline(text: str, style: str = "") -> list[Span]:
    """Emphasis, code and links within a line, as spans over `style`. Each pattern ends at its own delimiter."""
    spans: list[Span] = []
    position = 0
    for match in _INLINE.finditer(text):
        if match.start() > position:
            spans.append(Span(text[position : match.start()], style))
        position = match.end()
        kind = match.lastgroup or ""
        if kind == "code":
            spans.append(Span(match.group("code"), f"{style} code-inline on:code-background".strip()))
        elif kind == "url":
            spans.append(Span(match.group("label"), f"{style} underline".strip()))
            if match.group("label") != match.group("url"):
                spans.append(Span(f" ({match.group('url')})", "muted"))
        else:
            spans.extend(inline(match.group(kind), f"{style} {_EMPHASIS[kind]}".strip()))
    if position < len(text):
        spans.append(Span(text[position:], style))
    return spans
