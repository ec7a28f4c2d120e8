"""Streams become events at the screen's rate: many small pieces go in, few `ReplyDelta` and `ToolProgress` come out.

A pause in the stream never holds back what came before it: a timer, not the next piece, lets it out.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod

from tui_agent.core import events
from tui_agent.models.protocol import Delta
from tui_agent.runtime.recorder import Recorder

DELTA_INTERVAL = 0.05
"""Seconds between two events of a reply: what a screen can show, and no more lines than that in the journal."""

PROGRESS_INTERVAL = 0.1
"""Seconds between two events of one command's output."""

PROGRESS_LIMIT = 4_000
"""Characters of output that one event shows; the whole of it comes with the result, if there is one."""


class _Coalescer(ABC):
    def __init__(self, recorder: Recorder, interval: float) -> None:
        self._recorder = recorder
        self._interval = interval
        self._timer: asyncio.TimerHandle | None = None

    def _expect(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._interval, self.flush)

    def flush(self) -> None:
        """Let out what has been gathered."""
        self._stop_timer()
        self._let_out()

    def drop(self) -> None:
        """The gathered text comes whole with the event that follows: it need not be shown by itself."""
        self._stop_timer()
        self._forget()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    @abstractmethod
    def _let_out(self) -> None: ...

    @abstractmethod
    def _forget(self) -> None: ...


class ReplyStream(_Coalescer):
    """The deltas of one reply."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(recorder, DELTA_INTERVAL)
        self._text: list[str] = []
        self._reasoning: list[str] = []

    def add(self, delta: Delta) -> None:
        """Take a piece of the reply."""
        if delta.text:
            self._text.append(delta.text)
        if delta.reasoning:
            self._reasoning.append(delta.reasoning)
        self._expect()

    def _let_out(self) -> None:
        if self._text or self._reasoning:
            delta = events.ReplyDelta(text="".join(self._text), reasoning="".join(self._reasoning))
            self._forget()
            self._recorder.record(delta)

    def _forget(self) -> None:
        self._text.clear()
        self._reasoning.clear()


class ProgressStream(_Coalescer):
    """The output of one running call, for the screen only."""

    def __init__(self, recorder: Recorder, call_id: str) -> None:
        super().__init__(recorder, PROGRESS_INTERVAL)
        self._call_id = call_id
        self._pieces: list[str] = []

    def add(self, text: str) -> None:
        """Take a piece of output; must be called on the event loop's thread."""
        self._pieces.append(text)
        self._expect()

    def _let_out(self) -> None:
        if self._pieces:
            text = "".join(self._pieces)
            self._forget()
            self._recorder.record(events.ToolProgress(call_id=self._call_id, text=text[-PROGRESS_LIMIT:]))

    def _forget(self) -> None:
        self._pieces.clear()
