"""How a server stands, what it offers the operator, and what it asks. Does not need the SDK."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class ServerStatus(StrEnum):
    """How a server stands."""

    UNTRUSTED = "not trusted"
    """A checkout names it, and the operator has not agreed."""
    DISABLED = "disabled"
    CONNECTING = "connecting"
    READY = "connected"
    RETRYING = "connecting again"
    OPEN = "given up for now"
    """The breaker is open: it failed again and again, and is tried later."""
    LOGIN = "needs a login"
    """It wants an access token, and there is none that it takes."""
    FAILED = "failed"
    """It cannot be started as it is configured."""
    STOPPED = "stopped"


class LoginError(Exception):
    """A login to a server came to nothing; the message says why, and what to do."""


@dataclass(frozen=True)
class Invitation:
    """What the operator is to open in a browser to log in. `code`: to be entered there."""

    address: str
    host: str
    """Where the login is made."""
    code: str = ""


@dataclass(frozen=True)
class Resource:
    """Something that can be read from a server, by its address; a template has gaps in it: `notes://{day}`."""

    uri: str
    name: str = ""
    description: str = ""
    template: bool = False


@dataclass(frozen=True)
class PromptArgument:
    name: str
    required: bool = False


@dataclass(frozen=True)
class ServerPrompt:
    """A text with gaps that a server fills in."""

    name: str
    description: str = ""
    arguments: tuple[PromptArgument, ...] = ()


@dataclass(frozen=True)
class Elicitation:
    """A server's question to the operator: the values of a form, or to open an address."""

    server: str
    message: str
    schema: Mapping[str, Any] = field(default_factory=dict)
    url: str = ""


@dataclass(frozen=True)
class ElicitationReply:
    """accept, with the form's values; decline: no; cancel: not answered."""

    action: str
    content: Mapping[str, Any] | None = None
