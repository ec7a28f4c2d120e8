"""The attempts ledger: failures by call, and the calls that wait for the operator (Gigi).

| counts | failures of one call (tool and input); denials of it apart |
| resets | success of that call; another error than the last one restarts it at 1 (progress); Gigi: nothing |
| levels | guide below the limit of 3 · from it on: escalate, and the call is blocked until the operator allows it |

Only *retry once* and *edit and retry* let a blocked call run, once; after any other answer it stays blocked and is not
asked about again for being called.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from tui_agent.core.events import FailureKind, Level, VerdictRecord
from tui_agent.core.evolve import evolve
from tui_agent.core.recovery.iteration import CallResult, Iteration, Status
from tui_agent.core.recovery.refusals import Blocked, Decided
from tui_agent.core.recovery.rules import Rule
from tui_agent.core.recovery.signature import failure_signature
from tui_agent.core.recovery.verdict import ATTEMPTS, silent, verdict

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tui_agent.core.events import EscalationAnswered, Failure
    from tui_agent.core.recovery.policy import RecoveryPolicy

_KEPT = 200
"""Entries that are kept; beyond it the oldest that is not blocked goes."""


@dataclass(frozen=True)
class AttemptEntry:
    """One call's account."""

    key: str
    tool: str
    input: Mapping[str, Any]
    count: int = 0
    limit: int = 3
    blocked: bool = False
    denials: int = 0
    last_message: str = ""
    signature: str = ""
    progressed: bool = False
    """The newest failure was another one than that before it."""
    allowed: int = 0
    """Tries that the operator has allowed although it is blocked."""
    settled: Literal["", "skip", "answer", "nobody"] = ""
    """What the question about it was answered by: the operator's *skip*, the operator's words, or nobody. It is not
    asked about again for being called."""
    words: str = ""
    """The operator's own words in that answer."""
    hint: str = ""
    """The newest failure's."""

    def refusal(self, *, operator_present: bool) -> Blocked:
        """What is known where this call is not executed."""
        waits: Decided = "waits" if operator_present else "nobody"
        return Blocked(self.tool, self.count, self.settled or waits, self.words, self.last_message, self.hint)


