"""A plain loop over Anthropic's SDK (messages)."""

from collections.abc import Callable, Mapping
from pathlib import Path

from anthropic import Anthropic
from guard import Guard


def run(
    client: Anthropic,
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
        reply = client.messages.create(model=model, max_tokens=1024, messages=messages, tools=specifications)
        messages.append({"role": "assistant", "content": [block.to_dict() for block in reply.content]})
        calls = [block for block in reply.content if block.type == "tool_use"]
        if not calls:
            text = "".join(block.text for block in reply.content if block.type == "text")
            guard.answered(text)
            return text
        results = [
            {
                "type": "tool_result",
                "tool_use_id": call.id,
                **carried_out(guard, tools, call.name, call.input),
            }
            for call in calls
        ]
        if not guard.step_ended():
            return "ended by recovery"
        note = [{"type": "text", "text": guard.note}] if guard.note else []
        messages.append({"role": "user", "content": [*results, *note]})


def carried_out(guard: Guard, tools: Mapping[str, Callable[..., str]], name: str, arguments: dict) -> dict:
    """Content and mark of the call's result."""
    if refusal := guard.refusal(name, arguments):
        return {"content": refusal, "is_error": True}
    try:
        result = tools[name](**arguments)
    except Exception as error:
        guard.failed(name, arguments, f"{type(error).__name__}: {error}")
        return {"content": str(error), "is_error": True}
    guard.succeeded(name, arguments, result)
    return {"content": result}
