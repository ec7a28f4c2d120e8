"""Events of judgement: verdicts and notes, and what is asked of the operator and answered."""

from __future__ import annotations

from typing import Literal

from pydantic import JsonValue

from tui_agent.core.events.base import Event
from tui_agent.core.names import Level, asked_in_words
from tui_agent.core.values import HeldFile, Reach, VerdictRecord


class VerdictReached(Event):
    """The strongest verdict after an iteration, and that of every detector that had something to say."""

    type: Literal["verdict_reached"] = "verdict_reached"
    iteration: int
    level: Level
    detector: str = ""
    reason: str = ""
    rule: str = ""
    verdicts: tuple[VerdictRecord, ...] = ()


class Advised(Event):
    """At a pivot another model was asked for another approach; it joins the next note.

    Token counts and cost (USD) are those of that call, None if unknown; `duration` in seconds.
    """

    type: Literal["advised"] = "advised"
    iteration: int
    model: str
    text: str = ""
    """Its suggestion; empty if it said nothing of use."""
    reason: str = ""
    """Why there is no suggestion."""
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    completion_tokens: int | None = None
    cost: float | None = None
    duration: float = 0.0
    rule: str = ""

    @property
    def in_words(self) -> str:
        """Who suggests what, or why nobody does."""
        if self.text:
            return f"{self.model}, asked for another approach, suggests: {self.text}"
        return f"{self.model} suggests nothing: {self.reason}"


class NotePrepared(Event):
    """The note that will go with the next model call; None: nothing to say."""

    type: Literal["note_prepared"] = "note_prepared"
    text: str | None
    rules: tuple[str, ...] = ()
    """Ids of the rules that wrote its paragraphs, in their order."""
    edited: bool = False
    """The operator changed or dropped it."""


class ApprovalAsked(Event):
    """A call waits for the operator. `preview` shows all it would do; `covers` what `rules` allow, in words."""

    type: Literal["approval_asked"] = "approval_asked"
    id: str
    call_id: str
    tool: str
    input: dict[str, JsonValue]
    preview: str = ""
    covers: str = ""
    rules: tuple[str, ...] = ()
    """Permission rules that would let this call run, remembered when the decision lasts longer than the call."""
    others: tuple[tuple[str, ...], ...] = ()
    """Narrower and wider rules that may be remembered instead."""
    why: str = ""
    """Which rule makes it ask, or why none lets it run."""
    place: str = ""
    """The folder in which it runs, and what keeps it there, in words."""
    reaches: tuple[Reach, ...] = ()
    """Things beyond the folder that it reaches, as far as its words say."""
    rule: str = ""
    """Memory in journals of earlier versions; it allows nothing any more."""
    held: tuple[HeldFile, ...] = ()
    """It is not asked whether the call may run, but whether what it left may stand: all of it (`once`) or nothing."""
    lane: str = ""
    """The work of the sub-agent whose call it is; empty: it is the run's own."""


class ApprovalAnswered(Event):
    """The decision; `input` holds the edited arguments when they were changed."""

    type: Literal["approval_answered"] = "approval_answered"
    id: str
    decision: Literal["once", "session", "always", "everywhere", "deny"]
    """The place that remembers rules: `session` for this session, `always` for this workspace, `everywhere`
    for all of them.
    """
    rules: tuple[str, ...] = ()
    """The remembered ones, if they are not those that were asked about first."""
    reason: str = ""
    input: dict[str, JsonValue] | None = None
    by: Literal["operator", "rule", "policy"] = "operator"

    @property
    def in_words(self) -> str:
        """The decision, and who made it."""
        decided = {
            "once": "allowed once",
            "session": "allowed for this session",
            "always": "allowed in this workspace for good",
            "everywhere": "allowed everywhere for good",
            "deny": "denied",
        }
        who = {"operator": "the operator", "rule": "a permission rule", "policy": "the approval mode"}
        return f"{decided[self.decision]} by {who[self.by]}" + (f": {self.reason}" if self.reason else "")


class EscalationRaised(Event):
    """The loop needs the operator. `source` is a detector's name, `ask_operator`, `model`, `budget` or `steps`."""

    type: Literal["escalation_raised"] = "escalation_raised"
    id: str
    question: str
    source: str
    rule: str = ""
    tool: str = ""
    input: dict[str, JsonValue] = {}
    key: str = ""
    """Identity of the call that it is about."""
    options: tuple[str, ...] = ()
    """Answers that the model offers with `ask_operator`."""
    until: float | None = None
    """When the limit that it is about lets the next call through, in seconds since 1970; None: it is about none."""
    lane: str = ""
    """The work of the sub-agent that needs the operator; empty: the run needs it."""

    @property
    def in_words(self) -> str:
        """The question without the plan that it is about."""
        return asked_in_words(self.source, self.question)


MASKED = "[masked:"
"""Begins what stands for a secret in what is recorded."""


class EscalationAnswered(Event):
    """The operator's answer. `message` is what enters the history, as an operator message ("" for none)."""

    type: Literal["escalation_answered"] = "escalation_answered"
    id: str
    choice: Literal[
        "answer", "retry", "wait", "edit", "skip", "keep", "fresh_start", "partial", "stop", "continue"
    ]
    text: str = ""
    message: str = ""
    rule: str = ""
    tool: str = ""
    input: dict[str, JsonValue] | None = None
    """The call it was about, or the edited one (`edit`)."""
    by: Literal["operator", "policy"] = "operator"

    @property
    def runs_call(self) -> bool:
        """The engine executes the call itself: by the choice, and not by words that ask for another try. A call in
        which a secret is masked can be made by the model alone.
        """
        chosen = self.choice == "edit" or (self.choice == "retry" and MASKED not in str(self.input))
        return self.by == "operator" and chosen and bool(self.tool)

    @property
    def unasked(self) -> bool:
        """Nobody was there to be asked, or could have been: a run without a screen, a recording."""
        return self.by == "policy" and not self.text

    @property
    def in_words(self) -> str:
        """The answer: the operator's own words, the choice, or both; an edited call with its main argument."""
        if self.text and (self.choice == "answer" or self.by == "policy"):
            return self.text
        if self.unasked:
            then = {"partial": "ends with a partial answer", "stop": "is stopped"}.get(self.choice, "goes on")
            return f"nobody was asked: the run {then}"
        said = {
            "retry": "retry once",
            "wait": "wait until it resets",
            "edit": "edited the call and retried it",
            "skip": "skip it",
            "keep": "keep it as the answer",
            "fresh_start": "begin anew with what was learned",
            "partial": "end with a partial answer",
            "stop": "stop the run",
            "continue": "go on",
        }.get(self.choice, self.choice)
        if self.choice == "edit" and self.tool:
            texts = (value for value in (self.input or {}).values() if isinstance(value, str))
            said += f": {self.tool} {next(texts, '').partition(chr(10))[0][:200]}".rstrip()
        return f"{said}: {self.text}" if self.text else said


class BreakerSet(Event):
    """The operator opened or closed a tool's breaker by hand."""

    type: Literal["breaker_set"] = "breaker_set"
    tool: str
    open: bool
