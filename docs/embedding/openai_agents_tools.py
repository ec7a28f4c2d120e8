"""OpenAI's Agents SDK: tools that are wrapped, and a filter of what goes to the model."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from agents import Agent, FunctionTool, Model, RunConfig, Runner
from agents.run import CallModelData, ModelInputData
from guard import Guard


def guarded(tool: FunctionTool, guard: Guard) -> FunctionTool:
    """The tool, made with `failure_error_function=None`, so that its exceptions arrive here."""

    async def invoke(context: Any, text: str) -> Any:
        arguments = json.loads(text or "{}")
        if refusal := guard.refusal(tool.name, arguments):
            return refusal
        try:
            result = await tool.on_invoke_tool(context, text)
        except Exception as error:
            guard.failed(tool.name, arguments, f"{type(error).__name__}: {error}")
            return f"Error: {error}"
        guard.succeeded(tool.name, arguments, str(result))
        return result

    return replace(tool, on_invoke_tool=invoke)


def run(model: Model, task: str, tools: list[FunctionTool], journal: Path) -> str:
    """The model's answer."""
    guard = Guard(task, [tool.name for tool in tools], journal)

    def with_note(data: CallModelData) -> ModelInputData:
        given = data.model_data
        if len(given.input) > 1:  # the calls of the last reply have ended
            guard.step_ended()
        note = [{"role": "user", "content": guard.note}] if guard.note else []
        return ModelInputData([*given.input, *note], given.instructions)

    agent = Agent("guarded", model=model, tools=[guarded(tool, guard) for tool in tools])
    settings = RunConfig(call_model_input_filter=with_note, tracing_disabled=True)
    answer = Runner.run_sync(agent, task, run_config=settings).final_output
    guard.answered(answer)
    return answer
