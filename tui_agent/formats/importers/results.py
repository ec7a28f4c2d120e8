"""How a call has ended, by what a recording or a hook says: success or failure, its kind, and which files were changed.

Whether a text is a failure's is each format's own; what follows from it is the same for all. Only dedicated edit tools
change files: what a shell command does to them is not clear from its text, so commands never count.
"""

from __future__ import annotations

import re
from typing import Any

from tui_agent.core.events import FailureKind
from tui_agent.formats.importers.faults import rejection_kind
from tui_agent.formats.importers.tools_of_others import by_other_agents
from tui_agent.formats.importers.transcript import Call, Result
from tui_agent.formats.importers.values import content_text, joined, parsed, text_at, value_at


def judged(
    call: Call, content: str, at: float | None, message: str | None, seconds: float | None = None
) -> Result:
    """A call that succeeded (`message` None) or failed, with the kind of failure read from call and message."""
    if message is None:
        return Result("ok", content, at, changed=changed_files(call.name, call.input), duration=seconds)
    if _MADE_UP.match(message) and len(message) < _LONGEST_MADE_UP:
        return Result("unknown", content, at, duration=seconds)
    kind = FailureKind.TOOL_EXECUTION
    if call.input is None or message.startswith(_OWN_INVALID):
        kind = FailureKind.INVALID_TOOL_CALL
    elif rejection_kind(message[:200]) is FailureKind.UNKNOWN_TOOL:
        kind = FailureKind.UNKNOWN_TOOL
    return failed(content, at, message, kind, seconds)


_MADE_UP = re.compile(
    r"\W*(?:error: |openclaw\W+)*(?:missing tool result in session history|tool result missing\b"
    r"|no tool result (?:was )?(?:found|recorded)|.{0,60}\bwas interrupted and did not produce a result)",
    re.IGNORECASE,
)
"""What agents write in place of a result that was lost when they were ended: how the call ended is not known."""
_LONGEST_MADE_UP = 400
_OWN_INVALID = "Error: Invalid call of "
"""How our own results of such calls begin; the broken arguments themselves are in no history that is sent."""


def failed(
    content: str,
    at: float | None,
    message: str,
    kind: FailureKind = FailureKind.TOOL_EXECUTION,
    seconds: float | None = None,
    *,
    unknown: bool = False,
) -> Result:
    """A failed call. After a time-out it is not known what it has done; `unknown`: nor is it otherwise."""
    unknown = unknown or says_timed_out(message)
    return Result("failed", content, at, message, kind, duration=seconds, unknown_effect=unknown)


def exited(call: Call, content: str, at: float | None, code: int | None) -> Result:
    """A command that ended with this exit code, or a call that has none and succeeded."""
    return judged(call, content, at, exit_message(code, content) if code else None)


def exit_message(code: int, output: str) -> str:
    """The failure's message of a command that ended with an exit code other than 0."""
    return f"exit code {code}\n{output}".rstrip()


def streams(record: Any) -> str:
    """A command's output: its `stdout`, then its `stderr`."""
    return joined(text_at(record, "stdout").rstrip(), text_at(record, "stderr").rstrip())


_ERROR = re.compile(r"^\s*(?:<(?:tool_)?error>|error\b\s*:)", re.IGNORECASE)


def failure_in(content: str) -> str | None:
    """The failure in the text of a result that has no mark; None for a success. It begins with `Error:` (or an error
    tag), or is an object that says so itself: `is_error`, `success: false`, an `error`, a non-zero `exit_code` or
    `returncode`.
    """
    if _ERROR.match(content):
        return content.strip()
    begins = content.lstrip().startswith("{") and len(content) <= 1_000_000
    value = parsed(content) if begins else None
    error = value_at(value, "error")
    if isinstance(error, str | dict) and error:
        return content_text(error)
    if value_at(value, "is_error") is True or value_at(value, "success") is False:
        return content.strip()
    for key in ("exit_code", "returncode"):
        code = value_at(value, key)
        if isinstance(code, int) and not isinstance(code, bool) and code != 0:
            return exit_message(code, content_text(value_at(value, "output")))
    return None


_TRACEBACK = "Traceback (most recent call last):"
_TIMED_OUT = re.compile(r"(?<![=.\w])(?:timed? ?out|deadline exceeded)\b(?!\s*[=(.,)])", re.IGNORECASE)
"""Not the name of a parameter, as in `get(url, timeout=timeout)`."""
_SOURCE_LINE = re.compile(r"^\s+\S.*\n?", re.MULTILINE)


def says_timed_out(message: str) -> bool:
    """Tell if the failure's text names a time-out in its first or last lines; lines of code that a traceback shows say
    nothing.
    """
    if _TRACEBACK in message:
        message = _SOURCE_LINE.sub("", message)
    return bool(_TIMED_OUT.search(message[:400]) or _TIMED_OUT.search(message[-400:]))


_SYNTAX = re.compile(r'^\s*File "[^"]+", line \d+\n')
_RAISED = re.compile(r"^(?:[\w.]+\.)?\w*(?:Error|Exception|Warning|Exit|Interrupt)\b(?::.*)?$")


def program_raised(output: str) -> bool:
    """A program's output ends in an exception, as Python prints it."""
    lines = output.splitlines()
    if _TRACEBACK in output:
        return any(_RAISED.match(line) for line in lines[-3:])
    return bool(_SYNTAX.match(output) and _RAISED.match(lines[-1]))


_PATH_KEYS = (
    "file_path",
    "path",
    "notebook_path",
    "filename",
    "file",
    "target_file",
    "filepath",
    "filePath",
    "TargetFile",
)

_VIEWS = {"view", "read", "cat"}
"""Subcommands of the edit tools that only read."""

_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)


def changed_files(tool: str, arguments: dict[str, Any] | None) -> tuple[str, ...]:
    """The files that a successful call of `tool` changed, as the call names them; () for tools that do not edit."""
    if not by_other_agents(re.split(r"__|\.", tool)[-1]).edits:  # behind the name of a server or of a group
        return ()
    arguments = arguments or {}
    command = arguments.get("command")
    if isinstance(command, str) and command in _VIEWS:
        return ()
    for key in ("input", "patch", "command"):
        patch = arguments.get(key)
        if isinstance(patch, str) and (paths := _PATCHED.findall(patch)):
            return tuple(path.strip() for path in paths)
    for key in _PATH_KEYS:
        path = arguments.get(key)
        if isinstance(path, str) and path:
            return (path,)
    return (tool,)
