"""One finished iteration as the detectors see it: what became of each call, in the order of the reply.

Results of parallel calls arrive in any order; they are kept as `CallResult`s until the iteration ends. What counts as
a failure is said here; nothing here judges.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal

from tui_agent.core import events
from tui_agent.core.names import UPDATE_PLAN
from tui_agent.core.recovery.error_shape import GAP, error_shape
from tui_agent.core.recovery.findings import found_by
from tui_agent.core.recovery.no_match import finds_nothing
from tui_agent.core.recovery.signature import call_key
from tui_agent.core.tool_facts import UNKNOWN, ToolFacts, facts_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_agent.core.recovery.parameters import Parameters


Answer = Literal["", "no_match", "findings"]
"""The meaning of an exit code that is not 0 but no failure: nothing was found, or something was."""


class CallStatus(StrEnum):
    """The fate of a call."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    DENIED = "denied"
    BLOCKED = "blocked"
    WITHHELD = "withheld"
    BREAKER = "breaker"
    CANCELLED = "cancelled"
    NOT_KNOWN = "not_known"
    """It ended, and nothing says how: neither a success nor a failure."""
    WAITING = "waiting"
    """A command that waits failed as it had before: what it waits for is not there yet."""
    UNFINISHED = "unfinished"
    """A command was cut off by its time limit while it got further: progress (`failure.unfinished`)."""
    UNVERIFIED = "unverified"
    """The answer of a run, sent back to be verified: neither a success nor a failure."""


WORKED = frozenset({CallStatus.SUCCEEDED, CallStatus.UNFINISHED})
"""It did work, as far as it came."""

REFUSED = frozenset({CallStatus.WITHHELD, CallStatus.BREAKER})
"""Not executed because recovery refused: no failure, and yet an iteration without success for the stall. A blocked
call waits for the operator; its refusals count in the stuck patterns alone."""

FORM_ERRORS = frozenset(
    {
        events.FailureKind.NO_TOOL_CALL,
        events.FailureKind.INVALID_TOOL_CALL,
        events.FailureKind.UNKNOWN_TOOL,
    }
)
"""Failures of the reply's form: nothing was executed."""

_LONGEST_NAME = 200


@dataclass(frozen=True)
class CallResult:
    """One call and its end. `content` is what the model read; `changed`: files of the workspace were changed."""

    status: CallStatus
    tool: str
    input: Mapping[str, Any]
    key: str
    index: int
    content: str
    failure: events.Failure | None
    changed: bool
    seq: int
    did_nothing: bool = False
    """It succeeded without doing any work (`failure.no_work`)."""
    duration: float = 0.0
    """Seconds."""
    finding: events.Failure | None = None
    """The tool's report of a failure, if the exit code says that a program found something
    (`failure.findings`); it is in `failure` too once it repeats with nothing changed in between.
    """
    changed_files: tuple[str, ...] = ()
    """The files that an edit tool names as changed."""
    contradiction: events.Contradiction | None = None
    """The workspace's contradiction of its success."""
    facts: ToolFacts = UNKNOWN
    """The facts of its tool."""

    @property
    def worked(self) -> bool:
        """It succeeded or got further, and that means something."""
        return self.status in WORKED and not self.did_nothing

    @property
    def passed(self) -> bool:
        """It ended well by the tool's own word: findings are a result, but none that passed."""
        return self.status is CallStatus.SUCCEEDED and self.finding is None

    @property
    def outcome(self) -> str:
        """The outcome, to be compared: the result, or the error's own text."""
        failed = self.failure or self.finding
        return self.content if failed is None else failed.message


@dataclass(frozen=True)
class Iteration:
    """An iteration that has ended. `rejected` is the failure of a text-only reply that was not taken as an answer."""

    number: int
    results: tuple[CallResult, ...] = ()
    rejected: events.Failure | None = None
    seq: int = 0
    at: float = 0.0
    cancelled: bool = False
    succeeded: bool = False
    """A call succeeded and did work."""
    failed: bool = False
    """A call failed or the reply was rejected."""
    broke_form: bool = False
    """Replies or calls of a wrong form failed, and nothing was executed."""
    refused: bool = False
    """A call was refused by recovery itself (see `REFUSED`)."""
    unanswered: bool = False
    """No model call of it succeeded."""

    def failing(self, policy: Parameters) -> bool:
        """Nothing succeeded, and something failed. Denials, refusals and cancellations alone are neutral, and
        so are errors of form if they have a ladder of their own.
        """
        return self.failed and not self.succeeded and not (self.broke_form and policy.form != "count")

    def failures(self) -> Iterator[events.Failure]:
        """The failures in call order; a rejected reply has but one."""
        if self.rejected is not None:
            yield self.rejected
        for result in self.results:
            if result.failure is not None:
                yield result.failure


