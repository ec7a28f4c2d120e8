"""The events of a sub-agent: what one of its own events is wrapped in, so that no reader takes it for the run's."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from tui_agent.core.events.base import Event
from tui_agent.core.events.judgement import (
    ApprovalAnswered,
    ApprovalAsked,
    EscalationAnswered,
    EscalationRaised,
    NotePrepared,
    VerdictReached,
)
from tui_agent.core.events.model import (
    CoherenceRepaired,
    Compacted,
    CompactionFailed,
    CompactionStarted,
    LimitWaitStarted,
    ModelCallStarted,
    ModelFaulted,
    ModelWindowLearned,
    ReplyFinished,
    ReplyRejected,
    WindowCut,
)
from tui_agent.core.events.run import (
    BudgetRaised,
    ClosingTurnOpened,
    IterationFinished,
    IterationStarted,
    RunFinished,
    RunStarted,
    StartedAfresh,
    StopRequested,
)
from tui_agent.core.events.session import Notice
from tui_agent.core.events.tools import (
    HookReported,
    ToolCancelled,
    ToolEnded,
    ToolFailed,
    ToolRefused,
    ToolStarted,
    ToolSucceeded,
)

LaneStep = Annotated[
    RunStarted
    | IterationStarted
    | IterationFinished
    | RunFinished
    | BudgetRaised
    | ClosingTurnOpened
    | StartedAfresh
    | StopRequested
    | ModelCallStarted
    | ReplyFinished
    | ReplyRejected
    | ModelFaulted
    | LimitWaitStarted
    | CoherenceRepaired
    | ModelWindowLearned
    | WindowCut
    | CompactionStarted
    | Compacted
    | CompactionFailed
    | ToolStarted
    | ToolSucceeded
    | ToolFailed
    | ToolRefused
    | ToolCancelled
    | ToolEnded
    | HookReported
    | VerdictReached
    | NotePrepared
    | ApprovalAsked
    | ApprovalAnswered
    | EscalationRaised
    | EscalationAnswered
    | Notice,
    Field(discriminator="type"),
]
"""An event in a lane. Pieces of replies and outputs are not kept, and a lane has no lanes."""


class LaneEvent(Event):
    """Something happened to a sub-agent, which works in a lane of its own beside the run."""

    type: Literal["lane_event"] = "lane_event"
    lane: str
    """Id of the run's call that started it."""
    name: str
    """The model's name for the work."""
    event: LaneStep
    """Its place and time are those of the line."""

    @property
    def placed(self) -> Event:
        """The sub-agent's event with its place and time."""
        return self.event.stamped(self.seq, self.at)
