"""The words that events are made of and that people choose from on the command line, in files and in the console.

Apart from the models that use them, so that the first paint does not wait for pydantic.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, get_args

PolicyName = Literal["forge", "gigi", "funnelcanary", "hpd", "combined"]
POLICIES: tuple[PolicyName, ...] = get_args(PolicyName)
"""The recovery policies, in the order of `recovery.policy.PRESETS`."""

ReasoningEffort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
REASONING_EFFORTS: tuple[ReasoningEffort, ...] = get_args(ReasoningEffort)
"""How much a model thinks before it answers, in OpenAI's words."""

ToolCallForm = Literal["auto", "native", "text"]

BUDGET_KEYS = (
    "max_cost",
    "max_session_cost",
    "max_run_tokens",
    "max_session_tokens",
    "max_run_time",
    "max_session_time",
)
"""The keys of the budgets of a run and its session (`core.budgets`)."""

OutputForm = Literal["text", "json", "jsonl"]
OUTPUT_FORMS: tuple[OutputForm, ...] = get_args(OutputForm)
"""What `run` prints."""

SandboxMode = Literal["auto", "off", "require"]
"""`--sandbox`: what works here, none, or no start without one."""
SANDBOX_MODES: tuple[SandboxMode, ...] = get_args(SandboxMode)
OnEscalation = Literal["partial", "continue", "stop"]
ON_ESCALATION: tuple[OnEscalation, ...] = get_args(OnEscalation)
"""What `run` does where an operator would be asked."""


class Decision(StrEnum):
    """What a permission rule makes of a call."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"

    @property
    def done(self) -> str:
        """As in "allowed for this session"."""
        return {"allow": "allowed", "ask": "made to ask", "deny": "denied"}[self]


class FailureKind(StrEnum):
    """What went wrong."""

    NO_TOOL_CALL = "no_tool_call"
    INVALID_TOOL_CALL = "invalid_tool_call"
    UNKNOWN_TOOL = "unknown_tool"
    TOOL_EXECUTION = "tool_execution"
    MODEL_API = "model_api"
    CANCELLED = "cancelled"


class FaultKind(StrEnum):
    """Kinds of a failed model call."""

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
    NO_TOOLS = "no_tools"


class Level(StrEnum):
    """Verdicts from weakest to strongest: continue < guide < pivot < escalate < degrade < stop."""

    CONTINUE = "continue"
    GUIDE = "guide"
    PIVOT = "pivot"
    ESCALATE = "escalate"
    DEGRADE = "degrade"
    STOP = "stop"

    rank: int
    """Position in the ladder, 0 (continue) to 5 (stop)."""

    def __init__(self, _: str) -> None:
        self.rank = len(type(self).__members__)


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


APPROVALS: tuple[str, ...] = tuple(Approval)


class Outcome(StrEnum):
    """How a run ended."""

    ANSWERED = "answered"
    PARTIAL = "partial"
    STOPPED = "stopped"
    ESCALATED = "escalated"
    MODEL_FAILED = "model_failed"
    INTERRUPTED = "interrupted"
    ERROR = "error"
