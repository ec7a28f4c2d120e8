"""The session's history as OpenAI-style chat messages, as the model was given it, notes left out.

Notes to the model are ephemeral and never part of a history (RECOVERY.md, 2).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tui_agent.events import Event, RunStarted
from tui_agent.state import fold

if TYPE_CHECKING:
    from collections.abc import Sequence


def to_messages(events: Sequence[Event]) -> str:
    """`{"model", "messages"}`; the system prompt of the last run stands first."""
    state = fold(events)
    messages: list[dict[str, Any]] = []
    prompts = [
        event.system_prompt for event in events if isinstance(event, RunStarted) and event.system_prompt
    ]
    if prompts:
        messages.append({"role": "system", "content": prompts[-1]})
    for group in state.history.groups:
        messages.extend(group.messages)
    document = {"model": state.run.model, "messages": messages}
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"
