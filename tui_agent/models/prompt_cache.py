"""Marks on the messages for the bounds of a provider's prompt cache, if the provider wants them.

OpenAI, DeepSeek, Gemini and others find a repeated prefix by themselves. Claude reads and writes its cache only up to
marked messages, four at most. What a request holds only once (the recovery note) stands behind the last mark.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

MOST_MARKS = 4
"""More are refused."""

_MARK = {"cache_control": {"type": "ephemeral"}}
_CLAUDE_ELSEWHERE = frozenset({"vertex_ai", "bedrock", "bedrock_converse", "openrouter", "azure_ai"})


def wants_marks(provider: str, model: str, *, own_server: bool, known: bool | None) -> bool:
    """True if the model behind a provider caches by marks; `known`: its caching by litellm's table."""
    if own_server:
        return False
    if provider == "anthropic":
        return True
    return provider in _CLAUDE_ELSEWHERE and "claude" in model and known is not False


def marked(messages: Sequence[dict[str, Any]], ephemeral: int = 0) -> list[dict[str, Any]]:
    """The messages with marks: at the system prompt (and the tools before it), and at the ends of the newest turns.

    The last `ephemeral` messages are in no later request. Each end was or will be the last of another request, so the
    next one finds it: a provider looks back a limited way from a mark.
    """
    stable = len(messages) - ephemeral
    places = [
        at
        for at in range(1, stable)
        if messages[at]["role"] in {"user", "tool"}
        and (at + 1 == stable or messages[at + 1]["role"] == "assistant")
    ]
    places = [0, *places[1 - MOST_MARKS :]] if stable else []
    return [_with_mark(message) if at in places else message for at, message in enumerate(messages)]


def _with_mark(message: dict[str, Any]) -> dict[str, Any]:
    """The mark stands at the end of the message: at its last part, if it has parts."""
    content = message.get("content")
    if isinstance(content, list):
        return {**message, "content": [*content[:-1], content[-1] | _MARK]}
    return message | _MARK
