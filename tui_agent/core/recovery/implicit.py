"""Silent failures: results that count as successes and are none, and answers that claim what no result shows.

| counts | an error in the output of a command that ended with exit code 0 · an exit code that another command hides
|        | · a test run without a test · an edit of comments or space alone that is said to fix · a summary that is cut
|        | off · a failing line that comes back · a write that its file does not hold · lines shown of a file that are
|        | not in it · an answer that claims what no result shows
| resets | nothing: each cause is remarked upon once a run
| levels | guide, never more
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from tui_agent.core import events
from tui_agent.core.events import Level, VerdictRecord
from tui_agent.core.evolve import evolve
from tui_agent.core.recovery import command_reading
from tui_agent.core.recovery.claims import claims_tests_pass, files_claimed, files_named
from tui_agent.core.recovery.command_reading import CommandReading
from tui_agent.core.recovery.exit_code import complains
from tui_agent.core.recovery.iteration import (
    CallResult,
    CallStatus,
    Iteration,
    command_of,
)
from tui_agent.core.recovery.output_signs import RanTests, error_in, failing_line, quoted, ran_tests
from tui_agent.core.recovery.rules import Rule
from tui_agent.core.recovery.signature import normalise
from tui_agent.core.recovery.verdict import IMPLICIT, silent, verdict
from tui_agent.quantities import ordinal_word

if TYPE_CHECKING:
    from tui_agent.core.recovery.policy import RecoveryPolicy

_MOST_REMARKS = 2
"""Remarks after one iteration; what is left out is not lost: the results say it too."""
_MOST_CAUSES = 200
"""Causes, written files and failing lines that are remembered of a run."""


class Remark(NamedTuple):
    """One remark: what the operator reads as the reason, and what the model reads in the note."""

    rule: Rule
    reason: str
    text: str
    cause: str
    """Remarks with the same cause are made once."""


@dataclass(frozen=True)
class Evidence:
    """What the results show of tests. It outlives a run: the next message may ask for no more than the answer.

    `label`: the command that ran tests last, "" for none; `failed`: it failed, by its `line`. `changed`: what was
    changed since. `other`: something ran since of which nothing is known; it may have been the tests.
    """

    label: str = ""
    failed: bool = False
    line: str = ""
    changed: str = ""
    other: bool = False


@dataclass(frozen=True)
class ImplicitFailures:
    """What was seen in the last iteration, and what is remembered so that nothing is said twice."""

    remarks: tuple[Remark, ...] = ()
    """Of the last iteration."""
    said: frozenset[str] = frozenset()
    written: frozenset[str] = frozenset()
    """Names of files that the model wrote by commands or tools: what they print of errors is often meant."""
    waiting: Remark | None = None
    """An error that a script of the model's printed; a remark where the next reply takes it for success."""
    lines: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Failing lines, volatile parts left out, with the iterations in which they were seen."""
    evidence: Evidence = Evidence()
    asked: Remark | None = None
    """The open iteration's answer is sent back to be verified."""
    verified: bool = False
    """An answer of the run was sent back, or the operator interrupted it: the next one is taken."""
    unshown: tuple[str, ...] = ()
    """What the task names that may be files, and that no call has shown."""
    called: bool = False
    """The run has made a call, apart from those that only plan or answer."""
    any_shown: bool = False
    """A command of the session may have shown any file."""
    missing: tuple[str, ...] = ()
    """Of the last reply: files that it tells about, without a call in the run, and that are not there."""
    unread: tuple[str, ...] = ()
    """Of the last reply: files of the workspace that the task names and nothing has shown."""

    @property
    def unopened(self) -> tuple[str, ...]:
        """Files of the workspace that the task names, where the run was answered without a single call."""
        return () if self.called else self.unread

    def sent_back(self, text: str = "") -> ImplicitFailures:
        """The answer was not taken; `text` is what the note says of it, where no result of a call does."""
        asked = _claim("The answer claims what no result shows", text)
        return evolve(self, asked=asked, verified=True)

    def next_run(self, task: str) -> ImplicitFailures:
        """What results showed holds on; what was said may be said again."""
        unshown = () if self.any_shown else files_named(task)
        return ImplicitFailures(
            evidence=self.evidence, written=self.written, unshown=unshown, any_shown=self.any_shown
        )

    def interrupted(self) -> ImplicitFailures:
        """By the operator: what is said next is taken."""
        return self if self.verified else evolve(self, verified=True)

    def any_file_shown(self) -> ImplicitFailures:
        """A command of the operator's printed what it did."""
        return evolve(self, any_shown=True, unshown=())

    def replied(self, missing: tuple[str, ...], unread: tuple[str, ...]) -> ImplicitFailures:
        """A reply came; see `missing` and `unread`."""
        if (missing, unread) == (self.missing, self.unread):
            return self
        return evolve(self, missing=missing, unread=unread)

    # --- folding ---------------------------------------------------------------------------------------------

    def apply(self, iteration: Iteration, policy: RecoveryPolicy, said: str) -> ImplicitFailures:
        """Fold a finished iteration; `said` is the text of its reply, written before its calls ran."""
        state = self._with_looks(iteration)
        if not (policy.implicit or policy.verify_claims):
            return state
        seen: list[Remark] = [] if self.asked is None else [self.asked]
        if self.waiting is not None and policy.implicit and takes_for_success(said):
            seen.append(self.waiting)
        if self.waiting is not None or self.asked is not None:
            state = evolve(state, waiting=None, asked=None)
        for result in iteration.results:
            if result.status in {CallStatus.SUCCEEDED, CallStatus.FAILED, CallStatus.WAITING}:
                state = state._with_result(result, iteration.number, said, seen)
        fresh: dict[str, Remark] = {}
        for remark in seen if policy.implicit or self.asked is not None else ():
            if remark.cause not in state.said:
                fresh.setdefault(remark.cause, remark)
        remarks = tuple(fresh.values())[:_MOST_REMARKS]
        if not remarks:
            return evolve(state, remarks=()) if state.remarks else state
        causes = state.said | {remark.cause for remark in remarks}
        return evolve(state, remarks=remarks, said=causes if len(causes) <= _MOST_CAUSES else state.said)

    def _with_looks(self, iteration: Iteration) -> ImplicitFailures:
        calls = [result for result in iteration.results if result.facts.works]
        if not calls:
            return self
        any_shown = self.any_shown or any(_may_show_anything(result) for result in calls)
        unshown = () if any_shown else tuple(name for name in self.unshown if not _shown(name, calls))
        if self.called and (any_shown, unshown) == (self.any_shown, self.unshown):
            return self
        return evolve(self, called=True, any_shown=any_shown, unshown=unshown)

    def _with_result(
        self, result: CallResult, number: int, said: str, seen: list[Remark]
    ) -> ImplicitFailures:
        if result.contradiction is not None:
            seen.append(_contradicted(result.tool, result.contradiction))
        command = command_of(result.input)
        if command is None or result.input.get("background"):
            return self._with_tool(result, said, seen)
        reading = command_reading.read(command)
        text = result.outcome
        counts = ran_tests(text) if reading.checker or not reading.prints_files else None
        state = evolve(self, evidence=_with_command(self.evidence, result, reading, counts))
        if reading.writes:
            state = state._with_written(reading.writes)
        failed = not result.passed
        own = bool(reading.script) and reading.script in state.written and not reading.checker
        hidden = "" if failed else _hidden_failure(reading, counts, text)
        if not failed:
            seen.extend(_remarks_on(reading, counts, text, hidden, own=own))
            if own and hidden:
                state = evolve(state, waiting=_overlooked(reading, hidden))
        line = failing_line(text) if failed or hidden else ""
        return state._with_line(line, number, seen) if line else state

    def _with_tool(self, result: CallResult, said: str, seen: list[Remark]) -> ImplicitFailures:
        if result.status is not CallStatus.SUCCEEDED or result.facts.looks_only:
            return self
        path = result.input.get("path", result.input.get("file_path"))
        if not result.facts.edits or not isinstance(path, str):
            if self.evidence.other:
                return self
            return evolve(self, evidence=evolve(self.evidence, other=True))
        if remark := _idle_edit(result, path, said, self.evidence):
            seen.append(remark)
            return self
        if path.endswith(_PROSE):
            return self._with_written((path,))
        evidence = evolve(self.evidence, changed=path, other=False)
        return evolve(self, evidence=evidence)._with_written((path,))

    def _with_written(self, paths: tuple[str, ...]) -> ImplicitFailures:
        names = self.written | {path.rpartition("/")[2] for path in paths}
        return self if len(names) > _MOST_CAUSES else evolve(self, written=names)

    def _with_line(self, line: str, number: int, seen: list[Remark]) -> ImplicitFailures:
        key = normalise(line)
        if len(key) < _SHORTEST_LINE:
            return self
        steps = self.lines.get(key, ())
        if steps[-1:] == (number,):
            return self
        steps = (*steps, number)
        rest = {other: at for other, at in self.lines.items() if other != key}
        if len(rest) >= _MOST_CAUSES:
            rest.pop(next(iter(rest)))
        if len(steps) >= _RETURNS and steps[-1] - steps[0] >= _LONG_STRETCH:
            seen.append(_returning(line, steps))
        return evolve(self, lines={**rest, key: steps[-_RETURNS * 4 :]})

    # --- judging ---------------------------------------------------------------------------------------------

    def verdict(self) -> VerdictRecord:
        """`guide` where something was seen in the last iteration."""
        if not self.remarks:
            return silent(IMPLICIT)
        first = self.remarks[0]
        return verdict(Level.GUIDE, first.rule, first.reason)

    def unproved(self, answer: str) -> Remark | None:
        """What to ask about an answer that claims what no result shows; None where there is nothing to ask."""
        evidence = self.evidence
        if self.verified:
            return None
        if self.missing:
            folder = self.missing[0].rpartition("/")[0] or "."
            text = (
                f"Your answer tells what {self.missing[0]} holds, but there is no such file, and you have looked at "
                f'nothing. Look first (list_dir {{"path": {json.dumps(folder)}}}), then answer by what is there.'
            )
            reason = f"The answer tells of {self.missing[0]}, which is not there"
            return _claim(reason, text)
        if claimed := files_claimed(answer, self.unread, only=not self.called):
            text = (
                f"Your answer tells what {claimed[0]} holds, and you have not read it. Read it first "
                f'(read_file {{"path": {json.dumps(claimed[0])}}}), then answer by what it says.'
            )
            reason = f"The answer tells of {claimed[0]}, which no call has read"
            return _claim(reason, text)
        if evidence.other or not (evidence.failed or evidence.changed):
            return None
        claim = claims_tests_pass(answer)
        if not claim:
            return None
        if evidence.failed:
            shown = f"the last test run failed ({evidence.label}: {evidence.line})"
            if evidence.changed:
                shown = f"{shown}, and none followed the change of {evidence.changed}"
        elif evidence.label:
            shown = f"{evidence.changed} was changed after the last test run ({evidence.label})"
        else:
            shown = f"no result shows that a test was run, and {evidence.changed} was changed"
        text = (
            f"Your answer says: “{claim}” But {shown}. Run the tests now, then answer by what they show; where "
            "they cannot be run, say so in the answer."
        )
        return _claim(f"The answer claims that tests pass, but {shown}", text)


