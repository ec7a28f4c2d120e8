"""How much of a processor's time and of a command's words one judgement may take, whatever the text and the tree."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

MOST_WORDS = 20_000
"""Words read in a command, those of scripts in its arguments counted again."""
SECONDS = 0.05
"""Processor time of one judgement, so that a busy machine asks no more often than an idle one."""
_LONGEST = 1.0
"""Seconds that may pass meanwhile, as on a slow disk."""
MARGIN = 0.014
"""Seconds for the step that is under way when the time is found to be over."""
MARGIN_OF_THE_GRAMMAR = 0.025
"""The same if that step is the repair of a text that is no bash: it grows with the text, to 21 ms at the longest."""
_MANY = 200
_FOR_A_WORD = 8e-6
"""Seconds that a rule, or the table of what only reads, takes for each of many words."""
_UNWATCHED = 32
"""Small steps between two looks at the clock, which cost more than such a step."""


class TooMuchToJudge(Exception):
    """A judgement would take too long. The message says why, as the end of "it could not be judged: …"."""


def too_long() -> TooMuchToJudge:
    """For when the time is over."""
    return TooMuchToJudge(f"it takes more than {SECONDS * 1000:.0f} ms of the processor")


@dataclass
class JudgementBudget:
    """The rest of one judgement's budget. Not for two threads: the time is that of the thread which judges."""

    words: int = MOST_WORDS
    _began: float = field(default_factory=time.perf_counter)
    _used: float = field(default_factory=time.thread_time)
    _steps: int = 0

    def read(self, words: int) -> None:
        """Take words that are read for the first time. Raises `TooMuchToJudge`."""
        self.words -= words
        if self.words < 0:
            raise TooMuchToJudge(f"it has more than {MOST_WORDS:,} words, scripts in its arguments included")
        self.step()

    def step(self, size: int = 1) -> None:
        """Go on with a step of some `size`, about a microsecond each. Raises `TooMuchToJudge`."""
        self._steps += size
        if self._steps >= _UNWATCHED:
            self._steps = 0
            self.look()

    def need(self, words: int) -> None:
        """Go on with something that looks at each of these words and at no clock. Raises `TooMuchToJudge`."""
        if words > _MANY and self.over(max(MARGIN, words * _FOR_A_WORD)):
            raise too_long()

    def look(self) -> None:
        """Look at the clock. Raises `TooMuchToJudge`."""
        if self.over():
            raise too_long()

    def over(self, margin: float = MARGIN) -> bool:
        """True if the time is over, but for the `margin` in seconds."""
        passed = time.perf_counter() - self._began
        # The processor's clock costs forty times the other, and is never ahead of it.
        most = SECONDS - margin
        return passed > most and (passed > _LONGEST or time.thread_time() - self._used > most)
