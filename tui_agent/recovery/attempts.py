"""The attempts ledger: failures by call, and the calls that wait for the operator (Gigi, RECOVERY.md 5).

Nothing sets a count to zero but success of that call or progress as defined: the workspace was changed since its
last failure *and* it now fails in another way.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tui_agent.events import FailureKind, Level, VerdictRecord
from tui_agent.evolve import evolve
from tui_agent.recovery.iteration import Iteration, Outcome, Status
from tui_agent.recovery.signature import call_key, failure_signature, sent_key
from tui_agent.recovery.verdict import ATTEMPTS, silent

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tui_agent.recovery.policy import RecoveryPolicy

_KEPT = 200
"""Entries that are kept; beyond it the oldest that is not blocked goes."""


@dataclass(frozen=True)
class AttemptEntry:
    """One call's account. `last_at` is the time of its last failure or denial, in seconds since the epoch."""

    key: str
    tool: str
    input: Mapping[str, Any]
    count: int = 0
    limit: int = 3
    blocked: bool = False
    denials: int = 0
    last_message: str = ""
    last_iteration: int = 0
    last_at: float = 0.0
    signature: str = ""
    changes: int = 0
    """The ledger's `changes` when it failed last."""
    allowed: int = 0
    """Tries that the operator has allowed although it is blocked."""
    settled: bool = False
    """The question about it was answered by leaving it blocked: it is not asked again for being called."""


