"""What a run without a screen prints: `text` for people, `json` and `jsonl` for programs.

Standard output carries the result alone (`text`: the answer; `json`: one object; `jsonl`: events, then the
object); everything else goes to standard error. Text from outside is made safe before a terminal gets it.
"""

from __future__ import annotations

import errno
import json
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from tui_agent.core import events
from tui_agent.core.projections.background import in_words
from tui_agent.core.projections.plan import UPDATE_PLAN, plan_of
from tui_agent.quantities import counted
from tui_agent.store.lines import encode
from tui_agent.terminal_text import json_text, one_line, sanitize, sanitize_between_tabs

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui_agent.core.names import OutputForm
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

    def event(self, event: events.Event, state: RunState) -> None:
        """One event, as it happens. Never raises: it is called from within the loop."""
        ...

    def result(self, result: RunResult) -> None:
        """The end."""
        ...


def presenter(kind: OutputForm, outlet: Outlet, errors: TextIO) -> Presenter:
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

    def event(self, event: events.Event, state: RunState) -> None:
        """Nothing: only the result counts."""

    def result(self, result: RunResult) -> None:
        self._outlet.write(json.dumps(result.to_json(), allow_nan=False) + "\n")


class _JsonLines(_Json):
    """Events as they happen, in the form of the journal; the result last."""

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
        self._teller: dict[type[events.Event], Callable[[Any], str]] = {
            events.ToolSucceeded: lambda event: f"✓ {_call(event)} ({event.duration:.1f} s)",
            events.ToolFailed: lambda event: f"✗ {_call(event)}: {one_line(event.failure.message)}",
            events.ToolRefused: lambda event: (
                f"⊘ {_call(event)} {event.refusal}: {one_line(event.reason)}{_by(event)}"
            ),
            events.ToolCancelled: lambda event: f"⊘ {_call(event)}: cancelled",
            events.ReplyRejected: lambda event: f"✗ {one_line(event.failure.message)}{_by(event)}",
            events.ModelFaulted: _fault,
            events.EscalationRaised: lambda event: f"? {one_line(event.question)}{_by(event)}",
            events.Compacted: lambda event: (
                f"▤ {counted(event.groups, 'step')} summarised: "
                f"{event.tokens_before:,} → {event.tokens_after:,} tokens{_by(event)}"
            ),
            events.CompactionFailed: lambda event: f"▤ no summary: {one_line(event.in_words)}{_by(event)}",
            events.Notice: lambda event: f"! {one_line(event.text)}",
            events.HookReported: _hook,
            events.BackgroundEnded: lambda event: one_line(
                f"⚙ {event.id} {in_words(event)}: {event.command}", 200
            ),
            events.ServerChanged: lambda event: f"! {one_line(event.in_words)}",
        }

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
                self._end_line()
            case events.RunFinished():
                self._rule = f" [{one_line(event.rule)}]" if event.rule else ""
            case events.VerdictReached():
                if event.level.rank > events.Level.CONTINUE.rank:
                    by = one_line(event.rule or event.detector)
                    self._line(f"▲ {event.level} ({by}): {one_line(event.reason)}")
            case _:
                teller = self._teller.get(type(event))
                line = teller(event) if teller is not None else ""
                if line:
                    self._line(line)

    def result(self, result: RunResult) -> None:
        """How it ended, unless it is answered; then the answer, unless the person has just read it."""
        self._end_line()
        if result.outcome is not events.Outcome.ANSWERED:
            outcome = result.outcome.value.replace("_", " ")
            self._line(f"agent-tui: {outcome}: {one_line(result.reason)}{self._rule}")
        read_already = self._outlet.is_terminal and self._errors.isatty() and result.answer == self._streamed
        if not read_already:
            answer = sanitize_between_tabs(result.answer)
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
            return  # nobody reads the progress any more; the answer still counts


_SHOWN_ARGUMENT = ("command", "path", "pattern", "url", "question")


def _call(event: events.ToolResult) -> str:
    """The call on one line: its name and what it is about."""
    if event.tool == UPDATE_PLAN:
        return one_line(f"plan {plan_of(event.input).summary}", 100)
    about = next((event.input[name] for name in _SHOWN_ARGUMENT if name in event.input), "")
    return one_line(f"{event.tool} {about}".strip(), 100)


def _fault(event: events.ModelFaulted) -> str:
    then = {
        "retry": f"retry in {event.delay:.1f} s",
        "fallback": f"falling back to {event.next_model}",
        "shrink": "the window is shrunk",
        "text_calls": "calls are written as text",
        "next_iteration": "going on",
    }.get(event.action, "")
    line = f"✗ model: {event.fault.kind.value}: {one_line(event.fault.message)}"
    return (f"{line}; {then}" if then else line) + _by(event)


def _by(
    event: events.ToolRefused
    | events.ReplyRejected
    | events.EscalationRaised
    | events.ModelFaulted
    | events.Compacted
    | events.CompactionFailed,
) -> str:
    return f" [{one_line(event.rule)}]" if event.rule else ""


def _hook(event: events.HookReported) -> str:
    if event.status == "ok":
        return ""
    return f"! {event.hook} hook {event.status.replace('_', ' ')}: {one_line(event.error or event.command)}"
