"""Events of a model call: the request, the reply as it streams and as it ended, and what went wrong."""

from __future__ import annotations

from typing import Literal

from tui_agent.core.events.base import Event
from tui_agent.core.names import FailureKind
from tui_agent.core.values import CallProblem, Carried, Failure, Fault, ToolCall
from tui_agent.quantities import seconds


class ModelCallStarted(Event):
    """A request goes out. `attempt` counts from 1 within the iteration; `note` is the note as sent, if any."""

    type: Literal["model_call_started"] = "model_call_started"
    iteration: int
    attempt: int = 1
    model: str = ""
    messages: int = 0
    tokens: int = 0
    """Estimate for the whole request."""
    calibration: float = 1.0
    """The factor of the estimate, by the provider's count of the model's last request."""
    budget: int | None = None
    """The size that the request was cut to fit, in tokens; None: unknown, nothing was cut."""
    dropped_groups: int = 0
    """Groups of the history that the window left out."""
    tools: tuple[str, ...] = ()
    note: str | None = None
    server: str = ""
    """Host and port that it goes to, if an address is configured; empty: the provider's own."""


class ReplyDelta(Event):
    """A piece of the reply, coalesced to the screen's rate (never one event a token)."""

    type: Literal["reply_delta"] = "reply_delta"
    text: str = ""
    reasoning: str = ""


class ReplyFinished(Event):
    """A complete, valid reply. Token counts and cost (USD) are None if unknown. `duration` in seconds."""

    type: Literal["reply_finished"] = "reply_finished"
    text: str = ""
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()
    finish_reason: str = ""
    model: str = ""
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    """Of the prompt's tokens, those that the provider read from its cache."""
    cache_write_tokens: int | None = None
    """Of the prompt's tokens, those that it wrote to its cache."""
    completion_tokens: int | None = None
    cost: float | None = None
    duration: float = 0.0
    carried: Carried | None = None
    """Fields that the provider wants back with this reply; None: nothing."""
    written: bool = False
    """Its calls stood in its text although the request offered tools."""
    broken: CallProblem | None = None
    """Why its text is no answer although no rule of the policy speaks against it; None: it may be one."""
    missing: tuple[str, ...] = ()
    """Files that the task names, that it tells about without a call in the run, and that were not there."""
    unread: tuple[str, ...] = ()
    """Of a reply that may be the answer: files of the workspace that the task names and nothing has shown the model."""
    unwritten: tuple[str, ...] = ()
    """Of a reply that may be the answer: files that it says were written, and that are not there or hold nothing."""
    absent: tuple[str, ...] = ()
    """Of the first reply to a task about files that exist: those that it names, if none was in the workspace."""
    by: Literal["model", "operator"] = "model"
    """operator: no model was called; the calls are those that the operator wrote with *edit and retry*."""


class ReplyRejected(Event):
    """A text-only reply that the policy does not take as an answer (`no_tool_call`), or sends back to be verified once
    (`unverified_claim`, which is no failure)."""

    type: Literal["reply_rejected"] = "reply_rejected"
    failure: Failure
    rule: str = ""

    @property
    def unverified(self) -> bool:
        """It is sent back to be verified, and nothing failed."""
        return self.failure.kind is FailureKind.UNVERIFIED_CLAIM

    @property
    def in_words(self) -> str:
        """The fate of the reply."""
        return "sent back to be verified" if self.unverified else "not taken as an answer"


class ModelWindowLearned(Event):
    """How many tokens a prompt of this model may have (its window less room for the reply); None: unknown."""

    type: Literal["model_window_learned"] = "model_window_learned"
    model: str
    tokens: int | None


class WindowCut(Event):
    """The oldest groups of the history leave the window; what stays is the prefix of the requests that follow."""

    type: Literal["window_cut"] = "window_cut"
    to_seq: int
    """Groups that were closed up to this event are left out (the task and the operator's last words stay)."""
    groups: int
    """How many groups that are."""
    tokens: int
    """Estimate of what stays of the history."""
    longest_result: int = 0
    """Characters; longer tool results that stay are cut in the middle. 0: none is."""
    remark: str = ""
    """The text that the model reads in place of the steps that left."""
    rule: str = ""


