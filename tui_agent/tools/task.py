"""The tool that starts a sub-agent: another run of the same engine, with a window and a budget of its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from tui_agent.core.events import Outcome
from tui_agent.core.tool_facts import Effect, ToolFacts, Use, Uses
from tui_agent.quantities import counted
from tui_agent.tools.errors import ToolError
from tui_agent.tools.output import DEFAULT_LIMIT, Capture
from tui_agent.tools.tool import ToolContext, ToolOutput, schema, text

if TYPE_CHECKING:
    from tui_agent.tools.workspace import Workspace

TASK = "task"


@dataclass(frozen=True)
class TaskEnded:
    """The result of a sub-agent: its answer or partial answer, its steps, and the files that it changed."""

    outcome: Outcome
    answer: str
    reason: str
    steps: int
    changed: tuple[str, ...] = ()


Delegate = Callable[[str, str, str], Awaitable[TaskEnded]]
"""Runs a sub-agent: the id of the call, the work's name, the prompt. Cancellation ends it."""


@dataclass(frozen=True)
class Task:
    """`task(name, prompt)`: the answer of a sub-agent is the result; any other end is a failure."""

    delegate: Delegate
    output_limit: int = DEFAULT_LIMIT
    name: ClassVar[str] = TASK
    effect: ClassVar[Effect] = Effect.TASK
    uses: ClassVar[Uses] = {"name": Use.SAYS, "prompt": Use.SAYS}
    facts: ClassVar[ToolFacts] = ToolFacts(subject="name")
    description: ClassVar[str] = (
        "Give a part of the work to a sub-agent: the same tools, a context window of its own, nothing of this "
        "conversation. For wide searches and for parts that do not depend on each other; several calls in one reply "
        "work side by side. Its answer is the result."
    )
    parameters: ClassVar[dict[str, Any]] = schema(
        "name",
        "prompt",
        name=text("The work in two to five words.", maxLength=60),
        prompt=text("The whole task, and what the answer must say."),
    )

    def preview(self, arguments: dict[str, Any], workspace: Workspace) -> str:
        """The prompt."""
        return str(arguments["prompt"])

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolOutput:
        """Raises `ToolError` for a sub-agent that ended without an answer."""
        ended = await self.delegate(context.call_id, str(arguments["name"]), str(arguments["prompt"]))
        capture = Capture(context.output_dir, context.call_id, self.output_limit, mask=context.new_mask())
        capture.feed(ended.answer.encode())
        answer, whole = capture.finish()
        if ended.outcome is Outcome.ANSWERED:
            return ToolOutput(answer, changed=ended.changed, output_file=whole)
        said = f"The sub-agent ended without an answer ({ended.outcome.in_words}) after {counted(ended.steps, 'step')}"
        raise ToolError(f"{said}: {ended.reason}\nWhat it leaves:\n{answer}", output_file=whole)