def _claim(reason: str, text: str) -> Remark:
    return Remark(Rule.IMPLICIT_CLAIM, reason, text, "claim")


# --- what a result shows -------------------------------------------------------------------------------------

_PROSE = (
    ".md", ".rst", ".txt", ".adoc", ".org", ".log", ".csv", ".svg", ".png", "LICENSE", "CHANGELOG", "README",
)  # fmt: skip

_SHORTEST_LINE = 24
"""Characters of a failing line; shorter ones (`AssertionError`) say too little to be known again."""
_RETURNS = 5
"""Times that a failing line was seen, over at least `_LONG_STRETCH` iterations."""
_LONG_STRETCH = 20


_WHOLE_FOLDERS = re.compile(r"[*?$`\[]|\s-\w{0,9}[rR]")
"""How a command says which files it shows without their names."""


def _shown(name: str, calls: Iterable[CallResult]) -> bool:
    base = name.rpartition("/")[2]
    return any(base in result.outcome or base in str(dict(result.input)) for result in calls)


def _may_show_anything(result: CallResult) -> bool:
    command = command_of(result.input)
    if command is None:
        return not (result.facts.looks_only or result.facts.edits)
    return command_reading.read(command).runs_other or _WHOLE_FOLDERS.search(command) is not None


def _with_command(
    evidence: Evidence, result: CallResult, reading: CommandReading, counts: RanTests | None
) -> Evidence:
    if counts is not None and not counts.none_ran:
        return Evidence(reading.label or "the last command", bool(counts.failed), counts.line)
    if reading.checker and not reading.only_lists and counts is None:
        return evolve(evidence, other=True)
    if reading.runs_other or not result.passed:
        return evolve(evidence, other=True)
    if reading.edits:
        return evolve(evidence, changed=evidence.changed or "a file", other=False)
    return evidence


