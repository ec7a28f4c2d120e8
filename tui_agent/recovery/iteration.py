"""One finished iteration as the detectors see it: what became of each call, in the order of the reply.

Results of parallel calls arrive in any order; they are kept as `Outcome`s until the iteration ends. Nothing
here judges.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from tui_agent import events as e
from tui_agent.recovery.signature import call_key

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class Status(StrEnum):
    """What became of a call."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    DENIED = "denied"
    BLOCKED = "blocked"
    WITHHELD = "withheld"
    BREAKER = "breaker"
    CANCELLED = "cancelled"


KEPT_BACK = frozenset({Status.BLOCKED, Status.WITHHELD, Status.BREAKER})
"""Not executed because recovery refused: neither a failure nor a success."""


@dataclass(frozen=True)
class Outcome:
    """One call and its end. `key` is canonical; `content` is what the model read; `changed`: files were changed."""

    status: Status
    tool: str
    input: Mapping[str, Any]
    key: str
    index: int
    content: str
    failure: e.Failure | None
    changed: bool
    seq: int
    at: float


@dataclass(frozen=True)
class Iteration:
    """An iteration that has ended. `rejected` is the failure of a text-only reply that was not taken as an answer."""

    number: int
    outcomes: tuple[Outcome, ...] = ()
    rejected: e.Failure | None = None
    seq: int = 0
    at: float = 0.0
    cancelled: bool = False
    succeeded: bool = False
    """A call succeeded."""
    failed: bool = False
    """A call failed or the reply was rejected."""
    kept_back: bool = False
    """A call was refused by recovery itself."""

    @property
    def failing(self) -> bool:
        """Nothing succeeded, and something failed or was kept back. Denials and cancellations alone are neutral."""
        return not self.succeeded and (self.failed or self.kept_back)

    def failures(self) -> Iterator[e.Failure]:
        """The failures in call order; a rejected reply has but one."""
        if self.rejected is not None:
            yield self.rejected
        for outcome in self.outcomes:
            if outcome.failure is not None:
                yield outcome.failure


def outcome_of(event: e.ToolResult) -> Outcome:
    """The outcome that a result event tells of."""
    status, failure, changed = Status.SUCCEEDED, None, False
    if isinstance(event, e.ToolSucceeded):
        changed = bool(event.changed)
    elif isinstance(event, e.ToolFailed):
        if event.failure.kind is e.FailureKind.CANCELLED:
            status = Status.CANCELLED
        else:
            status, failure = Status.FAILED, event.failure
    elif isinstance(event, e.ToolRefused):
        status = Status(event.refusal)
    else:
        status = Status.CANCELLED
    return Outcome(
        status,
        event.tool,
        event.input,
        call_key(event.tool, event.input),
        event.index,
        event.content,
        failure,
        changed,
        event.seq,
        event.at,
    )


def close(
    number: int,
    outcomes: tuple[Outcome, ...],
    rejected: e.Failure | None = None,
    *,
    seq: int = 0,
    at: float = 0.0,
    cancelled: bool = False,
) -> Iteration:
    """The finished iteration, its outcomes in the order of the calls."""
    if len(outcomes) > 1:
        outcomes = tuple(sorted(outcomes, key=_index))
    statuses = {outcome.status for outcome in outcomes}
    return Iteration(
        number,
        outcomes,
        rejected,
        seq,
        at,
        cancelled,
        succeeded=Status.SUCCEEDED in statuses,
        failed=rejected is not None or Status.FAILED in statuses,
        kept_back=not statuses.isdisjoint(KEPT_BACK),
    )


def _index(outcome: Outcome) -> int:
    return outcome.index
