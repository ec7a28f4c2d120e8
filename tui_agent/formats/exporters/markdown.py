"""A session as Markdown: head, runs with their conversation, verdicts and notes, and the timeline at the end.

What a model or a tool wrote stands in fences that it cannot close, or is escaped, so that it cannot become a
heading, a link, a picture or HTML of the document.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tui_agent.call_names import subject_of
from tui_agent.core.events import Event, Outcome
from tui_agent.core.projections.entries import (
    CallEntry,
    EscalationEntry,
    FaultEntry,
    NoticeEntry,
    OperatorEntry,
    OwnCommandEntry,
    ReplyEntry,
    SummaryEntry,
)
from tui_agent.core.receipt_lines import listed
from tui_agent.formats.exporters.story import (
    IterationItem,
    NoteItem,
    RunStory,
    Story,
    VerdictItem,
    facts,
    story_of,
)
from tui_agent.formats.exporters.wording import (
    about_summary,
    asker,
    by_rule,
    call_state,
    clock,
    counts,
    input_text,
)
from tui_agent.quantities import counted, seconds
from tui_agent.terminal_text import visible

_SPECIAL = re.compile(r"([\\`*_\[\]<>|~&#])")
_AT_START = re.compile(r"^(\s*)([-+=]|\d{1,9}[.)])")
_RUNS_OF_TICKS = re.compile(r"`+")


def to_markdown(events: Sequence[Event]) -> str:
    """The document, ending in a line break."""
    story = story_of(events)
    parts = [f"# {inline(story.title)}", _facts(story)]
    for item in story.before:
        parts.extend(_item(item))
    for run in story.runs:
        parts.extend(_run(run))
    parts.append(_timeline(story))
    return "\n\n".join(part for part in parts if part) + "\n"


def inline(text: str) -> str:
    """Foreign text inside a line: one line, without any meaning to Markdown."""
    return escaped(" ".join(visible(text).split()))


def escaped(line: str) -> str:
    """One line of foreign text without any meaning to Markdown: no mark-up, no HTML, no list, no rule."""
    line = _SPECIAL.sub(r"\\\1", line)
    start = _AT_START.match(line)
    if start is None:
        return line
    mark = start[2]
    at = start.end(1)
    if mark[0].isdigit():
        return f"{line[: start.end() - 1]}\\{line[start.end() - 1 :]}"
    return f"{line[:at]}\\{line[at:]}"


def code(text: str) -> str:
    """Foreign text as inline code, whatever is in it."""
    text = " ".join(visible(text).split())
    if not text:
        return "` `"
    ticks = "`" * (max((len(run) for run in _RUNS_OF_TICKS.findall(text)), default=0) + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{ticks}{pad}{text}{pad}{ticks}"


def fenced(text: str, language: str = "text") -> str:
    """Foreign text as a block whose fence is longer than any in it."""
    text = visible(text).rstrip("\n")
    ticks = "`" * max(3, max((len(run) for run in _RUNS_OF_TICKS.findall(text)), default=0) + 1)
    return f"{ticks}{language}\n{text}\n{ticks}"


def quoted(text: str) -> str:
    """Foreign prose as a quotation of escaped lines, its line breaks kept."""
    lines = visible(text).strip().splitlines() or [""]
    return "  \n".join(f"> {escaped(line.expandtabs(4).lstrip())}".rstrip() for line in lines)


def _facts(story: Story) -> str:
    rows = [f"| {name} | {inline(value)} |" for name, value in facts(story)]
    return "\n".join(["| | |", "|---|---|", *rows])


def _run(run: RunStory) -> Iterator[str]:
    yield f"## Run {run.number}"
    yield f"*Policy {inline(run.policy)} · model {inline(run.model or 'unknown')}*"
    yield "**Operator**"
    yield quoted(run.task)
    for item in run.items:
        yield from _item(item)
    outcome = run.outcome
    if outcome is not None:
        yield f"### Outcome: {outcome.outcome.in_words}{_by_rule(outcome.rule)}"
        if outcome.reason:
            yield inline(outcome.reason)
        if outcome.answer and outcome.outcome is not Outcome.ANSWERED:
            yield quoted(outcome.answer)
        if outcome.receipts:
            shown = listed(outcome.receipts)
            yield "\n".join(f"- {standing}: {inline(words)}" for standing, words in shown)
        yield f"{counted(run.iterations, 'step')} · {counts(run.metrics)} · {seconds(run.duration)}"


def _item(item: object) -> Iterator[str]:
    match item:
        case IterationItem():
            yield f"### Step {item.number}"
        case VerdictItem():
            yield f"**Verdict: {item.level}** by {inline(item.detector)}: {inline(item.reason)}{_by_rule(item.rule)}"
            for other in item.others:
                yield f"- also {other.level} by {inline(other.detector)}: {inline(other.reason)}{_by_rule(other.rule)}"
        case NoteItem():
            edited = " (edited by the operator)" if item.edited else ""
            yield f"Recovery note{edited}{_by_rule(*item.rules)}:"
            yield fenced(item.text)
        case OperatorEntry() | OwnCommandEntry() | EscalationEntry():
            yield from _operator(item)
        case ReplyEntry():
            yield from _reply(item)
        case CallEntry():
            yield from _call(item)
        case FaultEntry():
            fault = f"{item.fault.kind.in_words}: {inline(item.fault.message)}"
            yield f"**Model fault** (try {item.attempt}) {fault}; then: {inline(item.then)}.{_by_rule(item.rule)}"
        case NoticeEntry():
            yield f"*Notice:* {inline(item.text)}{_by_rule(item.rule)}"
        case SummaryEntry():
            yield from _summary(item)


def _operator(entry: OperatorEntry | OwnCommandEntry | EscalationEntry) -> Iterator[str]:
    match entry:
        case OperatorEntry():
            yield "**Operator**"
            yield quoted(entry.said)
        case OwnCommandEntry():
            yield f"**Operator ran** {code(entry.command)}"
            yield fenced(entry.printed)
        case EscalationEntry():
            yield f"**Escalation** by {inline(asker(entry.source))}{_by_rule(entry.rule)}"
            yield quoted(entry.in_words)
            if not entry.unasked:
                yield "**Operator**"
            yield quoted(entry.answer)


def _summary(entry: SummaryEntry) -> Iterator[str]:
    yield f"**Summary** {inline(about_summary(entry))}{_by_rule(entry.rule)}"
    if entry.summary:
        yield quoted(entry.summary)


def _by_rule(*rules: str) -> str:
    return escaped(by_rule(*rules))


def _reply(reply: ReplyEntry) -> Iterator[str]:
    if reply.reasoning:
        yield "*Reasoning*"
        yield quoted(reply.reasoning)
    if reply.text:
        yield "**Model**" + (
            " (interrupted)" if reply.kept else " (cut short, not kept)" if reply.partial else ""
        )
        yield quoted(reply.text)


def _call(call: CallEntry) -> Iterator[str]:
    attempt = f", attempt {call.attempt}" if call.attempt > 1 else ""
    lasted = f", {seconds(call.duration)}" if call.duration else ""
    yield f"**Tool** {code(call.tool)}: {call_state(call)}{attempt}{lasted}{_by_rule(call.rule)}"
    yield fenced(input_text(call), "json")
    if call.lane is not None:
        steps = (f"- {inner.state}: {code(subject_of(inner))}" for inner in call.lane.calls)
        yield "\n".join(steps)
    if call.diff:
        yield fenced(call.diff, "diff")
    if call.content:
        yield fenced(call.content)
    if call.reason and call.reason not in call.content:
        yield inline(call.reason)


def _timeline(story: Story) -> str:
    start = story.state.session.started_at
    rows = [
        f"| {line.seq} | {clock(line.at - start)} | {line.iteration or ''} | {line.level or line.kind} "
        f"| {inline(line.detector)} | {inline(line.in_a_line[:300])}{_by_rule(line.rule)} |"
        for line in story.timeline
    ]
    head = ["## Timeline", "", "| event | time | step | what | by | |", "|---:|---:|---:|---|---|---|"]
    return "\n".join([*head, *rows])