class CompactionRequested(Event):
    """The operator wants the older part of the conversation summarised: before the next model call, or at once
    between runs."""

    type: Literal["compaction_requested"] = "compaction_requested"
    instructions: str = ""


class CompactionStarted(Event):
    """A model is asked for a summary of the history up to `to_seq`."""

    type: Literal["compaction_started"] = "compaction_started"
    model: str
    to_seq: int
    groups: int
    """How many exchanges (a reply and its results) the summary is to replace."""
    tokens: int
    """Estimate of the request."""
    instructions: str = ""
    rule: str = ""


class Compacted(Event):
    """A summary takes the place of whole exchanges; the operator's words before it stay as they were said.

    Token counts and cost (USD) are those of the summary's call, None if unknown; `duration` in seconds.
    """

    type: Literal["compacted"] = "compacted"
    to_seq: int
    """Exchanges that were closed up to this event are replaced."""
    words_from: int = 0
    """The operator's messages from this event on stay; older ones are in the summary alone."""
    groups: int = 0
    summary: str
    """As the model wrote it."""
    remark: str
    """The text that the model reads in place of the replaced steps: the summary, and the program's own facts.
    """
    tokens_before: int
    tokens_after: int
    """Estimates of the history in a request, before and after."""
    model: str = ""
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    completion_tokens: int | None = None
    cost: float | None = None
    duration: float = 0.0
    rule: str = ""


class CompactionFailed(Event):
    """There is no summary; the window is cut instead if it must be. Counts and cost as in `compacted`."""

    type: Literal["compaction_failed"] = "compaction_failed"
    reason: str
    transient: bool = False
    """The model's server was at fault, which passes: the next iteration tries again."""
    next_model: str = ""
    """The model that is asked for the summary instead, at once; empty: none is."""
    model: str = ""
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    completion_tokens: int | None = None
    cost: float | None = None
    duration: float = 0.0
    rule: str = ""

    @property
    def in_words(self) -> str:
        """Why there is none, and who is asked instead."""
        return (
            f"{self.reason.rstrip('.')}. {self.next_model} is asked instead."
            if self.next_model
            else self.reason
        )


class ModelFaulted(Event):
    """A model call failed, and what happens next. `delay` in seconds before a retry."""

    type: Literal["model_faulted"] = "model_faulted"
    fault: Fault
    iteration: int = 0
    attempt: int = 1
    model: str = ""
    action: Literal[
        "retry", "wait", "fallback", "shrink", "next_iteration", "degrade", "stop", "ask", "text_calls"
    ]
    rule: str = ""
    reason: str = ""
    """Why this action, in words."""
    delay: float = 0.0
    next_model: str = ""
    until: float | None = None
    """When a limit that was reached lets the next call through, in seconds since 1970; None: no limit was."""
    context_tokens: int | None = None
    """The window's new budget, when `action` is `shrink`."""
    partial_text: str = ""
    """Text that was streamed before the fault; shown as partial, never stored in the history."""

    @property
    def then(self) -> str:
        """The action in words."""
        match self.action:
            case "retry":
                return f"try {self.attempt + 1} in {seconds(self.delay)}"
            case "wait":
                return f"the run waits {seconds(self.delay)}"
            case "fallback":
                return f"falling back to {self.next_model}"
            case "shrink":
                return "the request is shortened and sent again"
            case "text_calls":
                return "calls are written as text"
            case "next_iteration":
                return "the next step tries again"
            case "ask":
                return "the operator is asked"
            case "degrade":
                return "the run ends with a partial answer"
            case "stop":
                return "the run stops"


class LimitWaitStarted(Event):
    """The run waits for a limit to reset. It waits until the same moment however often the process ends meanwhile."""

    type: Literal["limit_wait_started"] = "limit_wait_started"
    model: str
    until: float
    """Seconds since 1970."""
    iteration: int = 0
    by: Literal["operator", "policy"] = "operator"
    rule: str = ""


class WaitSkipped(Event):
    """The operator does not wait any longer: the next try of the model call is made now."""

    type: Literal["wait_skipped"] = "wait_skipped"


class CoherenceRepaired(Event):
    """The validator repaired the request: how often, by the rule of the repair."""

    type: Literal["coherence_repaired"] = "coherence_repaired"
    iteration: int
    repairs: dict[str, int]
