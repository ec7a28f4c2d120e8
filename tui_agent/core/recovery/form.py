"""Replies that break the form: no call although one is due, malformed calls, calls of tools that do not
exist.

| counts | identical replies in a row of which nothing could be executed; replies in a row that the length limit cut;
|        | broken replies in a row, however they differ; replies with calls as text before the first call of the API
| resets | an executed call, a whole answer, the operator's answer · another broken reply: 1, but not the row
| levels | guide up to the limit · beyond it: ask if an operator is there · alone: a partial answer, much later; if
|        | the run goes on alone a pivot, and as many replies later the partial answer

A reply that breaks the form in another way is another try; runs that were solved have recovered from dozens of them.
A model that only writes its calls as text is switched to the text protocol (`form.text_protocol`), which is no verdict.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tui_agent.core.events import FailureKind, Level, VerdictRecord
from tui_agent.core.evolve import evolve
from tui_agent.core.recovery.detector import Account, Answer, Beginning, Detector, Standing, Step
from tui_agent.core.recovery.iteration import CallStatus
from tui_agent.core.recovery.parameters import Count, CountFrom0, Parameters
from tui_agent.core.recovery.rules import Rule
from tui_agent.core.recovery.signature import exact_signature, failure_signature, normalise
from tui_agent.core.recovery.verdict import verdict
from tui_agent.quantities import of_limit

if TYPE_CHECKING:
    from tui_agent.core.events import ReplyFinished, ToolCall
    from tui_agent.core.recovery.iteration import Iteration

_NO_CALL = frozenset({Rule.FORM_TEXT_CALL, Rule.FORM_LOST_CALL})
"""Rules that send a reply back since the server made no call of it."""
_EXECUTED = frozenset({CallStatus.SUCCEEDED, CallStatus.FAILED, CallStatus.WAITING, CallStatus.UNFINISHED})

CALL_AS_TEXT = (
    'Write exactly one call, last in the reply: ```tool_call, then {"name": …, "arguments": {…}}, then ```.'
)
"""The form of a call in the text protocol."""


class FormParameters(Parameters):
    """Replies that break the form; the switch is one of `Parameters`, since others count by it, too."""

    cut_replies: CountFrom0 = 3
    """Replies in a row that the length limit cut and that are continued; the next one ends the run as partial."""
    form_limit: Count = 3
    """Identical replies in a row that may break the form; the next one asks the operator, if one is there."""
    form_end: Count = 8
    """Identical broken replies in a row with which a run ends as partial when nobody can be asked."""
    form_row: Count = 30
    """Broken replies in a row, however they differ, at which the operator is asked and a run without one ends."""
    form_text: CountFrom0 = 3
    """Replies in a row with calls as text, or calls that cannot be read, before the first call that can: the model
    writes all its calls as text from then on; 0: never."""


def was_cut(reply: ReplyFinished | None) -> bool:
    """Tell if the length limit ended a reply of text alone that is worth going on with."""
    return reply is not None and not reply.calls and reply.broken is None and reply.finish_reason == "length"


@dataclass(frozen=True)
class FormErrors(Detector[FormParameters]):
    """`count` identical replies in a row that broke the form, `cut` replies in a row that the length limit cut, `row`
    broken replies in a row whatever they say.
    """

    name = "form"
    parameters = FormParameters
    off = {"form": "count"}

    count: int = 0
    cut: int = 0
    row: int = 0
    signature: str = ""
    """The text of the newest broken reply; empty if it is not known."""
    broken: bool = False
    """The last reply broke the form or was cut."""
    announced: bool = False
    """A reply that only announced an act was sent back, and no call has run since: the next one is taken."""
    written: int | None = None
    """Replies in a row with calls as text, or that cannot be read; None: the model calls tools, or is not to write."""

    @classmethod
    def has_a_say(cls, policy: FormParameters) -> bool:
        return True  # replies that the length limit cut are judged in any case

    def next_run(self, run: Beginning[FormParameters]) -> FormErrors:
        return FormErrors(written=0 if run.event.tool_calls == "auto" else None)

    def apply(self, step: Step[FormParameters]) -> FormErrors:
        iteration, reply = step.iteration, step.reply
        if was_cut(reply):
            return evolve(self, cut=self.cut + 1, broken=True)
        written = self.written if reply is None else self._written(reply)
        if iteration.broke_form:
            signature = _signature(reply, iteration)
            same = bool(signature) and signature == self.signature
            return FormErrors(
                self.count + 1 if same else 1,
                row=self.row + 1,
                signature=signature,
                broken=True,
                announced=self.announced
                or any(one.rule == Rule.FORM_ANNOUNCED for one in iteration.failures()),
                written=written,
            )
        if any(result.status in _EXECUTED for result in iteration.results):
            counted = self.count or self.cut or self.row or self.broken or self.announced
            return FormErrors(written=written) if counted or written != self.written else self
        if not self.broken and written == self.written:
            return self
        return evolve(self, broken=False, written=written)

    def _written(self, reply: ReplyFinished) -> int | None:
        """Count `written` after one more reply; the operator's own calls and replies without a call say nothing."""
        if self.written is None or reply.by == "operator":
            return self.written
        unreadable = reply.broken is not None and reply.broken.rule in _NO_CALL
        if reply.written or unreadable or (reply.calls and all(map(_is_no_json, reply.calls))):
            return self.written + 1
        return None if reply.calls else self.written

    def answered(self, answer: Answer[FormParameters]) -> FormErrors:
        """Begin anew: the operator's answer is new information."""
        return FormErrors(written=self.written) if answer.informs else self

    def afresh(self) -> FormErrors:
        return FormErrors(written=self.written)

    def needs_text(self, policy: FormParameters) -> bool:
        """Tell if the model shows that it cannot call tools as the API has it."""
        return policy.form == "ladder" and 0 < policy.form_text <= (self.written or 0)

    def verdict(self, standing: Standing[FormParameters]) -> VerdictRecord:
        """When errors of form count like others, only cut replies are judged here."""
        if not self.broken:
            return self.silent
        policy = standing.policy
        if self.cut:
            if self.cut <= policy.cut_replies:
                return verdict(Level.GUIDE, Rule.FORM_CUT, "The length limit cut the reply: it is continued")
            reason = f"The length limit cut {self.cut} replies in a row"
            return verdict(Level.DEGRADE, Rule.FORM_CUT, reason)
        if policy.form != "ladder":
            return self.silent
        replies = "reply" if self.count == 1 else "identical replies in a row"
        reason = f"{self.count} {replies} without a call that can be executed"
        if self.row >= policy.form_row:
            reason = f"{self.row} replies in a row without a call that can be executed"
        elif self.count <= policy.form_limit:
            return verdict(Level.GUIDE, Rule.FORM_GUIDE, f"{reason} (limit {policy.form_limit})")
        if standing.operator_present:
            return verdict(Level.ESCALATE, Rule.FORM_ASK, reason)
        beyond = max(self.count - policy.form_end, self.row - policy.form_row)
        if beyond < 0:
            return verdict(Level.GUIDE, Rule.FORM_GUIDE, f"{reason} (the run ends at {policy.form_end})")
        if standing.goes_on and beyond < policy.form_end:
            level = Level.GUIDE if beyond else Level.PIVOT
            return verdict(level, Rule.FORM_PIVOT, reason)
        return verdict(Level.DEGRADE, Rule.FORM_DEGRADE, reason)

    def account(self, standing: Standing[FormParameters], key: str, tool: str) -> Account:
        limit = standing.policy.form_limit
        return Account(of_limit(self.count, limit, "times in a row the same reply without a usable call"))


def _is_no_json(call: ToolCall) -> bool:
    """Tell if the arguments of a call of the API were no JSON, though the reply was complete."""
    wrong = call.problem
    if wrong is None or wrong.rule or wrong.kind is not FailureKind.INVALID_TOOL_CALL:
        return False
    return not wrong.input and call.arguments.strip() not in {"", "{}", "null"}


def _signature(reply: ReplyFinished | None, iteration: Iteration) -> str:
    """Sign what the reply said, its calls as sent and what was wrong; "" if it is not kept (a recording)."""
    if reply is None or not (reply.text or reply.calls or reply.broken):
        return ""
    parts = [reply.text, *(f"{call.name} {call.arguments}" for call in reply.calls)]
    parts += [failure_signature(failure) for failure in iteration.failures()]
    return exact_signature(normalise("\n".join(parts)))
