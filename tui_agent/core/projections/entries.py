"""Parts of a conversation: entries for words and acts, and the reply that is still coming in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from tui_agent.core import events
from tui_agent.core.names import CallState, asked_in_words
from tui_agent.core.projections.incidents import Incident
from tui_agent.core.projections.lane import Lane
from tui_agent.core.tool_facts import ToolFacts

PROGRESS_TAIL = 4_000
"""Characters of a running command's output that stay on screen."""


@dataclass(frozen=True)
class Entry:
    """One closed block of the conversation; `seq` and `at` are those of the event that opened it."""

    seq: int
    at: float
    iteration: int


@dataclass(frozen=True)
class OperatorEntry(Entry):
    """Words of the operator: a task, a queued message that was delivered, or an answer (`answers` the
    question).
    """

    text: str
    answers: str = ""
    images: tuple[events.Image, ...] = ()
    model: str = ""
    """The model that was chosen for this message's run alone."""
    ran: tuple[str, ...] = ()
    """Commands of the operator's own whose output the model reads with it."""
    kind: Literal["operator"] = "operator"

    @property
    def said(self) -> str:
        """The text, what goes along with it named."""
        ran = (f"[with the output of $ {command}]" for command in self.ran)
        return "\n".join([events.with_images_named(self.text, self.images), *ran])


@dataclass(frozen=True)
class OwnCommandEntry(Entry):
    """A command that the operator ran himself, and what it printed."""

    command: str
    printed: str
    exit_code: int | None = None
    kind: Literal["own_command"] = "own_command"


@dataclass(frozen=True)
class ReplyEntry(Entry):
    """Words of the model. `partial`: cut short; `kept`: by an interruption, so that the part that came is in
    the history. A part that a fault cut is not.
    """

    text: str
    reasoning: str = ""
    partial: bool = False
    kept: bool = False
    model: str = ""
    kind: Literal["reply"] = "reply"


@dataclass(frozen=True)
class CallEntry(Entry):
    """One tool call from request to result. `duration` in seconds; `attempt` counts from 1 for this very call."""

    call_id: str
    tool: str
    input: dict[str, Any]
    index: int = 0
    arguments: str = ""
    """Raw text as sent, for calls that could not be parsed."""
    key: str = ""
    """Identity of the call; empty in journals that do not hold it."""
    facts: ToolFacts | None = None
    state: CallState = CallState.REQUESTED
    attempt: int = 1
    started: float | None = None
    duration: float = 0.0
    progress: str = ""
    """The end of its output so far; kept if it was interrupted, for there is no result that holds it."""
    content: str = ""
    diff: str = ""
    changed: tuple[str, ...] = ()
    output_file: str = ""
    failure: events.Failure | None = None
    """Also of one that succeeded by finding nothing."""
    refusal: str = ""
    reason: str = ""
    rule: str = ""
    """Id of the rule that refused it."""
    recovered: tuple[Incident, ...] = ()
    """The incidents that its success ended."""
    lane: Lane | None = None
    """The sub-agent that it started."""
    reads_only: bool = False
    """It ran unasked because it is known to do nothing but read."""
    kind: Literal["call"] = "call"

    @property
    def all_progress(self) -> bool:
        """Nothing that it has written so far was dropped."""
        return len(self.progress) < PROGRESS_TAIL


@dataclass(frozen=True)
class NoteEntry(Entry):
    """A recovery note that the model has read, and what it did next."""

    text: str
    rules: tuple[str, ...] = ()
    fresh: str = ""
    """The first paragraph that the note before did not have."""
    failed: tuple[tuple[str, str], ...] = ()
    """Tool and key of the calls that had failed before it."""
    calls: tuple[events.ToolCall, ...] = ()
    """The calls of the reply to it."""
    edited: bool = False
    """The operator changed its text."""
    kind: Literal["note"] = "note"


@dataclass(frozen=True)
class FaultEntry(Entry):
    """A failed model call and what was done about it. `until` is when the wait before a retry ends,
    or ended.
    """

    fault: events.Fault
    action: str
    attempt: int
    model: str
    next_model: str = ""
    until: float = 0.0
    rule: str = ""
    then: str = ""
    """The action in words."""
    earlier: tuple[FaultEntry, ...] = ()
    """The tries of the same call that failed before."""
    kind: Literal["fault"] = "fault"


@dataclass(frozen=True)
class NoticeEntry(Entry):
    """A notice of the console itself."""

    severity: str
    text: str
    rule: str = ""
    kind: Literal["notice"] = "notice"


@dataclass(frozen=True)
class SummaryEntry(Entry):
    """A summary that replaced `groups` exchanges, or why there is none (`failed`). Tokens are of the history in a
    request; `cost` in USD, `duration` in seconds. `afresh`: the fresh start that it begins, and why, in words.
    """

    groups: int
    summary: str = ""
    tokens_before: int = 0
    tokens_after: int = 0
    model: str = ""
    cost: float | None = None
    duration: float = 0.0
    failed: str = ""
    afresh: str = ""
    rule: str = ""
    kind: Literal["summary"] = "summary"


@dataclass(frozen=True)
class EscalationEntry(Entry):
    """A question, and its answer once there is one; `unasked` if nobody could be asked."""

    question: str
    source: str
    choice: str = ""
    answer: str = ""
    rule: str = ""
    unasked: bool = False
    ran: tuple[str, ...] = ()
    """Commands of the operator's own whose output the model reads with the answer."""
    kind: Literal["escalation"] = "escalation"

    @property
    def in_words(self) -> str:
        """The question without the plan that it is about."""
        return asked_in_words(self.source, self.question)


@dataclass(frozen=True)
class OutcomeEntry(Entry):
    """How a run ended; loud unless it was answered. `duration` in seconds, `cost` in USD (None: unknown)."""

    outcome: events.Outcome
    reason: str
    answer: str
    rule: str = ""
    failures: int = 0
    recoveries: int = 0
    asked: int = 0
    duration: float = 0.0
    cost: float | None = None
    receipts: tuple[events.Receipt, ...] = ()
    kind: Literal["outcome"] = "outcome"


AnyEntry = Annotated[
    OperatorEntry
    | OwnCommandEntry
    | ReplyEntry
    | CallEntry
    | NoteEntry
    | FaultEntry
    | NoticeEntry
    | SummaryEntry
    | EscalationEntry
    | OutcomeEntry,
    Field(discriminator="kind"),
]


@dataclass(frozen=True)
class OpenReply:
    """A reply that is still coming in."""

    seq: int
    at: float
    model: str = ""
    attempt: int = 1
    text: str = ""
    reasoning: str = ""
    heard: float = 0.0
    """When its newest piece came; 0.0 before the first."""
    summarises: int = 0
    """It is no reply but a summary of so many exchanges."""
    kind: ClassVar[Literal["open_reply"]] = "open_reply"
