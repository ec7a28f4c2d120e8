"""What a run without a screen prints: `text` for people, `json` and `jsonl` for programs.

Standard output carries the result alone (`text`: the answer; `json`: one object; `jsonl`: events, then the
object); everything else goes to standard error. Text from outside is made safe before a terminal gets it.
"""

from __future__ import annotations

import errno
import json
from typing import TYPE_CHECKING, Any, Literal, Protocol, TextIO

from tui_agent import events as e
from tui_agent.console.sanitize import one_line, sanitize
from tui_agent.sessions.lines import encode

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui_agent.result import RunResult
    from tui_agent.state import RunState


class Outlet:
    """Standard output, for a run that must not break when its reader leaves or its disk is full.

    The first fault is kept in `fault`, `on_fault` is told once, and everything after it is dropped.
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
        """Whether a person sees it as it comes."""
        return self._stream.isatty()


def _said(error: OSError | ValueError) -> str:
    if isinstance(error, OSError):
        return {errno.ENOSPC: "the disk is full", errno.EPIPE: "its reader left"}.get(
            error.errno or 0, error.strerror or str(error)
        )
    return str(error)


class Presenter(Protocol):
    """One way to print a run."""

    def event(self, event: e.Event, state: RunState) -> None:
        """One event, as it happens. Never raises: it is called from within the loop."""
        ...

    def result(self, result: RunResult) -> None:
        """The end."""
        ...


def presenter(kind: Literal["text", "json", "jsonl"], outlet: Outlet, errors: TextIO) -> Presenter:
    """The presenter for `--output`."""
    match kind:
        case "json":
            return _Json(outlet)
        case "jsonl":
            return _JsonLines(outlet)
        case "text":
            return _Text(outlet, errors)


class _Json:
    """One object on standard output, and nothing else."""

    def __init__(self, outlet: Outlet) -> None:
        self._outlet = outlet

    def event(self, event: e.Event, state: RunState) -> None:
        """Nothing: only the result counts."""

    def result(self, result: RunResult) -> None:
        self._outlet.write(json.dumps(result.to_json(), allow_nan=False) + "\n")


class _JsonLines(_Json):
    """Events as they happen, in the form of the journal; the result last."""

    def event(self, event: e.Event, state: RunState) -> None:
        self._outlet.write(encode(event).decode())

    def result(self, result: RunResult) -> None:
        self._outlet.write(json.dumps({"type": "result", **result.to_json()}, allow_nan=False) + "\n")


class _Text:
    """Progress for a person on standard error, the answer on standard output."""

    def __init__(self, outlet: Outlet, errors: TextIO) -> None:
        self._outlet = outlet
        self._errors = errors
        self._line_open = False
        self._streamed = ""
        self._teller: dict[type[e.Event], Callable[[Any], str]] = {
            e.ToolSucceeded: lambda event: f"✓ {_call(event)} ({event.duration:.1f} s)",
            e.ToolFailed: lambda event: f"✗ {_call(event)}: {one_line(event.failure.message)}",
            e.ToolRefused: lambda event: f"⊘ {_call(event)} {event.refusal}: {one_line(event.reason)}",
            e.ToolCancelled: lambda event: f"⊘ {_call(event)}: cancelled",
            e.ReplyRejected: lambda event: f"✗ {one_line(event.failure.message)}",
            e.ModelFaulted: _fault,
            e.EscalationRaised: lambda event: f"? {one_line(event.question)}",
            e.Notice: lambda event: f"! {one_line(event.text)}",
            e.HookReported: _hook,
        }

    def event(self, event: e.Event, state: RunState) -> None:
        """A line for what a person wants to know of; streamed text as it comes."""
        match event:
            case e.RunStarted():
                self._line(f"session {state.session.id} · {one_line(event.model)} · policy {event.policy}")
            case e.ModelCallStarted():
                self._streamed = ""
            case e.ReplyDelta():
                self._stream(event.text)
            case e.ReplyFinished():
                self._end_line()
            case e.VerdictReached():
                if event.level.rank > e.Level.CONTINUE.rank:
                    self._line(f"▲ {event.level} ({event.detector}): {one_line(event.reason)}")
            case _:
                teller = self._teller.get(type(event))
                line = teller(event) if teller is not None else ""
                if line:
                    self._line(line)

    def result(self, result: RunResult) -> None:
        """How it ended, unless it is answered; then the answer, unless the person has just read it."""
        self._end_line()
        if result.outcome is not e.Outcome.ANSWERED:
            self._line(f"agent-tui: {result.outcome.value.replace('_', ' ')}: {one_line(result.reason)}")
        read_already = self._outlet.is_terminal and self._errors.isatty() and result.answer == self._streamed
        if not read_already:
            answer = _safe(result.answer)
            self._outlet.write(answer if answer.endswith("\n") else answer + "\n")

    def _stream(self, text: str) -> None:
        if not text:
            return
        self._streamed += text
        safe = sanitize(text)
        self._print(safe)
        self._line_open = not safe.endswith("\n")

    def _end_line(self) -> None:
        if self._line_open:
            self._print("\n")
            self._line_open = False

    def _line(self, text: str) -> None:
        self._end_line()
        self._print(text + "\n")

    def _print(self, text: str) -> None:
        try:
            self._errors.write(text)
            self._errors.flush()
        except (OSError, ValueError):
            return  # whoever wanted the progress left; the answer still counts


def _safe(text: str) -> str:
    """Text that no terminal acts on, with its tabs: it may be piped to where they count."""
    return "\t".join(sanitize(part) for part in text.split("\t"))


_SHOWN_ARGUMENT = ("command", "path", "pattern", "question")


def _call(event: e.ToolResult) -> str:
    """The call on one line: its name and what it is about."""
    about = next((event.input[name] for name in _SHOWN_ARGUMENT if name in event.input), "")
    return one_line(f"{event.tool} {about}".strip(), 100)


def _fault(event: e.ModelFaulted) -> str:
    then = {
        "retry": f"retry in {event.delay:.1f} s",
        "fallback": f"falling back to {event.next_model}",
        "shrink": "the window is shrunk",
        "next_iteration": "going on",
    }.get(event.action, "")
    line = f"✗ model: {event.fault.kind.value}: {one_line(event.fault.message)}"
    return f"{line}; {then}" if then else line


def _hook(event: e.HookReported) -> str:
    if event.status == "ok":
        return ""
    return f"! {event.hook} hook {event.status.replace('_', ' ')}: {one_line(event.error or event.command)}"
