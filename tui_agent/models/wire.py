"""The messages between this process and the model host: one JSON object a line, over pipes.

Shared by `host` and `hosted`. A message about a call carries its `id`; one without is about the host.
"""

from __future__ import annotations

import json
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter
from pydantic_core import PydanticSerializationError

from tui_agent.core.values import Fault
from tui_agent.models.protocol import ModelRequest, Reply

HEARTBEAT = 1.0
"""Seconds between two `Alive` messages while a call goes on."""


class _Message(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Call(_Message):
    """Make a model call."""

    type: Literal["call"] = "call"
    id: int
    request: ModelRequest


class Cancel(_Message):
    """Stop a call; no more reports come about it."""

    type: Literal["cancel"] = "cancel"
    id: int


class AskBudget(_Message):
    """How many tokens may a prompt have?"""

    type: Literal["ask_budget"] = "ask_budget"
    id: int
    model: str
    api_base: str | None = None
    api_key_variable: str | None = None


class AskName(_Message):
    """Is this model known, at this address?"""

    type: Literal["ask_name"] = "ask_name"
    id: int
    model: str
    api_base: str | None = None


class UseKey(_Message):
    """Call with this key from now on, as if the environment had held it."""

    type: Literal["use_key"] = "use_key"
    variable: str
    key: str = Field(repr=False)
    """Empty: without one."""


Command = Annotated[Call | Cancel | AskBudget | AskName | UseKey, Field(discriminator="type")]


class Alive(_Message):
    """The host still runs, whatever the provider does."""

    type: Literal["alive"] = "alive"


class Piece(_Message):
    """A piece of a reply. Pieces that come fast are put together before they are sent."""

    type: Literal["piece"] = "piece"
    id: int
    text: str = ""
    reasoning: str = ""


class Done(_Message):
    """A call ended well."""

    type: Literal["done"] = "done"
    id: int
    reply: Reply


class Failed(_Message):
    """A call ended in a fault."""

    type: Literal["failed"] = "failed"
    id: int
    fault: Fault


class Budget(_Message):
    """The answer to `AskBudget`."""

    type: Literal["budget"] = "budget"
    id: int
    tokens: int | None


class Named(_Message):
    """The answer to `AskName`: whether the provider is known, the model is in litellm's list, and what is near;
    whether it sees images, as far as is known.
    """

    type: Literal["named"] = "named"
    id: int
    provider: bool
    listed: bool
    nearest: tuple[str, ...] = ()
    sees: bool = True


Report = Annotated[Alive | Piece | Done | Failed | Budget | Named, Field(discriminator="type")]

commands: TypeAdapter[Command] = TypeAdapter(Command)
reports: TypeAdapter[Report] = TypeAdapter(Report)


def line(message: BaseModel) -> bytes:
    """The message as its line. JSON escapes line breaks, so a line never holds two."""
    try:
        return message.model_dump_json().encode() + b"\n"
    except PydanticSerializationError:
        # Half a surrogate pair is no text; it goes as a question mark, and all the rest as it is.
        return (
            json.dumps(message.model_dump(mode="python"), ensure_ascii=False).encode("utf-8", "replace")
            + b"\n"
        )
