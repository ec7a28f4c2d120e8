"""A sub-agent below the call that started it: how far it is, and a line for each of its calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_agent.call_names import subject_of
from tui_agent.core.names import UNDONE, CallState
from tui_agent.core.tool_facts import facts_of
from tui_agent.frontend.lines.glyphs import CALL_STATES
from tui_agent.frontend.lines.styled import Line, Span, clip
from tui_agent.headline import headline
from tui_agent.quantities import counted
from tui_agent.terminal_text import one_line

if TYPE_CHECKING:
    from tui_agent.console.panes.block_context import BlockContext
    from tui_agent.core.projections.lane import Lane, LaneCall

SHOWN = 4
"""Calls that a folded lane shows while it works: the newest."""


def draw_lane(lane: Lane, width: int, context: BlockContext) -> list[Line]:
    """Its course in a line, then its calls: all of an open block, the newest of one that works, else none."""
    lines: list[Line] = [clip(_course(lane), width)]
    calls = lane.calls
    if not context.expanded:
        calls = () if lane.outcome is not None else calls[-SHOWN:]
    lines += [clip(_call(call, context), width) for call in calls]
    if lane.question:
        lines.append(clip((Span("? ", "operator bold"), Span(one_line(lane.question), "operator")), width))
    return lines


def _course(lane: Lane) -> Line:
    failed = sum(call.state in UNDONE for call in lane.calls)
    steps = f"step {lane.steps} of {lane.most_steps}"
    if lane.outcome is not None:
        steps = f"{lane.outcome.in_words} after {counted(lane.steps, 'step')}"
    said: list[Span] = [Span(f"{steps} · {counted(len(lane.calls), 'call')}", "muted")]
    if failed:
        said += [Span(" · ", "faint"), Span(f"{failed} failed", "warn")]
    return tuple(said)


def _call(call: LaneCall, context: BlockContext) -> Line:
    sign = CALL_STATES[call.state]
    running = call.state is CallState.RUNNING
    role = "warn" if call.state is CallState.FAILED else sign.role
    cause = (Span(f"  {headline(call.said)}", "muted"),) if call.said else ()
    return (
        Span(f"{context.frame if running else sign.glyph} ", role),
        Span(f"{one_line(facts_of(call).label or call.tool)} ", ""),
        Span(subject_of(call), "muted"),
        *cause,
    )
