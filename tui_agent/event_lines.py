"""An event in one safe line, for whoever reads a run line by line: `run` on standard error, and the plain console."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from tui_agent.call_names import subject_of
from tui_agent.core import events
from tui_agent.core.names import FINISH, RAN_UNASKED
from tui_agent.core.projections.background import in_words
from tui_agent.core.tool_facts import facts_of
from tui_agent.quantities import counted, resets, seconds
from tui_agent.terminal_text import one_line, revealed_line

if TYPE_CHECKING:
    from tui_agent.core.recovery.iteration import Answer


class Signs(NamedTuple):
    """The beginning of each kind of line."""

    ok: str
    found: str
    failed: str
    refused: str
    asks: str
    summary: str
    notice: str
    background: str
    verdict: str


GLYPHS = Signs("✓", "!", "✗", "⊘", "?", "▤", "!", "⚙", "▲")
WORDS = Signs(
    "done:", "findings:", "failed:", "not run:", "question:", "summary:", "notice:", "background:", "verdict:"
)
"""For eyes that cannot see a glyph, and for terminals that have none."""


def event_line(event: events.Event, signs: Signs, answer: Answer = "") -> str:
    """The line; empty for an event that needs none. `answer`: the text of a result that is no failure."""
    if isinstance(event, events.ToolFailed):
        return _ended(event, signs, answer)
    make = _MAKERS.get(type(event))
    return "" if make is None else make(event, signs)


def call_words(event: events.ToolResult | events.ToolStarted) -> str:
    """The call: its name and what it is about."""
    tool = facts_of(event).label or event.tool
    return revealed_line(f"{tool} {subject_of(event)}".strip(), 100)


def ended_as(answer: Answer, signs: Signs) -> str:
    """How the line of a result begins whose exit code is not 0."""
    return {"no_match": signs.ok, "findings": signs.found}.get(answer, signs.failed)


def _ended(event: events.ToolFailed, signs: Signs, answer: Answer) -> str:
    return f"{ended_as(answer, signs)} {call_words(event)}: {one_line(event.failure.message)}"


def _refused(event: events.ToolRefused, signs: Signs) -> str:
    return f"{signs.refused} {call_words(event)} {event.in_words}: {one_line(event.reason)}{_by(event.rule)}"


def _fault(event: events.ModelFaulted, signs: Signs) -> str:
    said = f"{event.fault.kind.in_words}: {one_line(event.fault.message).rstrip('.')}; {one_line(event.then)}"
    return f"{signs.failed} model: {said}{_by(event.rule)}"


def _compacted(event: events.Compacted, signs: Signs) -> str:
    sizes = f"{event.tokens_before:,} → {event.tokens_after:,} tokens"
    return f"{signs.summary} {counted(event.groups, 'step')} summarised: {sizes}{_by(event.rule)}"


def _verdict(event: events.VerdictReached, signs: Signs) -> str:
    if event.level.rank <= events.Level.CONTINUE.rank:
        return ""
    return (
        f"{signs.verdict} {event.level} ({one_line(event.rule or event.detector)}): {one_line(event.reason)}"
    )


def _hook(event: events.HookReported, signs: Signs) -> str:
    if event.status == "ok":
        return ""
    return (
        f"{signs.notice} {event.hook} hook {event.status_in_words}: {one_line(event.error or event.command)}"
    )


def _in_lane(event: events.LaneEvent, signs: Signs) -> str:
    """The line of a sub-agent's event, indented behind its name."""
    match event.event:
        case events.RunStarted():
            said = "begins"
        case events.ToolSucceeded(tool=tool) if tool == FINISH:
            said = ""  # the result of the run's own call is this answer
        case events.RunFinished() as ended:
            said = f"ended, {ended.outcome.in_words}{f': {one_line(ended.reason)}' if ended.reason else ''}"
        case step:
            said = event_line(step, signs)
    return f"  {one_line(event.name, 60)}: {said}" if said else ""


def _by(rule: str) -> str:
    return f" [{one_line(rule)}]" if rule else ""


def _unasked(event: events.ToolStarted, signs: Signs) -> str:
    return f"{signs.ok} {RAN_UNASKED}: {call_words(event)}" if event.reads_only else ""


_MAKERS: dict[type[events.Event], Callable[[Any, Signs], str]] = {
    events.AgentOpened: lambda event, signs: f"{signs.notice} {one_line(event.in_words)}",
    events.ToolStarted: _unasked,
    events.ToolSucceeded: lambda event, signs: f"{signs.ok} {call_words(event)} ({seconds(event.duration)})",
    events.ToolRefused: _refused,
    events.ToolCancelled: lambda event, signs: f"{signs.refused} {call_words(event)}: cancelled",
    events.ToolEnded: lambda event, signs: f"{signs.notice} {call_words(event)}: how it ended is not known",
    events.ReplyRejected: lambda event, signs: (
        f"{f'{signs.notice} {event.in_words}:' if event.unverified else signs.failed} "
        f"{one_line(event.failure.message)}{_by(event.rule)}"
    ),
    events.ModelFaulted: _fault,
    events.LimitWaitStarted: lambda event, signs: (
        f"{signs.notice} the run waits for the limit of {one_line(event.model)}, which "
        f"{resets(event.until, event.at)}{_by(event.rule)}"
    ),
    events.EscalationRaised: lambda event, signs: f"{signs.asks} {one_line(event.in_words)}{_by(event.rule)}",
    events.Compacted: _compacted,
    events.CompactionFailed: lambda event, signs: (
        f"{signs.summary} no summary: {one_line(event.in_words)}{_by(event.rule)}"
    ),
    events.StartedAfresh: lambda event, signs: f"{signs.summary} {one_line(event.in_words)}{_by(event.rule)}",
    events.VerdictReached: _verdict,
    events.Advised: lambda event, signs: f"{signs.notice} {one_line(event.in_words)}{_by(event.rule)}",
    events.Notice: lambda event, signs: f"{signs.notice} {one_line(event.text)}",
    events.HookReported: _hook,
    events.BackgroundEnded: lambda event, signs: revealed_line(
        f"{signs.background} {event.id} {in_words(event)}: {event.command}", 200
    ),
    events.ServerChanged: lambda event, signs: f"{signs.notice} {one_line(event.in_words)}",
    events.LaneEvent: _in_lane,
}
