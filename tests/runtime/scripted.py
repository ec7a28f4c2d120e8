"""Scripted parts for runs through the production loop: an operator, and tools with outcomes from data."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tui_agent.core.events import ApprovalAsked, EscalationRaised, ServerAsked
from tui_agent.core.tool_facts import Effect, Uses
from tui_agent.permissions.uses import OF_RULES
from tui_agent.runtime.operator import ApprovalReply, EscalationReply, GateReply, RequestOutline, ServerReply
from tui_agent.tools.errors import ToolError
from tui_agent.tools.tool import ToolContext, ToolOutput
from tui_agent.tools.workspace import Workspace


@dataclass
class ScriptedOperator:
    """Answers in order from what it was given; when that is used up, denies and goes on."""

    present: bool = True
    approvals: deque[ApprovalReply] = field(default_factory=deque)
    answers: deque[EscalationReply] = field(default_factory=deque)
    consultations: deque[ServerReply] = field(default_factory=deque)
    notes: dict[int, str | None] = field(default_factory=dict)
    """By iteration: the note that replaces the pending one."""
    asked: list[ApprovalAsked] = field(default_factory=list)
    raised: list[EscalationRaised] = field(default_factory=list)
    outlines: list[RequestOutline] = field(default_factory=list)
    consulted: list[ServerAsked] = field(default_factory=list)

    async def approve(self, asked: ApprovalAsked) -> ApprovalReply:
        self.asked.append(asked)
        return self.approvals.popleft() if self.approvals else ApprovalReply("deny", "not in the script")

    async def answer(self, raised: EscalationRaised) -> EscalationReply:
        self.raised.append(raised)
        return self.answers.popleft() if self.answers else EscalationReply("continue", by="policy")

    async def consult(self, asked: ServerAsked) -> ServerReply:
        self.consulted.append(asked)
        return self.consultations.popleft() if self.consultations else ServerReply("cancel")

    async def gate(self, outline: RequestOutline) -> GateReply:
        self.outlines.append(outline)
        return GateReply(self.notes.get(outline.iteration, outline.note))


@dataclass(frozen=True)
class ScriptedTool:
    """A tool whose outcomes stand in a table by call id: an error's text, or None for a success."""

    name: str
    outcomes: Mapping[str, str | None]
    effect: Effect = Effect.READ
    executed: list[str] = field(default_factory=list)
    description: str = "A tool with scripted outcomes."

    @property
    def uses(self) -> Uses:
        return OF_RULES.get(self.name, {})

    @property
    def parameters(self) -> dict[str, Any]:
        return {"type": "object"}

    def preview(self, arguments: dict[str, Any], workspace: Workspace) -> str:
        return str(arguments)

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolOutput:
        self.executed.append(context.call_id)
        error = self.outcomes[context.call_id]
        if error is not None:
            raise ToolError(error)
        changed = (str(arguments.get("path", "file")),) if self.effect is Effect.WRITE else ()
        return ToolOutput(f"done {context.call_id}", changed=changed)


def scripted_tools(names: Iterable[str], outcomes: Mapping[str, str | None]) -> list[ScriptedTool]:
    """One tool a name; those that write or run commands by their usual names have that effect."""
    effects = {"write_file": Effect.WRITE, "edit_file": Effect.WRITE, "bash": Effect.COMMAND}
    return [ScriptedTool(name, outcomes, effects.get(name, Effect.READ)) for name in sorted(set(names))]
