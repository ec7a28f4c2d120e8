"""Output of a run without a screen: `text` for people, `json` and `jsonl` for programs.

Standard output carries the result alone (`text`: the answer; `json`: one object; `jsonl`: events, then the
object); everything else goes to standard error. Text from outside is made safe before a terminal gets it.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TextIO

from tui_agent.core import events
from tui_agent.core.names import OutputForm
from tui_agent.core.receipt_lines import listed
from tui_agent.event_lines import GLYPHS, event_line
from tui_agent.store.lines import encode
from tui_agent.terminal_text import json_text, one_line, sanitize, sanitize_between_tabs

if TYPE_CHECKING:
    from tui_agent.core.result import RunResult
    from tui_agent.core.state import RunState


class Outlet:
    """Standard output, for a run that must not break when its reader leaves or its disk is full.

    The first fault is in `fault`, `on_fault` is called once, and everything after it is dropped.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.fault = ""
        self.reader_left = False
        self.on_fault: Callable[[], None] = lambda: None

    def write(self, text: str) -> None:
        """Write and flush `text`, or drop it after a fault."""
        if self.fault:
            return
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError) as error:  # ValueError: the stream is closed
            self.reader_left = isinstance(error, BrokenPipeError)
            self.fault = _said(error)
            self.on_fault()

    @property
    def is_terminal(self) -> bool:
        """True if a person sees it as it comes."""
        return self._stream.isatty()


def _said(error: OSError | ValueError) -> str:
    if isinstance(error, OSError):
        return {errno.ENOSPC: "the disk is full", errno.EPIPE: "its reader left"}.get(
            error.errno or 0, error.strerror or str(error)
        )
    return str(error)


class Presenter(Protocol):
    """One way to print a run."""

    def event(self, event: events.Event, state: RunState) -> None:
        """One event, as it happens. Never raises: it is called from within the loop."""

    def result(self, result: RunResult) -> None: ...


def presenter(kind: OutputForm, outlet: Outlet, errors: TextIO) -> Presenter:
    match kind:
        case "json":
            return _Json(outlet, errors)
        case "jsonl":
            return _JsonLines(outlet)
        case "text":
            return _Text(outlet, errors)


_NOTICES = (events.Notice, events.HookReported, events.ServerChanged)
"""Facts for a person who started the run for a program."""


class _Json:
    """One object on standard output, and nothing else; notices on standard error."""

    def __init__(self, outlet: Outlet, errors: TextIO) -> None:
        self._outlet = outlet
        self._errors = errors

    def event(self, event: events.Event, state: RunState) -> None:
        """A line for a notice; else only the result counts."""
        line = event_line(event, GLYPHS) if isinstance(event, _NOTICES) else ""
        if line:
            _print(self._errors, line + "\n")

    def result(self, result: RunResult) -> None:
        self._outlet.write(json.dumps(result.to_json(), allow_nan=False) + "\n")


class _JsonLines:
    """Events as they happen, in the form of the journal, notices among them; the result last."""

    def __init__(self, outlet: Outlet) -> None:
        self._outlet = outlet

    def event(self, event: events.Event, state: RunState) -> None:
        self._outlet.write(json_text(encode(event).decode()))

    def result(self, result: RunResult) -> None:
        self._outlet.write(json.dumps({"type": "result", **result.to_json()}, allow_nan=False) + "\n")


class _Text:
    """Progress for a person on standard error, the answer on standard output."""

    def __init__(self, outlet: Outlet, errors: TextIO) -> None:
        self._outlet = outlet
        self._errors = errors
        self._line_open = False
        self._streamed = ""
        self._rule = ""
        self._receipts: list[str] = []

    def event(self, event: events.Event, state: RunState) -> None:
        """A line for what a person wants to know of; streamed text as it comes."""
        match event:
            case events.RunStarted():
                self._line(f"session {state.session.id} · {one_line(event.model)} · policy {event.policy}")
            case events.ModelCallStarted():
                self._streamed = ""
            case events.ReplyDelta():
                self._stream(event.text)
            case events.ReplyFinished():
                if event.text.startswith(self._streamed):  # what did not come as a piece
                    self._stream(event.text[len(self._streamed) :])
                self._end_line()
            case events.RunFinished():
                self._rule = f" [{one_line(event.rule)}]" if event.rule else ""
                self._receipts = [
                    f"{standing}: {one_line(words)}" for standing, words in listed(event.receipts)
                ]
            case _:
                line = event_line(event, GLYPHS, state.metrics.incidents.answer(event))
                if line:
                    self._line(line)

    def result(self, result: RunResult) -> None:
        """The end of the run, if there is something to say of it; then the answer, unless the person has just
        read it.
        """
        self._end_line()
        if result.reason or result.outcome is not events.Outcome.ANSWERED:
            self._line(f"agent-tui: {result.outcome.in_words}: {one_line(result.reason)}{self._rule}")
        read_already = self._outlet.is_terminal and self._errors.isatty() and result.answer == self._streamed
        if not read_already:
            answer = sanitize_between_tabs(result.answer)
            self._outlet.write(answer if answer.endswith("\n") else answer + "\n")
        for line in self._receipts:
            self._line(line)

    def _stream(self, text: str) -> None:
        if not text:
            return
        self._streamed += text
        safe = sanitize(text)
        _print(self._errors, safe)
        self._line_open = not safe.endswith("\n")

    def _end_line(self) -> None:
        if self._line_open:
            _print(self._errors, "\n")
            self._line_open = False

    def _line(self, text: str) -> None:
        self._end_line()
        _print(self._errors, text + "\n")


def _print(errors: TextIO, text: str) -> None:
    try:
        errors.write(text)
        errors.flush()
    except (OSError, ValueError):
        return  # nobody reads the progress any more; the answer still counts
