"""The one door through which text from outside reaches a widget.

Model text, tool output, file names and errors are hostile to a terminal: no widget and no renderer below it
filters control characters. What leaves these functions holds no character that a terminal acts on, save the
line feed; `\\n` is the only line separator left, so that `split("\\n")` sees every line that a screen would.
"""

from __future__ import annotations

import re

TAB = 4
"""Columns of a tab stop."""

_COMBINING = "\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
_BIDI = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_HIDDEN = (
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u2060-\u2065\u206a-\u206f\u3164\ufe00-\ufe0f\ufeff"
    "\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff"
)
_JOINERS = "\u200c\u200d"
_SEPARATORS = "\u2028\u2029"

_UNSAFE = re.compile(
    f"[\x00-\x09\x0b-\x1f\x7f-\x9f{_BIDI}{_HIDDEN}{_JOINERS}{_SEPARATORS}\ud800-\udfff]|[{_COMBINING}]{{4}}"
)

# A payload ends at the line's end and at any other control: an unterminated sequence swallows nothing that
# follows it, and a run of introducers costs linear time.
_SEQUENCE = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor, erase
    "|(?:\x1b\\]|\x9d)[^\x00-\x1f\x7f-\x9f]*(?:\x07|\x1b\\\\|\x9c)"  # OSC: title, clipboard, links
    "|(?:\x1b[PX^_]|[\x90\x98\x9e\x9f])[^\x00-\x1f\x7f-\x9f]*(?:\x1b\\\\|\x9c)"  # DCS, SOS, PM, APC
    "|\x1b[ -/]*[0-~]"  # everything shorter: charsets, keypad, full reset
)

# Joiners shape Arabic, Indic and their neighbours' letters; elsewhere they only hide differences and break
# the arithmetic of cells (an emoji sequence is two cells here, eight there).
_STRAY_JOINER = re.compile(f"(?<![\u0600-\u0fff\u1780-\u1aff])[{_JOINERS}]+")
_INVISIBLE = re.compile(f"[{_HIDDEN}]+")
_PILE = re.compile(f"([{_COMBINING}]{{3}})[{_COMBINING}]+")


def _pictures() -> dict[int, str]:
    table = {code: chr(0x2400 + code) for code in range(0x20) if code != 0x0A}
    table[0x7F] = "\u2421"
    table.update({code: f"‹{code:02X}›" for code in range(0x80, 0xA0)})
    for span in ((0x061C, 0x061C), (0x200E, 0x200F), (0x202A, 0x202E), (0x2066, 0x2069)):
        table.update({code: f"‹U+{code:04X}›" for code in range(span[0], span[1] + 1)})
    table.update(dict.fromkeys(range(0xD800, 0xE000), "\ufffd"))
    table.update({0x2028: "\n", 0x2029: "\n"})
    return table


_PICTURES = _pictures()
_SECRETIVE = {
    ord(char): f"‹U+{ord(char):04X}›"
    for char in "\u00ad\u180e\u200b\u200c\u200d\u2060\u2061\u2062\u2063\u2064\ufeff"
}


def sanitize(text: str) -> str:
    """Prose and output made safe: escape sequences and invisible characters go, other controls become visible.

    A carriage return overwrites its line as on a terminal (the last state of a progress bar stays), tabs are
    expanded, bidirectional overrides are spelled out, lone surrogates become U+FFFD. Linear time; text that
    is safe already is returned as it is.
    """
    if _UNSAFE.search(text) is None:
        return text
    if "\x1b" in text or not text.isascii():
        text = _SEQUENCE.sub("", text)
    if "\r" in text:
        text = _overwritten(text)
    return _spelled(_INVISIBLE.sub("", _STRAY_JOINER.sub("", _expanded(text))))


def reveal(text: str) -> str:
    """Text made safe without hiding anything: what an operator is asked to allow.

    Every control, escape and invisible character is spelled out (`␛[2J`, `␍`, `‹U+202E›`), none is removed:
    a command that rewrites its own line on screen must not look harmless. Tabs are expanded.
    """
    if _UNSAFE.search(text) is None:
        return text
    return _spelled(_INVISIBLE.sub(_code_points, _expanded(text).translate(_SECRETIVE)))


def one_line(text: str, limit: int = 400) -> str:
    """The beginning of `text` as one safe line: runs of white space become one space.

    `limit` is in characters and bounds the work on long texts; what was left out is marked by an ellipsis.
    """
    cut = text if len(text) <= limit else text[:limit] + "…"
    return " ".join(sanitize(cut).split())


def is_safe(text: str) -> bool:
    """Whether nothing in `text` would be changed by `sanitize`."""
    return _UNSAFE.search(text) is None


def _overwritten(text: str) -> str:
    """Each line as it looks after its carriage returns: the last state that was not empty."""
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join(
        next((part for part in reversed(line.split("\r")) if part), "") if "\r" in line else line
        for line in lines
    )


def _expanded(text: str) -> str:
    return text.expandtabs(TAB) if "\t" in text else text


def _spelled(text: str) -> str:
    return _PILE.sub(r"\1", text.translate(_PICTURES))


def _code_points(match: re.Match[str]) -> str:
    return "".join(f"‹U+{ord(char):04X}›" for char in match.group())
