"""The attempts ledger: failures by call, and the calls that wait for the operator (Gigi).

| counts | failures of one call (tool and input) with nothing changed between; denials of it apart; trials apart |
| resets | success of that call; another error than the last one, or a change of the workspace since, restarts it at 1;
|        | Gigi: nothing |
| levels | guide below the limit of 3 · from it on: escalate, and the call is blocked until the operator allows it;
|        | if the run goes on without an operator: guide, and blocked |

A block ends when something has changed since the call failed last, or when a related call (same tool and
program) fails with another error. A call to something that did not answer (`absence`) may also be tried again
after a wait, in steps or in time, that doubles with each try. It may be tried, too, once another call shows
that the thing answers now or may have started it. Else only *retry once* and *edit and retry* let a blocked
call run, once; after any other answer it is not asked about again for being called.

The same failure after a change is a trial (`trials`): it is counted here beside the failures and judged there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from tui_agent.core.events import FailureKind, Level, VerdictRecord
from tui_agent.core.evolve import evolve
from tui_agent.core.recovery.absence import did_not_answer
from tui_agent.core.recovery.answers import choice_of
from tui_agent.core.recovery.detector import Account, Answer, Beginning, Detector, Standing, Step
from tui_agent.core.recovery.error_shape import error_shape
from tui_agent.core.recovery.iteration import CallResult, CallStatus, Iteration, command_of
from tui_agent.core.recovery.parameters import Count, CountFrom0, Parameters
from tui_agent.core.recovery.refusals import Blocked, Decided
from tui_agent.core.recovery.rules import Rule
from tui_agent.core.recovery.signature import call_key, failure_signature
from tui_agent.core.recovery.verdict import verdict
from tui_agent.core.recovery.writes import Writes, program_of, writes
from tui_agent.core.tool_facts import ToolFacts
from tui_agent.quantities import of_limit

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tui_agent.core.events import EscalationAnswered, Failure, Kept
    from tui_agent.core.recovery.changes import Change, Changes

_NAMED = 12
"""Names of changes between trials that are kept, the newest."""

_KEPT = 200
"""Entries that are kept; beyond it the oldest that is not blocked goes."""


_FIRST_WAIT = 2, 15.0
"""Steps and seconds before a blocked call that met no answer is tried again; doubled with each try."""


_PORT = re.compile(r"(?::|\bport )(\d{2,5})\b")
_STARTS = re.compile(r"&\s*$|\b(?:re)?start(?:ed)?\b|\b(?:up|serve|server|run|launch|daemon\w*)\b")
"""Words of a command that starts something."""


class AttemptParameters(Parameters):
    """Failures of one call."""

    batch_once: bool = True
    """The same call twice in one reply counts once in the attempts. (In the ring a reply counts once in any case.)"""
    attempts: Literal["off", "advise", "block"] = "block"
    """Repeated failures of one call: not judged, escalated (Gigi), or escalated and the call blocked."""
    attempts_limit: Count = 3
    """Failures of one call at which the operator is asked."""
    attempts_reset: Literal["progress", "never"] = "progress"
    """Success of the call clears it and another error restarts it at 1, or nothing does within the run (Gigi)."""
    attempts_of: Literal["executions", "every_call"] = "executions"
    """Failures in execution that are the model's, or every failed call (Gigi)."""
    denials_limit: CountFrom0 = 3
    """Denials of one call at which the operator is asked; 0: never."""


class Again(NamedTuple):
    """From which step on, or from when on (since the epoch), whichever comes first; `seconds` after it failed."""

    step: int
    at: float
    seconds: float


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
    """The answer to the question about it: the operator's *skip*, the operator's words, or nobody's. It is
    not asked about again for being called.
    """
    words: str = ""
    """The operator's own words in that answer."""
    mark: int = 0
    """The change of the workspace that was the last one when it failed last."""
    trials: int = 0
    """Failures with the same error, each after a change of the workspace."""
    facts: ToolFacts | None = None
    on_trial: bool = False
    """The newest failure was one of them."""
    between: tuple[str, ...] = ()
    """Changes between them, oldest first, each once."""
    hint: str = ""
    """The newest failure's."""
    again: Again | None = None
    """When it may be tried again although nothing has changed; None: it may not."""

    def refusal(self, *, operator_present: bool) -> Blocked:
        """Gather what is known when this call is not executed."""
        waits: Decided = "waits" if operator_present else "nobody"
        failures = self.count + self.trials
        return Blocked(
            self.tool,
            failures,
            self.settled or waits,
            self.words,
            self.last_message,
            self.hint,
            wait=0.0 if self.again is None else self.again.seconds,
        )


