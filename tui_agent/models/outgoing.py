"""The messages of a request as a provider gets them, and what lessons need to know of a request that was sent.

Every client sends what `outgoing` gives: what earlier replies carried, images from their copies, and the shape that the
server takes, in this order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tui_agent.models.carried import restored
from tui_agent.models.habits import Habits
from tui_agent.models.images import with_images
from tui_agent.models.lessons import Sent
from tui_agent.models.protocol import ModelRequest
from tui_agent.models.shape import Shaped, shaped


def outgoing(request: ModelRequest, provider: str, habits: Habits, *, seen: bool) -> Shaped:
    """The request's messages for a provider with these habits; `seen`: its model sees images."""
    messages = [with_images(restored(message, provider, habits), seen=seen) for message in request.messages]
    return shaped(messages, habits, request.ephemeral)


def sent(body: Mapping[str, Any], request: ModelRequest) -> Sent:
    """Facts that lessons need about a request that went out with this body."""
    given = request.parameters.given()
    return Sent(
        messages=body["messages"],
        tools=body.get("tools") or (),
        parameters=frozenset(given),
        numbers={name: value for name, value in given.items() if isinstance(value, int | float)},
        streamed=bool(body.get("stream")),
        images=any(message.get("images") for message in request.messages),
        carried=any("carried" in message for message in request.messages),
    )


def without_nulls(body: Mapping[str, Any]) -> dict[str, Any]:
    """A body as litellm sends it: fields of messages that are None go out as if they were not there."""
    messages = [
        {name: value for name, value in message.items() if value is not None} for message in body["messages"]
    ]
    return {**body, "messages": messages}
