"""The vocabulary: every fact of a session as one versioned event.

Events are the only truth. The loop makes them, the journal keeps them, `fold.apply` folds them. Nothing here
decides, reads a clock or does input or output. Fields hold exact text; volatile or unsafe parts of it are
handled when it is compared (`recovery.signature`) or shown (`terminal_text`).
"""

from __future__ import annotations

from functools import cache, reduce
from operator import or_
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from tui_agent.core.events import judgement, lanes, model, run, servers, session, tools
from tui_agent.core.events.base import SCHEMA_VERSION, Event
from tui_agent.core.events.judgement import (
    Advised,
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
    LimitWaitStarted,
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
    StartedAfresh,
    StopRequested,
)
from tui_agent.core.events.servers import ServerAnswered, ServerAsked, ServerChanged
from tui_agent.core.events.session import (
    AgentOffered,
    AgentOpened,
    AgentOptionChosen,
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
    RESULT_TYPES,
    BackgroundEnded,
    BackgroundStarted,
    HookReported,
    ToolCancelled,
    ToolEnded,
    ToolFailed,
    ToolProgress,
    ToolRefused,
    ToolResult,
    ToolStarted,
    ToolSucceeded,
)
from tui_agent.core.names import Approval, FailureKind, FaultKind, Level, Mode, Outcome
from tui_agent.core.values import (
    CallProblem,
    Carried,
    Contradiction,
    Failure,
    Fault,
    HeldFile,
    Image,
    Kept,
    KeptBreaker,
    KeptCall,
    ParentPoint,
    Reach,
    Receipt,
    Suggestion,
    ToolCall,
    Value,
    VerdictRecord,
    with_images_named,
)

EVENT_TYPES: dict[str, type[Event]] = {
    kind.model_fields["type"].default: kind
    for module in (session, run, model, tools, judgement, servers, lanes)
    for kind in vars(module).values()
    if isinstance(kind, type) and issubclass(kind, Event) and kind.__module__ == module.__name__
    if not kind.__subclasses__()
}
"""Every event's class by the `type` in its line."""


@cache
def _adapter() -> TypeAdapter[Any]:
    any_event: Any = Annotated[reduce(or_, EVENT_TYPES.values()), Field(discriminator="type")]
    return TypeAdapter(any_event)


def parse_event(line: str | bytes) -> Event:
    """One journal line back into its event. Raises `pydantic.ValidationError` for anything else."""
    event: Event = _adapter().validator.validate_json(line)
    return event
