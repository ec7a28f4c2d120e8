"""Transcript and recovery timeline as plain text, for logs and diffs (`replay --print`).

The same events give the same text, to the byte: times are relative to the session's start, and nothing
depends on the machine. Control characters are made visible, so that printing a session cannot command a
terminal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_agent.core.events import (
    ApprovalAnswered,
    BreakerSet,
    BudgetRaised,
    CoherenceRepaired,
    Compacted,
    CompactionFailed,
    EscalationAnswered,
    EscalationRaised,
    Event,
    HookReported,
    IterationStarted,
    Level,
    MessageQueued,
    ModelFaulted,
    NotePrepared,
    Notice,
    OperatorSpoke,
    OwnCommandEnded,
    ReplyFinished,
    ReplyRejected,
    Rewound,
    RulesChanged,
    RunFinished,
    RunStarted,
    ServerChanged,
    SessionStarted,
    SettingChanged,
    ToolCancelled,
    ToolFailed,
    ToolRefused,
    ToolResult,
    ToolSucceeded,
    VerdictReached,
    WaitSkipped,
    with_images_named,
)
from tui_agent.core.projections.metrics import Metrics
from tui_agent.core.projections.timeline import Timeline
from tui_agent.formats.exporters.wording import by_rule, clock, counts, without_repeats
from tui_agent.quantities import counted, seconds
from tui_agent.terminal_text import visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_INDENT = "    "
_TIMELINE_TEXT = 160
"""Characters of a line in the timeline."""


def to_text(events: Sequence[Event], *, times: bool = False) -> str:
    """The whole session, then the timeline of its recovery. Recovery's own lines begin with `»`.

    Times and durations are left out unless asked for: two runs of the same course then differ in nothing.
    """
    start = events[0].at if events else 0.0
    lines: list[str] = []
    metrics = Metrics()
    for event in events:
        metrics = metrics.apply(event)
        shown = list(_lines(event, times=times))
        if isinstance(event, RunFinished):
            shown.append(counts(metrics))
        if shown:
            lines.append(f"{clock(event.at - start)} {shown[0]}" if times else shown[0])
            lines.extend(f"{_INDENT}{line}".rstrip() for line in shown[1:])
    lines.extend(_timeline(events))
    return "".join(f"{visible(line)}\n" for line in lines)


def _timeline(events: Sequence[Event]) -> Iterator[str]:
    """Verdicts, faults, questions and outcomes on one line each."""
    yield "RECOVERY TIMELINE"
    timeline = Timeline()
    for event in events:
        timeline = timeline.apply(event)
    runs = {event.seq: event.run for event in events if isinstance(event, RunStarted)}
    run = 0
    for line in without_repeats(timeline.lines):
        run = runs.get(line.seq, run)
        text = " ".join(line.text.split())
        text = text if len(text) <= _TIMELINE_TEXT else f"{text[: _TIMELINE_TEXT - 1]}…"
        what = f"{line.level} by {line.detector}" if line.level else line.kind
        yield f"{_INDENT}{run}.{line.iteration} {what}: {text}{by_rule(line.rule)}"


def _lines(event: Event, *, times: bool) -> Iterator[str]:
    """An event's headline, then its body's lines; nothing for events that are not shown."""
    match event:
        case ReplyFinished():
            yield from _reply(event)
        case ToolResult():
            yield from _result(event, times=times)
        case VerdictReached() | NotePrepared() | EscalationRaised() | EscalationAnswered():
            yield from _recovery(event)
        case Compacted() | CompactionFailed():
            yield from _summary(event)
        case OperatorSpoke() | MessageQueued() | OwnCommandEnded():
            yield from _operator(event)
        case ServerChanged():
            yield f"SERVER {event.in_words}"
        case (
            ModelFaulted()
            | ReplyRejected()
            | CoherenceRepaired()
            | BreakerSet()
            | WaitSkipped()
            | BudgetRaised()
        ):
            yield from _fault(event)
        case _:
            yield from _frame(event)


def _frame(event: Event) -> Iterator[str]:
    match event:
        case SessionStarted():
            yield f"SESSION {event.session_id}" + (f" ({event.source})" if event.source else "")
            yield from (f"{name}: {value}" for name, value in _facts(event))
        case RunStarted():
            yield f"RUN {event.run} · policy {event.policy} · model {event.model or 'unknown'}"
            yield from with_images_named(event.task, event.images).splitlines()
        case RunFinished():
            yield (
                f"RUN ENDED {event.outcome}"
                + (f": {event.reason}" if event.reason else "")
                + by_rule(event.rule)
            )
            yield from event.answer.splitlines()
        case IterationStarted():
            yield f"STEP {event.iteration}"
        case Notice():
            yield f"NOTICE {event.severity}"
            yield from event.text.splitlines()
        case HookReported():
            yield f"HOOK {event.hook} {event.status}: {event.command}"
            yield from (event.error or event.context).splitlines()
        case ApprovalAnswered():
            yield f"APPROVAL {event.decision} by {event.by}" + (f": {event.reason}" if event.reason else "")
        case SettingChanged() | RulesChanged():
            yield f"SETTING {event.in_words}"
        case Rewound():
            yield f"REWOUND {event.scope} to event {event.to_seq}"


def _operator(event: OperatorSpoke | MessageQueued | OwnCommandEnded) -> Iterator[str]:
    match event:
        case OwnCommandEnded():
            yield f"OPERATOR RAN {event.command}"
            yield from event.printed.splitlines()
        case _:
            yield "QUEUED" if isinstance(event, MessageQueued) else "OPERATOR"
            yield from with_images_named(event.text, event.images).splitlines()


def _facts(event: SessionStarted) -> Iterator[tuple[str, str]]:
    if event.title:
        yield "title", event.title
    if event.workspace:
        yield "workspace", event.workspace
    if event.parent is not None:
        yield "forked from", f"{event.parent.session_id} at event {event.parent.seq}"


def _reply(event: ReplyFinished) -> Iterator[str]:
    tokens = [str(count) for count in (event.prompt_tokens, event.completion_tokens) if count is not None]
    cached = f" ({event.cached_tokens} of them cached)" if event.cached_tokens else ""
    usage = f" · tokens {' + '.join(tokens)}{cached}" if tokens else ""
    yield f"MODEL {event.model}{usage}".rstrip()
    yield from (f"(reasoning) {line}" for line in event.reasoning.splitlines())
    yield from event.text.splitlines()
    for call in event.calls:
        yield f"→ {call.name} {call.arguments}"


_ENDS: dict[type[Event], str] = {
    ToolSucceeded: "ok",
    ToolFailed: "FAILED",
    ToolRefused: "REFUSED",
    ToolCancelled: "CANCELLED",
}


def _result(event: ToolResult, *, times: bool) -> Iterator[str]:
    more = ""
    if isinstance(event, ToolFailed):
        more = f" ({event.failure.kind})"
    elif isinstance(event, ToolRefused):
        more = f" ({event.refusal}{f': {event.reason}' if event.reason else ''})" + by_rule(event.rule)
    yield f"TOOL {event.tool} {_ENDS.get(type(event), '?')}{more}" + (
        f" · {seconds(event.duration)}" if times else ""
    )
    yield from event.content.splitlines()
    if isinstance(event, ToolFailed):
        shown = set(event.content.splitlines())
        yield from (f"error: {line}" for line in event.failure.message.splitlines() if line not in shown)
    if isinstance(event, ToolSucceeded) and event.changed:
        yield f"changed: {', '.join(event.changed)}"


def _recovery(event: Event) -> Iterator[str]:
    match event:
        case VerdictReached() if event.level is not Level.CONTINUE:
            yield f"» VERDICT {event.level} by {event.detector}: {event.reason}{by_rule(event.rule)}"
            for record in event.verdicts:
                if record.level is not Level.CONTINUE and record.detector != event.detector:
                    yield f"also {record.level} by {record.detector}: {record.reason}{by_rule(record.rule)}"
        case NotePrepared():
            yield "» NOTE" + (" edited by the operator" if event.edited else "") + by_rule(*event.rules)
            yield from (event.text or "(none)").splitlines()
        case EscalationRaised():
            yield f"» ESCALATION by {event.source}{by_rule(event.rule)}"
            yield from event.question.splitlines()
        case EscalationAnswered():
            yield f"» ANSWER {event.choice} by {event.by}"
            yield from event.text.splitlines()


def _summary(event: Compacted | CompactionFailed) -> Iterator[str]:
    if isinstance(event, CompactionFailed):
        yield f"» NO SUMMARY{by_rule(event.rule)}"
        yield from event.in_words.splitlines()
        return
    sizes = f"{event.tokens_before:,} → {event.tokens_after:,} tokens"
    yield f"» SUMMARY of {counted(event.groups, 'step')}, {sizes}{by_rule(event.rule)}"
    yield from event.summary.splitlines()


def _fault(event: Event) -> Iterator[str]:
    match event:
        case ModelFaulted():
            fault = f"{event.fault.kind} · attempt {event.attempt} · then {event.action}"
            yield f"» MODEL FAULT {fault}{by_rule(event.rule)}"
            yield from event.fault.message.splitlines()
        case ReplyRejected():
            yield f"» REPLY REJECTED: {event.failure.message}{by_rule(event.rule)}"
        case CoherenceRepaired():
            repairs = ", ".join(f"{kind} ×{count}" for kind, count in sorted(event.repairs.items()))
            yield f"» COHERENCE {repairs}"
        case WaitSkipped():
            yield "» THE WAIT WAS SKIPPED"
        case BudgetRaised():
            yield f"» BUDGET {event.in_words}{by_rule(event.rule)}"
        case BreakerSet():
            yield f"» BREAKER {event.tool} {'opened' if event.open else 'closed'} by hand"
