"""Commands that a time limit cut off while they were at work: progress, and no failure.

| counts | a command that its limit cut off after it had written something, and something else than when it was cut off
|        | last: a build that gets further each time |
| resets | the same output once more is a failure like any other |
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from tui_agent.core.evolve import evolve
from tui_agent.core.recovery.iteration import CallResult, CallStatus, command_of
from tui_agent.core.recovery.signature import normalise

_KEPT = 50
"""Calls that are remembered."""
_TAIL = 2_000
"""Characters of an output that are compared, from its end: what moves stands there."""
_FRAME = re.compile(
    r"^.*\b(?:did not end within [\d.]+ s|It had written nothing|timed? ?out|deadline exceeded)\b.*$"
    r"|\A(?:error: )?exit code -?\d+$|\^C|<[^>\n]{1,40}>",
    re.IGNORECASE | re.MULTILINE,
)
"""The words of whoever cut it off, beside what it had written."""


@dataclass(frozen=True)
class TimeOuts:
    """By key of the call, what it had written when it was cut off last; oldest first."""

    written: dict[str, str] = field(default_factory=dict)

    def judge(self, results: Sequence[CallResult]) -> tuple[TimeOuts, tuple[CallResult, ...]]:
        """Mark those of the results that got further as `unfinished`."""
        if not any(result.failure is not None and result.failure.unknown_effect for result in results):
            return self, tuple(results)
        written, judged = dict(self.written), []
        for result in results:
            failure = result.failure
            if failure is not None and failure.unknown_effect and command_of(result.input) is not None:
                said = normalise(_FRAME.sub("", failure.message[-_TAIL:])).strip()
                moved = any(map(str.isalnum, said)) and said != written.pop(result.key, "")
                written[result.key] = said
                if moved:
                    result = evolve(
                        result, status=CallStatus.UNFINISHED, failure=None, content=failure.message
                    )
            judged.append(result)
        for key in list(written)[:-_KEPT]:
            del written[key]
        return TimeOuts(written), tuple(judged)
