"""Remarks on results that count as successes and are none: what each says to the operator and to the model.

A remark is made from one result and what its command was meant to do. Which remarks are made, and when, is decided by
the detector (`implicit`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from tui_agent.core.recovery.exit_code import complains
from tui_agent.core.recovery.output_signs import RanTests, error_in, failing_line, quoted
from tui_agent.core.recovery.rules import Rule
from tui_agent.core.recovery.signature import normalise
from tui_agent.quantities import ordinal_word

if TYPE_CHECKING:
    from tui_agent.core.events import Contradiction
    from tui_agent.core.recovery.command_reading import CommandReading


class Remark(NamedTuple):
    """One remark: what the operator reads as the reason, and what the model reads in the note."""

    rule: Rule
    reason: str
    text: str
    cause: str
    """Remarks with the same cause are made once."""


def claim(reason: str, text: str) -> Remark:
    """Make the remark on an answer that claims what no result shows."""
    return Remark(Rule.IMPLICIT_CLAIM, reason, text, "claim")


def hidden_failure(reading: CommandReading, counts: RanTests | None, text: str) -> str:
    """Find the line of the output that tells of a failure, though the exit code was 0; "" if there is none."""
    if counts is not None:
        # The summary has the last word: tests that pass may print errors.
        return counts.line if counts.failed else ""
    if (reading.script or reading.checker or reading.runs_other) and not reading.prints_files:
        return error_in(text)
    return ""


def remarks_on(
    reading: CommandReading, counts: RanTests | None, text: str, hidden: str, *, own: bool
) -> Iterator[Remark]:
    """Remark on a command that ended with exit code 0. `own`: it ran a script that the model wrote."""
    label = reading.label
    if counts is not None and counts.none_ran:
        if not reading.only_lists:
            reason = f"{label} ended well and ran no test ({counts.line})"
            yield Remark(
                Rule.IMPLICIT_NO_TESTS,
                reason,
                f"{reason}. That proves nothing: check which tests you mean and how they are named.",
                f"no_tests {label}",
            )
    elif reading.hidden_by and (hidden or (counts is None and _cut(reading, text))):
        code = f"Exit code 0 is that of `{reading.hidden_by.strip()}`, not of {label}"
        how = _SEE_CODE.get(reading.hidden_by[:1], "Leave out what stands behind it to see its own.")
        if hidden:
            yield Remark(
                Rule.IMPLICIT_EXIT_CODE,
                f"{code}: {hidden}",
                f"{code}, which failed: {hidden}. {how}",
                "exit_code",
            )
        else:
            yield Remark(
                Rule.IMPLICIT_CUT,
                f"The summary of {label} is cut off by `{reading.hidden_by.strip()}`",
                f"{code}, and the summary is cut off: whether it passed cannot be seen. Use `| tail` in its place, "
                "with `set -o pipefail`.",
                "cut",
            )
    elif complaint := _complaint(reading, text):
        reason = f"Exit code 0 is that of `{reading.last}`, and the rest failed: {complaint}"
        yield Remark(Rule.IMPLICIT_EXIT_CODE, reason, f"{reason}. {_SEE_CODE['|']}", "exit_code")
    elif hidden and not (own or reading.shows_code or _ASKS_HELP.search(label)):
        reason = f"{label} ended with exit code 0, but its output tells of a failure"
        yield Remark(
            Rule.IMPLICIT_ERROR, f"{reason}: {hidden}", f"{reason}: {hidden}", f"error {label} {hidden}"
        )


def contradicted(tool: str, against: Contradiction) -> Remark:
    """Remark on a result that the workspace contradicts."""
    if against.wrote:
        place = f"line {against.line} reads: {against.found}" if against.found else "it is empty or not there"
        reason = f"{tool} reported a write, and {against.path} does not hold it"
        text = f"{reason}; {place}\nWrite it again, and read it back."
        return Remark(Rule.IMPLICIT_LOST_WRITE, reason, text, f"lost_write {against.path}")
    reason = f"{tool} showed lines of {against.path} that are not in the file"
    text = f"{reason}: {against.shown}\nWhat it shows is older than the file. Read {against.path} itself."
    return Remark(Rule.IMPLICIT_STALE, reason, text, f"stale {against.path}")


_SEE_CODE = {
    "|": "`set -o pipefail` before the command shows it.",
    ";": "`&&` in place of `;` keeps it.",
    "&": "A command in the background tells nobody how it ended.",
}

_NOTHING = re.compile(r"\s*(?:0|no|false|none|0 total)?\s*", re.IGNORECASE)


_MAY_NOT = re.compile(r"permission denied|operation not permitted|binary file matches", re.IGNORECASE)
"""Words of a search of a whole disk about places that it may not enter: the rest was searched."""


def _complaint(reading: CommandReading, text: str) -> str:
    """Find the complaint of a program whose exit code is hidden, if its like is all that the output holds."""
    if not reading.silenced or len(text) > _LONGEST_COMPLAINTS:
        return ""
    programs, found = {*reading.silenced}, ""
    for line in text.splitlines():
        if _MAY_NOT.search(line):
            continue
        if complains(line, programs):
            found = found or quoted(line)
        elif not _NOTHING.fullmatch(line):
            return ""
    return found


_LONGEST_COMPLAINTS = 2_000
"""Characters of an output that holds complaints and nothing else."""

_ASKS_HELP = re.compile(r"\s(?:-h|--help|--version|-V)\b")
_RUNS_ON = re.compile(r"\bstill running\b|\btimed out\b|\bin the background\b", re.IGNORECASE)
"""The command has not ended: what is missing may come."""
_SUMMARISES = frozenset({
    "pytest", "py.test", "unittest", "nose2", "jest", "vitest", "mocha", "go test", "cargo test", "rspec", "phpunit",
    "ctest",
})  # fmt: skip
"""Test runners whose output always ends with a summary that is known here."""


def _cut(reading: CommandReading, text: str) -> bool:
    """Tell if a test runner's summary is missing because a filter in between left it out."""
    return (
        reading.checker in _SUMMARISES
        and reading.filtered_by == "head"
        and not reading.only_lists
        and " -qq" not in reading.label
        and bool(text.strip())
        and not _RUNS_ON.search(text)
        and not failing_line(text)
    )


def overlooked(reading: CommandReading, hidden: str) -> Remark:
    """Remark on a failure that the next reply took for success."""
    reason = f"{reading.label} reported a failure under exit code 0, and the reply took it for success"
    text = (
        f"{reading.label} ended with exit code 0, but it reported: {hidden}. Look at that before you go on."
    )
    return Remark(Rule.IMPLICIT_ERROR, f"{reason}: {hidden}", text, f"error {reading.label} {hidden}")


def returning(line: str, steps: tuple[int, ...]) -> Remark:
    """Remark on a failing line that came back in these steps."""
    span = steps[-1] - steps[0] + 1
    reason = f"The same failing line for the {ordinal_word(len(steps))} time in {span} steps: {quoted(line)}"
    text = (
        f"{reason}\nIt came back in steps {', '.join(map(str, steps[:-1]))} and {steps[-1]}, whatever was changed in "
        "between. What was taken for its cause is not: print what is really there at that line before the next change."
    )
    return Remark(Rule.IMPLICIT_RETURNS, reason, text, f"returns {normalise(line)}")