@dataclass(frozen=True)
class AttemptLedger:
    """Entries by key, oldest first; `triggered` holds the keys that failed, were denied or were blocked in the last
    iteration.
    """

    entries: dict[str, AttemptEntry] = field(default_factory=dict)
    triggered: tuple[str, ...] = ()
    limit: int = 3

    def count(self, key: str) -> int:
        """Failures of this call that count now."""
        entry = self.entries.get(key)
        return 0 if entry is None else entry.count

    def newest_first(self) -> tuple[AttemptEntry, ...]:
        """Entries for the screen: the one that failed last comes first."""
        return tuple(reversed(self.entries.values()))

    def count_with(self, key: str, failure: Failure, policy: RecoveryPolicy) -> int:
        """What counts of this call once it has failed so."""
        old = self.entries.get(key)
        progress = old is not None and _progressed(old, failure_signature(failure), policy)
        return 1 if progress else self.count(key) + 1

    @property
    def highest(self) -> int:
        """The highest count of any call."""
        return max((entry.count for entry in self.entries.values()), default=0)

    # --- folding ---------------------------------------------------------------------------------------------

    def apply(self, iteration: Iteration, policy: RecoveryPolicy) -> AttemptLedger:
        """Fold a finished iteration, in call order."""
        if not iteration.results:
            return evolve(self, triggered=()) if self.triggered else self
        entries, triggered = dict(self.entries), dict[str, None]()
        for result in iteration.results:
            key = result.key
            if result.status is Status.SUCCEEDED:
                if policy.attempts_reset == "progress":
                    entries.pop(key, None)
            elif result.status is Status.BLOCKED:
                triggered[key] = None
            elif _counts(result, policy) and not (policy.batch_once and key in triggered):
                triggered[key] = None
                old = entries.pop(key, None)
                entries[key] = self._with_one_more(old, result, policy)
        _forget_oldest(entries)
        if not triggered and len(entries) == len(self.entries):
            return evolve(self, triggered=()) if self.triggered else self
        return evolve(self, entries=entries, triggered=tuple(triggered))

    def _with_one_more(
        self, old: AttemptEntry | None, result: CallResult, policy: RecoveryPolicy
    ) -> AttemptEntry:
        if old is None:
            old = AttemptEntry(result.key, result.tool, result.input, limit=self.limit)
        if result.failure is None:
            return evolve(
                old, denials=old.denials + 1, last_message=result.content, hint="", settled="", words=""
            )
        signature = failure_signature(result.failure)
        progress = _progressed(old, signature, policy)
        count = 1 if progress else old.count + 1
        return evolve(
            old,
            count=count,
            blocked=policy.attempts == "block" and count >= self.limit,
            allowed=0,
            last_message=result.failure.message,
            signature=signature,
            progressed=progress,
            settled="",
            words="",
            hint=result.failure.hint,
        )

    # --- the operator ----------------------------------------------------------------------------------------

    def allow(self, keys: Iterable[str]) -> AttemptLedger:
        """The operator allowed these calls, where blocked, to run once more."""
        changed = {
            key: evolve(entry, allowed=1, settled="")
            for key in keys
            if (entry := self.entries.get(key)) is not None and entry.blocked
        }
        return evolve(self, entries={**self.entries, **changed}) if changed else self

    def settle(self, keys: Iterable[str], answer: EscalationAnswered) -> AttemptLedger:
        """The question about these calls was answered, and none of them is allowed for it: they stay blocked."""
        settled = "nobody" if answer.by == "policy" else "skip" if answer.choice == "skip" else "answer"
        changed = {
            key: evolve(entry, settled=settled, words=answer.text)
            for key in keys
            if (entry := self.entries.get(key)) is not None
        }
        return evolve(self, entries={**self.entries, **changed}) if changed else self

    def blocking(self, key: str, earlier: int = 0) -> AttemptEntry | None:
        """The entry that keeps a call from running now; `earlier` is how often it runs in this reply already."""
        entry = self.entries.get(key)
        return entry if entry is not None and entry.blocked and earlier >= entry.allowed else None

    # --- judging ---------------------------------------------------------------------------------------------

    def verdict(self, policy: RecoveryPolicy) -> VerdictRecord:
        """`guide` below the limit, `escalate` from it on; also for the third denial and for a blocked call."""
        entry = self.subject(policy)
        if entry is None:
            return silent(ATTEMPTS)
        escalates = _escalates(entry, policy)
        if entry.denials and _denied_too_often(entry, policy):
            reason, rule = f"{entry.tool} was denied {entry.denials} times", Rule.ATTEMPTS_DENIED
        elif entry.count >= entry.limit:
            reason, rule = f"{entry.tool} has failed {entry.count} times", Rule.ATTEMPTS_ESCALATE
        elif entry.count:
            reason = f"{entry.tool} failed (attempt {entry.count}/{entry.limit})"
            rule = Rule.ATTEMPTS_GUIDE
            if entry.progressed:
                reason, rule = f"{reason}, with another error than before", Rule.ATTEMPTS_PROGRESS
        else:
            return silent(ATTEMPTS)
        return verdict(Level.ESCALATE if escalates else Level.GUIDE, rule, reason)

    def subject(self, policy: RecoveryPolicy) -> AttemptEntry | None:
        """The call that the verdict is about: the first that escalates, else the one with the highest count."""
        triggered = [
            entry
            for key in self.triggered
            if (entry := self.entries.get(key)) is not None and not entry.settled
        ]
        asking = next((entry for entry in triggered if _escalates(entry, policy)), None)
        return asking or max(triggered, key=lambda entry: entry.count, default=None)


def _progressed(old: AttemptEntry, signature: str, policy: RecoveryPolicy) -> bool:
    """`attempts.progress`: the same call that fails in another way has got further."""
    return policy.attempts_reset == "progress" and bool(old.signature) and signature != old.signature


def _counts(result: CallResult, policy: RecoveryPolicy) -> bool:
    if result.status is Status.DENIED:
        return policy.denials_limit > 0
    failure = result.failure
    if failure is None:
        return False
    if policy.attempts_of == "every_call":
        return True
    return failure.kind is FailureKind.TOOL_EXECUTION and not failure.transient


def _denied_too_often(entry: AttemptEntry, policy: RecoveryPolicy) -> bool:
    return 0 < policy.denials_limit <= entry.denials


def _escalates(entry: AttemptEntry, policy: RecoveryPolicy) -> bool:
    return entry.count >= entry.limit or _denied_too_often(entry, policy)


def _forget_oldest(entries: dict[str, AttemptEntry]) -> None:
    while len(entries) > _KEPT:
        oldest = next((key for key, entry in entries.items() if not entry.blocked), None)
        if oldest is None:
            return
        del entries[oldest]
