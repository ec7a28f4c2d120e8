"""The same thing asked in other words: `cat a`, `head -100 a` and `sed -n 1,200p a` with one and the same result.

Which calls only look, and which results say enough to be compared; the calls are counted in `stuck`. Test runs and
other checkers do not count, since different tests pass with the same words, and neither do tools of unknown effect.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import SequenceMatcher
from typing import Any

from tui_agent.core.recovery import command_reading
from tui_agent.core.recovery.iteration import command_of
from tui_agent.core.recovery.writes import Writes, writes
from tui_agent.core.tool_facts import ToolFacts

_SHORTEST = 60
"""Characters of a result, white space counted once; `False` and `No matches.` answer many questions."""
_SHORTEST_WORD, _ALIKE = 4, 0.65
"""Letters and digits from which on two spellings of a word are compared, and how alike they are."""
_LONGEST = 400
"""Characters of an argument that are compared."""


def only_looks(facts: ToolFacts, arguments: Mapping[str, Any]) -> bool:
    """True if a call shows something and does nothing else."""
    command = command_of(arguments)
    if command is None:
        return bool(facts.looks)
    return writes(command) is Writes.NOTHING and not command_reading.read(command).checker


def near_identical(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Tell if two calls differ in one word, and that is the same one in another spelling: `color` and `colour`."""
    first, second = _words(one), _words(other)
    left, right = first - second, second - first
    if len(left) != 1 or len(right) != 1:
        return first == second
    (a,), (b,) = ({_bare(word) for word in words} for words in (left, right))
    if min(len(a), len(b)) < _SHORTEST_WORD:
        return False
    return a in b or b in a or SequenceMatcher(None, a, b, autojunk=False).ratio() >= _ALIKE


def _words(arguments: Mapping[str, Any]) -> set[str]:
    return {
        word for value in arguments.values() if isinstance(value, str) for word in value[:_LONGEST].split()
    }


def _bare(word: str) -> str:
    return "".join(filter(str.isalnum, word.casefold()))


def says_much(text: str) -> bool:
    """True if a result is long enough to answer one question only."""
    if len(text) < _SHORTEST:
        return False
    # Nearly every text says enough at its beginning.
    return any(len(" ".join(text[: many * _SHORTEST].split())) >= _SHORTEST for many in (4, 100))
