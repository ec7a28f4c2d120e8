"""The vocabulary: every fact of a session as one versioned event.

Events are the only truth. The loop makes them, the journal keeps them, `state.apply` folds them. Nothing here
decides, reads a clock or does input or output. Fields hold exact text; what is volatile or unsafe in it is
handled where it is compared (`recovery.signature`) or shown (`console.sanitize`).
"""

from __future__ import annotations

from typing import Annotated, Any, get_args

from pydantic import Field, TypeAdapter

from tui_agent.events.base import SCHEMA_VERSION, Event
from tui_agent.events.judgement import (
    ApprovalAnswered,
    ApprovalAsked,
    BreakerSet,
    EscalationAnswered,
    EscalationRaised,
    NotePrepared,
    VerdictReached,
)
from tui_agent.events.model import (
    CoherenceRepaired,
    ModelCallStarted,
    ModelFaulted,
    ReplyDelta,
    ReplyFinished,
    ReplyRejected,
)
from tui_agent.events.run import (
    IterationFinished,
    IterationStarted,
    MessageQueued,
    MessageUnqueued,
    OperatorSpoke,
    RunFinished,
    RunStarted,
)
from tui_agent.events.session import (
    CheckpointSaved,
    ModeChanged,
    Notice,
    Rewound,
    SessionResumed,
    SessionStarted,
    SettingChanged,
    TitleChanged,
)
from tui_agent.events.tools import (
    HookReported,
    ToolCancelled,
    ToolFailed,
    ToolProgress,
    ToolRefused,
    ToolResult,
    ToolStarted,
    ToolSucceeded,
)
from tui_agent.events.words import (
    Approval,
    Failure,
    FailureKind,
    Fault,
    FaultKind,
    Level,
    Mode,
    Outcome,
    ParentPoint,
    ToolCall,
    Value,
    VerdictRecord,
)

__all__ = [
    "EVENT_TYPES",
    "SCHEMA_VERSION",
    "AnyEvent",
    "Approval",
    "ApprovalAnswered",
    "ApprovalAsked",
    "BreakerSet",
    "CheckpointSaved",
    "CoherenceRepaired",
    "EscalationAnswered",
    "EscalationRaised",
    "Event",
    "Failure",
    "FailureKind",
    "Fault",
    "FaultKind",
    "HookReported",
    "IterationFinished",
    "IterationStarted",
    "Level",
    "MessageQueued",
    "MessageUnqueued",
    "Mode",
    "ModeChanged",
    "ModelCallStarted",
    "ModelFaulted",
    "NotePrepared",
    "Notice",
    "OperatorSpoke",
    "Outcome",
    "ParentPoint",
    "ReplyDelta",
    "ReplyFinished",
    "ReplyRejected",
    "Rewound",
    "RunFinished",
    "RunStarted",
    "SessionResumed",
    "SessionStarted",
    "SettingChanged",
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
    "event_schema",
    "parse_event",
]

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
