"""Silent failures: results that count as successes and are none, and answers that claim what no result shows.

| counts | an error in the output of a command that ended with exit code 0 · an exit code that another command hides
|        | · a test run without a test · an edit of comments or space alone that is said to fix · a summary that is cut
|        | off · a failing line that comes back · a write that its file does not hold · lines shown of a file that are
|        | not in it · an answer that claims what no result shows · an answer to a task that asks for a change, and
|        | nothing was changed · work that begins anew though the task is about files that are there
| resets | nothing: each cause is remarked upon once a run
| levels | guide · work that begins anew: ask if an operator is there
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tui_agent.core import events
from tui_agent.core.events import Level, VerdictRecord
from tui_agent.core.evolve import evolve
from tui_agent.core.recovery import command_reading
from tui_agent.core.recovery.claims import files_claimed, files_named
from tui_agent.core.recovery.detector import Beginning, Detector, Standing, Step
from tui_agent.core.recovery.evidence import Evidence
from tui_agent.core.recovery.idle_edits import idle_edit
from tui_agent.core.recovery.iteration import (
    CallResult,
    CallStatus,
    Iteration,
    command_of,
)
from tui_agent.core.recovery.output_signs import failing_line, names_failure, ran_tests
from tui_agent.core.recovery.parameters import Parameters
from tui_agent.core.recovery.remarks import (
    Remark,
    claim,
    contradicted,
    hidden_failure,
    overlooked,
    remarks_on,
    returning,
)
from tui_agent.core.recovery.rules import Rule
from tui_agent.core.recovery.signature import normalise
from tui_agent.core.recovery.verdict import verdict
from tui_agent.core.recovery.work import NOTHING_CHANGED, WORKED_ELSEWHERE, Work

_MOST_REMARKS = 2
"""Remarks after one iteration; what is left out is not lost: the results say it too."""
_MOST_CAUSES = 200
"""Causes, written files and failing lines that are remembered of a run."""


class ImplicitParameters(Parameters):
    """Silent failures."""

    implicit: bool = True
    """The note names silent failures: an exit code 0 over an error, a test run without a test, and the like."""
    verify_claims: bool = True
    """An answer that claims what no result shows, of tests, builds, linters or a file, is sent back once a run to be
    verified.
    """


@dataclass(frozen=True)
class ImplicitFailures(Detector[ImplicitParameters]):
    """Remarks on the last iteration, and what is remembered so that nothing is said twice."""

    name = "implicit"
    parameters = ImplicitParameters
    off = {"implicit": False, "verify_claims": False}

    remarks: tuple[Remark, ...] = ()
    """Of the last iteration."""
    said: frozenset[str] = frozenset()
    written: Mapping[str, int] = field(default_factory=dict)
    """Names of files that the model wrote by commands or tools, with the newest step (0: in an earlier run): what they
    print of errors is often meant."""
    waiting: Remark | None = None
    """An error that a script of the model's printed; a remark if the next reply takes it for success."""
    lines: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Failing lines, volatile parts left out, with the iterations in which they were seen."""
    evidence: Evidence = field(default_factory=Evidence)
    asked: Remark | None = None
    """The open iteration's answer is sent back to be verified."""
    sent_back: frozenset[str] = frozenset()
    """Rules by which an answer of the run was sent back; each does so once."""
    interrupted: bool = False
    """The operator interrupted the run: the next answer is taken."""
    work: Work = field(default_factory=Work)
    unshown: tuple[str, ...] = ()
    """Names in the task that may be files, and that no call has shown."""
    called: bool = False
    """The run has made a call, apart from those that only plan or answer."""
    any_shown: bool = False
    """A command of the session may have shown any file."""
    missing: tuple[str, ...] = ()
    """Of the last reply: files that it tells about, without a call in the run, and that are not there."""
    unread: tuple[str, ...] = ()
    """Of the last reply: files of the workspace that the task names and nothing has shown."""

    unwritten: tuple[str, ...] = ()
    """Of the last reply: files that it says were written, and that are not there or hold nothing."""

    @property
    def unopened(self) -> tuple[str, ...]:
        """Files of the workspace that the task names, if the run was answered without a single call."""
        return () if self.called else self.unread

    def next_run(self, run: Beginning[ImplicitParameters]) -> ImplicitFailures:
        """The evidence of results holds on; remarks may be made again."""
        unshown = () if self.any_shown else files_named(run.event.task)
        return ImplicitFailures(
            evidence=self.evidence.of_earlier_run(),
            written=dict.fromkeys(self.written, 0),
            unshown=unshown,
            any_shown=self.any_shown,
            work=Work.of(run.event.task),
        )

    # --- what it hears ---------------------------------------------------------------------------------------

    def _sent_back(self, rule: str, text: str = "") -> ImplicitFailures:
        """Remember that the answer was not taken; `text` is what the note says of it, if no result of a call does."""
        if rule == Rule.IMPLICIT_NOTHING:
            asked = Remark(Rule.IMPLICIT_NOTHING, NOTHING_CHANGED, text, "nothing")
        elif rule == Rule.IMPLICIT_ELSEWHERE:
            asked = Remark(Rule.IMPLICIT_ELSEWHERE, WORKED_ELSEWHERE, text, "elsewhere, at the end")
        else:
            asked = claim("The answer claims what no result shows", text)
        return evolve(self, asked=asked, sent_back=self.sent_back | {rule})

    def _refused(self, event: events.ToolRefused, _: ImplicitParameters) -> ImplicitFailures:
        return self._sent_back(event.rule) if event.refusal == "unverified" else self

    def _rejected(self, event: events.ReplyRejected, _: ImplicitParameters) -> ImplicitFailures:
        return self._sent_back(event.rule, event.failure.message) if event.unverified else self

    def _interrupted(self, event: events.Interrupted, _: ImplicitParameters) -> ImplicitFailures:
        """Take what is said next, after an interruption by the operator."""
        return self if self.interrupted or event.cause != "operator" else evolve(self, interrupted=True)

    def _command_ended(self, _event: events.OwnCommandEnded, _: ImplicitParameters) -> ImplicitFailures:
        """A command of the operator's printed what it did."""
        return evolve(self, any_shown=True, unshown=())

    def _replied(self, event: events.ReplyFinished, _: ImplicitParameters) -> ImplicitFailures:
        told = (event.missing, event.unread, event.unwritten)
        if (*told, event.absent) == (self.missing, self.unread, self.unwritten, ()):
            return self
        work = evolve(self.work, absent=event.absent) if event.absent else self.work
        missing, unread, unwritten = told
        return evolve(self, missing=missing, unread=unread, unwritten=unwritten, work=work)

    hears = {
        events.ToolRefused: _refused,
        events.ReplyRejected: _rejected,
        events.Interrupted: _interrupted,
        events.OwnCommandEnded: _command_ended,
        events.ReplyFinished: _replied,
    }

    # --- folding ---------------------------------------------------------------------------------------------

    def apply(self, step: Step[ImplicitParameters]) -> ImplicitFailures:
        """Fold a finished iteration."""
        iteration, policy = step.iteration, step.policy
        said = "" if step.reply is None else step.reply.text  # written before its calls ran
        state = self._with_looks(iteration)
        if not (policy.implicit or policy.verify_claims):
            return state
        seen: list[Remark] = [] if self.asked is None else [self.asked]
        if self.waiting is not None and policy.implicit and takes_for_success(said):
            seen.append(self.waiting)
        if self.waiting is not None or self.asked is not None:
            state = evolve(state, waiting=None, asked=None)
        state = state._with_work(step, seen)
        for result in iteration.results:
            edit = result.status is CallStatus.NOT_KNOWN and result.facts.edits
            if edit or result.status in {CallStatus.SUCCEEDED, CallStatus.FAILED, CallStatus.WAITING}:
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

    def _with_work(self, step: Step[ImplicitParameters], seen: list[Remark]) -> ImplicitFailures:
        work = self.work.changed() if step.any_change else self.work
        if remark := self.work.nowhere():
            seen.append(remark)
            work = evolve(work, anew=True)
        for result in step.iteration.results:
            if remark := self.work.elsewhere(result):
                seen.append(remark)
                work = evolve(work, anew=True)
            work = work.after(result)
        return self if work is self.work else evolve(self, work=work)

    def _with_result(
        self, result: CallResult, number: int, said: str, seen: list[Remark]
    ) -> ImplicitFailures:
        if result.contradiction is not None:
            seen.append(contradicted(result.tool, result.contradiction))
        command = command_of(result.input)
        if command is None or result.input.get("background"):
            return self._with_tool(result, number, said, seen)
        reading = command_reading.read(command)
        text = result.outcome
        counts = ran_tests(text) if reading.checker or not reading.prints_files else None
        state = evolve(self, evidence=self.evidence.after_command(result, reading, counts, number))
        if reading.writes or reading.edits:
            named = files_named(command) if reading.edits else ()
            state = state._with_written((*reading.writes, *named), number)
        failed = not result.passed
        own = bool(reading.script) and reading.script in state.written and not reading.checker
        hidden = "" if failed else hidden_failure(reading, counts, text)
        if not failed:
            seen.extend(remarks_on(reading, counts, text, hidden, own=own))
            if own and hidden:
                state = evolve(state, waiting=overlooked(reading, hidden))
        line = failing_line(text) if failed or hidden else ""
        return state._with_line(line, number, seen) if line else state

    def _with_tool(self, result: CallResult, number: int, said: str, seen: list[Remark]) -> ImplicitFailures:
        if result.status in {CallStatus.FAILED, CallStatus.WAITING} or _looks(result):
            return self
        path = result.input.get("path", result.input.get("file_path"))
        if not result.facts.edits or not isinstance(path, str):
            evidence = self.evidence.after_unknown()
            return self if evidence is self.evidence else evolve(self, evidence=evidence)
        if remark := idle_edit(result, path, said):
            seen.append(remark)
            return self
        if path.endswith(_PROSE):
            return self._with_written((path,), number)
        return evolve(self, evidence=self.evidence.after_change(path))._with_written((path,), number)

    def _with_written(self, paths: tuple[str, ...], number: int) -> ImplicitFailures:
        names = {**self.written, **dict.fromkeys((path.rpartition("/")[2] for path in paths), number)}
        return self if len(names) > _MOST_CAUSES else evolve(self, written=names)

    def _with_line(self, line: str, number: int, seen: list[Remark]) -> ImplicitFailures:
        key = normalise(line)
        if len(key) < _SHORTEST_LINE or not names_failure(line):
            return self
        steps = self.lines.get(key, ())
        if steps[-1:] == (number,):
            return self
        steps = (*steps, number)
        rest = {other: at for other, at in self.lines.items() if other != key}
        if len(rest) >= _MOST_CAUSES:
            rest.pop(next(iter(rest)))
        if len(steps) >= _RETURNS and steps[-1] - steps[0] >= _LONG_STRETCH:
            seen.append(returning(line, steps))
        return evolve(self, lines={**rest, key: steps[-_RETURNS * 4 :]})

    # --- judging ---------------------------------------------------------------------------------------------

    def verdict(self, standing: Standing[ImplicitParameters]) -> VerdictRecord:
        """`guide` if something was seen in the last iteration; work in another place is asked about."""
        if not self.remarks:
            return self.silent
        elsewhere = (one for one in self.remarks if one.rule is Rule.IMPLICIT_ELSEWHERE)
        asked = next(elsewhere, None) if standing.operator_present else None
        if asked is not None:
            return verdict(Level.ESCALATE, asked.rule, asked.reason)
        first = self.remarks[0]
        return verdict(Level.GUIDE, first.rule, first.reason)

    def unproved(self, answer: str, *, words_alone: bool = False) -> Remark | None:
        """Remark on an answer that claims what no result shows, or for which nothing was done though the task asks for
        a change; None if there is nothing to ask. `words_alone`: it is to be a plan, or waits for the operator.
        """
        if self.interrupted:
            return None
        found = None if Rule.IMPLICIT_CLAIM in self.sent_back else self._unshown_claim(answer)
        if found is not None or words_alone or Rule.IMPLICIT_NOTHING in self.sent_back:
            return found
        if Rule.IMPLICIT_ELSEWHERE not in self.sent_back and (misplaced := self.work.misplaced(answer)):
            return misplaced
        return self.work.undone()

    def _unshown_claim(self, answer: str) -> Remark | None:
        if self.missing:
            folder = self.missing[0].rpartition("/")[0] or "."
            text = (
                f"Your answer tells what {self.missing[0]} holds, but there is no such file, and you have looked at "
                f'nothing. Look first (list_dir {{"path": {json.dumps(folder)}}}), then answer by what is there.'
            )
            reason = f"The answer tells of {self.missing[0]}, which is not there"
            return claim(reason, text)
        if claimed := files_claimed(answer, self.unread, only=not self.called):
            text = (
                f"Your answer tells what {claimed[0]} holds, and you have not read it. Read it first "
                f'(read_file {{"path": {json.dumps(claimed[0])}}}), then answer by what it says.'
            )
            reason = f"The answer tells of {claimed[0]}, which no call has read"
            return claim(reason, text)
        if self.unwritten:
            name = self.unwritten[0]
            text = (
                f"Your answer says that {name} was written, and there is no such file here, or it is empty. Look for "
                "it and write it if it is not there; if it stands elsewhere, or is meant to be empty, say so."
            )
            return claim(f"The answer says that {name} was written, and it is not there or empty", text)
        return self.evidence.against(answer)


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


def _looks(result: CallResult) -> bool:
    return result.facts.looks_only or bool(result.facts.looks)


def _shown(name: str, calls: Iterable[CallResult]) -> bool:
    base = name.rpartition("/")[2]
    return any(base in result.outcome or base in str(dict(result.input)) for result in calls)


def _may_show_anything(result: CallResult) -> bool:
    command = command_of(result.input)
    if command is None:
        return not (_looks(result) or result.facts.edits)
    return command_reading.read(command).runs_other or _WHOLE_FOLDERS.search(command) is not None


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
    """Tell if a reply's beginning takes the last result for a success, with no word of a failure."""
    begins = said.strip()[:_FIRST_WORDS]
    return bool(_SUCCESS.search(begins)) and not _SETBACK.search(begins)