def _hidden_failure(reading: CommandReading, counts: RanTests | None, text: str) -> str:
    """The line of the output that tells of a failure, though the exit code was 0."""
    if counts is not None:
        # The summary has the last word: tests that pass may print errors.
        return counts.line if counts.failed else ""
    if (reading.script or reading.checker or reading.runs_other) and not reading.prints_files:
        return error_in(text)
    return ""


def _remarks_on(
    reading: CommandReading, counts: RanTests | None, text: str, hidden: str, *, own: bool
) -> Iterator[Remark]:
    """Remarks on a command that ended with exit code 0."""
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
    elif hidden and not own:
        reason = f"{label} ended with exit code 0, but its output tells of a failure"
        yield Remark(
            Rule.IMPLICIT_ERROR, f"{reason}: {hidden}", f"{reason}: {hidden}", f"error {label} {hidden}"
        )


def _contradicted(tool: str, against: events.Contradiction) -> Remark:
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


_MAY_NOT = re.compile(r"permission denied|operation not permitted", re.IGNORECASE)
"""What a search of a whole disk says of places that it may not enter: the rest was searched."""


def _complaint(reading: CommandReading, text: str) -> str:
    """The complaint of a program whose exit code is hidden, where its like is all that the output holds."""
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

_SUMMARISES = frozenset({
    "pytest", "py.test", "unittest", "nose2", "jest", "vitest", "mocha", "go test", "cargo test", "rspec", "phpunit",
    "ctest",
})  # fmt: skip
"""Test runners whose output always ends with a summary that is known here."""


