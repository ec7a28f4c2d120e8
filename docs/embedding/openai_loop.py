"""A plain loop over OpenAI's SDK (chat completions)."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from guard import Guard
from openai import OpenAI


def run(
    client: OpenAI,
    model: str,
    task: str,
    tools: Mapping[str, Callable[..., str]],
    specifications: list[dict],
    journal: Path,
) -> str:
    """The model's answer, or why the run ended without one."""
    guard = Guard(task, list(tools), journal)
    messages: list[dict] = [{"role": "user", "content": task}]
    while True:
        note = [{"role": "user", "content": guard.note}] if guard.note else []
        reply = client.chat.completions.create(model=model, messages=messages + note, tools=specifications)
        message = reply.choices[0].message
        messages.append(message.model_dump(exclude_none=True))
        if not message.tool_calls:
            guard.answered(message.content or "")
            return message.content or ""
        for call in message.tool_calls:
            result = carried_out(guard, tools, call.function.name, json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
        if not guard.step_ended():
            return "ended by recovery"


def carried_out(guard: Guard, tools: Mapping[str, Callable[..., str]], name: str, arguments: dict) -> str:
    """What the model reads of the call."""
    if refusal := guard.refusal(name, arguments):
        return refusal
    try:
        result = tools[name](**arguments)
    except Exception as error:
        guard.failed(name, arguments, f"{type(error).__name__}: {error}")
        return f"Error: {error}"
    guard.succeeded(name, arguments, result)
    return result
