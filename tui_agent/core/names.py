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


def unanswered(policy: str, chosen: OnEscalation | None) -> OnEscalation:
    """What happens where an operator would be asked and nobody is there: as chosen, else by the policy."""
    return chosen or ("continue" if policy == "combined" else "partial")


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
    UNVERIFIED_CLAIM = "unverified_claim"

    @property
    def in_words(self) -> str:
        """As people read it."""
        return _FAILURES[self]


_FAILURES = {
    FailureKind.NO_TOOL_CALL: "no tool call",
    FailureKind.INVALID_TOOL_CALL: "invalid call",
    FailureKind.UNKNOWN_TOOL: "unknown tool",
    FailureKind.TOOL_EXECUTION: "tool failed",
    FailureKind.MODEL_API: "model fault",
    FailureKind.CANCELLED: "cancelled",
    FailureKind.UNVERIFIED_CLAIM: "unverified claim",
}


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

    @property
    def in_words(self) -> str:
        """As people and the model read it."""
        return _FAULTS[self]


_FAULTS = {
    FaultKind.RATE_LIMIT: "rate limit",
    FaultKind.TIMEOUT: "timeout",
    FaultKind.CONNECTION: "no connection",
    FaultKind.SERVER: "server error",
    FaultKind.OVERLOADED: "server overloaded",
    FaultKind.STREAM_CUT: "stream cut",
    FaultKind.CONTEXT_OVERFLOW: "prompt too long",
    FaultKind.BAD_OUTPUT: "unreadable reply",
    FaultKind.AUTH: "key not accepted",
    FaultKind.PERMISSION: "not permitted",
    FaultKind.NOT_FOUND: "not found",
    FaultKind.BAD_REQUEST: "bad request",
    FaultKind.QUOTA: "quota used up",
    FaultKind.CONTENT_POLICY: "content policy",
    FaultKind.NO_TOOLS: "no tool calls",
}


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


class Phase(StrEnum):
    """What the run is doing now."""

    IDLE = "idle"
    READY = "ready"
    """Between iterations, or held by STEP or PAUSED."""
    MODEL = "model"
    BACKOFF = "backoff"
    COMPACTING = "compacting"
    """A model writes a summary of the conversation."""
    TOOLS = "tools"
    APPROVAL = "approval"
    ESCALATION = "escalation"
    DONE = "done"


class CallState(StrEnum):
    """How far a call is. The last six are final."""

    REQUESTED = "requested"
    WAITING = "waiting"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FOUND = "found"
    FAILED = "failed"
    DENIED = "denied"
    BLOCKED = "blocked"
    CANCELLED = "cancelled"


UNDONE = frozenset({CallState.FAILED, CallState.DENIED, CallState.BLOCKED})
"""States of calls that have not done what was asked of them."""


class Approval(StrEnum):
    """`--approve`: what asks the operator first, from the most careful mode to the freest."""

    PLAN = "plan"
    ASK = "ask"
    WRITES = "writes"
    ALL = "all"

    @property
    def words(self) -> str:
        """What it means where no permission rule applies."""
        return {
            "plan": "it reads and plans: edits are refused, commands ask you first",
            "ask": "edits and commands ask you first",
            "writes": "file edits run, commands ask you first",
            "all": "everything runs but what a rule denies",
        }[self]


APPROVALS: tuple[str, ...] = tuple(Approval)


def next_approval(mode: str) -> str:
    """The mode after this one, round and round."""
    return APPROVALS[(APPROVALS.index(mode) + 1) % len(APPROVALS)]


EDITS = frozenset({"write_file", "edit_file"})
"""Tools that change files by their own word."""

FINISH = "finish"
"""The tool that ends a run with its answer."""
ASK_OPERATOR = "ask_operator"
UPDATE_PLAN = "update_plan"

ABOUT_BUDGET = "budget"
ABOUT_PLAN = "plan"
OF_NO_FAILURE = frozenset({ASK_OPERATOR, ABOUT_BUDGET, ABOUT_PLAN})
"""Sources of questions that nothing has failed for: the model's own, a used-up budget, a plan to approve."""


class Outcome(StrEnum):
    """How a run ended."""

    ANSWERED = "answered"
    PARTIAL = "partial"
    STOPPED = "stopped"
    ESCALATED = "escalated"
    MODEL_FAILED = "model_failed"
    INTERRUPTED = "interrupted"
    ERROR = "error"

    @property
    def in_words(self) -> str:
        """As people read it."""
        return self.value.replace("_", " ")
