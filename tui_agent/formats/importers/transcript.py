"""The neutral form between a foreign record and our events: who said what, which calls, how each one ended.

A format's module fills it in; `normalise` is its only reader. What a recording does not say stays None here
and is never guessed. No event is made in this file.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from tui_agent.core.events import FailureKind, Fault, Outcome
from tui_agent.formats.importers.values import clean, joined, json_text, parse_arguments, plain
from tui_agent.quantities import counted
from tui_agent.store.errors import SessionError
from tui_agent.terminal_text import visible

Status = Literal["ok", "failed", "denied", "cancelled", "unknown"]
"""How a call ended; `unknown`: there is a result, and it has no mark that is known."""


Refusal = Literal["denied", "blocked", "withheld", "breaker"]

_FEW = 2
"""Of so few no share is taken."""
_MOST_LOST = 0.02
"""Of records or results: beyond it, figures are wrong by more than people look for."""


class TranscriptError(SessionError):
    """A file cannot be read as a transcript: what happened, why, what to do. `line` counts from 1.

    All parts are safe to print, whatever the file or its name contains.
    """

    def __init__(self, path: str | Path, why: str, advice: str = "", line: int | None = None) -> None:
        path = str(path)
        place = path if line is None else f"{path}, line {line}"
        super().__init__(visible(place), visible(why).rstrip("."), visible(advice))
        self.path = path
        self.advice = advice
        self.line = line

    def __reduce__(self) -> tuple[Any, ...]:
        return TranscriptError, (self.path, self.why, self.advice, self.line)


def no_such_run(path: str, run: int, runs: int) -> TranscriptError:
    """Run `run` was asked for, and the file holds `runs`."""
    holds, advice = f"{runs} runs", f"Name one from 1 to {runs} with --run."
    if runs == 1:
        holds, advice = "one run", "Leave out --run; --at N opens at event N."
    return TranscriptError(path, f"it holds {holds}, and run {run} was asked for.", advice)


@dataclass(frozen=True)
class Call:
    """One tool call as recorded: `arguments` is the raw JSON text; `input` None if it is not an object."""

    id: str
    name: str
    arguments: str
    input: dict[str, Any] | None

    @classmethod
    def of(cls, key: str, name: str, given: Any) -> Call:
        """`given`: the arguments, as an object or as the text that the model wrote."""
        name = name or "unnamed"
        if isinstance(given, str):
            return cls(key, name, clean(given), parse_arguments(given))
        arguments = "" if given is None else json_text(given)
        return cls(key, name, arguments, plain(given) if isinstance(given, dict) else None)


@dataclass(frozen=True)
class Result:
    """How a call ended. `message` is the failure's text, or the reason of a denial; `duration` in seconds."""

    status: Status
    content: str
    at: float | None = None
    message: str = ""
    kind: FailureKind = FailureKind.TOOL_EXECUTION
    changed: tuple[str, ...] = ()
    diff: str = ""
    duration: float | None = None
    unknown_effect: bool = False
    hint: str = ""
    """Advice for a failure."""
    refusal: Refusal = "denied"
    """Who refused a call that was denied: a person, or recovery."""


@dataclass
class Turn:
    """One reply of the model and the results of its calls, by call id."""

    at: float | None = None
    text: str = ""
    reasoning: str = ""
    calls: list[Call] = field(default_factory=list)
    results: dict[str, Result] = field(default_factory=dict)
    model: str = ""
    finish_reason: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost: float | None = None
    rejected: str = ""
    """The foreign harness's words when it did not take this reply; such a reply has no calls."""
    rejected_as: FailureKind = FailureKind.NO_TOOL_CALL
    answer: str = ""
    """The final answer that the reply gave by a call."""

    def say(self, text: str = "", reasoning: str = "") -> None:
        """Add paragraphs."""
        self.text, self.reasoning = joined(self.text, text), joined(self.reasoning, reasoning)


@dataclass(frozen=True)
class Said:
    """A message of the operator (or of whoever plays that part)."""

    text: str
    at: float | None = None


@dataclass(frozen=True)
class Faulted:
    """A failed model call; `delay` in seconds, until the next try."""

    fault: Fault
    at: float | None = None
    delay: float = 0.0


@dataclass(frozen=True)
class Ending:
    """The end of a run that no reply is: the operator stopped it, or whatever the recording says."""

    reason: str
    at: float | None = None
    outcome: Outcome = Outcome.INTERRUPTED
    answer: str = ""
    detector: str = ""
    rule: str = ""


@dataclass(frozen=True)
class Remarked:
    """Something the recording says about itself that is neither a message nor a call."""

    text: str
    at: float | None = None
    severity: Literal["info", "warning"] = "info"


