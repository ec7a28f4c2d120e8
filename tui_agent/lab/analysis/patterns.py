"""Error patterns: the failures of recorded runs, grouped by tool and by what their messages have in common.

A pattern is a failure's kind and tool, and the line of its message that says most, without volatile parts (times,
addresses, temporary paths). It belongs to the recording and not to a policy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from tui_agent.core import events
from tui_agent.core.recovery.signature import normalise
from tui_agent.terminal_text import clipped

if TYPE_CHECKING:
    from tui_agent.formats.importers.load import Imported

_LONGEST = 200
"""Characters of a pattern's line."""


class ErrorPattern(NamedTuple):
    """Features that failures share."""

    kind: str
    tool: str
    line: str


@dataclass
class Seen:
    """How often a pattern was seen, and in how many runs."""

    failures: int = 0
    runs: int = 0


Patterns = dict[ErrorPattern, Seen]


def patterns_of(runs: Iterable[Imported]) -> Patterns:
    """The patterns of all failures in `runs`, in the order in which they first occur."""
    found: Patterns = {}
    for run in runs:
        there: set[ErrorPattern] = set()
        for failure in _failures(run.events):
            pattern = pattern_of(failure)
            seen = found.setdefault(pattern, Seen())
            seen.failures += 1
            seen.runs += pattern not in there
            there.add(pattern)
    return found


def joined(all_patterns: Iterable[Patterns]) -> list[tuple[ErrorPattern, Seen]]:
    """The patterns of many files, the most frequent first; the same order for the same files."""
    sums: Patterns = {}
    for patterns in all_patterns:
        for pattern, seen in patterns.items():
            total = sums.setdefault(pattern, Seen())
            total.failures += seen.failures
            total.runs += seen.runs
    return sorted(sums.items(), key=lambda item: (-item[1].failures, -item[1].runs, item[0]))


def pattern_of(failure: events.Failure) -> ErrorPattern:
    """The pattern of one failure. Of a command and of an exception the last line says most, else the first."""
    lines = [line.strip() for line in failure.message.splitlines() if line.strip()]
    head = lines[0] if lines else ""
    if head.startswith("exit code ") and len(lines) > 1:
        head = f"{head}: {lines[-1]}"
    elif head.startswith("Traceback ("):
        head = lines[-1]
    return ErrorPattern(str(failure.kind), failure.tool, clipped(normalise(head), _LONGEST))


def _failures(listed: Iterable[events.Event]) -> Iterator[events.Failure]:
    for event in listed:
        match event:
            case events.ToolFailed() | events.ReplyRejected():
                yield event.failure
            case events.ModelFaulted(fault=fault):
                yield events.Failure(
                    kind=events.FailureKind.MODEL_API, message=f"{fault.kind.in_words}: {fault.message}"
                )
