"""The vocabulary: every fact of a session as one versioned event.

Events are the only truth. The loop makes them, the journal keeps them, `state.apply` folds them. Nothing here
decides, reads a clock or does input or output. Fields hold exact text; what is volatile or unsafe in it is
handled where it is compared (`recovery.signature`) or shown (`console.sanitize`).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter

SCHEMA_VERSION = 1
"""Version that new events carry in `v`; readers upgrade older ones (see `sessions.journal`)."""


class FailureKind(StrEnum):
    """What went wrong, in RECOVERY.md's words."""

    NO_TOOL_CALL = "no_tool_call"
    INVALID_TOOL_CALL = "invalid_tool_call"
    UNKNOWN_TOOL = "unknown_tool"
    TOOL_EXECUTION = "tool_execution"
    MODEL_API = "model_api"
    CANCELLED = "cancelled"


class FaultKind(StrEnum):
    """Sub-kinds of a failed model call (RECOVERY.md, 6)."""

    RATE_LIMIT = "rate_limit"
    TIMEOUT = "timeout"
    CONNECTION = "connection"
    SERVER = "server"
    OVERLOADED = "overloaded"
    STREAM_CUT = "stream_cut"
    CONTEXT_OVERFLOW = "context_overflow"
    BAD_OUTPUT = "bad_output"
    AUTH = "auth"
    PERMISSION = "permission"
    NOT_FOUND = "not_found"
    BAD_REQUEST = "bad_request"
    QUOTA = "quota"
    CONTENT_POLICY = "content_policy"


class Level(StrEnum):
    """Verdicts from weakest to strongest: continue < guide < pivot < escalate < degrade < stop."""

    CONTINUE = "continue"
    GUIDE = "guide"
    PIVOT = "pivot"
    ESCALATE = "escalate"
    DEGRADE = "degrade"
    STOP = "stop"

    @property
    def rank(self) -> int:
        """Position in the ladder, 0 (continue) to 5 (stop)."""
        return _RANKS[self]


_RANKS = {level: rank for rank, level in enumerate(Level)}


class Mode(StrEnum):
    """How the loop goes on after an iteration: by itself, one at a time, or not at all."""

    AUTO = "AUTO"
    STEP = "STEP"
    PAUSED = "PAUSED"


class Approval(StrEnum):
    """`--approve`: what asks the operator first."""

    ASK = "ask"
    WRITES = "writes"
    ALL = "all"


class Outcome(StrEnum):
    """How a run ended (CONTRACT.md)."""

    ANSWERED = "answered"
    PARTIAL = "partial"
    STOPPED = "stopped"
    ESCALATED = "escalated"
    MODEL_FAILED = "model_failed"
    INTERRUPTED = "interrupted"
    ERROR = "error"


class Value(BaseModel):
    """An immutable part of an event."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class ToolCall(Value):
    """One call as the model sent it: `arguments` is the raw JSON text, kept exactly."""

    id: str
    name: str
    arguments: str = "{}"


class Failure(Value):
    """One failure, as the detectors see it. `message` is exact; signatures are computed from it when compared."""

    kind: FailureKind
    message: str
    tool: str = ""
    input: dict[str, JsonValue] = {}
    iteration: int = 0
    transient: bool = False
    """Infrastructure, not the model's doing: counted by the per-tool breaker, not by the attempts."""
    unknown_effect: bool = False
    """The call may have had an effect before it failed (a command that timed out): verify before repeating."""


class Fault(Value):
    """A failed model call. `advice` says what the operator can do; `retry_after` is in seconds."""

    kind: FaultKind
    message: str
    advice: str = ""
    status: int | None = None
    retry_after: float | None = None


class VerdictRecord(Value):
    """One detector's judgement: its level, its name, its reason in words."""

    level: Level
    detector: str
    reason: str = ""


class ParentPoint(Value):
    """Where a forked session left its parent: the parent's id and the last event's `seq` it shares."""

    session_id: str
    seq: int


class Event(BaseModel):
    """Base of all events. `seq` counts from 1 in a session; `at` is seconds since the epoch, UTC."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    seq: int = 0
    at: float = 0.0
    v: int = SCHEMA_VERSION

    def stamped(self, seq: int, at: float) -> Self:
        """The same event with its place and time."""
        return self.model_copy(update={"seq": seq, "at": at})


# --- the session ---------------------------------------------------------------------------------------------


class SessionStarted(Event):
    """First line of every journal."""

    type: Literal["session_started"] = "session_started"
    session_id: str
    workspace: str
    app_version: str = ""
    title: str = ""
    parent: ParentPoint | None = None
    source: str = ""
    """Where an imported session came from: the format's name; empty for our own."""


