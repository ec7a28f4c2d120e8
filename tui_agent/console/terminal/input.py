"""Bytes from the terminal as keys, pastes and reports, in the order in which they came, however they were cut.

Textual knows the meaning of a sequence; this module finds its end, by the grammar of ECMA-48. An unknown
sequence is dropped and never typed, and the text of a paste is not looked into.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from time import monotonic

from textual import events, messages
from textual._xterm_parser import XTermParser
from textual.keys import Keys
from textual.message import Message

ESC = "\x1b"
PASTE_START, PASTE_END = "\x1b[200~", "\x1b[201~"

ESCAPE_DELAY = 0.1
"""Seconds after which an ESC is the key itself."""

SEQUENCE_DELAY = 0.5
"""Seconds after which a sequence that was begun is given up: networks cut them too."""

PASTE_DELAY = 2.0
"""Seconds of silence in a paste after which its beginning is shown; the rest is still a paste."""

LONGEST = 4_096
"""Characters of an answer of the terminal; a longer one is none."""

_COMPLETE = re.compile(
    r"\x1b\[\[[A-E]"  # function keys of the Linux console
    r"|\x1b\[\d+\$(?!y)"  # shifted function keys of rxvt
    r"|\x1b\[M[^\x1b]{3}"  # mouse, the oldest form
    r"|\x1b\[[0-?]*[ -/]*[@-~]"  # CSI
    r"|\x1bO[0-9;]*[ -:<-~]"  # SS3
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)",  # OSC and other strings: answers of the terminal
    re.DOTALL,
)
_BEGUN = re.compile(
    r"\x1b\x1b?(?:\[\[?|\[M[^\x1b]{0,2}|\[[0-?]*[ -/]*|O[0-9;]*|[\]PX^_][^\x07\x1b]*\x1b?)?", re.DOTALL
)
_STRING = re.compile(r"\x1b[\]PX^_][^\x07\x1b]{1000}")
_STRING_END = re.compile(r"\x07|\x1b\\|(?=\x1b)")
_CURSOR = re.compile(r"\x1b\[(\d+);(\d+)R")
_MODE = re.compile(r"\x1b\[\?(\d+);(\d)\$y")


class InputParser(XTermParser):
    """`feed` takes what was read, `tick` what time decides. Both give messages in order."""

    def __init__(self) -> None:
        super().__init__()
        self._rest = ""
        self._paste: list[str] | None = None
        self._swallowing = False
        """In the middle of an answer that is too long to be one."""
        self._deadline = float("inf")

    def feed(self, data: str) -> Iterable[Message]:
        """The messages in `data` and in what was left of the text before it; of moves of the mouse that came
        together the last.
        """
        move: Message | None = None
        for message in self._messages(data):
            if move is not None and not isinstance(message, events.MouseMove):
                yield move
            move = message if isinstance(message, events.MouseMove) else None
            if move is None:
                yield message
        if move is not None:
            yield move

    def _messages(self, data: str) -> Iterator[Message]:
        self._rest += data
        self._deadline = float("inf")
        while self._rest:
            if self._paste is not None:
                yield from self._pasted(self._paste)
                if self._paste is not None:
                    return
                continue
            if self._swallowing:
                end = _STRING_END.search(self._rest)
                self._swallowing = end is None
                self._rest = "" if end is None else self._rest[end.end() :]
                self._deadline = monotonic() + SEQUENCE_DELAY if end is None else self._deadline
                continue
            before, escape, _ = self._rest.partition(ESC)
            for character in before:
                yield from self._keys(character)
            self._rest = self._rest[len(before) :]
            if not escape:
                return
            if _BEGUN.fullmatch(self._rest) and len(self._rest) < LONGEST:
                self._deadline = monotonic() + (ESCAPE_DELAY if self._rest == ESC else SEQUENCE_DELAY)
                return
            if _STRING.match(self._rest) and not _COMPLETE.match(self._rest):
                self._swallowing, self._rest = True, self._rest[2:]
                continue
            yield from self._sequence()

    def tick(self) -> Iterable[Message]:
        """Input that was begun and did not go on: the Esc key, Alt with a bracket, the first part of a slow
        paste.
        """
        if monotonic() < self._deadline:
            return
        self._deadline = float("inf")
        self._swallowing = False
        if self._paste is not None:
            if self._paste:
                yield _paste(self._paste)
                self._paste = []
            return
        rest, self._rest = self._rest, ""
        if rest.strip(ESC) == "":
            yield from (events.Key("escape", ESC) for _ in rest)
        elif len(rest) == 2:
            yield from self._keys(rest[1], alt=True)

    def _pasted(self, gathered: list[str]) -> Iterator[Message]:
        text, end, after = self._rest.partition(PASTE_END)
        if end:
            gathered.append(text)
            self._rest, self._paste = after, None
            yield _paste(gathered)
            return
        # The end mark may have been cut anywhere.
        kept = next((n for n in range(len(PASTE_END) - 1, 0, -1) if text.endswith(PASTE_END[:n])), 0)
        gathered.append(text[: len(text) - kept])
        self._rest = text[len(text) - kept :]
        self._deadline = monotonic() + PASTE_DELAY

    def _sequence(self) -> Iterator[Message]:
        """The sequence at the beginning of the rest; an ESC before anything else is Alt."""
        found = _COMPLETE.match(self._rest)
        if found is not None:
            self._rest = self._rest[found.end() :]
            yield from self._meaning(found.group())
            return
        second = self._rest[1]
        if second == ESC:
            later = _COMPLETE.match(self._rest, 1)
            keys = () if later is None else tuple(self._keys(later.group()))
            if later is not None and keys:
                self._rest = self._rest[later.end() :]
                yield from (_with_alt(key) for key in keys)
            else:
                self._rest = self._rest[1:]
                yield events.Key("escape", ESC)
            return
        self._rest = self._rest[2:]
        # Textual reads Alt and a digit as the sign of a Mac's keyboard, which sends that itself.
        known = () if second.isdecimal() else tuple(self._keys(ESC + second))
        yield from known or self._keys(second, alt=True)

    def _meaning(self, sequence: str) -> Iterator[Message]:
        match sequence:
            case "\x1b[200~":
                self._paste = []
                return
            case "\x1b[I":
                yield events.AppFocus()
                return
            case "\x1b[O":
                yield events.AppBlur()
                return
        if place := _CURSOR.fullmatch(sequence):
            yield events.CursorPosition(int(place[2]) - 1, int(place[1]) - 1)
        elif mode := _MODE.fullmatch(sequence):
            if mode[1] == "2026" and int(mode[2]) > 0:
                yield messages.TerminalSupportsSynchronizedOutput()
        elif sequence.startswith("\x1b[<"):
            mouse = self.parse_mouse_code(sequence)
            if mouse is not None:
                yield mouse
        else:
            # Textual reads the number of any sequence that it does not know as a character.
            typing = sequence.endswith("u")
            yield from (key for key in self._keys(sequence) if typing or len(key.key) > 1)

    def _keys(self, sequence: str, *, alt: bool = False) -> Iterator[events.Key]:
        for key in self._sequence_to_key_events(sequence):
            if key.key != Keys.Ignore:
                yield _with_alt(key) if alt else key


def _paste(gathered: list[str]) -> events.Paste:
    return events.Paste("".join(gathered).replace("\0", ""))


def _with_alt(key: events.Key) -> events.Key:
    """The key with Alt held. A letter keeps its character: an Esc and a letter can come as one."""
    name = f"shift+{key.key.lower()}" if len(key.key) == 1 and key.key.isupper() else key.key
    return events.Key(f"alt+{name}", key.character if key.is_printable else None)
