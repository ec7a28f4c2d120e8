"""The session's history as OpenAI-style chat messages, as the model was given it, notes left out.

Notes to the model go with one call only and are never part of a history.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tui_agent.core.events import Event, Image, RunStarted, with_images_named
from tui_agent.core.fold import fold
from tui_agent.core.projections.history import Message
from tui_agent.formats.exporters.json import written


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
        messages.extend(_plain(message) for message in group.messages)
    return written({"model": state.run.model, "messages": messages})


def _plain(message: Message) -> dict[str, Any]:
    """The message without what one provider alone can read, and with its images named: their files stay here."""
    plain = {key: value for key, value in message.items() if key not in {"carried", "images"}}
    if "images" in message:
        images = [Image.model_validate(image) for image in message["images"]]
        plain["content"] = with_images_named(str(message["content"]), images)
    return plain