@dataclass(frozen=True)
class AttemptLedger(Detector[AttemptParameters]):
    """Entries by key, oldest first; `triggered` holds the keys that failed, were denied or were blocked in the last
    iteration.
    """

    name = "attempts"
    parameters = AttemptParameters
    off = {"attempts": "off", "trials": "off"}

    entries: dict[str, AttemptEntry] = field(default_factory=dict)
    triggered: tuple[str, ...] = ()
    limit: int = 3

    @classmethod
    def has_a_say(cls, policy: AttemptParameters) -> bool:
        return policy.attempts != "off"

    @classmethod
    def rungs(cls, policy: AttemptParameters) -> frozenset[str]:
        if policy.attempts == "off":
            return frozenset()
        return frozenset({"guide", "escalate", *(("withhold",) if policy.attempts == "block" else ())})

    def next_run(self, run: Beginning[AttemptParameters]) -> AttemptLedger:
        ledger = AttemptLedger(limit=run.policy.attempts_limit)
        kept = run.event.kept if run.policy.persist else None
        return ledger if kept is None else ledger.with_kept(kept)

    def with_kept(self, kept: Kept) -> AttemptLedger:
        """Take over the counts of an earlier run, the one that failed last at the end; one try is left to each."""
        entries = {
            one.key: AttemptEntry(
                one.key,
                one.tool,
                one.input,
                count=min(one.count, self.limit - 1),
                limit=self.limit,
                last_message=one.message,
                signature=one.signature,
                hint=one.hint,
            )
            for one in reversed(kept.calls)
            if min(one.count, self.limit - 1) > 0
        }
        return evolve(self, entries=entries)

    def count(self, key: str) -> int:
        """Count the failures of this call that stand now."""
        entry = self.entries.get(key)
        return 0 if entry is None else entry.count

    def newest_first(self) -> tuple[AttemptEntry, ...]:
        """List the entries for the screen: the one that failed last comes first."""
        return tuple(reversed(self.entries.values()))

    def count_with(self, key: str, failure: Failure, policy: AttemptParameters, changes: Changes) -> int:
        """Count the failures of this call once it has failed so."""
        old = self.entries.get(key)
        if old is None:
            return 1
        progress = _progressed(old, failure_signature(failure), policy)
        trial = policy.trials != "off" and changes.since(old.mark, key)
        return 1 if progress or trial else old.count + 1

    @property
    def highest(self) -> int:
        """The highest count of any call."""
        return max((entry.count for entry in self.entries.values()), default=0)

    # --- folding ---------------------------------------------------------------------------------------------

    def apply(self, step: Step[AttemptParameters]) -> AttemptLedger:
        """Fold a finished iteration, in call order."""
        iteration, policy, changes = step.iteration, step.policy, step.changes
        if not iteration.results:
            return evolve(self, triggered=()) if self.triggered else self
        entries, triggered = dict(self.entries), dict[str, None]()
        for result, mark in zip(iteration.results, step.marks, strict=True):
            key = result.key
            if result.finding is not None and result.failure is None and policy.trials != "off":
                triggered[key] = None
                old = entries.pop(key, None)
                between = () if old is None else changes.since(old.mark, key, mark)
                entries[key] = self._with_finding(old, result, policy, result.finding, between, mark)
            elif result.status is CallStatus.SUCCEEDED:
                if policy.attempts_reset == "progress":
                    entries.pop(key, None)
                _release(entries, [one for one in entries.values() if brings_back(one, result)])
            elif result.status is CallStatus.BLOCKED:
                triggered[key] = None
            elif _counts(result, policy) and not (policy.batch_once and key in triggered):
                triggered[key] = None
                old = entries.pop(key, None)
                counts = policy.trials != "off"
                between = changes.since(old.mark, key, mark) if counts and old is not None else ()
                entry = self._with_one_more(old, result, policy, between, mark)
                entries[key] = evolve(
                    entry, again=_again(entry, result.failure, iteration) if counts else None
                )
                if counts:
                    _release_related(entries, result)
        _forget_oldest(entries)
        if not triggered and entries == self.entries:
            return evolve(self, triggered=()) if self.triggered else self
        return evolve(self, entries=entries, triggered=tuple(triggered))

    def _with_finding(
        self,
        old: AttemptEntry | None,
        result: CallResult,
        policy: AttemptParameters,
        finding: Failure,
        between: Sequence[Change],
        mark: int,
    ) -> AttemptEntry:
        """Count what a test runner or a linter found: no failure, and after a change the same again is a trial."""
        known = evolve(result, failure=finding)
        entry = self._with_one_more(old, known, policy, between, mark)
        return evolve(entry, count=0, blocked=False)

    def _with_one_more(
        self,
        old: AttemptEntry | None,
        result: CallResult,
        policy: AttemptParameters,
        between: Sequence[Change],
        mark: int,
    ) -> AttemptEntry:
        if old is None:
            old = AttemptEntry(result.key, result.tool, result.input, limit=self.limit, facts=result.facts)
        if result.failure is None:
            return evolve(
                old, denials=old.denials + 1, last_message=result.content, hint="", settled="", words=""
            )
        signature = failure_signature(result.failure)
        progress = _progressed(old, signature, policy)
        trial = bool(between and old.signature) and not progress
        count = 1 if progress or trial else old.count + 1
        named = () if progress else (*old.between, *(name for change in between for name in change.files))
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
            mark=mark,
            trials=0 if progress else old.trials + trial,
            on_trial=trial,
            between=tuple(dict.fromkeys(named))[-_NAMED:],
        )

    # --- the operator ----------------------------------------------------------------------------------------

    def answered(self, answer: Answer[AttemptParameters]) -> AttemptLedger:
        """Let the calls that it concerns run once more, or settle the question about them."""
        keys = self._asked_about(answer)
        if answer.informs and choice_of(answer.event) in {"retry", "edit"}:
            return self.allow(keys)
        return self.settle(keys, answer.event)

    def _asked_about(self, answer: Answer[AttemptParameters]) -> tuple[str, ...]:
        """Find the calls that it concerns: those that failed so often, and the one that the operator edited."""
        event, raised = answer.event, answer.raised
        if event.choice == "edit" and event.tool and event.input is not None:
            return (call_key(event.tool, event.input, answer.policy.attempts_key),)
        if raised is not None and raised.key:
            return (raised.key,)
        return self.triggered if raised is None or raised.source in _ASK else ()

    def allow(self, keys: Iterable[str]) -> AttemptLedger:
        """Let these calls run once more if they are blocked: the operator allows it."""
        changed = {
            key: evolve(entry, allowed=1, settled="")
            for key in keys
            if (entry := self.entries.get(key)) is not None and entry.blocked
        }
        return evolve(self, entries={**self.entries, **changed}) if changed else self

    def settle(self, keys: Iterable[str], answer: EscalationAnswered) -> AttemptLedger:
        """Close the question about these calls without allowing any: what was blocked stays so, and *skip* blocks."""
        settled = "nobody" if answer.by == "policy" else "skip" if answer.choice == "skip" else "answer"
        changed = {
            key: evolve(entry, settled=settled, words=answer.text, blocked=entry.blocked or settled == "skip")
            for key in keys
            if (entry := self.entries.get(key)) is not None
        }
        return evolve(self, entries={**self.entries, **changed}) if changed else self

    def blocking(self, key: str, earlier: int = 0) -> AttemptEntry | None:
        """Find the entry that keeps a call from running now; `earlier`: how often it runs in this reply already."""
        entry = self.entries.get(key)
        return entry if entry is not None and entry.blocked and earlier >= entry.allowed else None

    def afresh(self) -> AttemptLedger:
        """Leave one try to each call that failed so often: nobody forgets that it did."""
        entries = {
            key: evolve(entry, count=min(entry.count, entry.limit - 1), blocked=False, settled="", words="")
            for key, entry in self.entries.items()
        }
        return evolve(self, entries=entries, triggered=())

    # --- judging ---------------------------------------------------------------------------------------------

    def verdict(self, standing: Standing[AttemptParameters]) -> VerdictRecord:
        """`guide` below the limit, `escalate` from it on; also for the third denial and for a blocked call. When the
        run goes on alone nothing is escalated.
        """
        policy = standing.policy
        entry = self.subject(standing)
        if entry is None:
            return self.silent
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
            return self.silent
        goes_on = standing.goes_on and policy.attempts == "block"
        if goes_on and rule is Rule.ATTEMPTS_ESCALATE:
            rule = Rule.ATTEMPTS_BLOCK
        return verdict(Level.ESCALATE if escalates and not goes_on else Level.GUIDE, rule, reason)

    def subject(self, standing: Standing[AttemptParameters]) -> AttemptEntry | None:
        """The first that escalates, else the one with the highest count."""
        if not self.triggered:
            return None
        triggered = [
            entry
            for key in self.triggered
            if (entry := self.entries.get(key)) is not None and not entry.settled
        ]
        asking = next((entry for entry in triggered if _escalates(entry, standing.policy)), None)
        return asking or max(triggered, key=lambda entry: entry.count, default=None)

    def account(self, standing: Standing[AttemptParameters], key: str, tool: str) -> Account:
        """Of the call that is asked about, else of the one that the verdict is about or that failed last."""
        entry: AttemptEntry | None
        if key:
            entry = self.entries.get(key)
            if entry is None:
                return Account("no failure of this call counts")
            return Account(of_limit(entry.count, entry.limit, "failures of this call"), entry)
        entry = self.subject(standing) or next(iter(self.newest_first()), None)
        if entry is None:
            return Account("no call has failed")
        return Account(of_limit(entry.count, entry.limit, "failures"), entry)


