"""The console's glyphs as ASCII: for terminals, fonts and screen readers that do not have them.

Each character becomes one as wide, so what was laid out stays laid out.
"""

from __future__ import annotations

import os
import sys
import unicodedata
from collections.abc import Mapping

from rich.cells import get_character_cell_size

_SIGNS = {
    "-": "─┄┅┈┉╌╍╴╶╸╺╼╾–—−‐‑‒―·∙•▔▬≈▄",
    "|": "│┃┆┇┊┋╎╏╵╷╹╻╽╿▏▎▍▌▐▕║¦‖⏸",
    "=": "═━▤≡",
    "+": "┼╋╬▅",
    "#": "█▓▒▉▊▋■▪▰▇▀▣",
    ".": "░▱▂□▫◦∴",
    ":": "▃",
    "*": "●◉◆★☆⚙✱✳✶✷⬤❖♦▆✎",
    "o": "○◌◇◯⊙◐",
    "v": "✓✔▼▽▾∨↓⇓⌄",
    "x": "✗✘✕✖×⨯☒",
    "/": "⊘∅╱⧸↗",
    ">": "→▶▸›»➜➤▷⇒❯⟩►↳",
    "<": "←◀◂‹«⟵⇐⌫◁❮⟨◄",
    "^": "↑▲△▴⇑⌃˄⇧",
    "~": "…⋯∼",
    "@": "↻↺⟳⟲",
    "'": "‘’‚′",
    '"': "“”„″",
    "\\": "╲↘",
    "!": "⚠",
    "?": "␀␁␂␃␄␅␆␇␈␋␌␎␏␐␑␒␓␔␕␖␗␘␙␚␛␜␝␞␟␡",
    "_": "␣␊␍␉⏎↵▁⏚",
}
_SPINNER = dict(zip("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", "|/-\\|/-\\|/", strict=True))
_BOX = range(0x2500, 0x2580)
_BLOCKS = range(0x2580, 0x25A0)
_BRAILLE = range(0x2800, 0x2900)


class AsciiGlyphs(dict[int, str]):
    """A table for `str.translate`. Letters of any script stay, unless the terminal takes none (`letters` False)."""

    def __init__(self, *, letters: bool) -> None:
        super().__init__({ord(glyph): sign for sign, glyphs in _SIGNS.items() for glyph in glyphs})
        self.update({ord(glyph): sign for glyph, sign in _SPINNER.items()})
        self._letters = letters

    def __missing__(self, code: int) -> str:
        self[code] = found = self._found(code)
        return found

    def _found(self, code: int) -> str:
        char = chr(code)
        if code < 0x80 or (self._letters and unicodedata.category(char)[0] in "LNM"):
            return char
        if code in _BOX or code in _BLOCKS:
            return "+" if code in _BOX else "#"
        width = get_character_cell_size(char)
        plain = unicodedata.normalize("NFKD", char).encode("ascii", "ignore").decode()
        if len(plain) == width and plain.isprintable():
            return plain
        return ("*" if code in _BRAILLE else "?") * width

    def text(self, text: str) -> str:
        """The text in this table's characters."""
        return text if text.isascii() else text.translate(self)


def ascii_glyphs(wanted: object, environ: Mapping[str, str] = os.environ) -> AsciiGlyphs | None:
    """The table for the setting `glyphs`; None if glyphs are drawn as they are.

    `auto`: ASCII, letters included, if the locale that is set is none of UTF-8.
    """
    if wanted == "ascii":
        return AsciiGlyphs(letters=_takes_utf8(environ))
    return None if wanted == "unicode" or _takes_utf8(environ) else AsciiGlyphs(letters=False)


def _takes_utf8(environ: Mapping[str, str]) -> bool:
    """True if the locale takes UTF-8; without one, nearly every terminal does."""
    ctype = environ.get("LC_CTYPE", "")
    if sys.flags.utf8_mode and ctype in {"C.UTF-8", "C.utf8", "UTF-8"}:
        ctype = ""  # set by Python itself, in place of the C locale
    named = environ.get("LC_ALL") or ctype or environ.get("LANG") or "UTF-8"
    return "utf8" in named.lower().replace("-", "")
