"""The operator: whoever approves, answers and lets iterations go. The loop never knows which one it has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from tui_agent.core.events import ApprovalAsked, EscalationRaised, ServerAsked

Decision = Literal["once", "session", "always", "everywhere", "deny"]
Choice = Literal[
    "answer", "retry", "wait", "edit", "skip", "keep", "fresh_start", "partial", "stop", "continue"
]


@dataclass(frozen=True)
class ApprovalReply:
    """The decision on a call. `input` replaces the arguments; `reason` goes to the model with a denial; `rules` are
    remembered in place of those that were asked about."""

    decision: Decision
    reason: str = ""
    input: dict[str, Any] | None = None
    by: Literal["operator", "policy"] = "operator"
    rules: tuple[str, ...] = ()


@dataclass(frozen=True)
class EscalationReply:
    """The answer to an escalation.

    answer: `text` goes to the model. retry: the blocked call may run once more. edit: the same with the arguments in
    `input`. skip: go on without that call. keep: the plan is the answer of the run. fresh_start: begin anew with a
    summary of what was learned. partial, stop: end the run with a partial answer, as `partial` or `escalated`.
    continue: go on with the call withheld (only `--on-escalation continue`). For a model fault, `retry` tries again,
    with the model named in `text` if there is one; `wait` waits until the limit that was reached resets.
    """

    choice: Choice
    text: str = ""
    input: dict[str, Any] | None = None
    by: Literal["operator", "policy"] = "operator"


@dataclass(frozen=True)
class RequestOutline:
    """The next request, before it goes out."""

    iteration: int
    model: str
    messages: int
    tokens: int
    dropped_groups: int
    tools: tuple[str, ...]
    note: str | None


@dataclass(frozen=True)
class GateReply:
    """Let the iteration go, with the note as it is, as edited, or dropped (`note` None)."""

    note: str | None


@dataclass(frozen=True)
class ServerReply:
    """The answer to what a tool server asks. `content` holds the values of the form, with `accept`.

    accept: yes; decline: no (a server of a checkout stays off); cancel: not answered now.
    """

    decision: Literal["accept", "decline", "cancel"]
    content: dict[str, Any] | None = None
    by: Literal["operator", "policy"] = "operator"


class Operator(Protocol):
    """Three implementations: the console's, the headless one, and a scripted one for tests."""

    @property
    def present(self) -> bool:
        """True if somebody can answer; decides between escalating and degrading."""

    async def approve(self, asked: ApprovalAsked) -> ApprovalReply:
        """Decide on one call. May be cancelled."""

    async def answer(self, raised: EscalationRaised) -> EscalationReply:
        """Answer an escalation. May be cancelled."""

    async def consult(self, asked: ServerAsked) -> ServerReply:
        """Answer a tool server, or whether to start it. May be cancelled."""

    async def gate(self, outline: RequestOutline) -> GateReply:
        """Wait until the next iteration may start: at once in AUTO, on a key in STEP and PAUSED."""
