"""smolagents: an agent whose calls are asked for, and whose next request has the note."""

from pathlib import Path
from typing import Any

from guard import Guard
from smolagents import ActionStep, ChatMessage, MessageRole, Model, Tool, ToolCallingAgent


class Guarded(ToolCallingAgent):
    """The agent that calls tools, under the engine."""

    def __init__(self, tools: list[Tool], model: Model, task: str, journal: Path, **settings: Any) -> None:
        self.guard = Guard(task, [tool.name for tool in tools], journal)
        super().__init__(tools, model, step_callbacks={ActionStep: self._step_ended}, **settings)

    def execute_tool_call(self, tool_name: str, arguments: dict | str) -> Any:
        """Carry the call out if it may run."""
        if tool_name == "final_answer":
            answer = super().execute_tool_call(tool_name, arguments)
            self.guard.answered(str(answer))
            return answer
        given = arguments if isinstance(arguments, dict) else {"arguments": arguments}
        if refusal := self.guard.refusal(tool_name, given):
            return refusal
        try:
            result = super().execute_tool_call(tool_name, arguments)
        except Exception as error:
            self.guard.failed(tool_name, given, f"{type(error).__name__}: {error}")
            raise
        self.guard.succeeded(tool_name, given, str(result))
        return result

    def write_memory_to_messages(self, summary_mode: bool = False) -> list[ChatMessage]:
        """The history with the note behind it."""
        messages = super().write_memory_to_messages(summary_mode)
        if not self.guard.note:
            return messages
        note = ChatMessage(role=MessageRole.USER, content=[{"type": "text", "text": self.guard.note}])
        return [*messages, note]

    def _step_ended(self, step: ActionStep) -> None:
        if not step.is_final_answer and not self.guard.step_ended():
            self.interrupt()
