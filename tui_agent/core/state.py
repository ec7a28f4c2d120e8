"""The state: everything that screens, files and reports show. `core.fold` makes it from the events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tui_agent.core import events
from tui_agent.core.append_log import AppendLog
from tui_agent.core.evolve import evolve
from tui_agent.core.names import LONGEST_WAIT, Decision, OnLimit, Phase, ToolCallForm
from tui_agent.core.projections.background import BackgroundFacts
from tui_agent.core.projections.conversation import Conversation
from tui_agent.core.projections.history import History
from tui_agent.core.projections.known_files import KnownFiles
from tui_agent.core.projections.metrics import Metrics
from tui_agent.core.projections.timeline import Timeline
from tui_agent.core.recovery.engine import RecoveryState

SUMMARY_TRIES = 3
"""An iteration each; a failure that does not pass by itself counts as all of them."""


@dataclass(frozen=True)
class SessionFacts:
    """Values for the whole session."""

    id: str = ""
    workspace: str = ""
    title: str = ""
    parent: events.ParentPoint | None = None
    source: str = ""
    agent: events.AgentOpened | None = None
    """The agent that takes the steps, with its own session; None: this program does."""
    offered: events.AgentOffered = field(default_factory=events.AgentOffered)
    """Its options and commands."""
    chosen: Mapping[str, str] = field(default_factory=dict)
    """Values of its options that the operator chose, by the options' ids."""
    recorded: bool = False
    """Another program's run that has not been gone on with: what a policy says about it reached nobody."""
    started_at: float = 0.0
    mode: events.Mode = events.Mode.AUTO
    policy: str = ""
    model: str = ""
    approve: events.Approval | None = None
    """Values for the next run, if they were chosen already; approvals apply at once."""
    check: str = ""
    """The command that proves the goal of all runs; empty: answers are not checked."""
    goal: str = ""
    """The goal in words, for a model whose check fails."""
    raised: Mapping[str, float | None] = field(default_factory=dict)
    """Budgets of the session that the operator raised; None: without a limit."""
    rules: frozenset[str] = frozenset()
    """Permission rules that the operator allowed for this session (`ApprovalAsked.rules`)."""
    narrowing: frozenset[tuple[Decision, str]] = frozenset()
    """Rules of this session by which calls ask or are denied."""


UNBOUNDED = 1_000_000_000
"""Steps of a run that has no limit of them any more."""


@dataclass(frozen=True)
class RunFacts:
    """The newest run. `iteration` counts from 1; `outcome` is None while it goes on."""

    number: int = 0
    task: str = ""
    policy: str = ""
    model: str = ""
    agent: str = ""
    """The agent that takes the steps and runs its own calls; empty: this program does."""
    system_prompt: str = ""
    system_tokens: int = 0
    """Estimate for the system prompt."""
    tools: tuple[str, ...] = ()
    iteration: int = 0
    max_iterations: int = 50
    more_steps: int = 0
    """As many more are offered if an operator is there; 0: the run ends then."""
    limits: Mapping[str, float] = field(default_factory=dict)
    """Budgets by their keys (`core.budgets`), as they are now."""
    budget_warning: float = 0.8
    context_tokens: int | None = None
    tools_tokens: int = 0
    fallback_models: tuple[str, ...] = ()
    fallbacks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By kind of fault, before those."""
    on_limit: OnLimit | None = None
    wait_at_most: float = LONGEST_WAIT
    summary_model: str = ""
    """Writes the summaries of the conversation; empty: `model`. Any `Model` takes it as a request's model."""
    compact_at: float = 0.85
    advisor: str = ""
    tool_calls: ToolCallForm = "auto"
    operator_present: bool = True
    sandbox: str = ""
    api_base: str = ""
    attempt: int = 0
    """Of the model call in this iteration, from 1."""
    retry_at: float = 0.0
    """When the wait before the next attempt ends (`Phase.BACKOFF`)."""
    request_tokens: int = 0
    request_budget: int | None = None
    outcome: events.Outcome | None = None
    reason: str = ""
    answer: str = ""
    rule: str = ""
    receipts: tuple[events.Receipt, ...] = ()

    @property
    def last_step(self) -> int | None:
        """The iteration with which it ends at the latest; None without a limit, and for a recording that went on
        beyond ours.
        """
        return self.max_iterations if self.iteration <= self.max_iterations < UNBOUNDED else None


