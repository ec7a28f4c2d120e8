"""Transcript and recovery timeline as plain text, for logs and diffs (`replay --print`).

The same events give the same text, to the byte: times are relative to the session's start, and nothing
depends on the machine. Control characters are made visible, so that printing a session cannot command a
terminal.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tui_agent import events as e
from tui_agent.folds.timeline import Timeline
from tui_agent.sessions.visible import visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_INDENT = "    "
_TIMELINE_TEXT = 160
"""Characters of a line in the timeline."""


def to_text(events: Sequence[e.Event], *, times: bool = False) -> str:
    """The whole session, then the timeline of its recovery. Recovery's own lines begin with `»`.

    Times and durations are left out unless asked for: two runs of the same course then differ in nothing.
    """
    start = events[0].at if events else 0.0
    lines: list[str] = []
    for event in events:
        told = list(_told(event, times=times))
        if told:
            lines.append(f"{clock(event.at - start)} {told[0]}" if times else told[0])
            lines.extend(f"{_INDENT}{line}".rstrip() for line in told[1:])
    lines.extend(_timeline(events))
    return "".join(f"{visible(line)}\n" for line in lines)


def _timeline(events: Sequence[e.Event]) -> Iterator[str]:
    """Verdicts, faults, questions and outcomes on one line each."""
    yield "RECOVERY TIMELINE"
    timeline = Timeline()
    run = told = 0
    calm = False
    for event in events:
        timeline = timeline.apply(event)
        run = event.run if isinstance(event, e.RunStarted) else run
        for line in timeline.lines.tail(told):
            if line.level is not None:
                was_calm, calm = calm, line.level is e.Level.CONTINUE
                if was_calm and calm:
                    continue
            text = " ".join(line.text.split())
            text = text if len(text) <= _TIMELINE_TEXT else f"{text[: _TIMELINE_TEXT - 1]}…"
            what = f"{line.level} by {line.detector}" if line.level else line.kind
            yield f"{_INDENT}{run}.{line.iteration} {what}: {text}"
        told = len(timeline.lines)


def clock(seconds: float) -> str:
    """Time since the start, as `+h:mm:ss.s`."""
    tenths = round(max(seconds, 0.0) * 10)
    minutes, tenths = divmod(tenths, 600)
    hours, minutes = divmod(minutes, 60)
    return f"+{hours}:{minutes:02}:{tenths // 10:02}.{tenths % 10}"


def arguments_text(values: dict[str, Any]) -> str:
    """A call's input on one line, keys sorted."""
    return json.dumps(values, ensure_ascii=False, sort_keys=True)


def _told(event: e.Event, *, times: bool) -> Iterator[str]:
    """An event's headline, then its body's lines; nothing for events that tell nothing by themselves."""
    match event:
        case e.ReplyFinished():
            yield from _reply(event)
        case e.ToolResult():
            yield from _result(event, times=times)
        case e.VerdictReached() | e.NotePrepared() | e.EscalationRaised() | e.EscalationAnswered():
            yield from _recovery(event)
        case e.ModelFaulted() | e.ReplyRejected() | e.CoherenceRepaired() | e.BreakerSet():
            yield from _fault(event)
        case _:
            yield from _frame(event)


def _frame(event: e.Event) -> Iterator[str]:
    match event:
        case e.SessionStarted():
            yield f"SESSION {event.session_id}" + (f" ({event.source})" if event.source else "")
            yield from (f"{name}: {value}" for name, value in _facts(event))
        case e.RunStarted():
            yield f"RUN {event.run} · policy {event.policy} · model {event.model or 'unknown'}"
            yield from event.task.splitlines()
        case e.RunFinished():
            yield f"RUN ENDED {event.outcome}" + (f": {event.reason}" if event.reason else "")
            yield from event.answer.splitlines()
        case e.OperatorSpoke():
            yield "OPERATOR"
            yield from event.text.splitlines()
        case e.IterationStarted():
            yield f"ITERATION {event.iteration}"
        case e.Notice():
            yield f"NOTICE {event.severity}"
            yield from event.text.splitlines()
        case e.HookReported():
            yield f"HOOK {event.hook} {event.status}: {event.command}"
            yield from (event.error or event.context).splitlines()
        case e.ApprovalAnswered():
            yield f"APPROVAL {event.decision} by {event.by}" + (f": {event.reason}" if event.reason else "")
        case e.SettingChanged():
            yield f"SETTING {event.setting} = {event.value}"
        case e.Rewound():
            yield f"REWOUND {event.scope} to event {event.to_seq}"
        case e.MessageQueued():
            yield "QUEUED"
            yield from event.text.splitlines()


