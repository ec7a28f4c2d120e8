"""Events of tool calls: from the start to exactly one result, and the hooks around them."""

from __future__ import annotations

from typing import Literal

from pydantic import JsonValue

from tui_agent.core.events.base import Event
from tui_agent.core.names import READS_ONLY
from tui_agent.core.values import Contradiction, FactsOfOthers, Failure


class ToolStarted(Event):
    """A call begins to run. `index` is its place in the reply, from 0."""

    type: Literal["tool_started"] = "tool_started"
    call_id: str
    tool: str
    input: dict[str, JsonValue]
    index: int = 0
    key: str = ""
    """Identity of the call as executed; another one than in the reply if the operator edited it."""
    facts: FactsOfOthers = None
    """As in the call."""
    allowed_by: str = ""
    """The permission that let it run: the rules with their places, the mode, or the operator."""

    @property
    def reads_only(self) -> bool:
        """True if it ran unasked because it is known to do nothing but read."""
        return self.allowed_by == READS_ONLY


class ToolProgress(Event):
    """A piece of a running command's output, coalesced."""

    type: Literal["tool_progress"] = "tool_progress"
    call_id: str
    text: str


class ToolResult(Event):
    """Base of the ways in which a call ends; exactly one an issued call. `content` is what the model reads."""

    type: str
    call_id: str
    tool: str
    input: dict[str, JsonValue] = {}
    index: int = 0
    content: str = ""
    duration: float = 0.0
    key: str = ""
    facts: FactsOfOthers = None
    """As in the call."""


class ToolSucceeded(ToolResult):
    """The tool did its work."""

    type: Literal["tool_succeeded"] = "tool_succeeded"
    changed: tuple[str, ...] = ()
    """Workspace files that the call changed (a write or edit that really altered them)."""
    diff: str = ""
    output_file: str = ""
    """The file with the whole output, when `content` was cut."""
    files: dict[str, str] = {}
    """Workspace files that the call read or wrote: SHA-256 of their bytes then, by path."""
    before: dict[str, str] = {}
    """Of those that it wrote, the ones that had been there: SHA-256 of their bytes before."""
    exit_code: int | None = None
    """Of a command; None: no command, or nobody saw it."""
    contradiction: Contradiction | None = None
    """The workspace's contradiction of the result, if recovery looks."""


class ToolFailed(ToolResult):
    """The call failed: not executed because it was wrong (`invalid_tool_call`, `unknown_tool`), or in execution."""

    type: Literal["tool_failed"] = "tool_failed"
    failure: Failure
    output_file: str = ""
    exit_code: int | None = None
    """Of a command; None: no command, it did not start, or nobody saw it end."""


class ToolRefused(ToolResult):
    """The call was not executed, for a reason that is not the tool's."""

    type: Literal["tool_refused"] = "tool_refused"
    refusal: Literal["denied", "blocked", "withheld", "breaker", "unverified"]
    """denied: by the operator or `--approve`; blocked: attempts; withheld: stuck pattern; breaker: tool is open;
    unverified: an answer that claims what no result shows."""
    reason: str = ""
    rule: str = ""

    @property
    def in_words(self) -> str:
        """The fate of the call."""
        return {
            "withheld": "not run again",
            "breaker": "switched off",
            "unverified": "sent back to be verified",
        }.get(self.refusal, self.refusal)


class ToolCancelled(ToolResult):
    """The call was interrupted before it ended; its effect is unknown if it had started."""

    type: Literal["tool_cancelled"] = "tool_cancelled"
    reason: str = ""


class ToolEnded(ToolResult):
    """The call ended, and what is known of it does not say how: neither a success nor a failure."""

    type: Literal["tool_ended"] = "tool_ended"


RESULT_TYPES = frozenset({"tool_succeeded", "tool_failed", "tool_refused", "tool_cancelled", "tool_ended"})
"""The names of all results."""


class BackgroundStarted(Event):
    """A command began to run in the background, by the call `call_id`; what it writes is kept in `output_file`."""

    type: Literal["background_started"] = "background_started"
    id: str
    command: str
    call_id: str = ""
    output_file: str = ""


class BackgroundEnded(Event):
    """A command in the background ended. `duration` in seconds; `code` is None if nobody saw it."""

    type: Literal["background_ended"] = "background_ended"
    id: str
    command: str = ""
    how: Literal["exited", "timed_out", "stopped", "operator", "session_closed", "process_ended"]
    """stopped: by the model; process_ended: with the process that had started it."""
    code: int | None = None
    duration: float = 0.0
    output_file: str = ""


class HookReported(Event):
    """A user-configured hook ran. `status`: ok, failed or timed_out; `context` goes into the note."""

    type: Literal["hook_reported"] = "hook_reported"
    hook: Literal["PreToolUse", "PostToolUse", "PostToolUseFailure"]
    command: str
    status: Literal["ok", "blocked", "failed", "timed_out"]
    call_id: str = ""
    context: str = ""
    error: str = ""
    duration: float = 0.0

    @property
    def status_in_words(self) -> str:
        """As people read it."""
        return self.status.replace("_", " ")