@dataclass(frozen=True)
class RunState:
    """One value for all panes, reports and the loop itself."""

    seq: int = 0
    at: float = 0.0
    phase: Phase = Phase.IDLE
    session: SessionFacts = SessionFacts()
    run: RunFacts = RunFacts()
    conversation: Conversation = field(default_factory=Conversation)
    history: History = field(default_factory=History)
    recovery: RecoveryState = field(default_factory=RecoveryState)
    metrics: Metrics = field(default_factory=Metrics)
    timeline: Timeline = field(default_factory=Timeline)
    background: BackgroundFacts = field(default_factory=BackgroundFacts)
    """Commands that run beside the conversation."""
    in_lane: bool = False
    """It is a sub-agent's."""
    lane_name: str = ""
    """The sub-agent's name."""
    windows: dict[str, int | None] = field(default_factory=dict)
    """Tokens that a prompt may have, by model, as far as they are known; None: the model does not say."""
    text_models: frozenset[str] = frozenset()
    """Models that cannot call tools and write their calls as text."""
    calibration: dict[str, float] = field(default_factory=dict)
    """By model: what the provider counted of its last request's tokens to what we had estimated of them."""
    called: events.ModelCallStarted | None = None
    """The newest model call."""
    compaction_asked: events.CompactionRequested | None = None
    """The operator wants a summary, and none was tried since."""
    compacting: events.CompactionStarted | None = None
    """The summary that a model is asked for now."""
    summary_by: str = ""
    """The model that writes the summary after another one failed to; empty: as configured."""
    compaction_failures: int = 0
    """Summaries that failed in a row, until the window was cut."""
    compaction_failed_in: int = 0
    """The iteration in which the last of them failed."""
    note: str | None = None
    """The note that will go with the next model call."""
    note_edited: bool = False
    note_rules: tuple[str, ...] = ()
    """Ids of the rules that wrote the newest note."""
    sent_note: str | None = None
    """The note that went with the newest model call."""
    verdict: events.VerdictReached | None = None
    """The newest verdict of the run."""
    advised: bool = False
    """The advisor was asked about the pivot that stands."""
    judged: bool = True
    """The iteration that ended last has its verdict."""
    fault: events.ModelFaulted | None = None
    """The model call that failed last, until another is made."""
    waiting: events.LimitWaitStarted | None = None
    """The run waits for a limit to reset, before the next call."""
    budget_answer: events.EscalationAnswered | None = None
    """The answer when a budget was used up."""
    warned: frozenset[str] = frozenset()
    """Budgets whose end is near, as the operator knows."""
    answer: events.EscalationAnswered | None = None
    """The answer to the question of this verdict or fault."""
    text_answer: str | None = None
    """The answer that the model has given, once the run is to end with it."""
    cut_text: str = ""
    """Text replies that the length limit cut: the beginning of the answer."""
    closing: events.ClosingTurnOpened | None = None
    """The run ends after one more turn, which goes on or has ended."""
    closing_words: str = ""
    """The model's words in that turn."""
    interrupted: bool = False
    """Work under way was cut short and is to be closed."""
    unpriced_noticed: bool = False
    """The operator knows that the cost of this run is known in part only."""
    stop: events.StopRequested | None = None
    """The run is to end, or none is to begin by itself."""
    queue: tuple[events.MessageQueued, ...] = ()
    approvals: tuple[events.ApprovalAsked, ...] = ()
    escalation: events.EscalationRaised | None = None
    iteration_open: bool = False
    """Between `IterationStarted` and `IterationFinished`."""
    rewinds: tuple[events.Rewound, ...] = ()
    """Those that were not taken back, the newest last."""
    known_files: KnownFiles = field(default_factory=KnownFiles)
    """Files of the workspace as the model last read or wrote them."""
    hook_context: tuple[str, ...] = ()
    """Words of hooks in this iteration; they join the note."""
    servers: dict[str, events.ServerChanged] = field(default_factory=dict)
    """The MCP servers of this process by name, each as it stood last."""
    server_questions: tuple[events.ServerAsked, ...] = ()
    """The question to the operator because of a server."""
    lanes: Mapping[str, RunState] = field(default_factory=dict)
    """The sub-agents at work, by the run's calls that started them."""

    @property
    def checkpoints(self) -> AppendLog[events.CheckpointSaved]:
        """Kept states of the workspace, oldest first."""
        return self.conversation.checkpoints

    def lane(self, call_id: str) -> RunState:
        """The state of a sub-agent, which begins with what is known of the models. The session is this one's."""
        own = self.lanes.get(call_id)
        if own is None:
            own = RunState(
                windows=self.windows,
                text_models=self.text_models,
                calibration=self.calibration,
                at=self.at,
                in_lane=True,
            )
        return evolve(own, session=self.session)

    @property
    def asked(self) -> events.EscalationRaised | events.ApprovalAsked | None:
        """The first question to the operator, by the run or by a sub-agent."""
        for one in (self, *self.lanes.values()):
            if one.escalation is not None or one.approvals:
                return one.escalation or one.approvals[0]
        return None

    def asker(self, question: events.EscalationRaised) -> RunState:
        """Whose question it is: a lane's state, or this one."""
        lanes = (lane for lane in self.lanes.values() if question.lane and lane.escalation is not None)
        return next((lane for lane in lanes if lane.escalation == question), self)

    @property
    def rewound(self) -> events.Rewound | None:
        """The newest rewind that was not taken back."""
        return self.rewinds[-1] if self.rewinds else None

    @property
    def model(self) -> str:
        """The model of the next call: the run's while one goes on, then the session's; empty: not known yet."""
        return (self.run.model if self.running else self.session.model) or self.run.model

    @property
    def running(self) -> bool:
        """A run goes on (also while it waits)."""
        return self.phase not in {Phase.IDLE, Phase.DONE}
