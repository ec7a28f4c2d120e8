"""The Claude Agent SDK: hooks, which deny a call, hear how it ended, and give the model the note."""

from pathlib import Path
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions, HookMatcher
from guard import Guard


def guarded(task: str, journal: Path, **settings: Any) -> tuple[ClaudeAgentOptions, Guard]:
    """Options for `query` and `ClaudeSDKClient`, and the guard, whose `answered` takes the result's text."""
    guard = Guard(task, [], journal)

    async def before(data: Any, _: str | None, __: Any) -> dict:
        refusal = guard.refusal(data["tool_name"], data["tool_input"])
        return (
            told("PreToolUse", permissionDecision="deny", permissionDecisionReason=refusal) if refusal else {}
        )

    async def after(data: Any, _: str | None, __: Any) -> dict:
        guard.succeeded(data["tool_name"], data["tool_input"], str(data["tool_response"]))
        guard.step_ended()
        return told("PostToolUse", additionalContext=guard.note) if guard.note else {}

    async def after_failure(data: Any, _: str | None, __: Any) -> dict:
        guard.failed(data["tool_name"], data["tool_input"], data["error"])
        guard.step_ended()
        return told("PostToolUseFailure", additionalContext=guard.note) if guard.note else {}

    hooks = {"PreToolUse": before, "PostToolUse": after, "PostToolUseFailure": after_failure}
    matchers = {name: [HookMatcher(hooks=[hook])] for name, hook in hooks.items()}
    return ClaudeAgentOptions(hooks=matchers, **settings), guard


def told(event: str, **fields: Any) -> dict:
    """A hook's answer."""
    return {"hookSpecificOutput": {"hookEventName": event, **fields}}