def _cut(reading: CommandReading, text: str) -> bool:
    """Whether a test runner's summary is missing because a filter in between left it out."""
    return (
        reading.checker in _SUMMARISES
        and reading.filtered_by in {"head", "sed"}
        and not reading.only_lists
        and " -qq" not in reading.label
        and bool(text.strip())
        and not failing_line(text)
    )


def _overlooked(reading: CommandReading, hidden: str) -> Remark:
    reason = f"{reading.label} reported a failure under exit code 0, and the reply took it for success"
    text = (
        f"{reading.label} ended with exit code 0, but it reported: {hidden}. Look at that before you go on."
    )
    return Remark(Rule.IMPLICIT_ERROR, f"{reason}: {hidden}", text, f"error {reading.label} {hidden}")


def _returning(line: str, steps: tuple[int, ...]) -> Remark:
    span = steps[-1] - steps[0] + 1
    reason = f"The same failing line for the {ordinal_word(len(steps))} time in {span} steps: {quoted(line)}"
    text = (
        f"{reason}\nIt came back in steps {', '.join(map(str, steps[:-1]))} and {steps[-1]}, whatever was changed in "
        "between. What was taken for its cause is not: print what is really there at that line before the next change."
    )
    return Remark(Rule.IMPLICIT_RETURNS, reason, text, f"returns {normalise(line)}")


