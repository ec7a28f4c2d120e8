"""The words that events are made of: kinds, levels, modes, outcomes, and the values inside of events."""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, ConfigDict, JsonValue


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