def _facts(event: e.SessionStarted) -> Iterator[tuple[str, str]]:
    if event.title:
        yield "title", event.title
    if event.workspace:
        yield "workspace", event.workspace
    if event.parent is not None:
        yield "forked from", f"{event.parent.session_id} at event {event.parent.seq}"


def _reply(event: e.ReplyFinished) -> Iterator[str]:
    tokens = [str(count) for count in (event.prompt_tokens, event.completion_tokens) if count is not None]
    usage = f" · tokens {' + '.join(tokens)}" if tokens else ""
    yield f"MODEL {event.model}{usage}".rstrip()
    yield from (f"(reasoning) {line}" for line in event.reasoning.splitlines())
    yield from event.text.splitlines()
    for call in event.calls:
        yield f"→ {call.name} {call.arguments}"


_ENDS: dict[type[e.Event], str] = {
    e.ToolSucceeded: "ok",
    e.ToolFailed: "FAILED",
    e.ToolRefused: "REFUSED",
    e.ToolCancelled: "CANCELLED",
}


def _result(event: e.ToolResult, *, times: bool) -> Iterator[str]:
    more = ""
    if isinstance(event, e.ToolFailed):
        more = f" ({event.failure.kind})"
    elif isinstance(event, e.ToolRefused):
        more = f" ({event.refusal}{f': {event.reason}' if event.reason else ''})"
    yield f"TOOL {event.tool} {_ENDS.get(type(event), '?')}{more}" + (
        f" · {event.duration:.1f} s" if times else ""
    )
    yield from event.content.splitlines()
    if isinstance(event, e.ToolFailed) and event.failure.message not in event.content:
        yield from (f"error: {line}" for line in event.failure.message.splitlines())
    if isinstance(event, e.ToolSucceeded) and event.changed:
        yield f"changed: {', '.join(event.changed)}"


def _recovery(event: e.Event) -> Iterator[str]:
    match event:
        case e.VerdictReached() if event.level is not e.Level.CONTINUE:
            yield f"» VERDICT {event.level} by {event.detector}: {event.reason}"
            for record in event.verdicts:
                if record.level is not e.Level.CONTINUE and record.detector != event.detector:
                    yield f"also {record.level} by {record.detector}: {record.reason}"
        case e.NotePrepared():
            yield "» NOTE" + (" edited by the operator" if event.edited else "")
            yield from (event.text or "(none)").splitlines()
        case e.EscalationRaised():
            yield f"» ESCALATION by {event.source}"
            yield from event.question.splitlines()
        case e.EscalationAnswered():
            yield f"» ANSWER {event.choice} by {event.by}"
            yield from event.text.splitlines()


def _fault(event: e.Event) -> Iterator[str]:
    match event:
        case e.ModelFaulted():
            yield f"» MODEL FAULT {event.fault.kind} · attempt {event.attempt} · then {event.action}"
            yield from event.fault.message.splitlines()
        case e.ReplyRejected():
            yield f"» REPLY REJECTED: {event.failure.message}"
        case e.CoherenceRepaired():
            repairs = ", ".join(f"{kind} ×{count}" for kind, count in sorted(event.repairs.items()))
            yield f"» COHERENCE {repairs}"
        case e.BreakerSet():
            yield f"» BREAKER {event.tool} {'opened' if event.open else 'closed'} by hand"
