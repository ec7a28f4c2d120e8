"""The interface that the agent needs of a keeper of its events: the state, a way to add to it, and a promise
about the disk.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeVar

from tui_agent.core.events import Event
from tui_agent.core.state import RunState
from tui_agent.tools.tool import TextMask

E = TypeVar("E", bound=Event)


class RecordingFailed(Exception):
    """The journal cannot be written; the message says what, why, and what to do. The run must not go on."""


class MaskedSecretError(ValueError):
    """Arguments hold a placeholder whose secret is not known, or is not known for sure; the message says so."""


class Recorder(Protocol):
    """Implemented by a session's journal, masks and listeners."""

    @property
    def state(self) -> RunState:
        """All that was recorded so far, folded."""

    def record(self, event: E) -> E:
        """Stamp, fold, keep and announce one event; returns it as stamped. Never waits."""

    async def barrier(self) -> None:
        """Everything recorded so far is on disk when this returns. Raises `RecordingFailed`."""

    def sync_soon(self) -> None:
        """Bring everything recorded so far to disk without waiting for it."""

    def new_mask(self) -> TextMask:
        """The function that masks secrets in a text that is kept beside the journal."""

    def restore(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments with secrets in the place of their placeholders. Raises `MaskedSecretError`."""
