"""Polling: the same call again because it waits for something. Waiting is no loop.

| waits  | a command that sleeps, waits or watches, or a call that is told to; a call that took a second or more; one
|        | whose output differs from the last in nothing but a clock
| counts | a waiting command that fails as it failed before (a server is not up yet) is neither a failure nor a success,
|        | up to the number of `stuck_waits`; any other up to the number of times that the operator wants it (`wanted`)
| resets | another outcome of such a command
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tui_agent.core.events import FailureKind
from tui_agent.core.evolve import evolve
from tui_agent.core.recovery.iteration import CallResult, CallStatus, command_of
from tui_agent.core.recovery.signature import failure_signature

LONG = 1.0
"""Seconds from which on a call has waited, whatever it did."""

_LONGEST = 8_000
"""Characters of a command that are looked at."""

_WAITS = re.compile(
    r"""
    (?:^|[;&|(\n]|\bdo|\bthen|\btimeout\ [\d.]+[smh]?)[^\S\n]*
        (?:sleep|usleep|wait|watch|inotifywait|fswatch|wait-for-it(?:\.sh)?|wait-on|wait4x|dockerize|pg_isready)\b
    | \btail\ {1,3}(?:-\w{1,9}\ {1,3}){0,3}-\w{0,9}[fF]\b | --(?:wait|watch|follow|retry-connrefused)\b
    | \b(?:time|asyncio)\.sleep\(
    | \bkubectl\s+(?:wait|rollout\s+status)\b | \bdocker\s+wait\b | \bgh\s+run\s+watch\b
    """,
    re.VERBOSE,
)
"""Commands that wait by what they say."""
_WORDS = (
    "sleep",
    "wait",
    "watch",
    "tail",
    "--follow",
    "--retry-connrefused",
    "dockerize",
    "pg_isready",
    "rollout",
)
"""Without one of them no command does; looking for them is far cheaper."""

_CLOCK = re.compile(
    r"(?<![\w.:])(?:\d{4}-\d\d-\d\d[T ])?\d{1,2}:\d\d:\d\d(?![\w:])"
    r"|(?<![\w.])\d+(?:d|h|m|s)(?:\d+(?:h|m|s))*\b(?!\w)|(?<![\w.])\d+ (?:seconds?|secs?|minutes?|mins?|hours?)\b"
)
"""Times of day, and ages in whole units; how long a run of tests took (`0.12s`) is no clock."""


def waits(arguments: Mapping[str, Any], duration: float) -> bool:
    """Tell if the call waited, by its duration in seconds, or was told to."""
    return duration >= LONG or told_to_wait(arguments)


def told_to_wait(arguments: Mapping[str, Any]) -> bool:
    """Tell if its arguments say that it waits: a command that sleeps, or a time to wait."""
    command = command_of(arguments)
    if command is not None:
        return _says_so(command[:_LONGEST])
    wait = arguments.get("wait")
    return isinstance(wait, int | float) and wait >= LONG


@lru_cache(maxsize=32)
def _says_so(command: str) -> bool:
    return any(word in command for word in _WORDS) and _WAITS.search(command) is not None


def clock_moved(one: str, other: str) -> bool:
    """Tell if a clock in the one text stands elsewhere than in the other."""
    return one != other and _CLOCK.findall(one[:_LONGEST]) != _CLOCK.findall(other[:_LONGEST])


@dataclass(frozen=True)
class FailingPoll:
    """Commands that wait and fail alike: `times` in a row with this `signature`, whatever ran in between."""

    signature: str = ""
    times: int = 0

    def judge(
        self, results: Sequence[CallResult], longest: int, wanted: int = 0
    ) -> tuple[FailingPoll, tuple[CallResult, ...]]:
        """Mark results that only say once more what is waited for as `waiting`: of a call that waits up to `longest` in
        a row, of another as many as the operator's words want; `longest` 0: none.
        """
        if not longest or all(result.failure is None for result in results):
            return self, tuple(results)
        state, judged = self, []
        for result in results:
            failure = result.failure
            if (
                failure is not None
                and failure.kind is FailureKind.TOOL_EXECUTION
                and not failure.transient
                and ((told := told_to_wait(result.input)) or not failure.unknown_effect)
                and (most := longest if told else wanted + 1) > 1
            ):
                signature = failure_signature(failure)
                times = state.times + 1 if signature == state.signature else 1
                state = FailingPoll(signature, times)
                if 1 < times < most:
                    result = evolve(
                        result, status=CallStatus.WAITING, failure=None, finding=None, content=failure.message
                    )
            judged.append(result)
        return state, tuple(judged)
