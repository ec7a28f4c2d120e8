"""Lines of styled text as plain values: spans of safe text, each with a style by *role*, cut and wrapped by cells.

A role ("error bold", "muted on:code") is a name of the theme's: what draws a line gives it a colour, or leaves it out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from rich.cells import cell_len, chop_cells, set_cell_size

ELLIPSIS = "…"


_GAP = f" {ELLIPSIS}"
"""Characters that an ellipsis replaces at a cut."""


class Span(NamedTuple):
    """A run of text in one style. `style`: roles and attributes, `on:role` for the background."""

    text: str
    style: str = ""


Line = tuple[Span, ...]


def text_of(line: Line) -> str:
    """The line without its styles."""
    return "".join(span.text for span in line)


def width_of(line: Iterable[Span]) -> int:
    """Cells that the line takes."""
    return sum(cell_len(span.text) for span in line)


def fit(text: str, width: int) -> str:
    """`text` cut to `width` cells, with an ellipsis if something is missing."""
    if width <= 0:
        return ""
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, width - 1).rstrip() + ELLIPSIS if width > 1 else ELLIPSIS


def fit_middle(text: str, width: int) -> str:
    """`text` cut in its middle to `width` cells: calls differ at their ends as often as at their beginnings."""
    if width <= 0:
        return ""
    total = cell_len(text)
    if total <= width:
        return text
    if width < 5:
        return fit(text, width)
    head = (width - 1) * 2 // 3
    tail = width - 1 - head
    return set_cell_size(text, head).rstrip(_GAP) + ELLIPSIS + _last_cells(text, tail).lstrip(_GAP)


def _last_cells(text: str, width: int) -> str:
    end = text[-width:]
    while end and cell_len(end) > width:
        end = end[1:]
    return end


def pad(text: str, width: int) -> str:
    """`text` fitted and filled with spaces to `width` cells."""
    text = fit(text, width)
    return text + " " * (width - cell_len(text))


def pad_left(text: str, width: int) -> str:
    """As `pad`, set to the right."""
    text = fit(text, width)
    return " " * (width - cell_len(text)) + text


def clip(line: Iterable[Span], width: int) -> Line:
    """The line cut to `width` cells; the last visible cell becomes an ellipsis if something is missing."""
    spans = tuple(line)
    if width_of(spans) <= width:
        return spans
    kept: list[Span] = []
    room = width
    for position, span in enumerate(spans):
        length = cell_len(span.text)
        last = position == len(spans) - 1 or not any(later.text for later in spans[position + 1 :])
        if length < room or (length == room and last):
            kept.append(span)
            room -= length
            continue
        kept.append(Span(fit(span.text + "  ", room), span.style))
        break
    return tuple(kept)


def justified(left: Iterable[Span], right: Iterable[Span], width: int, gap: int = 1) -> Line:
    """`left` and `right` at the ends of one line of `width` cells; `left` gives way first, then `right` goes."""
    left_spans, right_spans = tuple(left), tuple(right)
    right_width = width_of(right_spans)
    if right_width and right_width + gap + min(8, width_of(left_spans)) > width:
        right_spans, right_width = (), 0
    if not right_width:
        return clip(left_spans, width)
    left_spans = clip(left_spans, width - right_width - gap)
    space = width - right_width - width_of(left_spans)
    return (*left_spans, Span(" " * space), *right_spans)


_RULES = re.compile(r"([=\-_*#~─═━])\1{7,}")


def squeezed(line: str, width: int) -> str:
    """`line` with the rules of a banner (`==== summary ====`) shortened if it is too wide, never its words."""
    excess = len(line) - width
    if excess <= 0:
        return line
    runs = list(_RULES.finditer(line))
    if not runs:
        return line
    share = -(-excess // len(runs))
    return _RULES.sub(lambda run: run.group()[: max(3, len(run.group()) - share)], line)


def wrap(text: str, width: int) -> list[str]:
    """`text` in lines of at most `width` cells, broken at spaces if possible. Line feeds are kept."""
    lines: list[str] = []
    for source in text.split("\n"):
        lines.extend(source[start:end] for start, end in breaks(source, width))
    return lines


def breaks(source: str, width: int, later: int | None = None) -> list[tuple[int, int]]:
    """Pieces of one source line, each of at most `width` cells: start and end.

    Pieces after the first may have another width, `later` (a hanging indent). At least one piece, never an
    endless one: a character wider than the width stands alone.
    """
    end_of_text = len(source.rstrip())
    limit = max(1, width)
    pieces: list[tuple[int, int]] = []
    start = 0
    while start < end_of_text:
        end = _fitting_end(source, start, limit)
        if end < end_of_text and source[end] != " ":
            space = source.rfind(" ", start, end)
            if space > start and source[start:space].strip():
                end = space
        end = min(end, end_of_text)
        pieces.append((start, start + len(source[start:end].rstrip())))
        start = end
        while start < end_of_text and source[start] == " ":
            start += 1
        limit = max(1, width if later is None else later)
    return pieces or [(0, 0)]


def wrap_spans(spans: Iterable[Span], width: int, later: int | None = None) -> list[Line]:
    """Styled text without line feeds, wrapped as `breaks` says."""
    runs = [span for span in spans if span.text]
    lines: list[Line] = []
    number, offset = 0, 0
    for start, end in breaks("".join(span.text for span in runs), width, later):
        line: list[Span] = []
        while number < len(runs) and offset + len(runs[number].text) <= start:
            offset += len(runs[number].text)
            number += 1
        at, position = number, offset
        while at < len(runs) and position < end:
            text, style = runs[at]
            piece = text[max(0, start - position) : end - position]
            if piece:
                line.append(Span(piece, style))
            position += len(text)
            at += 1
        lines.append(tuple(line))
    return lines


def _fitting_end(text: str, start: int, width: int) -> int:
    """End of the longest piece from `start` of at most `width` cells (at least one character)."""
    head = text[start : start + width]
    if head.isascii():
        return start + len(head)
    following = text[start + width : start + width + 1]
    if cell_len(head) == len(head) and (not following or cell_len(following)):
        return start + len(head)
    pieces = chop_cells(head, width)
    if len(pieces) < 2:  # characters without a width: more of them may fit
        pieces = chop_cells(text[start : start + width * 4], width)
    return start + max(1, len(pieces[0]) if pieces else 1)
