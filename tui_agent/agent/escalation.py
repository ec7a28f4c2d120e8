"""Putting a verdict of `escalate` to the operator, and what each answer means for the run (RECOVERY.md, 5.1)."""

from __future__ import annotations

import json
from typing import Any

from tui_agent import events as e
from tui_agent.agent.ending import Ending
from tui_agent.agent.operator import EscalationReply, Operator
from tui_agent.agent.recorder import Recorder


async def settle(recorder: Recorder, operator: Operator, verdict: e.VerdictRecord) -> Ending | None:
    """Ask, record the answer, and say how the run ends if it does.

    The answer is new information: it enters the history as an operator's message and goes to the detectors.
    """
    tool, arguments = recorder.state.recovery.subject() or ("", {})
    raised = recorder.record(
        e.EscalationRaised(
            id=f"escalation-{recorder.state.seq + 1}",
            question=verdict.reason,
            source=verdict.detector,
            tool=tool,
            input=arguments,
        )
    )
    reply = await operator.answer(raised)
    recorder.record(
        e.EscalationAnswered(
            id=raised.id,
            choice=reply.choice,
            text=reply.text,
            message=_message(reply, tool, arguments),
            tool=tool,
            input=reply.input if reply.input is not None else arguments,
            by=reply.by,
        )
    )
    reason = verdict.reason
    match reply.choice:
        case "partial":
            return Ending(e.Outcome.PARTIAL, reason, detector=verdict.detector)
        case "stop":
            return Ending(e.Outcome.ESCALATED, reason, detector=verdict.detector)
        case _:
            return None


def _message(reply: EscalationReply, tool: str, arguments: dict[str, Any]) -> str:
    """What the model is told, in the operator's name; empty where nobody answered."""
    subject = f"{tool} {json.dumps(arguments, ensure_ascii=False)}" if tool else "the failing step"
    words = reply.text.strip()
    match reply.choice:
        case "answer":
            return words
        case "retry":
            base = f"Try {subject} once more."
        case "edit":
            edited = json.dumps(reply.input if reply.input is not None else arguments, ensure_ascii=False)
            base = f"Call {tool} with these arguments instead: {edited}"
        case "skip":
            base = f"Go on without {subject}; do not repeat it."
        case _:
            return ""
    return f"{base} {words}".strip()
