"""The text for the model in place of the result of a call that recovery does not let run.

Each text is made from facts alone: how often the call failed, who decided what, in whose words, and the error. When a
call is refused is not decided here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tui_agent.core.framed import framed, named

LONGEST_ERROR = 600
"""Characters of the error that a refusal repeats: its beginning and its end."""

LONGEST_WORDS = 1_000
"""Characters of the operator's own words that a refusal repeats."""

Decided = Literal["waits", "skip", "answer", "nobody"]
"""Why a blocked call stays blocked: the question is open, the operator chose *skip*, the operator answered in words,
or nobody can be asked."""


@dataclass(frozen=True)
class Blocked:
    """A call that failed too often and is called again although nothing has changed.

    `failures` counts its identical failures; `words` are the operator's own; `error` and `hint` are the newest
    failure's.
    """

    tool: str
    failures: int
    decided: Decided
    words: str = ""
    error: str = ""
    hint: str = ""
    wait: float = 0.0
    """Seconds after which it may run again, if a service that it needs did not answer; 0: a wait is no help.
    """

    @property
    def text(self) -> str:
        """The refusal: that it was not executed and why, what may be done, the error and its hint."""
        times = "once" if self.failures == 1 else f"{self.failures} times"
        why = f"it failed {times} with the same error, and nothing has changed since"
        parts = [f"This call of {named(self.tool)} was not executed: {why}.", self._decision()]
        if self.error:
            parts.append(f"The error was:{framed(self.error, LONGEST_ERROR)}")
        if self.hint:
            parts.append(f"Hint:{framed(self.hint)}")
        return "\n".join(parts)

    def _decision(self) -> str:
        words = named(self.words, LONGEST_WORDS)
        match self.decided:
            case "waits":
                return "It waits for the operator's answer. Reach the goal in another way meanwhile."
            case "skip":
                added = f", and said: {words}" if words else "."
                return f"The operator chose to go on without it{added}\nReach the goal in another way."
            case "answer" | "nobody" if self.wait:
                who = f"The operator answered: {words}" if words else "Nobody can be asked now."
                return f"{who}\n{wait_first(self.wait)}"
            case "answer":
                follow = "Follow the answer; once something has changed, this call may run again."
                return f"The operator answered: {words}\n{follow}"
            case "nobody":
                return (
                    "Nobody can be asked now. Reach the goal in another way; once a file or the environment has "
                    "changed, this call may run again."
                )


def wait_first(seconds: float) -> str:
    """Advice on a call that met no answer."""
    return (
        f"Nothing answered there. Start it, or wait {seconds:.0f} seconds for it (`sleep {seconds:.0f} && …`); then "
        "this call may run again."
    )


def withheld(tool: str, *, succeeded: bool) -> str:
    """For a call whose outcome was the same again and again."""
    ended = "succeeded" if succeeded else "failed"
    return (
        f"This call of {named(tool)} was not executed again: it {ended} several times with the same outcome, "
        "and nothing has changed since. Do something else."
    )


def switched_off(tool: str) -> str:
    """For a call of a tool that the operator took away."""
    return f"{named(tool)} was switched off by the operator. Work without it."


def left_out(tool: str, failures: int, until: int, *, different: bool, probed: bool) -> str:
    """For a call of a tool whose breaker is open until step `until`; `probed`: one call was tried since."""
    inputs = " over different inputs" if different else ""
    again = ", and again when one call was tried" if probed else ""
    return (
        f"{named(tool)} is switched off until step {until}: it failed {failures} times in a row{inputs}{again}. "
        "Work without it."
    )


def probing(tool: str) -> str:
    """For a further call of a tool of which one call is tried first."""
    return f"{named(tool)} failed too often: one call of it is tried first, this one was not executed."
