"""Replies that break the form: no call where one is due, malformed calls, calls of tools that do not exist.

| counts | identical replies in a row of which nothing could be executed; replies in a row that the length limit cut |
| resets | a reply with an executed call, a whole answer, the operator's answer · another broken reply: 1 |
| levels | guide up to the limit · beyond it: ask where an operator is there · alone: a partial answer, much later |

A reply that breaks the form in another way is another try; runs that were solved have recovered from dozens of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tui_agent.core.events import Level, VerdictRecord
from tui_agent.core.evolve import evolve
from tui_agent.core.recovery.iteration import Status
from tui_agent.core.recovery.rules import Rule
from tui_agent.core.recovery.signature import exact_signature, failure_signature, normalise
from tui_agent.core.recovery.verdict import FORM, silent, verdict

if TYPE_CHECKING:
    from tui_agent.core.events import ReplyFinished
    from tui_agent.core.recovery.iteration import Iteration
    from tui_agent.core.recovery.policy import RecoveryPolicy


@dataclass(frozen=True)
class FormErrors:
    """`count` identical replies in a row that broke the form, `cut` replies in a row that the length limit cut."""

    count: int = 0
    cut: int = 0
    signature: str = ""
    """What the newest broken reply said; empty where it is not known."""
    changed_last_iteration: bool = False
    """The last reply broke the form or was cut."""

    def apply(self, iteration: Iteration, reply: ReplyFinished | None, *, cut: bool) -> FormErrors:
        """`cut`: the iteration's reply was text that the length limit ended."""
        if cut:
            return FormErrors(self.count, self.cut + 1, self.signature, changed_last_iteration=True)
        if iteration.broke_form:
            signature = _signature(reply, iteration)
            same = bool(signature) and signature == self.signature
            return FormErrors(self.count + 1 if same else 1, 0, signature, changed_last_iteration=True)
        executed = any(
            result.status in {Status.SUCCEEDED, Status.FAILED, Status.WAITING} for result in iteration.results
        )
        if executed:
            return _CLEAN if self.count or self.cut or self.changed_last_iteration else self
        return evolve(self, changed_last_iteration=False) if self.changed_last_iteration else self

    def answered(self) -> FormErrors:
        """The operator's answer is new information."""
        return _CLEAN

    def verdict(self, policy: RecoveryPolicy, operator_present: bool) -> VerdictRecord:
        """Where errors of form count like others, only cut replies are judged here."""
        if not self.changed_last_iteration:
            return silent(FORM)
        if self.cut:
            if self.cut <= policy.cut_replies:
                return verdict(Level.GUIDE, Rule.FORM_CUT, "The length limit cut the reply: it is continued")
            reason = f"The length limit cut {self.cut} replies in a row"
            return verdict(Level.DEGRADE, Rule.FORM_CUT, reason)
        if policy.form != "ladder":
            return silent(FORM)
        replies = "reply" if self.count == 1 else "identical replies in a row"
        reason = f"{self.count} {replies} without a call that can be executed"
        if self.count <= policy.form_limit:
            return verdict(Level.GUIDE, Rule.FORM_GUIDE, f"{reason} (limit {policy.form_limit})")
        if operator_present:
            return verdict(Level.ESCALATE, Rule.FORM_ASK, reason)
        if self.count < policy.form_end:
            return verdict(Level.GUIDE, Rule.FORM_GUIDE, f"{reason} (the run ends at {policy.form_end})")
        return verdict(Level.DEGRADE, Rule.FORM_DEGRADE, reason)


_CLEAN = FormErrors()


def _signature(reply: ReplyFinished | None, iteration: Iteration) -> str:
    """What the reply said, its calls as sent and what was wrong; "" where it is not kept (a recording)."""
    if reply is None or not (reply.text or reply.calls):
        return ""
    parts = [reply.text, *(f"{call.name} {call.arguments}" for call in reply.calls)]
    parts += [failure_signature(failure) for failure in iteration.failures()]
    return exact_signature(normalise("\n".join(parts)))
