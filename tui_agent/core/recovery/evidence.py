"""Evidence: what the results show of tests, and what an answer claims of them against it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tui_agent.core.evolve import evolve
from tui_agent.core.recovery.claims import claims_tests_pass
from tui_agent.core.recovery.remarks import Remark, claim

if TYPE_CHECKING:
    from tui_agent.core.recovery.command_reading import CommandReading
    from tui_agent.core.recovery.iteration import CallResult
    from tui_agent.core.recovery.output_signs import RanTests


@dataclass(frozen=True)
class Evidence:
    """Evidence of the results about tests. It outlives a run: the next message may ask for no more than the
    answer.

    `label`: the command that ran tests last, "" for none; `failed`: it failed, by its `line`. `changed`: what was
    changed since. `other`: something ran since of which nothing is known; it may have been the tests.
    """

    label: str = ""
    failed: bool = False
    line: str = ""
    changed: str = ""
    other: bool = False

    def after_command(self, result: CallResult, reading: CommandReading, counts: RanTests | None) -> Evidence:
        """Take in a command; `counts`: what its output says of tests."""
        if counts is not None and not counts.none_ran:
            return Evidence(reading.label or "the last command", bool(counts.failed), counts.line)
        if reading.checker and not reading.only_lists and counts is None:
            return evolve(self, other=True)
        if reading.runs_other or not result.passed:
            return evolve(self, other=True)
        if reading.edits:
            return evolve(self, changed=self.changed or "a file", other=False)
        return self

    def against(self, answer: str) -> Remark | None:
        """Remark on an answer that claims that tests pass though no result shows it; None if it does not."""
        if self.other or not (self.failed or self.changed):
            return None
        words = claims_tests_pass(answer)
        if not words:
            return None
        if self.failed:
            shown = f"the last test run failed ({self.label}: {self.line})"
            if self.changed:
                shown = f"{shown}, and none followed the change of {self.changed}"
        elif self.label:
            shown = f"{self.changed} was changed after the last test run ({self.label})"
        else:
            shown = f"no result shows that a test was run, and {self.changed} was changed"
        text = (
            f"Your answer says: “{words}” But {shown}. Run the tests now, then answer by what they show; where "
            "they cannot be run, say so in the answer."
        )
        return claim(f"The answer claims that tests pass, but {shown}", text)