# --- what a reply says ---------------------------------------------------------------------------------------

_SUCCESS = re.compile(
    r"\b(?:works|worked|passed|passes|succeeded|success(?:ful(?:ly)?)?|fixed|resolved|verified)\b",
    re.IGNORECASE,
)
_SETBACK = re.compile(
    r"\b(?:fail\w*|errors?|still|however|but|wrong|crash\w*|exceptions?|traceback|raised?s?|issue|reproduc\w*|confirm\w*|"
    r"expected|bug|problem|not|interesting|wait|why|missing)\b|n't\b|\?",
    re.IGNORECASE,
)
_FIRST_WORDS = 400
"""Characters of a reply in which it says what it makes of the last result."""


def takes_for_success(said: str) -> bool:
    """Whether a reply's beginning takes the last result for a success, with no word of a failure."""
    begins = said.strip()[:_FIRST_WORDS]
    return bool(_SUCCESS.search(begins)) and not _SETBACK.search(begins)


# --- edits ---------------------------------------------------------------------------------------------------

_COMMENTS = {
    **dict.fromkeys(("py", "sh", "bash", "rb", "yml", "yaml", "toml", "pl", "r", "mk"), "#"),
    **dict.fromkeys(
        ("js", "ts", "jsx", "tsx", "mjs", "go", "rs", "c", "h", "cc", "cpp", "java", "kt", "cs", "php"), "//"
    ),
    **dict.fromkeys(("sql", "lua", "hs"), "--"),
}
_FIXES = re.compile(r"\b(?:fix\w*|correct\w*|resolv\w*|repair\w*|solv\w*)\b", re.IGNORECASE)
_ABOUT_TEXT = re.compile(
    r"\b(?:comment\w*|doc(?:s|strings?|umentation)?|format\w*|white ?space|indent\w*|lint\w*|style|typos?|blank|"
    r"spaces?|trailing|readab\w*|clean\w*|explain\w*|clarif\w*|note)\b",
    re.IGNORECASE,
)
_PAIRS = (("old", "new"), ("old_string", "new_string"), ("old_str", "new_str"))
_LONGEST_EDIT = 100_000


def _idle_edit(result: CallResult, path: str, said: str, evidence: Evidence) -> Remark | None:
    """An edit of comments and space alone, in a reply that says it fixes."""
    if not _FIXES.search(said) or _ABOUT_TEXT.search(said):
        return None
    sign = _COMMENTS.get(path.rpartition(".")[2].lower())
    pairs = list(_edits(result.input))
    if sign is None or not pairs or any(_code(old, sign) != _code(new, sign) for old, new in pairs):
        return None
    reason = f"The edit of {path} changed comments and space alone, and is said to fix"
    return Remark(
        Rule.IMPLICIT_NO_CHANGE,
        reason,
        f"Your edit of {path} changed only comments and white space: the program does what it did before.",
        f"no_change {path}",
    )


def _edits(arguments: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    more = arguments.get("edits")
    for one in (arguments, *(more[:200] if isinstance(more, list) else ())):
        if not isinstance(one, Mapping):
            continue
        for old, new in _PAIRS:
            before, after = one.get(old), one.get(new)
            if (
                isinstance(before, str)
                and isinstance(after, str)
                and len(before) + len(after) <= _LONGEST_EDIT
            ):
                yield before, after


def _code(text: str, sign: str) -> list[str]:
    """The lines of a text that do something; indentation is a part of them."""
    lines = (line.rstrip() for line in text.split("\n"))
    return [line for line in lines if line and not line.lstrip().startswith(sign)]
