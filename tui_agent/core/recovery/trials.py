"""Trials: failures of a call after a change of the workspace, with the same error as before.

| counts | failures of one call with the error that it had, each after something had changed; they stand in the ledger |
| resets | success of that call; another error |
| levels | guide from three on, naming the failing place · at six, and again after as many more: ask the operator, else
|        | ask for another way |

A trial is work and no repeat: no trial is ever blocked or withheld, and none ends a run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_agent.core.events import Level, VerdictRecord
from tui_agent.core.recovery.error_place import error_place
from tui_agent.core.recovery.rules import Rule
from tui_agent.core.recovery.verdict import TRIALS, silent, verdict
from tui_agent.quantities import counted_in_words

if TYPE_CHECKING:
    from tui_agent.core.recovery.attempts import AttemptEntry, AttemptLedger
    from tui_agent.core.recovery.policy import RecoveryPolicy

_NAMED = 5
"""Changes in between that a question names, the newest."""


def trials_verdict(ledger: AttemptLedger, policy: RecoveryPolicy, *, operator_present: bool) -> VerdictRecord:
    """By the call that was tried most often without effect, of those that failed so in the last iteration."""
    entry = subject(ledger)
    if entry is None or entry.trials < policy.trials_guide:
        return silent(TRIALS)
    changes = counted_in_words(entry.trials, "change").capitalize()
    reason = f"{changes}, the same failure of {entry.tool}{_at(entry)}"
    if entry.trials % policy.trials_ask:
        return verdict(Level.GUIDE, Rule.TRIALS_GUIDE, reason)
    if not operator_present:
        return verdict(Level.PIVOT, Rule.TRIALS_PIVOT, reason)
    newest = entry.between[-_NAMED:]
    named = f". Changed in between: {', '.join(newest)}" if newest else ""
    return verdict(Level.ESCALATE, Rule.TRIALS_ASK, reason + named)


def subject(ledger: AttemptLedger) -> AttemptEntry | None:
    """The call that the verdict is about."""
    if not ledger.triggered:
        return None
    tried = [
        entry
        for key in ledger.triggered
        if (entry := ledger.entries.get(key)) is not None and entry.on_trial and not entry.settled
    ]
    return max(tried, key=lambda entry: entry.trials, default=None)


def advice(entry: AttemptEntry) -> str:
    """What the model reads after so many changes without effect."""
    changes = counted_in_words(entry.trials, "change").capitalize()
    return (
        f"{changes}, the same failure{_at(entry)}: look elsewhere. Print what it gets there, and check that the code "
        "that you change is the code that runs."
    )


def _at(entry: AttemptEntry) -> str:
    place = error_place(entry.last_message)
    return f" at {place}" if place else ""