_ASK = frozenset({"attempts", "trials"})
"""Detectors whose questions are about a call that has failed too often."""


def _again(entry: AttemptEntry, failure: Failure | None, iteration: Iteration) -> Again | None:
    """Say when a call that was blocked just now may run again by itself."""
    if not entry.blocked or failure is None or not did_not_answer(failure):
        return None
    steps, seconds = _FIRST_WAIT
    times = 1 << min(entry.count - entry.limit, 10)
    return Again(iteration.number + 1 + steps * times, iteration.at + seconds * times, seconds * times)


def brings_back(entry: AttemptEntry, result: CallResult) -> bool:
    """Tell if this success says that what did not answer the blocked call may do so now: it names the same port, or it
    starts something.
    """
    if entry.again is None or entry.settled == "skip" or not result.passed:
        return False
    command = command_of(result.input)
    if command is None:
        return False
    ports = _PORT.findall(f"{command_of(entry.input) or ''}\n{entry.last_message}")
    return any(re.search(rf"(?<!\d){port}(?!\d)", command) for port in ports) or (
        writes(command) is not Writes.NOTHING and _STARTS.search(command) is not None
    )


def _progressed(old: AttemptEntry, signature: str, policy: AttemptParameters) -> bool:
    """`attempts.progress`: the same call that fails in another way has got further."""
    return policy.attempts_reset == "progress" and bool(old.signature) and signature != old.signature


