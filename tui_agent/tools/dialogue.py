"""The two calls that are about the run itself: asking the operator, and giving the answer.

The loop carries them out, since only it knows the operator and the run; here is what the model sees of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from tui_agent.core.names import ASK_OPERATOR, FINISH
from tui_agent.core.tool_facts import Effect, ToolFacts, Use, Uses
from tui_agent.tools.tool import ToolContext, ToolOutput, schema, text

if TYPE_CHECKING:
    from tui_agent.tools.workspace import Workspace


class OutsideLoopError(RuntimeError):
    """A dialogue tool was run like another tool: a mistake of the program, not of the model."""


@dataclass(frozen=True)
class AskOperator:
    """`ask_operator(question, options?)`: the loop raises an escalation and returns the answer as the
    result.
    """

    name: ClassVar[str] = ASK_OPERATOR
    effect: ClassVar[Effect] = Effect.DIALOGUE
    uses: ClassVar[Uses] = {"question": Use.SAYS, "options": Use.SAYS}
    facts: ClassVar[ToolFacts] = ToolFacts(subject="question", waits=True)
    description: ClassVar[str] = (
        "Ask the human operator a question and wait for the answer. For decisions that are theirs, and for "
        "what no tool can find out; not for permission to use a tool, which is asked for by itself."
    )
    parameters: ClassVar[dict[str, Any]] = schema(
        "question",
        question=text("One clear question, with its context."),
        options={
            "type": "array",
            "items": text(),
            "maxItems": 10,
            "description": "Answers to choose from; the operator may still answer freely.",
        },
    )

    def preview(self, arguments: dict[str, Any], workspace: Workspace) -> str:
        """The question and its options."""
        return "\n".join(
            [str(arguments["question"]), *(f"- {option}" for option in arguments.get("options", []))]
        )

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolOutput:
        """Never: raises `OutsideLoopError`."""
        raise OutsideLoopError(f"{self.name} is carried out by the loop, which alone can reach the operator.")


@dataclass(frozen=True)
class FinishRun:
    """`finish(answer)`: the loop ends the run with this answer."""

    name: ClassVar[str] = FINISH
    effect: ClassVar[Effect] = Effect.DIALOGUE
    uses: ClassVar[Uses] = {"answer": Use.SAYS}
    facts: ClassVar[ToolFacts] = ToolFacts(subject="answer", works=False)
    description: ClassVar[str] = (
        "End the work with the final answer for the operator: what was done, what was found, and what is "
        "left. Call it once, when the task is done and checked."
    )
    parameters: ClassVar[dict[str, Any]] = schema(
        "answer",
        answer=text("The final answer, in Markdown."),
    )
    accepted: ClassVar[dict[str, Any]] = schema("answer", answer={"type": "string", "pattern": r"\S"})

    def preview(self, arguments: dict[str, Any], workspace: Workspace) -> str:
        return str(arguments["answer"])

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolOutput:
        """Never: raises `OutsideLoopError`."""
        raise OutsideLoopError(f"{self.name} is carried out by the loop, which alone can end the run.")