class SessionResumed(Event):
    """A saved session was opened to go on; `dropped_bytes` counts a torn last line."""

    type: Literal["session_resumed"] = "session_resumed"
    app_version: str = ""
    dropped_bytes: int = 0


class TitleChanged(Event):
    """The session got a name."""

    type: Literal["title_changed"] = "title_changed"
    title: str


class Notice(Event):
    """Something the operator should know that no other event says."""

    type: Literal["notice"] = "notice"
    severity: Literal["info", "warning", "error"] = "info"
    text: str
    origin: Literal["", "import", "judgement"] = ""
    """Who says it: the importer of a foreign transcript, or a policy that judged a run which went on elsewhere."""


class ModeChanged(Event):
    """The operator chose AUTO, STEP or PAUSED."""

    type: Literal["mode_changed"] = "mode_changed"
    mode: Mode


class SettingChanged(Event):
    """A setting changed in mid-session. `policy` and `model` take effect with the next run and call."""

    type: Literal["setting_changed"] = "setting_changed"
    setting: Literal["policy", "model", "approve"]
    value: str


# --- a run ---------------------------------------------------------------------------------------------------


class RunStarted(Event):
    """An operator's message starts a run; its counters are fresh. `task` is stored in the history."""

    type: Literal["run_started"] = "run_started"
    run: int
    task: str
    policy: str
    policy_settings: dict[str, JsonValue] = {}
    """All parameters of the policy (`recovery.policy.RecoveryPolicy`), so that a replay judges the same way."""
    model: str = ""
    system_prompt: str = ""
    tools: tuple[str, ...] = ()
    approve: Approval = Approval.ASK
    max_iterations: int = 50
    max_cost: float | None = None
    context_tokens: int | None = None
    """Budget of the window in tokens; None: unknown, nothing is cut."""
    operator_present: bool = True


class MessageQueued(Event):
    """The operator wrote while a run went on."""

    type: Literal["message_queued"] = "message_queued"
    id: str
    text: str


class MessageUnqueued(Event):
    """A queued message was taken back."""

    type: Literal["message_unqueued"] = "message_unqueued"
    id: str


class OperatorSpoke(Event):
    """A message of the operator enters the history of the run that goes on (`queued` names what it was)."""

    type: Literal["operator_spoke"] = "operator_spoke"
    text: str
    queued: str | None = None


class IterationStarted(Event):
    """One model call and its tools begin. Counts from 1 in a run."""

    type: Literal["iteration_started"] = "iteration_started"
    iteration: int


class IterationFinished(Event):
    """Every call of the iteration has its result; the detectors judge now."""

    type: Literal["iteration_finished"] = "iteration_finished"
    iteration: int
    cancelled: bool = False


class RunFinished(Event):
    """The run's outcome. `answer` is the answer, or the partial answer for every other outcome."""

    type: Literal["run_finished"] = "run_finished"
    outcome: Outcome
    reason: str = ""
    answer: str = ""
    detector: str = ""


# --- the model -----------------------------------------------------------------------------------------------


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


# --- tools ---------------------------------------------------------------------------------------------------


class ToolStarted(Event):
    """A call begins to run. `index` is its place in the reply, from 0."""

    type: Literal["tool_started"] = "tool_started"
    call_id: str
    tool: str
    input: dict[str, JsonValue]
    index: int = 0


class ToolProgress(Event):
    """A piece of a running command's output, coalesced."""

    type: Literal["tool_progress"] = "tool_progress"
    call_id: str
    text: str


class ToolResult(Event):
    """Base of the four ways in which a call ends; exactly one an issued call. `content` is what the model reads."""

    call_id: str
    tool: str
    input: dict[str, JsonValue] = {}
    index: int = 0
    content: str = ""
    duration: float = 0.0


class ToolSucceeded(ToolResult):
    """The tool did its work."""

    type: Literal["tool_succeeded"] = "tool_succeeded"
    changed: tuple[str, ...] = ()
    """Workspace files that the call changed (a write or edit that really altered them)."""
    diff: str = ""
    output_file: str = ""
    """Where the whole output lies, when `content` was cut."""


class ToolFailed(ToolResult):
    """The call failed: not executed because it was wrong (`invalid_tool_call`, `unknown_tool`), or in execution."""

    type: Literal["tool_failed"] = "tool_failed"
    failure: Failure
    output_file: str = ""


class ToolRefused(ToolResult):
    """The call was not executed, for a reason that is not the tool's."""

    type: Literal["tool_refused"] = "tool_refused"
    refusal: Literal["denied", "blocked", "withheld", "breaker"]
    """denied: by the operator or `--approve`; blocked: attempts; withheld: stuck pattern; breaker: tool is open."""
    reason: str = ""


class ToolCancelled(ToolResult):
    """The call was interrupted before it ended; its effect is unknown if it had started."""

    type: Literal["tool_cancelled"] = "tool_cancelled"
    reason: str = ""


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


