"""The partial answer: what a run leaves behind when it ends without an answer (RECOVERY.md, 4).

It is composed from the state alone; no further model call is needed for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_agent.recovery.streak import exceeded_message

if TYPE_CHECKING:
    from tui_agent.recovery.engine import RecoveryState

LONGEST_TEXT = 500
"""Characters of the model's last text that are quoted."""

PROBLEMS = 3
"""Open problems that are told, the newest."""

_LONGEST_PROBLEM = 200


def compose(reason: str, state: RecoveryState, iterations: int, last_text: str = "") -> str:
    """The partial answer of a run that ended for `reason` after `iterations` completed iterations."""
    lines = [f"The task could not be completed: {reason.rstrip('.') or 'the run was ended'}."]
    if state.policy.streak == "stop" and state.streak.exceeded:
        lines.insert(0, exceeded_message(state.streak.limit))
    lines += [
        "",
        f"Confidence: {state.cognition.confidence:.2f}",
        f"Completed iterations: {iterations}",
    ]
    problems = state.cognition.uncertainties[-PROBLEMS:]
    if problems:
        newest = {entry.tool: entry.last_message for entry in state.attempts.entries.values()}
        newest |= {slot.tool: slot.message for slot in state.ring.slots if slot is not None}
        lines += ["", "Open problems:"]
        lines += [f"- {problem}{_detail(problem, newest)}" for problem in problems]
    text = last_text.strip()
    if text:
        cut = text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1].rstrip() + "…"
        lines += ["", "The last the agent said:", cut]
    return "\n".join(lines)


def _detail(problem: str, newest: dict[str, str]) -> str:
    message = newest.get(problem.rpartition(": ")[2], "")
    line = " ".join(message.split())
    if not line:
        return ""
    return f" ({line if len(line) <= _LONGEST_PROBLEM else line[: _LONGEST_PROBLEM - 1] + '…'})"
