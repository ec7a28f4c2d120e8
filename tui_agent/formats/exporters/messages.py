"""The session's history as OpenAI-style chat messages, as the model was given it, notes left out.

Notes to the model go with one call only and are never part of a history.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tui_agent.core.events import Event, RunStarted
from tui_agent.core.fold import fold
from tui_agent.formats.exporters.json import written

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
        # What one provider alone can read belongs to no exchange format.
        messages.extend(
            {key: value for key, value in message.items() if key != "carried"} for message in group.messages
        )
    return written({"model": state.run.model, "messages": messages})
