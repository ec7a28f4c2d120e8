"""Lines of styled text as plain values, and the palette that turns roles into colours.

A pane draws `Line`s: spans of safe text with a style given by *role* ("error bold", "muted on:code"). Roles are
the theme's variables, so a pane never names a colour and every theme works on every pane. No widget here.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from rich.cells import cell_len, chop_cells, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.color import Color, ColorParseError
from textual.strip import Strip

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from textual.app import App

ELLIPSIS = "…"
_GAP = f" {ELLIPSIS}"
"""What an ellipsis takes the place of at a cut."""


class Span(NamedTuple):
    """A run of text in one style. `style`: roles and attributes, `on:role` for the background."""

    text: str
    style: str = ""


Line = tuple[Span, ...]

ROLE_FALLBACKS: dict[str, str] = {
    "ok": "success",
    "warn": "warning",
    "error": "error",
    "blocked": "warning",
    "note": "secondary",
    "model": "primary",
    "operator": "accent",
    "muted": "foreground-muted",
    "faint": "foreground-disabled",
    "accent": "accent",
    "code": "foreground",
    "code-inline": "foreground",
    "code-background": "surface",
    "operator-background": "surface",
    "error-background": "error-muted",
    "diff-add": "success",
    "diff-add-background": "success-muted",
    "diff-remove": "error",
    "diff-remove-background": "error-muted",
    "cursor-background": "surface-active",
    "syntax-keyword": "primary",
    "syntax-string": "success",
    "syntax-number": "warning",
    "syntax-comment": "foreground-muted",
    "syntax-name": "secondary",
}
"""Our roles, and Textual's own variable that stands in where a theme does not give one."""

_ATTRIBUTES = frozenset({"bold", "dim", "italic", "underline", "strike", "reverse"})


class Palette:
    """Styles by role for one theme. Made once a theme; each style is resolved once."""

    def __init__(self, variables: Mapping[str, str], background: Color | None = None) -> None:
        """`variables`: the theme's, by name; `background`: what translucent colours are laid over."""
        self._variables = variables
        self._background = background or Color(0, 0, 0)
        self._styles: dict[str, Style] = {}

    @classmethod
    def of(cls, app: App[Any]) -> Palette:
        """The palette of the app's present theme."""
        key = (app.theme, app.native_ansi_color, id(app.theme_variables))
        cached = _PALETTES.get(app)
        if cached is not None and cached[0] == key:
            return cached[1]
        variables = app.theme_variables
        palette = cls(variables, _colour(variables.get("background", "")))
        _PALETTES[app] = (key, palette)
        return palette

    def style(self, spec: str) -> Style:
        """The style for `spec`; an unknown role is the default foreground."""
        style = self._styles.get(spec)
        if style is None:
            style = self._styles[spec] = self._resolve(spec)
        return style

    def _resolve(self, spec: str) -> Style:
        foreground = background = None
        attributes: dict[str, bool] = {}
        for word in spec.split():
            if word in _ATTRIBUTES:
                attributes[word] = True
            else:
                role = word.removeprefix("on:")
                if word.startswith("on:"):
                    background = self.colour(role)
                else:
                    foreground = self.colour(role)
                styled = self._variables.get(f"{role}-text-style", "").split()
                attributes.update((attribute, True) for attribute in styled if attribute in _ATTRIBUTES)
        return Style(
            color=foreground.rich_color if foreground else None,
            bgcolor=background.rich_color if background else None,
            bold=attributes.get("bold"),
            # Reversed, the dim colour would be the ground of a text that is dim too.
            dim=attributes.get("dim") if not attributes.get("reverse") else None,
            italic=attributes.get("italic"),
            underline=attributes.get("underline"),
            strike=attributes.get("strike"),
            reverse=attributes.get("reverse"),
        )

    def colour(self, role: str) -> Color | None:
        """The opaque colour of a role or theme variable; None: the terminal's own."""
        for name in (role, ROLE_FALLBACKS.get(role, "")):
            colour = _colour(self._variables.get(name, ""))
            if colour is not None:
                if colour.ansi is not None:
                    return None if colour.ansi == -1 else colour
                return self._background + colour if colour.a < 1 else colour
        return None


_PALETTES: WeakKeyDictionary[App[Any], tuple[object, Palette]] = WeakKeyDictionary()
"""The present palette of each app, with the theme that it was made for."""


def _colour(value: str) -> Color | None:
    if not value or value.startswith("auto"):
        return None
    try:
        return Color.parse(value)
    except ColorParseError:
        return None


def text_of(line: Line) -> str:
    """The line without its styles."""
    return "".join(span.text for span in line)


def width_of(line: Iterable[Span]) -> int:
    """Cells that the line takes."""
    return sum(cell_len(span.text) for span in line)


def to_strip(line: Line, palette: Palette, base: Style, width: int, start: int = 0) -> Strip:
    """The line as a strip of exactly `width` cells, padded in the style of the line's last `on:` background.

    A line may end in an empty span `Span("", "on:role")`: it gives the padding its style.
    """
    style_of = palette.style
    segments = [Segment(span.text, base + style_of(span.style)) for span in line if span.text]
    length = sum(cell_len(segment.text) for segment in segments)
    pad = base
    if line and not line[-1].text and line[-1].style:
        pad = base + style_of(line[-1].style)
    if length < width:
        segments.append(Segment(" " * (width - length), pad))
        length = width
    strip = Strip(segments, length)
    return strip if length == width else strip.crop(start, start + width)


def fit(text: str, width: int) -> str:
    """`text` cut to `width` cells, with an ellipsis where something is missing."""
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
    """The line cut to `width` cells; the last visible cell becomes an ellipsis where something is missing."""
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
    """`line` with the rules of a banner (`==== summary ====`) shortened where it is too wide, never its words."""
    excess = len(line) - width
    if excess <= 0:
        return line
    runs = list(_RULES.finditer(line))
    if not runs:
        return line
    share = -(-excess // len(runs))
    return _RULES.sub(lambda run: run.group()[: max(3, len(run.group()) - share)], line)


def wrap(text: str, width: int) -> list[str]:
    """`text` in lines of at most `width` cells, broken at spaces where possible. Line feeds are kept."""
    lines: list[str] = []
    for source in text.split("\n"):
        lines.extend(source[start:end] for start, end in breaks(source, width))
    return lines


def breaks(source: str, width: int, later: int | None = None) -> list[tuple[int, int]]:
    """Where one source line is broken: start and end of each piece of at most `width` cells.

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
    pieces = chop_cells(text[start : start + width * 4], width)
    return start + max(1, len(pieces[0]) if pieces else 1)
