"""The words that events are made of and that people choose from on the command line, in files and in the console.

Apart from the models that use them, so that the first paint does not wait for pydantic.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, Self, get_args

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
"""The form of what `run` prints."""

SandboxMode = Literal["auto", "off", "require"]
"""`--sandbox`: what works here, none, or no start without one."""
SANDBOX_MODES: tuple[SandboxMode, ...] = get_args(SandboxMode)
OnEscalation = Literal["partial", "continue", "stop"]
OnLimit = Literal["wait", "fallback", "stop"]
"""The way on by itself when a model's limit of use is reached."""
ON_LIMIT: tuple[OnLimit, ...] = get_args(OnLimit)
LONGEST_WAIT = 21_600.0
"""Seconds that a run waits by itself for a limit to reset, unless the operator chose a time."""


def unanswered(policy: str, chosen: OnEscalation | None) -> OnEscalation:
    """The way on when an operator would be asked and nobody is there: as chosen, else by the policy."""
    return chosen or ("continue" if policy == "combined" else "partial")


ON_ESCALATION: tuple[OnEscalation, ...] = get_args(OnEscalation)
"""The answer of `run` when an operator would be asked."""


class Decision(StrEnum):
    """The decision of a permission rule on a call."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"

    @property
    def done(self) -> str:
        """As in "allowed for this session"."""
        return {"allow": "allowed", "ask": "made to ask", "deny": "denied"}[self]


class _Worded(StrEnum):
    """Values that people and the model read in other words."""

    in_words: str

    def __new__(cls, value: str, in_words: str = "") -> Self:
        member = str.__new__(cls, value)
        member._value_, member.in_words = value, in_words
        return member


class FailureKind(_Worded):
    """The kind of a fault."""

    NO_TOOL_CALL = "no_tool_call", "no tool call"
    INVALID_TOOL_CALL = "invalid_tool_call", "invalid call"
    UNKNOWN_TOOL = "unknown_tool", "unknown tool"
    TOOL_EXECUTION = "tool_execution", "tool failed"
    MODEL_API = "model_api", "model fault"
    CANCELLED = "cancelled", "cancelled"
    UNVERIFIED_CLAIM = "unverified_claim", "unverified claim"


class FaultKind(_Worded):
    """Kinds of a failed model call."""

    RATE_LIMIT = "rate_limit", "rate limit"
    USAGE_LIMIT = "usage_limit", "limit reached"
    TIMEOUT = "timeout", "timeout"
    CONNECTION = "connection", "no connection"
    SERVER = "server", "server error"
    OVERLOADED = "overloaded", "server overloaded"
    STREAM_CUT = "stream_cut", "stream cut"
    CONTEXT_OVERFLOW = "context_overflow", "prompt too long"
    BAD_OUTPUT = "bad_output", "unreadable reply"
    AUTH = "auth", "key not accepted"
    PERMISSION = "permission", "not permitted"
    NOT_FOUND = "not_found", "not found"
    BAD_REQUEST = "bad_request", "bad request"
    QUOTA = "quota", "quota used up"
    CONTENT_POLICY = "content_policy", "content policy"
    NO_TOOLS = "no_tools", "no tool calls"
    UNKNOWN = "unknown", "unknown fault"


class Level(StrEnum):
    """Verdicts from weakest to strongest: continue < guide < pivot < escalate < restart < degrade < stop."""

    CONTINUE = "continue"
    GUIDE = "guide"
    PIVOT = "pivot"
    ESCALATE = "escalate"
    RESTART = "restart"
    """A fresh start in the place of an end."""
    DEGRADE = "degrade"
    STOP = "stop"

    rank: int
    """Position in the ladder, 0 (continue) to 6 (stop)."""

    def __init__(self, _: str) -> None:
        self.rank = len(type(self).__members__)


class Mode(StrEnum):
    """How the loop goes on after an iteration: by itself, one at a time, or not at all."""

    AUTO = "AUTO"
    STEP = "STEP"
    PAUSED = "PAUSED"


class Phase(StrEnum):
    """The present activity of the run."""

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
    """How far a call is. The last seven are final."""

    REQUESTED = "requested"
    WAITING = "waiting"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FOUND = "found"
    FAILED = "failed"
    DENIED = "denied"
    BLOCKED = "blocked"
    CANCELLED = "cancelled"
    NOT_KNOWN = "not known"


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
        """The decision if no permission rule applies."""
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


READS_ONLY = "reads only"
"""The permission of a call that is known to do nothing but read."""
RAN_UNASKED = f"ran unasked: {READS_ONLY}"
"""How people read that."""

FINISH = "finish"
"""The tool that ends a run with its answer."""
ASK_OPERATOR = "ask_operator"
UPDATE_PLAN = "update_plan"

ABOUT_BUDGET = "budget"
ABOUT_STEPS = "steps"
ABOUT_PLAN = "plan"
OF_BOUNDS = frozenset({ABOUT_BUDGET, ABOUT_STEPS})
"""Sources of questions about a bound of the run that is reached."""


def asked_in_words(source: str, question: str) -> str:
    """Give what the operator is asked: of a plan, which stands in the conversation, if it is to be carried out."""
    return "Carry out this plan?" if source == ABOUT_PLAN else question


OF_NO_FAILURE = frozenset({ASK_OPERATOR, ABOUT_PLAN}) | OF_BOUNDS
"""Sources of questions that nothing has failed for: the model's own, a bound of the run, a plan to approve."""

NOT_COMPLETED = "The task could not be completed: "
"""Words of a partial answer before the reason."""

RING_SLOTS = 5
"""Failures that the error ring holds. Five identical ones in a row are a loop (Forge)."""
REPLY_FORM, MODEL_CALL = "form", "model"
"""Keys of the incidents that are about no call of a tool."""


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
