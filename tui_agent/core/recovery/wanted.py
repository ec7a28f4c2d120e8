"""How often the operator's words ask for the same thing: `run it five times`, `20x`, `3 mal`.

Who asks for a repetition gets it: up to that number the same call with the same outcome is what was wanted, and neither
a loop nor a failure that repeats (`stuck.wanted`).
"""

from __future__ import annotations

import re
from functools import lru_cache

_LONGEST = 8_000
"""Characters of a message that are looked at."""

_WORDS = (
    "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen", "fourteen",
    "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty",
)  # fmt: skip
_NUMBERS = {word: number for number, word in enumerate(_WORDS, 2)}

_TIMES = re.compile(
    rf"\b(\d{{1,4}}|{'|'.join(_WORDS)})(?:\ ?[x×]|[\ -](?:more\ )?(?:times|mal|fois|veces|volte|vezes|keer))(?!\w)",
    re.IGNORECASE,
)


@lru_cache(maxsize=8)
def times_wanted(words: str, most: int) -> int:
    """The largest number of times that the words name, `most` at the highest; 0 if they name none."""
    found = (number.lower() for number in _TIMES.findall(words[:_LONGEST]))
    return min(most, max((_NUMBERS.get(number) or int(number) for number in found), default=0))
