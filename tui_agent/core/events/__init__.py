"""The vocabulary: every fact of a session as one versioned event.

Events are the only truth. The loop makes them, the journal keeps them, `fold.apply` folds them. Nothing here
decides, reads a clock or does input or output. Fields hold exact text; what is volatile or unsafe in it is
handled where it is compared (`recovery.signature`) or shown (`terminal_text`).
"""

from __future__ import annotations

from typing import Annotated, Any, get_args

from pydantic import Field, TypeAdapter

from tui_agent.core.events.base import SCHEMA_VERSION, Event
from tui_agent.core.events.judgement import (
    ApprovalAnswered,
    ApprovalAsked,
    BreakerSet,
    EscalationAnswered,
    EscalationRaised,
    NotePrepared,
    VerdictReached,
)
from tui_agent.core.events.lanes import LaneEvent
from tui_agent.core.events.model import (
    CoherenceRepaired,
    Compacted,
    CompactionFailed,
    CompactionRequested,
    CompactionStarted,
    ModelCallStarted,
    ModelFaulted,
    ModelWindowLearned,
    ReplyDelta,
    ReplyFinished,
    ReplyRejected,
    WaitSkipped,
    WindowCut,
)
from tui_agent.core.events.run import (
    BudgetRaised,
    ClosingTurnOpened,
    Interrupted,
    IterationFinished,
    IterationStarted,
    MessageQueued,
    MessageUnqueued,
    OperatorSpoke,
    OwnCommandEnded,
    RunFinished,
    RunStarted,
    StopRequested,
)
from tui_agent.core.events.servers import ServerAnswered, ServerAsked, ServerChanged
from tui_agent.core.events.session import (
    CheckpointSaved,
    ModeChanged,
    Notice,
    Rewound,
    RulesChanged,
    SessionResumed,
    SessionStarted,
    SettingChanged,
    TitleChanged,
)
from tui_agent.core.events.tools import (
    BackgroundEnded,
    BackgroundStarted,
    HookReported,
    ToolCancelled,
    ToolFailed,
    ToolProgress,
    ToolRefused,
    ToolResult,
    ToolStarted,
    ToolSucceeded,
)
from tui_agent.core.events.types import (
    CallProblem,
    Carried,
    Contradiction,
    Failure,
    Fault,
    Image,
    ParentPoint,
    ToolCall,
    Value,
    VerdictRecord,
    with_images_named,
)
from tui_agent.core.names import Approval, FailureKind, FaultKind, Level, Mode, Outcome

__all__ = [
    "EVENT_TYPES",
    "SCHEMA_VERSION",
    "AnyEvent",
    "Approval",
    "ApprovalAnswered",
    "ApprovalAsked",
    "BackgroundEnded",
    "BackgroundStarted",
    "BreakerSet",
    "BudgetRaised",
    "CallProblem",
    "Carried",
    "CheckpointSaved",
    "ClosingTurnOpened",
    "CoherenceRepaired",
    "Compacted",
    "CompactionFailed",
    "CompactionRequested",
    "CompactionStarted",
    "Contradiction",
    "EscalationAnswered",
    "EscalationRaised",
    "Event",
    "Failure",
    "FailureKind",
    "Fault",
    "FaultKind",
    "HookReported",
    "Image",
    "Interrupted",
    "IterationFinished",
    "IterationStarted",
    "LaneEvent",
    "Level",
    "MessageQueued",
    "MessageUnqueued",
    "Mode",
    "ModeChanged",
    "ModelCallStarted",
    "ModelFaulted",
    "ModelWindowLearned",
    "NotePrepared",
    "Notice",
    "OperatorSpoke",
    "Outcome",
    "OwnCommandEnded",
    "ParentPoint",
    "ReplyDelta",
    "ReplyFinished",
    "ReplyRejected",
    "Rewound",
    "RulesChanged",
    "RunFinished",
    "RunStarted",
    "ServerAnswered",
    "ServerAsked",
    "ServerChanged",
    "SessionResumed",
    "SessionStarted",
    "SettingChanged",
    "StopRequested",
    "TitleChanged",
    "ToolCall",
    "ToolCancelled",
    "ToolFailed",
    "ToolProgress",
    "ToolRefused",
    "ToolResult",
    "ToolStarted",
    "ToolSucceeded",
    "Value",
    "VerdictReached",
    "VerdictRecord",
    "WaitSkipped",
    "WindowCut",
    "event_schema",
    "parse_event",
    "with_images_named",
]

AnyEvent = Annotated[
    SessionStarted
    | SessionResumed
    | TitleChanged
    | Notice
    | ModeChanged
    | SettingChanged
    | RulesChanged
    | RunStarted
    | MessageQueued
    | MessageUnqueued
    | OperatorSpoke
    | OwnCommandEnded
    | IterationStarted
    | IterationFinished
    | RunFinished
    | BudgetRaised
    | ClosingTurnOpened
    | Interrupted
    | StopRequested
    | ModelCallStarted
    | ReplyDelta
    | ReplyFinished
    | ReplyRejected
    | ModelFaulted
    | CoherenceRepaired
    | ModelWindowLearned
    | WaitSkipped
    | WindowCut
    | CompactionRequested
    | CompactionStarted
    | Compacted
    | CompactionFailed
    | ToolStarted
    | ToolProgress
    | ToolSucceeded
    | ToolFailed
    | ToolRefused
    | ToolCancelled
    | BackgroundStarted
    | BackgroundEnded
    | HookReported
    | VerdictReached
    | NotePrepared
    | ApprovalAsked
    | ApprovalAnswered
    | EscalationRaised
    | EscalationAnswered
    | BreakerSet
    | CheckpointSaved
    | Rewound
    | ServerChanged
    | ServerAsked
    | ServerAnswered
    | LaneEvent,
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
