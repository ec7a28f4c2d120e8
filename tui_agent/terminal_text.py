"""Text from outside made safe for terminals, documents and logs. Imports nothing of the package.

Model text, tool output, file names and errors are hostile: no widget and no renderer filters control
characters. Text from these functions holds no character that a terminal acts on, save line feeds (and tabs if
they are kept).
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
_JOINED = "\u0600-\u061b\u061d-\u0fff\u1780-\u17b3\u17b6-\u180a\u1810-\u1aff"
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
_STRAY_JOINER = re.compile(f"(?<![{_JOINED}])[{_JOINERS}]+")
_INVISIBLE = re.compile(f"[{_HIDDEN}]+")
_PILE = re.compile(f"([{_COMBINING}]{{3}})[{_COMBINING}]+")


_MARKS = "\u00ad\u180e\u200b\u200c\u200d\u2060\u2061\u2062\u2063\u2064\ufeff"
"""Invisible characters that occur in ordinary text too, and are spelled out in front of an operator."""


def _spelled_out() -> dict[int, str]:
    table = {code: chr(0x2400 + code) for code in range(0x20) if code not in (0x09, 0x0A)}
    table[0x7F] = "\u2421"
    bidi = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
    for code in (*range(0x80, 0xA0), *bidi, 0x2028, 0x2029, *map(ord, _MARKS), *range(0xD800, 0xE000)):
        table[code] = f"‹U+{code:04X}›"
    return table


_SPELLED_OUT = _spelled_out()
_REPLACED = {0x2028: "\n", 0x2029: "\n", **dict.fromkeys(range(0xD800, 0xE000), "\ufffd")}
_REVEALED = _SPELLED_OUT | _REPLACED
_ESCAPED = {code: f"\\u{code:04x}" for code in _SPELLED_OUT}
_SANITIZED = {code: shown for code, shown in _REVEALED.items() if chr(code) not in _JOINERS}


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
    text = _INVISIBLE.sub("", _STRAY_JOINER.sub("", text.expandtabs(TAB)))
    return _PILE.sub(r"\1", text.translate(_SANITIZED))


def sanitize_between_tabs(text: str) -> str:
    """As `sanitize`, with tabs kept: for text that is piped on or edited, in which a tab counts."""
    return "\t".join(sanitize(part) for part in text.split("\t"))


def sanitize_paste(text: str) -> str:
    """As `sanitize_between_tabs`, for a paste, in which a terminal sends each line's end as a carriage
    return.
    """
    return sanitize_between_tabs(text.replace("\r\n", "\n").replace("\r", "\n"))


_UNSEEN = re.compile(
    f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_HIDDEN}{_BIDI}{_SEPARATORS}]"
    f"|(?<![{_JOINED}])[{_JOINERS}]|(?<=[{_COMBINING}]{{3}})[{_COMBINING}]"
)


def invisible(text: str) -> int:
    """Count the characters of a text that no terminal shows, and that `sanitize` removes or replaces."""
    return 0 if text.isprintable() and text.isascii() else sum(1 for _ in _UNSEEN.finditer(text))


_PASTED = re.compile("\r\n?|\x00|[\ud800-\udfff]")
_ARRIVES = {"\x00": "\u2400"}


def as_pasted(text: str) -> str:
    """A paste as a model gets it: line ends are those that a terminal made carriage returns of, and what cannot be
    sent (lone surrogates, and NUL, at which some servers end a text) is replaced by what shows it.
    """
    return _PASTED.sub(lambda found: _ARRIVES.get(found[0], "\n" if found[0][0] == "\r" else "\ufffd"), text)


def reveal(text: str) -> str:
    """Text made safe without hiding anything: what an operator is asked to allow.

    Every control, escape and invisible character is spelled out (`␛[2J`, `␍`, `‹U+202E›`), none is removed:
    a command that rewrites its own line on screen must not look harmless. Tabs are expanded.
    """
    if _UNSAFE.search(text) is None:
        return text
    text = _INVISIBLE.sub(_code_points, text.expandtabs(TAB).translate(_REVEALED))
    return _PILE.sub(r"\1", text)


def visible(text: str) -> str:
    """Text for documents and plain files: what a terminal acts on is spelled out, its shape stays.

    Tabs, line feeds and combining characters are kept; `\\r\\n` becomes a line feed.
    """
    if _UNSAFE.search(text) is None:
        return text
    return text.replace("\r\n", "\n").translate(_SPELLED_OUT)


def json_text(document: str) -> str:
    """A JSON document without characters that a terminal acts on: each becomes its `\\u` escape.

    A parser reads the same document; such characters stand only inside of strings, save line feeds.
    """
    if _UNSAFE.search(document) is None:
        return document
    return document.translate(_ESCAPED)


def clipped(text: str, limit: int) -> str:
    """The beginning of `text`, at most `limit` characters with the ellipsis for what was left out."""
    return text if len(text) <= limit else f"{text[: limit - 1].rstrip()}…"


def one_line(text: str, limit: int = 400) -> str:
    """The beginning of `text` as one safe line: runs of white space become one space.

    `limit` is in characters and bounds the work on long texts; what was left out is marked by an ellipsis.
    """
    cut = text if len(text) <= limit else text[:limit] + "…"
    return " ".join(sanitize(cut).split())


def revealed_line(text: str, limit: int = 400) -> str:
    """As `one_line`, with nothing hidden (`reveal`): for what runs, ran or is allowed."""
    cut = text if len(text) <= limit else text[:limit] + "…"
    return " ".join(reveal(cut).split())


def without_middle(line: str, limit: int = 1_000) -> str:
    """A line, without the middle of what was given and is too long to be read; `limit` in characters."""
    if len(line) <= limit:
        return line
    half = limit // 2
    return f"{line[:half]} … ({len(line) - 2 * half:,} characters are left out) … {line[-half:]}"


def escaped_line(text: str) -> str:
    """A file's name, or a message about one, on one line: all that is not printable as backslash escapes."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def is_safe(text: str) -> bool:
    """True if `sanitize` would change nothing in `text`."""
    return _UNSAFE.search(text) is None


def _overwritten(text: str) -> str:
    """Each line as it looks after its carriage returns: the last state that was not empty."""
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join(
        next((part for part in reversed(line.split("\r")) if part), "") if "\r" in line else line
        for line in lines
    )


def _code_points(match: re.Match[str]) -> str:
    return "".join(f"‹U+{ord(char):04X}›" for char in match.group())