# --- judgement and the operator ------------------------------------------------------------------------------


class VerdictReached(Event):
    """The strongest verdict after an iteration, and every detector's own."""

    type: Literal["verdict_reached"] = "verdict_reached"
    iteration: int
    level: Level
    detector: str = ""
    reason: str = ""
    verdicts: tuple[VerdictRecord, ...] = ()


class NotePrepared(Event):
    """The note that will go with the next model call; None: nothing to say."""

    type: Literal["note_prepared"] = "note_prepared"
    text: str | None
    edited: bool = False
    """The operator changed or dropped it."""


class ApprovalAsked(Event):
    """A call waits for the operator. `preview` shows in full what it would do; `covers` what "session" allows."""

    type: Literal["approval_asked"] = "approval_asked"
    id: str
    call_id: str
    tool: str
    input: dict[str, JsonValue]
    preview: str = ""
    covers: str = ""
    rule: str = ""
    """Machine form of `covers`, remembered when the decision is `session`."""


class ApprovalAnswered(Event):
    """The decision; `input` holds the edited arguments when they were changed."""

    type: Literal["approval_answered"] = "approval_answered"
    id: str
    decision: Literal["once", "session", "deny"]
    reason: str = ""
    input: dict[str, JsonValue] | None = None
    by: Literal["operator", "rule", "policy"] = "operator"


class EscalationRaised(Event):
    """The loop needs the operator. `source` is a detector's name, `ask_operator` or `model`."""

    type: Literal["escalation_raised"] = "escalation_raised"
    id: str
    question: str
    source: str
    tool: str = ""
    input: dict[str, JsonValue] = {}
    options: tuple[str, ...] = ()
    """Answers that the model offers with `ask_operator`."""


class EscalationAnswered(Event):
    """The operator's answer. `message` is what enters the history, as an operator message ("" for none)."""

    type: Literal["escalation_answered"] = "escalation_answered"
    id: str
    choice: Literal["answer", "retry", "edit", "skip", "partial", "stop", "continue"]
    text: str = ""
    message: str = ""
    tool: str = ""
    input: dict[str, JsonValue] | None = None
    """The call it was about, or the edited one (`edit`)."""
    by: Literal["operator", "policy"] = "operator"


class BreakerSet(Event):
    """The operator opened or closed a tool's breaker by hand."""

    type: Literal["breaker_set"] = "breaker_set"
    tool: str
    open: bool


class CheckpointSaved(Event):
    """The workspace was kept outside the user's git history. `ref` names it in the shadow store."""

    type: Literal["checkpoint_saved"] = "checkpoint_saved"
    ref: str
    iteration: int = 0
    files: tuple[str, ...] = ()
    before: str = ""
    """What it precedes or follows, for the list that rewind shows."""


class Rewound(Event):
    """Conversation, files or both went back to an earlier point; `undo_ref` brings the files back again."""

    type: Literal["rewound"] = "rewound"
    scope: Literal["conversation", "files", "both"]
    to_seq: int
    """The last event that the conversation still holds; a place between iterations."""
    undoes: int = 0
    """`seq` of the rewind that this one takes back; 0: it takes none back."""
    ref: str = ""
    undo_ref: str = ""
    files: tuple[str, ...] = ()


AnyEvent = Annotated[
    SessionStarted
    | SessionResumed
    | TitleChanged
    | Notice
    | ModeChanged
    | SettingChanged
    | RunStarted
    | MessageQueued
    | MessageUnqueued
    | OperatorSpoke
    | IterationStarted
    | IterationFinished
    | RunFinished
    | ModelCallStarted
    | ReplyDelta
    | ReplyFinished
    | ReplyRejected
    | ModelFaulted
    | CoherenceRepaired
    | ToolStarted
    | ToolProgress
    | ToolSucceeded
    | ToolFailed
    | ToolRefused
    | ToolCancelled
    | HookReported
    | VerdictReached
    | NotePrepared
    | ApprovalAsked
    | ApprovalAnswered
    | EscalationRaised
    | EscalationAnswered
    | BreakerSet
    | CheckpointSaved
    | Rewound,
    Field(discriminator="type"),
]

_adapter: TypeAdapter[Any] = TypeAdapter(AnyEvent)
_validate_json = _adapter.validator.validate_json

EVENT_TYPES: dict[str, type[Event]] = {
    model.model_fields["type"].default: model for model in get_args(get_args(AnyEvent)[0])
}
"""Every event's class by the `type` in its line."""


def parse_event(line: str | bytes) -> Event:
    """One journal line back into its event. Raises `pydantic.ValidationError` for anything else."""
    event: Event = _validate_json(line)
    return event


def event_schema() -> dict[str, Any]:
    """JSON Schema of every event, for docs/."""
    return _adapter.json_schema()
