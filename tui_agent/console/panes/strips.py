"""Lines of styled text as plain values, and the palette that turns roles into colours.

A pane draws `Line`s: spans of safe text with a style given by *role* ("error bold", "muted on:code"). Roles are
the theme's variables, so a pane never names a colour and every theme works on every pane. No widget here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.color import Color, ColorParseError
from textual.strip import Strip

from tui_agent.frontend.lines.styled import Line

if TYPE_CHECKING:
    from textual.app import App


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
"""Our roles, and Textual's own variable that stands in if a theme does not give one."""

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


def to_strip(line: Line, palette: Palette, base: Style, width: int) -> Strip:
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
    return strip if length == width else strip.crop(0, width)
