"""Events of a run and its iterations, and what the operator says in between."""

from __future__ import annotations

from typing import Literal

from pydantic import JsonValue

from tui_agent.core.events.base import Event
from tui_agent.core.names import LONGEST_WAIT, Approval, OnEscalation, OnLimit, Outcome, ToolCallForm
from tui_agent.core.values import Image, Kept, Receipt


class RunStarted(Event):
    """An operator's message starts a run; its counters are fresh. `task` is stored in the history."""

    type: Literal["run_started"] = "run_started"
    run: int
    task: str
    policy: str
    policy_settings: dict[str, JsonValue] = {}
    """All parameters of the policy (`recovery.policy.RecoveryPolicy`), so that a replay judges the same way."""
    agent: str = ""
    """The agent that takes the steps and runs its own calls; empty: this program does."""
    model: str = ""
    session_model: str = ""
    """The session's model, if `model` is for this run alone; empty: they are one."""
    api_base: str = ""
    """Address of the server that the models are called at, if one is set; never with a name or password."""
    system_prompt: str = ""
    tools: tuple[str, ...] = ()
    effects: dict[str, str] = {}
    """The effect of each tool, by its name: `read`, `write`, `command`, `network`, `dialogue`, `task`; empty:
    not known.
    """
    approve: Approval = Approval.ASK
    max_iterations: int = 50
    asks_for_steps: bool = False
    """That limit may move: an operator who is there is asked for more steps, and a run that goes on alone counts the
    steps without progress; else it ends the run."""
    max_cost: float | None = None
    budgets: dict[str, float] = {}
    """Further budgets by their keys: USD, tokens, seconds of work, of the run or its session."""
    budget_warning: float = 0.8
    """Share of a budget from which on the operator is warned."""
    context_tokens: int | None = None
    """Budget of the window in tokens; None: the model's, if it is known."""
    tools_tokens: int = 0
    """Estimate of what the specifications of the tools take of a request."""
    fallback_models: tuple[str, ...] = ()
    """Tried in order, for one call at a time, when the model stays out of reach."""
    fallbacks: dict[str, tuple[str, ...]] = {}
    """The same by kind of fault (`FaultKind`), before those."""
    on_limit: OnLimit | None = None
    """The way on when the model's limit of use is reached; None: the operator is asked."""
    wait_at_most: float = LONGEST_WAIT
    """Seconds that it waits by itself for a limit to reset."""
    summary_model: str = ""
    """Writes the summaries of the conversation; empty: the run's own model."""
    advisor: str = ""
    """Asked for another approach at a pivot; empty: nobody is."""
    tool_calls: ToolCallForm = "auto"
    """How the model calls tools; auto: natively, and as text if it cannot."""
    compact_at: float = 0.85
    """Share of the window from which on a summary replaces the older part of the history; 0: never by itself."""
    operator_present: bool = True
    on_escalation: OnEscalation = "partial"
    """The way on when an operator would be asked and nobody is there; older journals do not say it."""
    sandbox: str = ""
    """The sandbox of commands: its mechanism, with or without a network; "off": none; empty: not known."""
    images: tuple[Image, ...] = ()
    """They go with the task."""
    kept: Kept | None = None
    """Counters with which it begins, if `recovery.persist` hands them on."""


class MessageQueued(Event):
    """The operator wrote while a run went on."""

    type: Literal["message_queued"] = "message_queued"
    id: str
    text: str
    images: tuple[Image, ...] = ()


class MessageUnqueued(Event):
    """A queued message was taken back."""

    type: Literal["message_unqueued"] = "message_unqueued"
    id: str


class OperatorSpoke(Event):
    """A message of the operator enters the history of the run that goes on (`queued` names what it was)."""

    type: Literal["operator_spoke"] = "operator_spoke"
    text: str
    queued: str | None = None
    images: tuple[Image, ...] = ()


