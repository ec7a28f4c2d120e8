"""The recorder of a session: every event is masked, stamped, folded, written and announced, in this order.

Secrets are masked before anything else sees the event, so the live state is folded from what the journal holds.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

from tui_agent.core import events
from tui_agent.core.fold import apply
from tui_agent.core.state import RunState
from tui_agent.runtime.recorder import RecordingFailed
from tui_agent.store import saved_state
from tui_agent.store.errors import JournalError
from tui_agent.store.journal import Journal
from tui_agent.store.redaction import Redactor, StreamRedactor

logger = logging.getLogger(__name__)

Listener = Callable[[events.Event, RunState], None]
E = TypeVar("E", bound=events.Event)

# Sets of types: `isinstance` is slow for pydantic models.
_PIECES = frozenset({events.ReplyDelta, events.ToolProgress})
"""Text that comes in pieces, whose secrets may be split between two of them."""

_MADE_FROM_STATE = frozenset(
    {
        events.IterationStarted,
        events.IterationFinished,
        events.ModelCallStarted,
        events.VerdictReached,
        events.CoherenceRepaired,
    }
)
"""Events that say nothing but what the state says, and what is in the state is masked already."""


_END_OF_STREAM = frozenset(
    {events.ModelCallStarted, events.ReplyFinished, events.ModelFaulted, events.IterationFinished}
)
"""Events behind which no piece of the reply comes any more; others may come in the middle of it."""


class SessionRecorder:
    """Implements `runtime.recorder.Recorder` over a journal. `clock` gives seconds since the epoch."""

    def __init__(
        self,
        journal: Journal,
        redactor: Redactor,
        state: RunState | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._journal = journal
        self._redactor = redactor
        self._state = RunState() if state is None else state
        self._clock = clock
        self._listeners: list[Listener] = []
        self._text: StreamRedactor = redactor.stream()
        self._reasoning: StreamRedactor = redactor.stream()
        self._streaming = False
        self._progress: dict[str, StreamRedactor] = {}
        journal.on_error = self._journal_failed

    @property
    def state(self) -> RunState:
        """Everything recorded so far, folded."""
        return self._state

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` with every event and the state after it; returns what ends that."""
        self._listeners.append(listener)

        def unsubscribe() -> None:
            with suppress(ValueError):
                self._listeners.remove(listener)

        return unsubscribe

    def learn_secrets(self, values: Mapping[str, str]) -> None:
        """Mask these values too from now on, by the names given."""
        self._redactor.learn(values)

    @property
    def secrets(self) -> tuple[bytes, ...]:
        """The values that are masked, in every form in which they may stand in a file."""
        return tuple(value.encode("utf-8", "surrogateescape") for value, _ in self._redactor.values)

    def holds_secret(self, text: str) -> bool:
        """True if masking would change the text."""
        return self._redactor.text(text) != text

    def new_mask(self) -> StreamRedactor:
        """The function that masks secrets in a text that is kept beside the journal."""
        return self._redactor.stream()

    def restore(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments as a tool runs with them: secrets in the place of their placeholders. Raises
        `MaskedSecretError`.
        """
        return self._redactor.restore(arguments)

    def record(self, event: E) -> E:
        """Mask, stamp, fold, queue for the journal, announce. A listener's fault is logged and goes no further."""
        if type(event) in _PIECES:
            return self._record_piece(event)
        if self._progress and isinstance(event, events.ToolResult):
            self._progress.pop(event.call_id, None)
        if self._streaming and type(event) in _END_OF_STREAM:
            self._flush_deltas(keep=not isinstance(event, events.ReplyFinished))
        return self._keep(event if type(event) in _MADE_FROM_STATE else self._redactor.redact(event))

    def _record_piece(self, event: E) -> E:
        if isinstance(event, events.ReplyDelta):
            # A secret may be split over two deltas: its possible beginning is held back until more is known.
            self._streaming = True
            text, reasoning = self._text.feed(event.text), self._reasoning.feed(event.reasoning)
            if text or reasoning:
                return self._keep(type(event)(text=text, reasoning=reasoning))
        elif isinstance(event, events.ToolProgress):
            text = self._progress.setdefault(event.call_id, self._redactor.stream()).feed(event.text)
            if text:
                return self._keep(type(event)(call_id=event.call_id, text=text))
        return event

    def _flush_deltas(self, *, keep: bool) -> None:
        self._streaming = False
        text, reasoning = self._text.flush(), self._reasoning.flush()
        self._text, self._reasoning = self._redactor.stream(), self._redactor.stream()
        if keep and (text or reasoning):
            self._keep(events.ReplyDelta(text=text, reasoning=reasoning))

    def _keep(self, event: E) -> E:
        stamped = event.stamped(self._state.seq + 1, self._clock())
        self._state = apply(self._state, stamped)
        self._journal.write(stamped)
        for listener in tuple(self._listeners):
            try:
                listener(stamped, self._state)
            except Exception:  # a screen's fault must not end the run that it shows
                logger.exception("a listener broke at event %d", stamped.seq)
        return stamped

    async def barrier(self) -> None:
        """Everything recorded so far is on disk. Raises `RecordingFailed` if it cannot be brought there."""
        try:
            await self._journal.barrier()
        except JournalError as error:
            raise RecordingFailed(str(error)) from error

    def sync_soon(self) -> None:
        """Start bringing everything to disk; a fault is announced by the journal itself."""
        self._journal.sync_soon()

    async def close(self) -> None:
        """Bring everything to disk, let go of the journal, and save the state of a long session.

        Raises `JournalError` if something is lost.
        """
        state = self._state  # whatever is recorded from here on is in no journal
        await self._journal.close()
        await asyncio.to_thread(saved_state.save, self._journal.folder, state, self._journal.end)

    def _journal_failed(self, error: JournalError) -> None:
        self._keep(events.Notice(severity="error", text=str(error)))
