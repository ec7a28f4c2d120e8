"""What a step has brought, and whether that is what its case expects: for the pure core and the loop alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.cases import Expect
from tui_agent.core import events
from tui_agent.core.names import ASK_OPERATOR, Phase
from tui_agent.core.recovery.attempts import AttemptLedger
from tui_agent.core.recovery.cognition import CognitiveState
from tui_agent.core.recovery.ring import ErrorRing
from tui_agent.core.recovery.streak import ErrorStreak
from tui_agent.core.state import RunState


@dataclass(frozen=True)
class View:
    """The state after a step, the events of the step, and what the loop waits for now."""

    state: RunState
    happened: Sequence[events.Event]
    seen: Sequence[events.VerdictReached]
    """Verdicts of the run so far."""
    note: str | None = None
    """The note of the model call that is due."""
    model: str = ""
    """The model of that call; empty where none is due."""
    question: events.EscalationRaised | None = None
    sent: tuple[str, ...] = ()
    repairs: tuple[str, ...] = ()


def broken(view: View, expect: Expect) -> list[str]:
    """What the step was expected to bring and did not."""
    found = _found(view)
    return [
        f"{name}: expected {getattr(expect, name)!r}, is {found[name]!r}"
        for name in sorted(expect.model_fields_set)
        if not _holds(name, getattr(expect, name), found[name])
    ]


def _found(view: View) -> dict[str, Any]:
    """The values that an expectation may name."""
    state, recovery = view.state, view.state.recovery
    verdicts = _of(view, events.VerdictReached)
    refused = _of(view, events.ToolRefused)
    faults = _of(view, events.ModelFaulted)
    waits = _of(view, events.LimitWaitStarted)
    notes = _of(view, events.NotePrepared)
    cuts = _of(view, events.WindowCut)
    summaries = [
        *_of(view, events.Compacted),
        *_of(view, events.CompactionFailed),
        *_of(view, events.StartedAfresh),
    ]
    warnings = [notice for notice in _of(view, events.Notice) if notice.origin in {"budget", "form"}]
    summary = state.history.summary
    joined = verdicts[-1] if verdicts else recovery.strongest() if faults else None
    records = verdicts[-1].verdicts if verdicts else recovery.last_verdicts if faults else ()
    level = joined.level if joined else events.Level.CONTINUE
    ended = state.phase is Phase.DONE
    return {
        "waits_by": waits[-1].rule if waits else "",
        "verdict": level,
        "at_least": level,
        "at_most": level,
        "seen": max((one.level for one in view.seen), key=lambda one: one.rank, default=level),
        "rule": joined.rule if joined else "",
        "detector": joined.detector if joined else "",
        "reason": joined.reason if joined else "",
        "rules": {record.rule for record in records} | {one.rule for one in _of(view, events.ReplyRejected)},
        "ring": recovery.of(ErrorRing).filled,
        "attempts": recovery.of(AttemptLedger).highest,
        "streak": recovery.of(ErrorStreak).count,
        "stall": recovery.of(CognitiveState).stall,
        "confidence": recovery.of(CognitiveState).confidence,
        "strategy": recovery.of(CognitiveState).strategy.value,
        "refused": refused[-1].refusal if refused else "",
        "refused_by": refused[-1].rule if refused else "",
        "refusal": refused[-1].content if refused else "",
        "not_offered": _offered(state),
        "note": view.note or "",
        "note_without": view.note or "",
        "note_rules": notes[-1].rules if notes else (),
        "no_note": view.note is None,
        "action": faults[-1].action if faults else None,
        "fault_rule": faults[-1].rule if faults else "",
        "calls_model": view.model,
        "asks": view.question is not None,
        "asked_by": view.question.rule if view.question else "",
        "outcome": state.run.outcome.value if ended and state.run.outcome else "",
        "ended_by": state.run.rule if ended else "",
        "answer": state.run.answer if ended else "",
        "answer_without": state.run.answer if ended else "",
        "sent": view.sent,
        "repairs": view.repairs,
        "cut_by": cuts[-1].rule if cuts else "",
        "summary_by": summaries[-1].rule if summaries else "",
        "warned_by": warnings[-1].rule if warnings else "",
        "reads": str(summary.group.messages[0]["content"]) if summary else "",
    }


def _offered(state: RunState) -> frozenset[str]:
    """The tools that the next model call offers."""
    withheld = state.recovery.open_tools()
    if not state.run.operator_present:
        withheld |= {ASK_OPERATOR}
    return frozenset(state.run.tools) - withheld


def _of(view: View, kind: type[Any]) -> list[Any]:
    return [event for event in view.happened if isinstance(event, kind)]


def _holds(name: str, wanted: Any, found: Any) -> bool:
    match name:
        case "at_least" | "seen":
            return bool(found.rank >= wanted.rank)
        case "at_most":
            return bool(found.rank <= wanted.rank)
        case "reason" | "refusal" | "note" | "answer" | "rules" | "note_rules" | "repairs" | "reads":
            return all(part in found for part in wanted)
        case "note_without" | "answer_without" | "not_offered":
            return not any(part in found for part in wanted)
        case "confidence":
            return abs(wanted - found) < 1e-6
        case _:
            return bool(wanted == found)
