"""Events that complete a saved session whose process died in the middle of a run.

The events are those that `decide` demands: a finished iteration gets its verdict and note; if calls of the
iteration were under way, the interruption is recorded and every call gets a result. A question that waited
stays open and is asked again. Nothing here writes; the caller records what it is given, in order.
"""

from __future__ import annotations

from tui_agent.core import events
from tui_agent.core.decision.decide import decide
from tui_agent.core.decision.steps import Finish, Record, Step
from tui_agent.core.fold import apply
from tui_agent.core.request import compaction
from tui_agent.core.state import RunState


def repair_events(state: RunState) -> list[events.Event]:
    """The events to record before a session whose journal folds to `state` goes on; none if it is whole."""
    if not state.running and state.compacting is None and state.compaction_asked is None:
        return []
    added: list[events.Event] = []

    def record(event: events.Event) -> None:
        nonlocal state
        added.append(event)
        state = apply(state, event.stamped(state.seq + 1, state.at))

    def settled() -> Step:
        while isinstance(step := decide(state), Record):
            for event in step.events:
                record(event)
        return step

    if not state.running:
        # A summary that was asked for between runs; the operator can ask again.
        record(compaction.failed(state, compaction.CUT_SHORT))
        return added
    in_mid_iteration = state.iteration_open
    # A wait for a limit outlives the process: nothing was under way that could be lost.
    waits = state.waiting is not None or (state.fault is not None and state.fault.action == "wait")
    if in_mid_iteration and state.recovery.reply is None and not waits:
        record(events.Interrupted(cause="process_ended"))
    step, lost = settled(), 0
    if state.iteration_open and state.escalation is None and not waits:
        lost = len(state.history.open_calls())
        record(events.Interrupted(cause="process_ended"))
        step = settled()
    number = state.run.iteration
    if isinstance(step, Finish):
        record(step.finished)
        if lost:
            record(_notice(f"The run ended in step {number}", lost))
    elif added or in_mid_iteration:
        record(_notice(f"The session goes on from the middle of step {number}", lost))
    return added


def _notice(what: str, lost: int) -> events.Notice:
    calls = {0: "", 1: " One call was running or waiting: its result is unknown."}.get(
        lost, f" {lost} calls were running or waiting: their results are unknown."
    )
    return events.Notice(severity="warning", text=f"{what}.{calls}")
