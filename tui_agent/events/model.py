"""Events of a model call: the request, the reply as it streams and as it ended, and what went wrong."""

from __future__ import annotations

from typing import Literal

from tui_agent.events.base import Event
from tui_agent.events.words import Failure, Fault, ToolCall


class ModelCallStarted(Event):
    """A request goes out. `attempt` counts from 1 within the iteration; `note` is the note as sent, if any."""

    type: Literal["model_call_started"] = "model_call_started"
    iteration: int
    attempt: int = 1
    model: str = ""
    messages: int = 0
    tokens: int = 0
    """Estimate for the whole request."""
    budget: int | None = None
    """What the request was cut to fit, in tokens; None: unknown, nothing was cut."""
    dropped_groups: int = 0
    """Groups of the history that the window left out."""
    tools: tuple[str, ...] = ()
    note: str | None = None


class ReplyDelta(Event):
    """A piece of the reply, coalesced to the screen's rate (never one event a token)."""

    type: Literal["reply_delta"] = "reply_delta"
    text: str = ""
    reasoning: str = ""


class ReplyFinished(Event):
    """A complete, valid reply. Token counts and cost (USD) are None where unknown. `duration` in seconds."""

    type: Literal["reply_finished"] = "reply_finished"
    text: str = ""
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()
    finish_reason: str = ""
    model: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost: float | None = None
    duration: float = 0.0


class ReplyRejected(Event):
    """A text-only reply that the policy does not take as an answer (`no_tool_call`)."""

    type: Literal["reply_rejected"] = "reply_rejected"
    failure: Failure


class ModelFaulted(Event):
    """A model call failed, and what happens next. `delay` in seconds before a retry."""

    type: Literal["model_faulted"] = "model_faulted"
    fault: Fault
    iteration: int = 0
    attempt: int = 1
    model: str = ""
    action: Literal["retry", "fallback", "shrink", "next_iteration", "degrade", "stop", "ask"]
    delay: float = 0.0
    next_model: str = ""
    context_tokens: int | None = None
    """The window's new budget, when `action` is `shrink`."""
    partial_text: str = ""
    """What was streamed before the fault; shown as partial, never stored in the history."""


class CoherenceRepaired(Event):
    """The validator mended the request: counts by kind of repair (RECOVERY.md, 9)."""

    type: Literal["coherence_repaired"] = "coherence_repaired"
    iteration: int
    repairs: dict[str, int]