Step = Turn | Said | Faulted | Ending | Remarked


@dataclass
class Transcript:
    """One recorded run, or one conversation of many runs.

    `finished`: the recording itself says that the work ended with a submission (a text-only last reply says
    so too); `ending` is its word for how. `reward` is the recording's own grade, 1.0 for solved.
    """

    steps: list[Step] = field(default_factory=list)
    id: str = ""
    title: str = ""
    workspace: str = ""
    model: str = ""
    system_prompt: str = ""
    tools: tuple[str, ...] = ()
    finished: bool = False
    ending: str = ""
    answer: str = ""
    reward: float | None = None
    operator_present: bool = True
    subagent: bool = False
    lane: str = ""
    """Of a sub-agent: the call that started it, or an id of its own."""
    copied: dict[str, str] = field(default_factory=dict)
    """Calls that were copied out of another session when this one was forked, and that session."""
    touched: int = 0
    """The first step that was changed since events were made of the steps last."""

    def empty(self) -> bool:
        """Nothing was said or done in it."""
        return not any(isinstance(step, Turn | Said) for step in self.steps)


@dataclass
class ImportReport:
    """Counts of records of the file, not of events: read, understood and left out."""

    format: str
    path: str
    records: int = 0
    line: int = 0
    """The line of the newest record in its file."""
    understood: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    """Records that were left out, by their type."""
    lost: int = 0
    """Records, results and parts that are left out although they may hold a part of the conversation."""
    results: int = 0
    """Results of calls, those too that found no call."""
    lost_results: int = 0
    """Of these, the ones without a call."""
    unclear: int = 0
    """Of these, the ones without a mark that is known."""
    damaged: list[int] = field(default_factory=list)
    """Lines (from 1) that are not JSON or not an object."""
    torn: bool = False
    """The last line was cut off."""
    dropped: int = 0
    """Events of which the recorder itself says that it has lost them."""
    rebuilt: int = 0
    """Calls that were made up of their results."""
    remarks: list[str] = field(default_factory=list)
    runs: int = 0
    """Runs of the file, the empty ones too."""
    empty: int = 0
    """Of these, runs in which nothing was said or done: they become no session."""

    def skip(self, kind: str, count: int = 1) -> None:
        """Count records that are left out."""
        kind = clean(kind[:80])
        self.skipped[kind] += count
        if not self.skipped[kind]:
            del self.skipped[kind]

    def lose(self, kind: str) -> None:
        """Count what may hold a part of the conversation and is not read."""
        self.skip(kind)
        self.lost += 1

    @property
    def loss(self) -> str:
        """A sentence about what is not read or not known of it, if no figure of it holds because of that;
        else "".
        """
        lost = self.lost + len(self.damaged)
        known = self.results - self.lost_results
        parts = []
        if lost > self.records * _MOST_LOST:
            parts.append(f"{lost} of {counted(self.records, 'record')} are not read")
        if self.lost_results > self.results * _MOST_LOST:
            parts.append(f"{self.lost_results} of {counted(self.results, 'result')} find no call")
        if self.dropped:
            parts.append(f"the recorder itself lost {counted(self.dropped, 'event')}")
        if self.unclear * 2 > known:
            parts.append(f"how a call ended is not known for {self.unclear} of {known}")
        return f"Not to be relied on: {', '.join(parts)}." if parts else ""

    @property
    def useless(self) -> bool:
        """More of it is lost than read."""
        lost = self.lost + len(self.damaged)
        return (lost > _FEW and lost * 2 > self.records) or (
            self.lost_results > _FEW and self.lost_results * 2 > self.results
        )

    def summary(self) -> str:
        """One sentence a fact, for the notice at the head of the session and for the command line."""
        kinds = ", ".join(f"{kind} ×{count}" for kind, count in sorted(self.skipped.items()))
        first = ", ".join(str(line) for line in self.damaged[:5])
        more = f" and {len(self.damaged) - 5} more" if len(self.damaged) > 5 else ""
        parts = (
            self.loss,
            f"Imported from {self.format}: {self.understood} of {self.records} records understood.",
            kinds and f"Left out: {kinds}.",
            first and f"Damaged and left out: line {first}{more}.",
            self.torn and "The last line was cut off and is left out.",
            self.empty and f"Empty runs: {self.empty} of {self.runs}.",
            self.rebuilt and f"Calls rebuilt from their results, the actions being absent: {self.rebuilt}.",
            *self.remarks,
        )
        return visible(" ".join(map(str, filter(None, parts))))

    @property
    def clean(self) -> bool:
        """Nothing was damaged or torn."""
        return not self.damaged and not self.torn
