"""Transcript and recovery timeline as plain text, for logs and diffs (`replay --print`).

The same events give the same text, to the byte: it holds no times and nothing of the machine. Control characters are
made visible, so that printing a session cannot command a terminal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tui_agent.core import events
from tui_agent.core.fold import apply
from tui_agent.core.projections.timeline import Timeline
from tui_agent.core.receipt_lines import listed
from tui_agent.core.recovery.iteration import Answer
from tui_agent.core.state import RunState
from tui_agent.formats.exporters.wording import asker, by_rule, counts, without_repeats
from tui_agent.quantities import counted
from tui_agent.terminal_text import clipped, escaped_line, visible

_INDENT = "    "
_TIMELINE_TEXT = 160
"""Characters of a line in the timeline."""


def to_text(recorded: Sequence[events.Event]) -> str:
    """The whole session, then the timeline of its recovery. Recovery's own lines begin with `»`.

    Times and durations are left out: two runs of the same course differ in nothing.
    """
    lines: list[str] = []
    state = RunState()
    for event in recorded:
        state = apply(state, event)
        shown = list(_lines(event, state.metrics.incidents.answer(event)))
        if isinstance(event, events.RunFinished):
            shown.append(counts(state.metrics))
        if shown:
            lines.append(shown[0])
            lines.extend(f"{_INDENT}{line}".rstrip() for line in shown[1:])
    lines.extend(_timeline(recorded, state.timeline))
    return "".join(f"{visible(line)}\n" for line in lines)


def _timeline(recorded: Sequence[events.Event], timeline: Timeline) -> Iterator[str]:
    """Verdicts, faults, recoveries, questions and outcomes on one line each."""
    yield "RECOVERY TIMELINE"
    runs = {event.seq: event.run for event in recorded if isinstance(event, events.RunStarted)}
    run = 0
    for line in without_repeats(timeline.lines):
        run = runs.get(line.seq, run)
        text = clipped(line.in_a_line, _TIMELINE_TEXT)
        what = f"{line.level} by {line.detector}" if line.level else line.kind
        yield f"{_INDENT}{run}.{line.iteration} {what}: {text}{by_rule(line.rule)}"


def _lines(event: events.Event, answer: Answer) -> Iterator[str]:
    """An event's headline, then its body's lines; nothing for events that are not shown."""
    match event:
        case events.ReplyFinished():
            yield from _reply(event)
        case events.ToolResult():
            yield from _result(event, answer)
        case (
            events.VerdictReached()
            | events.NotePrepared()
            | events.EscalationRaised()
            | events.EscalationAnswered()
        ):
            yield from _recovery(event)
        case events.Compacted() | events.CompactionFailed():
            yield from _summary(event)
        case events.OperatorSpoke() | events.MessageQueued() | events.OwnCommandEnded():
            yield from _operator(event)
        case events.ServerChanged():
            yield f"SERVER {event.in_words}"
        case events.LaneEvent():
            yield from (f"| {event.name}: {line}" for line in _lines(event.event, ""))
        case (
            events.ModelFaulted()
            | events.ReplyRejected()
            | events.CoherenceRepaired()
            | events.BreakerSet()
            | events.LimitWaitStarted()
            | events.WaitSkipped()
            | events.BudgetRaised()
            | events.ClosingTurnOpened()
            | events.StartedAfresh()
        ):
            yield from _fault(event)
        case _:
            yield from _frame(event)


def _frame(event: events.Event) -> Iterator[str]:
    match event:
        case events.SessionStarted():
            yield f"SESSION {event.session_id}" + (f" ({event.source})" if event.source else "")
            yield from (f"{name}: {value}" for name, value in _facts(event))
        case events.RunStarted():
            yield f"RUN {event.run} · policy {event.policy} · model {event.model or 'unknown'}"
            yield from events.with_images_named(event.task, event.images).splitlines()
        case events.RunFinished():
            yield (
                f"RUN ENDED {event.outcome.in_words}"
                + (f": {event.reason}" if event.reason else "")
                + by_rule(event.rule)
            )
            yield from event.answer.splitlines()
            yield from (f"{standing.upper()} {words}" for standing, words in listed(event.receipts))
        case events.IterationStarted():
            yield f"STEP {event.iteration}"
        case events.Notice():
            yield f"NOTICE {event.severity}"
            yield from event.text.splitlines()
        case events.HookReported():
            yield f"HOOK {event.hook} {event.status_in_words}: {event.command}"
            yield from (event.error or event.context).splitlines()
        case events.ApprovalAnswered():
            yield f"APPROVAL {event.in_words}"
        case events.SettingChanged() | events.RulesChanged() | events.AgentOptionChosen():
            yield f"SETTING {event.in_words}"
        case events.Rewound():
            yield f"REWOUND {event.in_words}"


def _operator(event: events.OperatorSpoke | events.MessageQueued | events.OwnCommandEnded) -> Iterator[str]:
    match event:
        case events.OwnCommandEnded():
            yield f"OPERATOR RAN {event.command}"
            yield from event.printed.splitlines()
        case _:
            yield "QUEUED" if isinstance(event, events.MessageQueued) else "OPERATOR"
            yield from events.with_images_named(event.text, event.images).splitlines()


def _facts(event: events.SessionStarted) -> Iterator[tuple[str, str]]:
    if event.title:
        yield "title", event.title
    if event.workspace:
        yield "workspace", event.workspace
    if event.parent is not None:
        yield "forked from", f"{event.parent.session_id} at event {event.parent.seq}"


def _reply(event: events.ReplyFinished) -> Iterator[str]:
    tokens = [str(count) for count in (event.prompt_tokens, event.completion_tokens) if count is not None]
    cached = f" ({event.cached_tokens} of them cached)" if event.cached_tokens else ""
    usage = f" · tokens {' + '.join(tokens)}{cached}" if tokens else ""
    yield f"MODEL {event.model}{usage}".rstrip()
    yield from (f"(reasoning) {line}" for line in event.reasoning.splitlines())
    yield from event.text.splitlines()
    for call in event.calls:
        yield f"→ {call.name} {call.arguments}"


_ENDS: dict[type[events.Event], str] = {
    events.ToolSucceeded: "ok",
    events.ToolFailed: "FAILED",
    events.ToolRefused: "REFUSED",
    events.ToolCancelled: "CANCELLED",
    events.ToolEnded: "NOT KNOWN",
}


def _result(event: events.ToolResult, answer: Answer) -> Iterator[str]:
    more, end = "", _ENDS.get(type(event), "?")
    if answer:
        end = "FINDINGS" if answer == "findings" else "ok"
    elif isinstance(event, events.ToolFailed):
        more = f" ({event.failure.kind.in_words})"
    elif isinstance(event, events.ToolRefused):
        more = f" ({event.in_words}{f': {event.reason}' if event.reason else ''})" + by_rule(event.rule)
    yield f"TOOL {event.tool} {end}{more}"
    yield from event.content.splitlines()
    if isinstance(event, events.ToolFailed):
        shown = set(event.content.splitlines())
        mark = "" if answer else "error: "
        yield from (f"{mark}{line}" for line in event.failure.message.splitlines() if line not in shown)
    if isinstance(event, events.ToolSucceeded) and event.changed:
        yield f"changed: {', '.join(map(escaped_line, event.changed))}"


def _recovery(event: events.Event) -> Iterator[str]:
    match event:
        case events.VerdictReached() if event.level is not events.Level.CONTINUE:
            yield f"» VERDICT {event.level} by {event.detector}: {event.reason}{by_rule(event.rule)}"
            for record in event.verdicts:
                if record.level is not events.Level.CONTINUE and record.detector != event.detector:
                    yield f"also {record.level} by {record.detector}: {record.reason}{by_rule(record.rule)}"
        case events.NotePrepared():
            yield "» NOTE" + (" edited by the operator" if event.edited else "") + by_rule(*event.rules)
            yield from (event.text or "(none)").splitlines()
        case events.EscalationRaised():
            yield f"» ESCALATION by {asker(event.source)}{by_rule(event.rule)}"
            yield from event.in_words.splitlines()
        case events.EscalationAnswered():
            yield "» ANSWER"
            yield from event.in_words.splitlines()


def _summary(event: events.Compacted | events.CompactionFailed) -> Iterator[str]:
    if isinstance(event, events.CompactionFailed):
        yield f"» NO SUMMARY{by_rule(event.rule)}"
        yield from event.in_words.splitlines()
        return
    sizes = f"{event.tokens_before:,} → {event.tokens_after:,} tokens"
    yield f"» SUMMARY of {counted(event.groups, 'step')}, {sizes}{by_rule(event.rule)}"
    yield from event.summary.splitlines()


def _fault(event: events.Event) -> Iterator[str]:
    match event:
        case events.ModelFaulted():
            fault = f"{event.fault.kind.in_words} · try {event.attempt} · {event.then}"
            yield f"» MODEL FAULT {fault}{by_rule(event.rule)}"
            yield from event.fault.message.splitlines()
        case events.ReplyRejected():
            said = "ANSWER SENT BACK" if event.unverified else "REPLY REJECTED"
            yield f"» {said}: {event.failure.message}{by_rule(event.rule)}"
        case events.CoherenceRepaired():
            repairs = ", ".join(f"{kind} ×{count}" for kind, count in sorted(event.repairs.items()))
            yield f"» COHERENCE {repairs}"
        case events.LimitWaitStarted():
            yield f"» WAITS FOR THE LIMIT OF {event.model}{by_rule(event.rule)}"
        case events.WaitSkipped():
            yield "» THE WAIT WAS SKIPPED"
        case events.ClosingTurnOpened():
            yield f"» {event.in_words.upper()}{by_rule(event.rule)}"
        case events.StartedAfresh():
            yield f"» {event.in_words.upper()}{by_rule(event.rule)}"
            yield from event.remark.splitlines()
        case events.BudgetRaised():
            yield f"» BUDGET {event.in_words}{by_rule(event.rule)}"
        case events.BreakerSet():
            yield f"» BREAKER {event.tool} {'opened' if event.open else 'closed'} by hand"
