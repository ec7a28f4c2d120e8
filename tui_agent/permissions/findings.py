"""Decisions on a call and on each part of it, in values that say why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tui_agent.core.names import READS_ONLY, Decision
from tui_agent.permissions.budget import TooMuchToJudge
from tui_agent.permissions.readers import Reads
from tui_agent.permissions.rules import PermissionRule


@dataclass(frozen=True)
class Finding:
    """A decision about one part of a call. `rule` is None if no rule applies; `why` then says what decided."""

    subject: str
    decision: Decision
    rule: PermissionRule | None = None
    why: str = ""
    neutral: bool = False
    """It changes nothing and goes along with what a rule allows."""
    doubt: str = ""
    """Why what changes nothing does not go along with what only reads."""
    suggestion: str = ""
    """The rule that would allow just this; empty if only the exact call can be allowed."""
    hidden: bool = False
    """It is not known which program runs."""
    unjudged: bool = False
    """It would have taken too long, so that any rule may be about it."""
    reads: Reads | None = None
    """The files that it reads, if it runs unasked because it does nothing else."""

    def words(self) -> str:
        """Name the rule that decided, or the reason without one."""
        return f"{self.why}{f' ({self.rule})' if self.why else str(self.rule)}" if self.rule else self.why


@dataclass(frozen=True)
class Judgement:
    """The decision on a call, and the findings it follows from."""

    decision: Decision
    findings: tuple[Finding, ...]

    @property
    def speaking(self) -> Finding:
        """The finding that decided."""
        deciding = [one for one in self.findings if one.decision is self.decision]
        telling = (one for one in deciding if not one.neutral)
        return next((one for one in deciding if one.rule), next(telling, deciding[0]))

    @property
    def reads_only(self) -> bool:
        """True if it runs unasked because nothing in it does more than read."""
        return self.decision is Decision.ALLOW and only_reads(self.findings)

    @property
    def by(self) -> str:
        """Every rule, mode or reason that let the call run, for the audit."""
        if self.reads_only:
            return READS_ONLY
        return "; ".join(dict.fromkeys(one.words() for one in self.findings if one.words()))


def only_reads(findings: Sequence[Finding]) -> bool:
    return any(one.reads for one in findings) and all(one.reads or one.neutral for one in findings)


def unjudged(subject: str, error: TooMuchToJudge) -> Finding:
    return Finding(subject, Decision.ASK, None, f"it could not be judged: {error}", unjudged=True)
