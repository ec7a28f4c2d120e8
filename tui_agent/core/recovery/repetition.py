"""Repetition within a reply: the same words over and over, seen while they stream (`form.repetition`).

Only exact repetition counts, and much of it: tables, lists of similar lines, rulers, code and data are none. Pure and
bounded: a check costs one comparison of the text's end, and is made once for every few hundred characters.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from tui_agent.core.events import CallProblem, FailureKind
from tui_agent.core.recovery.rules import Rule

REPEATED = "repetition"
"""The finish reason of a reply that we cut because it repeated itself."""

_PROSE, _PROSE_TIMES = 3_000, 8
"""Characters of words outside of a fence that repeat, and how often: less may have been asked for."""

_OTHER, _OTHER_TIMES = 12_000, 24
"""The same for what has no words (rulers, zeros) and for code and data in a fence."""

_CUT, _CUT_TIMES = 400, 4
"""The same at the end of a reply that the length limit cut: to go on would repeat it."""

_EVERY = 256
"""Characters between two checks."""

_SUFFIX = 64
"""Characters of the end whose place before tells the length of what repeats."""

_WORD = re.compile(r"[^\W\d_]{2,}")
_FENCE = re.compile(r"^[ \t]*(?:```|~~~)", re.MULTILINE)


@dataclass
class RepetitionWatch:
    """Fed with the pieces of one text; keeps its end only."""

    _end: str = ""
    _unchecked: int = 0
    _fenced: bool = False
    _line: str = ""
    """The last line, as far as it has come: a fence may be cut between two pieces."""
    _pieces: list[str] = field(default_factory=list)

    def add(self, piece: str) -> bool:
        """True if the text repeats itself now."""
        self._pieces.append(piece)
        self._unchecked += len(piece)
        if self._unchecked < _EVERY:
            return False
        new = "".join(self._pieces)
        self._pieces.clear()
        self._unchecked = 0
        lines, _, rest = (self._line + new).rpartition("\n")
        self._fenced ^= len(_FENCE.findall(lines)) % 2 == 1
        self._line = rest[:_EVERY]
        self._end = (self._end + new)[-(_OTHER + _SUFFIX) :]
        return bool(repeated(self._end, fenced=self._fenced))


def repeated(text: str, *, fenced: bool = False, cut: bool = False) -> str:
    """The passage that `text` repeats at its end; "" if there is none. `fenced`: the end is code or data.

    `cut`: the length limit ended the text, so that little repetition is enough.
    """
    text = text[-(_OTHER + _SUFFIX) :]
    before = text.rfind(text[-_SUFFIX:], 0, len(text) - 1)
    if len(text) <= _SUFFIX or before < 0:
        return ""
    length = len(text) - _SUFFIX - before
    unit = text[-length:]
    prose = not fenced and _WORD.search(unit) is not None
    least, times = (_PROSE, _PROSE_TIMES) if prose else (_OTHER, _OTHER_TIMES)
    if cut and prose:
        least, times = _CUT, _CUT_TIMES
    span = max(least, length * times)
    if span > len(text) or text[-span:-length] != text[-span + length :]:
        return ""
    return unit


def repetition_in(text: str, finish_reason: str) -> CallProblem | None:
    """The reason why a text that was cut, by us or by the length limit, is no answer; None if it may be
    continued.
    """
    if finish_reason != REPEATED and not (finish_reason == "length" and repeated(text, cut=True)):
        return None
    return CallProblem(
        kind=FailureKind.NO_TOOL_CALL,
        message="The reply said the same again and again and was cut. Do not go on with it: call a tool, or give a "
        "short answer.",
        rule=Rule.FORM_REPETITION,
    )


def without_repetition(text: str) -> str:
    """`text` with what repeats at its end, however it came to be noticed, standing there once."""
    unit = repeated(text, cut=True) or repeated(text, fenced=True)
    length, start = len(unit), len(text) - len(unit)
    if not unit:
        return text
    while start >= length and text[start - length : start] == unit:
        start -= length
    return text[: start + length]