@dataclass(frozen=True)
class AttemptLedger:
    """Entries by key, oldest first; `changes` counts successful changes of the workspace.

    `spoke` holds the keys that failed, were denied or were blocked in the last iteration.
    """

    entries: dict[str, AttemptEntry] = field(default_factory=dict)
    changes: int = 0
    spoke: tuple[str, ...] = ()
    as_sent: bool = False
    limit: int = 3

    def key(self, tool: str, arguments: Mapping[str, Any]) -> str:
        """The key of a call under this ledger's policy."""
        return sent_key(tool, arguments) if self.as_sent else call_key(tool, arguments)

    def entry(self, tool: str, arguments: Mapping[str, Any]) -> AttemptEntry | None:
        """The account of a call, if it has one."""
        return self.entries.get(self.key(tool, arguments)) if self.entries else None

    def count(self, tool: str, arguments: Mapping[str, Any]) -> int:
        """Failures of this call that count now."""
        entry = self.entry(tool, arguments)
        return 0 if entry is None else entry.count

    def newest_first(self) -> tuple[AttemptEntry, ...]:
        """Entries for the screen: the one that failed last comes first."""
        return tuple(reversed(self.entries.values()))

    @property
    def highest(self) -> int:
        """The highest count of any call."""
        return max((entry.count for entry in self.entries.values()), default=0)

    # --- folding ---------------------------------------------------------------------------------------------

    def apply(self, iteration: Iteration, policy: RecoveryPolicy) -> AttemptLedger:
        """Fold a finished iteration, in call order."""
        if not iteration.outcomes:
            return evolve(self, spoke=()) if self.spoke else self
        entries, changes, spoke = dict(self.entries), self.changes, dict[str, None]()
        for outcome in iteration.outcomes:
            changes += outcome.changed
            key = self._key_of(outcome)
            if outcome.status is Status.SUCCEEDED:
                if policy.attempts_reset == "progress":
                    entries.pop(key, None)
            elif outcome.status is Status.BLOCKED:
                spoke[key] = None
            elif _counts(outcome, policy) and not (policy.batch_once and key in spoke):
                spoke[key] = None
                old = entries.pop(key, None)
                entries[key] = self._with_one_more(old, key, outcome, iteration, policy, changes)
        _forget_oldest(entries)
        if not spoke and changes == self.changes and len(entries) == len(self.entries):
            return evolve(self, spoke=()) if self.spoke else self
        return evolve(self, entries=entries, changes=changes, spoke=tuple(spoke))

    def _key_of(self, outcome: Outcome) -> str:
        return sent_key(outcome.tool, outcome.input) if self.as_sent else outcome.key

    def _with_one_more(
        self,
        old: AttemptEntry | None,
        key: str,
        outcome: Outcome,
        iteration: Iteration,
        policy: RecoveryPolicy,
        changes: int,
    ) -> AttemptEntry:
        if old is None:
            old = AttemptEntry(key, outcome.tool, outcome.input, limit=self.limit)
        place = {"last_iteration": iteration.number, "last_at": outcome.at, "settled": False}
        if outcome.failure is None:
            return evolve(old, denials=old.denials + 1, last_message=outcome.content, **place)
        signature = failure_signature(outcome.failure)
        progress = (
            policy.attempts_reset == "progress" and changes > old.changes and signature != old.signature
        )
        count = 1 if progress else old.count + 1
        return evolve(
            old,
            count=count,
            blocked=policy.attempts == "block" and count >= self.limit,
            allowed=0,
            last_message=outcome.failure.message,
            signature=signature,
            changes=changes,
            **place,
        )

    # --- the operator ----------------------------------------------------------------------------------------

    def allow(self, keys: Iterable[str]) -> AttemptLedger:
        """The operator answered: these calls, where blocked, may run once more."""
        changed = {
            key: evolve(entry, allowed=1, settled=False)
            for key in keys
            if (entry := self.entries.get(key)) is not None and entry.blocked
        }
        return evolve(self, entries={**self.entries, **changed}) if changed else self

    def settle(self, keys: Iterable[str]) -> AttemptLedger:
        """The question about these calls was answered by going on without them: they stay blocked."""
        changed = {
            key: evolve(entry, settled=True) for key in keys if (entry := self.entries.get(key)) is not None
        }
        return evolve(self, entries={**self.entries, **changed}) if changed else self

    def blocks(self, key: str, earlier: int = 0) -> bool:
        """Whether a call with this key may not run now; `earlier` is how often it runs in this reply already."""
        entry = self.entries.get(key)
        return entry is not None and entry.blocked and earlier >= entry.allowed

    # --- judging ---------------------------------------------------------------------------------------------

    def verdict(self, policy: RecoveryPolicy) -> VerdictRecord:
        """`guide` below the limit, `escalate` from it on; also for the third denial and for a blocked call."""
        entry = self.subject(policy)
        if entry is None:
            return silent(ATTEMPTS)
        level = Level.ESCALATE if _escalates(entry, policy) else Level.GUIDE
        if entry.denials and _denied_too_often(entry, policy):
            reason = f"{entry.tool} was denied {entry.denials} times"
        elif entry.count >= entry.limit:
            reason = f"{entry.tool} has failed {entry.count} times"
        elif entry.count:
            reason = f"{entry.tool} failed (attempt {entry.count}/{entry.limit})"
        else:
            return silent(ATTEMPTS)
        return VerdictRecord(level=level, detector=ATTEMPTS, reason=reason)

    def subject(self, policy: RecoveryPolicy) -> AttemptEntry | None:
        """The call that the verdict is about: the first that escalates, else the one with the highest count."""
        spoken = [entry for key in self.spoke if (entry := self.entries.get(key)) is not None]
        asking = next((entry for entry in spoken if _escalates(entry, policy)), None)
        return asking or max(spoken, key=lambda entry: entry.count, default=None)


def _counts(outcome: Outcome, policy: RecoveryPolicy) -> bool:
    if outcome.status is Status.DENIED:
        return policy.denials_limit > 0
    failure = outcome.failure
    if failure is None:
        return False
    if policy.attempts_of == "every_call":
        return True
    return failure.kind is FailureKind.TOOL_EXECUTION and not failure.transient


def _denied_too_often(entry: AttemptEntry, policy: RecoveryPolicy) -> bool:
    return 0 < policy.denials_limit <= entry.denials


def _escalates(entry: AttemptEntry, policy: RecoveryPolicy) -> bool:
    return not entry.settled and (entry.count >= entry.limit or _denied_too_often(entry, policy))


def _forget_oldest(entries: dict[str, AttemptEntry]) -> None:
    while len(entries) > _KEPT:
        oldest = next((key for key, entry in entries.items() if not entry.blocked), None)
        if oldest is None:
            return
        del entries[oldest]
