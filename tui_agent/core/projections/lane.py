"""A sub-agent as it is shown below the call that started it: its calls, a line each, and its progress."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tui_agent.core import events
from tui_agent.core.evolve import evolve
from tui_agent.core.names import CallState
from tui_agent.core.tool_facts import ToolFacts

LONGEST = 200
"""Characters of an argument that are kept: a lane names its calls and does not repeat them."""


@dataclass(frozen=True)
class LaneCall:
    """One call of a sub-agent. `said`: why it failed or was not executed; `duration` in seconds."""

    call_id: str
    tool: str
    input: Mapping[str, Any]
    state: CallState = CallState.REQUESTED
    said: str = ""
    duration: float = 0.0
    facts: ToolFacts | None = None


@dataclass(frozen=True)
class Lane:
    """The course of one sub-agent. `outcome` is None while it works."""

    steps: int = 0
    most_steps: int = 0
    calls: tuple[LaneCall, ...] = ()
    question: str = ""
    """Its open question to the operator."""
    outcome: events.Outcome | None = None

    def apply(self, event: events.Event) -> Lane:
        """Fold one of the sub-agent's events; those that are not shown change nothing."""
        match event:
            case events.RunStarted():
                return Lane(most_steps=event.max_iterations)
            case events.IterationStarted():
                return evolve(self, steps=event.iteration)
            case events.ReplyFinished():
                added = (LaneCall(call.id, call.name, {}, facts=call.facts) for call in event.calls)
                return evolve(self, calls=(*self.calls, *added))
            case events.ToolStarted():
                return self._with_call(event.call_id, state=CallState.RUNNING, input=_short(event.input))
            case events.ApprovalAsked():
                return self._with_call(event.call_id, state=CallState.WAITING, input=_short(event.input))
            case events.EscalationRaised():
                return evolve(self, question=event.in_words)
            case events.EscalationAnswered():
                return evolve(self, question="")
            case events.ToolResult():
                return self._ended(event)
            case events.RunFinished():
                return evolve(self, outcome=event.outcome, question="")
            case _:
                return self

    def _ended(self, event: events.ToolResult) -> Lane:
        changes: dict[str, Any] = {"duration": event.duration}
        if event.input:
            changes["input"] = _short(event.input)
        match event:
            case events.ToolFailed():
                changes |= {"state": CallState.FAILED, "said": event.failure.message[:LONGEST]}
            case events.ToolRefused():
                state = CallState.DENIED if event.refusal == "denied" else CallState.BLOCKED
                changes |= {"state": state, "said": event.reason[:LONGEST]}
            case events.ToolCancelled():
                changes["state"] = CallState.CANCELLED
            case events.ToolEnded():
                changes["state"] = CallState.NOT_KNOWN
            case _:
                changes["state"] = CallState.SUCCEEDED
        return self._with_call(event.call_id, **changes)

    def _with_call(self, call_id: str, **changes: Any) -> Lane:
        """The newest call of that id changed: some servers give the same ones in each reply."""
        for place in range(len(self.calls) - 1, -1, -1):
            call = self.calls[place]
            if call.call_id == call_id:
                calls = (*self.calls[:place], evolve(call, **changes), *self.calls[place + 1 :])
                return evolve(self, calls=calls)
        return self


def _short(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value[:LONGEST] if isinstance(value, str) else value for key, value in arguments.items()}
