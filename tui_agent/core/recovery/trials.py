"""Trials: failures of a call after a change of the workspace, with the same error as before.

| counts | failures of one call with the error that it had, each after something had changed; they stand in the ledger |
| resets | success of that call; another error |
| levels | guide from three on, naming the failing place · at six, and again after as many more: ask the operator, else
|        | ask for another way |

A trial is work and no repeat: no trial is ever blocked or withheld, and none ends a run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tui_agent.core.events import Level, VerdictRecord
from tui_agent.core.recovery.attempts import AttemptEntry, AttemptLedger, AttemptParameters
from tui_agent.core.recovery.detector import Account, Detector, Standing
from tui_agent.core.recovery.error_place import error_place
from tui_agent.core.recovery.parameters import Count
from tui_agent.core.recovery.rules import Rule
from tui_agent.core.recovery.verdict import verdict
from tui_agent.quantities import counted, counted_in_words

_NAMED = 5
"""Changes in between that a question names, the newest."""


class TrialParameters(AttemptParameters):
    """Failures of a call after changes; the switch is one of `Parameters`, since others count by it, too."""

    trials_guide: Count = 3
    """Trials of one call without effect (the same error after a change) at which the note says so."""
    trials_ask: Count = 6
    """Trials of one call without effect at which the operator is asked, and again after as many more."""


@dataclass(frozen=True)
class Trials(Detector[TrialParameters]):
    """Judges by what stands in the attempts ledger, and counts nothing itself."""

    name = "trials"
    parameters = TrialParameters
    off = {"trials": "off"}

    @classmethod
    def has_a_say(cls, policy: TrialParameters) -> bool:
        return policy.trials != "off" and policy.attempts != "off"

    def verdict(self, standing: Standing[TrialParameters]) -> VerdictRecord:
        """Judge by the call that was tried most often without effect, of those that failed so in the last iteration."""
        policy, entry = standing.policy, most_tried(standing.of(AttemptLedger))
        if entry is None or entry.trials < policy.trials_guide:
            return self.silent
        changes = counted_in_words(entry.trials, "change").capitalize()
        reason = f"{changes}, the same failure of {entry.tool}{_at(entry)}"
        if entry.trials % policy.trials_ask:
            return verdict(Level.GUIDE, Rule.TRIALS_GUIDE, reason)
        if not standing.operator_present:
            return verdict(Level.PIVOT, Rule.TRIALS_PIVOT, reason)
        newest = entry.between[-_NAMED:]
        named = f". Changed in between: {', '.join(newest)}" if newest else ""
        return verdict(Level.ESCALATE, Rule.TRIALS_ASK, reason + named)

    def subject(self, standing: Standing[Any]) -> AttemptEntry | None:
        return most_tried(standing.of(AttemptLedger))

    def account(self, standing: Standing[Any], key: str, tool: str) -> Account:
        ledger = standing.of(AttemptLedger)
        entry = ledger.entries.get(key) or most_tried(ledger)
        if entry is None or not entry.trials:
            return Account()
        return Account(f"{entry.tool}: {counted(entry.trials, 'change')} without effect")


def most_tried(ledger: AttemptLedger) -> AttemptEntry | None:
    """Find the call that was tried most often without effect, of those that failed so in the last iteration."""
    if not ledger.triggered:
        return None
    tried = [
        entry
        for key in ledger.triggered
        if (entry := ledger.entries.get(key)) is not None and entry.on_trial and not entry.settled
    ]
    return max(tried, key=lambda entry: entry.trials, default=None)


def advice(entry: AttemptEntry) -> str:
    """Write what the model reads after so many changes without effect."""
    changes = counted_in_words(entry.trials, "change").capitalize()
    return (
        f"{changes}, the same failure{_at(entry)}: look elsewhere. Print what it gets there, and check that the code "
        "that you change is the code that runs."
    )


def _at(entry: AttemptEntry) -> str:
    place = error_place(entry.last_message)
    return f" at {place}" if place else ""