def _counts(result: CallResult, policy: AttemptParameters) -> bool:
    if result.status is CallStatus.DENIED:
        return policy.denials_limit > 0
    failure = result.failure
    if failure is None:
        return False
    if policy.attempts_of == "every_call":
        return True
    return failure.kind is FailureKind.TOOL_EXECUTION and not failure.transient


def _release_related(entries: dict[str, AttemptEntry], result: CallResult) -> None:
    """Release blocked calls of the same tool and program, since this one has failed in another way."""
    failure = result.failure
    if failure is None or not any(entry.blocked for entry in entries.values()):
        return
    target, shape = _target(result.tool, result.input), error_shape(failure.message)
    related = [
        entry
        for entry in entries.values()
        if entry.blocked and entry.key != result.key and target == _target(entry.tool, entry.input)
    ]
    _release(entries, [entry for entry in related if error_shape(entry.last_message) != shape])


def _release(entries: dict[str, AttemptEntry], chosen: Iterable[AttemptEntry]) -> None:
    for entry in chosen:
        entries[entry.key] = evolve(entry, blocked=False, settled="", words="", again=None)


def _target(tool: str, arguments: Mapping[str, Any]) -> tuple[str, str]:
    """Name the tool and what it works on: a command's program, or a path."""
    command = command_of(arguments)
    about = arguments.get("path", "") if command is None else program_of(command)
    return tool, str(about)


def _denied_too_often(entry: AttemptEntry, policy: AttemptParameters) -> bool:
    return 0 < policy.denials_limit <= entry.denials


def _escalates(entry: AttemptEntry, policy: AttemptParameters) -> bool:
    return entry.count >= entry.limit or _denied_too_often(entry, policy)


def _forget_oldest(entries: dict[str, AttemptEntry]) -> None:
    while len(entries) > _KEPT:
        oldest = next((key for key, entry in entries.items() if not entry.blocked), None)
        if oldest is None:
            return
        del entries[oldest]
