"""How exports for people name things: times, calls, origins of verdicts, lines of the timeline."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

from tui_agent.core.events import Level
from tui_agent.quantities import counted, of_failures

if TYPE_CHECKING:
    from tui_agent.core.projections.entries import CallEntry, SummaryEntry
    from tui_agent.core.projections.metrics import Metrics
    from tui_agent.core.projections.timeline import TimelineLine


def clock(seconds: float) -> str:
    """Time since the start, as `+h:mm:ss.s`."""
    tenths = round(max(seconds, 0.0) * 10)
    minutes, tenths = divmod(tenths, 600)
    hours, minutes = divmod(minutes, 60)
    return f"+{hours}:{minutes:02}:{tenths // 10:02}.{tenths % 10}"


def rate(part: int, whole: int) -> str:
    """A share in per cent; "" if there is nothing to divide by."""
    return f"{part / whole:.0%}" if whole else ""


def counts(metrics: Metrics) -> str:
    """Counts of a run's calls and failures, and of what became of the failures if they are above zero."""
    calls = counted(metrics.tool_calls, "call")
    if metrics.tool_errors:
        calls += f" ({rate(metrics.tool_errors, metrics.tool_calls)} failed)"
    failures = of_failures(metrics.failures, metrics.recoveries, ended=metrics.ended_at is not None)
    rest = {
        "recovered by the same call": metrics.recovered_same_call,
        "worked round": metrics.recovered_worked_round,
        "model retries": metrics.model_retries,
        "repairs of requests": metrics.coherence_violations,
    }
    return " · ".join([calls, failures, *(f"{name}: {number:,}" for name, number in rest.items() if number)])


def by_rule(*rules: str) -> str:
    """Ids of rules in brackets; nothing for journals that name none."""
    named = ", ".join(rule for rule in rules if rule)
    return f" [{named}]" if named else ""


def asker(source: str) -> str:
    """Who put a question, by its `source`."""
    return {
        "ask_operator": "the model",
        "model": "a model fault",
        "budget": "a budget",
        "steps": "the limit of steps",
        "plan": "plan mode",
    }.get(source, source)


def without_repeats(lines: Iterable[TimelineLine]) -> list[TimelineLine]:
    """The timeline without repeats of `continue`: it is shown when it begins, not in every iteration."""
    kept: list[TimelineLine] = []
    calm = False
    for line in lines:
        if line.level is not None:
            was_calm, calm = calm, line.level is Level.CONTINUE
            if was_calm and calm:
                continue
        kept.append(line)
    return kept


def about_summary(entry: SummaryEntry) -> str:
    """The steps that a summary replaced, and its size, or the reason why there is none."""
    if entry.failed:
        return f"none: {entry.failed}"
    sizes = f"{entry.tokens_before:,} → {entry.tokens_after:,} tokens"
    replaced = f"{counted(entry.groups, 'step')} replaced, {sizes}"
    return f"{entry.afresh}; {replaced}" if entry.afresh else replaced


def call_state(call: CallEntry) -> str:
    """A call's end in one word, for people."""
    words = {"found": "findings", "blocked": call.refusal or "blocked"}
    return words.get(str(call.state), str(call.state))


def input_text(call: CallEntry) -> str:
    """A call's whole input: as JSON on many lines, or as the model sent it if it could not be read."""
    return json.dumps(call.input, ensure_ascii=False, indent=2) if call.input else call.arguments
