"""pydantic-ai: a toolset around the agent's own, and a model around the one that answers, which adds the note."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from guard import Guard
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, UserPromptPart
from pydantic_ai.models import Model
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.toolsets import AbstractToolset, WrapperToolset


@dataclass
class Guarded(WrapperToolset):
    """The tools of `wrapped`, whose failures are told to the engine and to the model."""

    guard: Guard

    async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: Any, tool: Any) -> Any:
        """Carry the call out if it may run."""
        if refusal := self.guard.refusal(name, tool_args):
            return refusal
        try:
            result = await super().call_tool(name, tool_args, ctx, tool)
        except Exception as error:
            self.guard.failed(name, tool_args, f"{type(error).__name__}: {error}")
            return f"Error: {error}"
        self.guard.succeeded(name, tool_args, str(result))
        return result


class Noted(WrapperModel):
    """The model, which reads the note behind all else; the note is no part of the history."""

    def __init__(self, wrapped: Model, guard: Guard) -> None:
        super().__init__(wrapped)
        self.guard = guard

    async def request(self, messages: list[ModelMessage], *more: Any) -> ModelResponse:
        """Ask the model; if there is a reply already, its calls have ended."""
        if len(messages) > 1:
            self.guard.step_ended()
        note = [ModelRequest([UserPromptPart(self.guard.note)])] if self.guard.note else []
        return await super().request([*messages, *note], *more)


def run(model: Model, task: str, tools: AbstractToolset, names: list[str], journal: Path) -> str:
    """The model's answer."""
    guard = Guard(task, names, journal)
    answer = Agent(Noted(model, guard), toolsets=[Guarded(tools, guard)]).run_sync(task).output
    guard.answered(answer)
    return answer
