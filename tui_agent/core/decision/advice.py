"""When another model is asked for another approach, and what it is asked: the open failures and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

from tui_agent.core.decision.steps import Advise
from tui_agent.core.events import Level
from tui_agent.core.framed import framed
from tui_agent.core.recovery.note import shortened
from tui_agent.core.state import RunState
from tui_agent.terminal_text import one_line

ADVISES = (
    "You advise a coding agent that is stuck. You are told its task, what fails, and what succeeded. Answer with one "
    "other approach, in at most four sentences: what to do next, and why it avoids what failed. Repeat nothing that "
    "has failed. No greeting, no code block, no list."
)
_LONGEST_TASK, _LONGEST_CALL, _LONGEST_ERROR = 1_500, 300, 400
_MOST_FAILURES = 5


def advice_due(state: RunState) -> Advise | None:
    """The question to the advisor, once for each pivot; None if none is due."""
    reached, policy = state.verdict, state.recovery.policy
    if not state.run.advisor or state.advised or policy.note != "merged" or reached is None:
        return None
    if reached.level is not Level.PIVOT or reached.iteration != state.run.iteration:
        return None
    return Advise(state.run.advisor, "\n".join(_question(state)))


def _question(state: RunState) -> Iterator[str]:
    yield f"The task:\n{shortened(state.run.task, _LONGEST_TASK)}\n\nWhat fails:"
    incidents = list(state.metrics.incidents.open.values())
    for one in incidents[-_MOST_FAILURES:]:
        words = (value for value in one.input.values() if isinstance(value, str))
        call = f"{one.tool} {one_line(next(words, ''), _LONGEST_CALL)}".strip() or one.key
        times = f", {one.times} times" if one.times > 1 else ""
        yield f"- {call}{times}:{framed(one.newest.message, _LONGEST_ERROR)}"
    done = state.metrics.commands_succeeded
    if done:
        yield "\nWhat succeeded:\n" + "\n".join(f"- {command}" for command in done)