class OwnCommandEnded(Event):
    """A command that the operator ran himself ended; the model reads it with his next message."""

    type: Literal["own_command_ended"] = "own_command_ended"
    command: str
    printed: str = ""
    exit_code: int | None = None
    """None: it ended otherwise, or did not begin."""

    @property
    def said(self) -> str:
        """The text of it that the model reads."""
        return f"I ran `{self.command}` myself. It printed:\n{self.printed}"


class IterationStarted(Event):
    """One model call and its tools begin. Counts from 1 in a run."""

    type: Literal["iteration_started"] = "iteration_started"
    iteration: int


class IterationFinished(Event):
    """Every call of the iteration has its result; the detectors judge now."""

    type: Literal["iteration_finished"] = "iteration_finished"
    iteration: int
    cancelled: bool = False
    cut_reply: str = ""
    """The part of a reply before it was interrupted: it stays in the history, with a mark."""


class Interrupted(Event):
    """Work under way was cut short: by the operator, who may go on, or because the process ended."""

    type: Literal["interrupted"] = "interrupted"
    cause: Literal["operator", "process_ended"] = "operator"


class StopRequested(Event):
    """The run is to end now, whatever is under way; `outcome` is what it ends as."""

    type: Literal["stop_requested"] = "stop_requested"
    reason: str
    outcome: Outcome = Outcome.INTERRUPTED
    rule: str = ""


class RunFinished(Event):
    """The run's outcome. `answer` is the answer, or the partial answer for every other outcome."""

    type: Literal["run_finished"] = "run_finished"
    outcome: Outcome
    reason: str = ""
    answer: str = ""
    detector: str = ""
    rule: str = ""
    """Id of the rule that ended the run; empty when it was answered."""
    receipts: tuple[Receipt, ...] = ()
    """What shows the claims of an answer, and files that the run has left behind."""


class ClosingTurnOpened(Event):
    """Recovery ends the run after one more reply and its calls; the end itself stands here until then."""

    type: Literal["closing_turn_opened"] = "closing_turn_opened"
    iteration: int
    """The last one before it."""
    outcome: Outcome
    reason: str = ""
    detector: str = ""
    ended_by: str = ""
    """Id of the rule that ends the run."""
    rule: str = ""

    @property
    def in_words(self) -> str:
        """One sentence, without its full stop."""
        return f"one closing turn before the end: {self.reason.rstrip('.')}"


class StartedAfresh(Event):
    """The work began anew: the window holds the task and what was learned, and recovery counts from the start."""

    type: Literal["started_afresh"] = "started_afresh"
    iteration: int
    """The last one before it."""
    number: int
    """Of the run's fresh starts, from 1."""
    reason: str = ""
    detector: str = ""
    ended_by: str = ""
    """Id of the rule that would have ended the run, or that asked the operator."""
    groups: int = 0
    """Steps that the summary takes the place of."""
    to_seq: int = 0
    """It takes the place of what was closed up to this event."""
    words_from: int = 0
    """The operator's messages from this event on stay."""
    remark: str = ""
    """The summary, as the model reads it."""
    tokens_before: int = 0
    """Estimate of the history in a request."""
    tokens_after: int = 0
    ref: str = ""
    """The checkpoint whose files were brought back; empty: they stayed as they were."""
    files: tuple[str, ...] = ()
    """Those that differed from it."""
    by: Literal["operator", "policy"] = "policy"
    rule: str = ""

    @property
    def in_words(self) -> str:
        """One sentence, without its full stop."""
        files = f", with {len(self.files)} files brought back" if self.ref else ""
        return f"fresh start {self.number}{files}: {self.reason.rstrip('.')}"


class BudgetRaised(Event):
    """The operator lets a run or its session go on, up to another limit; None: without one."""

    type: Literal["budget_raised"] = "budget_raised"
    key: str
    """The key of the budget's setting."""
    limit: float | None
    rule: str = ""

    @property
    def in_words(self) -> str:
        """One sentence, without its full stop."""
        return (
            f"{self.key} is now {self.limit:g}"
            if self.limit is not None
            else f"{self.key} is no limit any more"
        )