def result_of_call(event: events.ToolResult, policy: Parameters) -> CallResult:
    """The fate of a call, by its result event. A search that found nothing has succeeded
    (`failure.no_match`), a call that was cancelled because a sibling failed has not failed
    (`failure.sibling`), and findings of a program are a result (`failure.findings`).
    """
    status, failure, did_nothing = CallStatus.SUCCEEDED, None, False
    changed: tuple[str, ...] = ()
    finding: events.Failure | None = None
    contradiction: events.Contradiction | None = None
    match event:
        case events.ToolSucceeded():
            changed, contradiction = event.changed, event.contradiction
            did_nothing = event.tool == UPDATE_PLAN or (policy.work_only and not did_work(event))
        case events.ToolFailed() if event.failure.kind is events.FailureKind.CANCELLED:
            status = CallStatus.CANCELLED
        case events.ToolFailed():
            answer = answer_by_code(event, policy)
            if answer == "findings":
                finding = event.failure
            elif not answer:
                status, failure = CallStatus.FAILED, event.failure
        case events.ToolRefused():
            status = CallStatus(event.refusal)
        case events.ToolEnded():
            status = CallStatus.NOT_KNOWN
        case _:
            status = CallStatus.CANCELLED
    key = event.key or call_key(event.tool, event.input, policy.attempts_key)
    return CallResult(
        status,
        event.tool,
        event.input,
        key,
        event.index,
        event.content,
        failure,
        bool(changed),
        event.seq,
        did_nothing,
        event.duration,
        finding,
        changed,
        contradiction,
        facts_of(event),
    )


def did_work(event: events.ToolSucceeded) -> bool:
    """False for a plan, for the end of the run, and for a write of what the file held already."""
    facts = facts_of(event)
    # A recording that does not say which files a write touched is believed.
    return facts.works and (not facts.edits or not event.files or bool(event.changed))


def answer_by_code(event: events.ToolFailed, policy: Parameters) -> Answer:
    """The meaning of the exit code if it is no failure; else ""."""
    if policy.search_results and found_nothing(event):
        return "no_match"
    return "findings" if findings_of(event, policy) else ""


def found_nothing(event: events.ToolFailed) -> bool:
    """True if the failure is only a search or comparison without a match."""
    command = _executed_command(event)
    return command is not None and finds_nothing(command, event.failure.message)


def findings_of(event: events.ToolFailed, policy: Parameters) -> str:
    """The program that reported findings by its exit code; "" if the call failed."""
    command = _executed_command(event) if policy.findings else None
    failure = event.failure
    if command is None or failure.transient or failure.unknown_effect:
        return ""
    return found_by(command, failure.message, policy.finding_codes)


def command_of(arguments: Mapping[str, Any]) -> str | None:
    """The shell command of a call; None if it is none."""
    command = arguments.get("command", arguments.get("cmd"))
    if command is None:
        return None
    if isinstance(command, list) and all(isinstance(word, str) for word in command):
        command = " ".join(command)
    return command if isinstance(command, str) and "path" not in arguments else None


def _executed_command(event: events.ToolFailed) -> str | None:
    executed = event.failure.kind is events.FailureKind.TOOL_EXECUTION
    return command_of(event.input) if executed else None


def in_call_order(results: tuple[CallResult, ...]) -> tuple[CallResult, ...]:
    """The results in the order of the reply's calls, as the detectors read them."""
    return tuple(sorted(results, key=lambda result: result.index)) if len(results) > 1 else results


def close(
    number: int,
    results: tuple[CallResult, ...],
    rejected: events.Failure | None = None,
    *,
    seq: int = 0,
    at: float = 0.0,
    cancelled: bool = False,
    unanswered: bool = False,
) -> Iteration:
    """The finished iteration; `results` in the order of the calls."""
    succeeded = failed = executed = refused = False
    for result in results:
        status, failure = result.status, result.failure
        succeeded = succeeded or result.worked
        failed = failed or failure is not None
        executed = executed or status in WORKED
        executed = executed or (failure is not None and failure.kind not in FORM_ERRORS)
        refused = refused or status in REFUSED
    failed = failed or rejected is not None
    return Iteration(
        number,
        results,
        rejected,
        seq,
        at,
        cancelled,
        succeeded,
        failed,
        broke_form=failed and not executed,
        refused=refused,
        unanswered=unanswered,
    )


def shape_of(failure: events.Failure) -> str:
    """Kind, tool and the message without names, paths, numbers, and the call's own arguments."""
    message = failure.message
    for value in failure.input.values():
        if isinstance(value, str) and 0 < len(value) <= _LONGEST_NAME and value in message:
            end = "" if len(value) > 1 else r"\s*$"
            message = re.sub(rf"(?<!\w){re.escape(value)}(?!\w){end}", GAP, message)
    return f"{failure.kind}|{failure.tool}|{error_shape(message)}"
