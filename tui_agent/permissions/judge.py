"""Whether a call may run: deny before ask before allow, and for a command each simple command by itself.

Pure but for looking up links and wildcards in the workspace. Where rules are kept, and who is asked, is decided
elsewhere.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any

from tui_agent.core.names import READS_ONLY, Approval, Decision
from tui_agent.permissions.budget import JudgementBudget, TooMuchToJudge
from tui_agent.permissions.commands import Reading, SimpleCommand, Word, read_command, tail_of
from tui_agent.permissions.coverage import covers, resembles, suggested_rule
from tui_agent.permissions.paths import Paths, is_folder
from tui_agent.permissions.programs import (
    MOST_WRAPPERS,
    SINKS,
    becomes_no_option,
    hides_its_program,
    is_neutral,
    names_a_folder,
    places_of_programs,
    scripts_within,
    sets_harmlessly,
    within,
    writes_its_arguments,
)
from tui_agent.permissions.programs_there import is_from_outside, run_by_git
from tui_agent.permissions.readers import Reads, reads_only
from tui_agent.permissions.rules import (
    COMMAND_TOOL,
    GUARDED,
    READS,
    WRITES,
    PermissionRule,
    exact_pattern,
    host_of,
)
from tui_agent.permissions.uses import OF_RULES, Use, Uses, texts_in
from tui_agent.shell_syntax import language

_PLANNING = "in plan mode nothing is changed: put it into the plan"
_UNCONFINED = f"{_PLANNING}. Without a sandbox only commands that are known to read run in it"
_DEEPEST = 4
"""Scripts within scripts."""
_MOST_FOLDERS = 16
"""Folders in which a part of a command may run and still be looked at one by one."""


@dataclass(frozen=True)
class Finding:
    """What was decided about one part of a call. `rule` is None where no rule applies; `why` then says what decided."""

    subject: str
    decision: Decision
    rule: PermissionRule | None = None
    why: str = ""
    neutral: bool = False
    """It changes nothing and goes along with what a rule allows."""
    suggestion: str = ""
    """The rule that would allow just this; empty where only the exact call can be allowed."""
    hidden: bool = False
    """It is not known which program runs."""
    unjudged: bool = False
    """It would have taken too long, so that any rule may be about it."""
    reads: Reads | None = None
    """What it reads, where it runs unasked because it does nothing else."""

    def words(self) -> str:
        """The rule that decided, or the reason without one."""
        return f"{self.why}{f' ({self.rule})' if self.why else str(self.rule)}" if self.rule else self.why


@dataclass(frozen=True)
class Judgement:
    """What becomes of a call, and the findings it follows from."""

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
        """Whether it runs unasked because nothing in it does more than read."""
        return self.decision is Decision.ALLOW and _only_reads(self.findings)

    @property
    def by(self) -> str:
        """Every rule, mode or reason that let the call run, for the audit."""
        if self.reads_only:
            return READS_ONLY
        return "; ".join(dict.fromkeys(one.words() for one in self.findings if one.words()))


def _only_reads(findings: Sequence[Finding]) -> bool:
    return any(one.reads for one in findings) and all(one.reads or one.neutral for one in findings)


def looks_at_files(uses: Uses | None) -> bool:
    """Whether judging a call of a tool follows links and wildcards on the disk, which may take its time."""
    return uses is None or not {Use.READS, Use.WRITES, Use.RUNS, Use.ANYTHING}.isdisjoint(uses.values())


_BY_EFFECT: Mapping[str, frozenset[Use]] = {
    "read": frozenset({Use.READS}),
    "write": frozenset({Use.WRITES}),
    "network": frozenset({Use.SENDS}),
    "command": frozenset({Use.RUNS, Use.SENDS}),
}
"""By what a tool may do, the uses of an argument that say all of it; without one the call is judged as a whole."""
_COMMAND_LIKE = re.compile(r"command|cmd|script|shell|exec|bash|run", re.IGNORECASE)
"""Names of arguments of somebody else's tools that may hold a command."""


@dataclass(frozen=True)
class _Reached:
    """A command that runs, or may be run by one that does."""

    command: SimpleCommand
    folders: tuple[str, ...] | None

    @cached_property
    def places(self) -> Sequence[int]:
        """Where its programs may stand."""
        return places_of_programs(self.command)

    @cached_property
    def writes(self) -> bool:
        """Whether it may change the files that it is given."""
        return any(writes_its_arguments(self.command, place) for place in self.places)


@dataclass
class _Look:
    """What is known while one call is judged: what is left of its budget, its paths, the scripts that were read."""

    budget: JudgementBudget
    paths: Paths
    readings: dict[str, Reading] = field(default_factory=dict)
    followed: dict[str, PermissionRule | None] = field(default_factory=dict)
    """Rules about paths that begin with a link, by their texts: as they are with the link followed."""
    programs: dict[str, bool] = field(default_factory=dict)
    """Whether a program lies outside of the workspace."""
    settings: dict[str, str] = field(default_factory=dict)
    """By folder, what git's settings would run there."""

    def from_outside(self, program: str, workspace: str, folders: Sequence[str]) -> bool:
        """Whether a program lies outside of the workspace, looked up once."""
        if program not in self.programs:
            self.programs[program] = is_from_outside(program, workspace, folders)
        return self.programs[program]

    def run_by_git(self, folder: str) -> str:
        """What git's settings would run in a folder, asked once."""
        if folder not in self.settings:
            self.budget.step(32)
            self.settings[folder] = run_by_git(folder)
        return self.settings[folder]

    def read(self, script: str) -> Reading:
        """The reading of a script, made once."""
        if script not in self.readings:
            self.readings[script] = read_command(script, self.budget)
        return self.readings[script]


class Permissions:
    """The rules that hold in a workspace, with the mode that decides where none of them applies."""

    def __init__(
        self,
        rules: Sequence[PermissionRule],
        workspace: Path,
        approve: Approval = Approval.ASK,
        *,
        reads_free: bool = False,
        confined: bool = True,
    ) -> None:
        """`reads_free`: commands that only read run unasked, as in a sandbox without a network. `confined`: in plan
        mode commands run in a sandbox in which they change nothing.
        """
        by_decision = {each: [rule for rule in rules if rule.decision is each] for each in Decision}
        self._narrowing = [*by_decision[Decision.DENY], *by_decision[Decision.ASK]]
        self._allowing = by_decision[Decision.ALLOW]
        self._denies = bool(by_decision[Decision.DENY])
        self._denies_commands = any(rule.names(COMMAND_TOOL) for rule in by_decision[Decision.DENY])
        self._root = os.path.realpath(workspace)
        self._approve = approve
        self._reads_free = reads_free and approve is not Approval.ALL
        self._plans = approve is Approval.PLAN
        self._confined = confined
        self._keeping = [
            rule
            for rule in self._narrowing
            if rule.pattern is not None and not rule.covers_all and any(rule.names(tool) for tool in READS)
        ]
        """Rules that keep files from being read."""

    def judge(
        self,
        tool: str,
        effect: str,
        arguments: Mapping[str, Any],
        uses: Uses | None = None,
        *,
        says_it_reads: bool = False,
    ) -> Judgement:
        """Decide on one call. `effect` is the tool's (read, write, command, network, dialogue or task), `uses` what it
        does with its arguments; None: as a rule with its name means. `says_it_reads`: a server says so of its tool.
        """
        if uses is None:
            uses = OF_RULES.get(tool, {"url": Use.SENDS} if isinstance(arguments.get("url"), str) else {})
        language()  # loading it takes its time, and is part of no judgement
        given = {name: use for name, use in uses.items() if name in arguments}
        if Use.READS in uses.values() and Use.READS not in given.values():
            findings = [self._own_file(tool, Use.READS, ".")]
        else:
            findings = []
        for name, value in arguments.items():
            findings += self._used(tool, effect, name, uses.get(name, Use.ANYTHING), value)
        if not findings or _BY_EFFECT.get(effect, frozenset(given.values())).isdisjoint(uses.values()):
            findings.append(self._whole(tool, effect, says_it_reads=says_it_reads))
        return self._joined(findings)

    def _used(self, tool: str, effect: str, name: str, use: Use, value: Any) -> Sequence[Finding]:
        """What is decided about one argument."""
        match use:
            case Use.RUNS:
                return self._run(tool, str(value))
            case Use.SENDS:
                return [self._address(tool, effect, str(value))]
            case Use.READS | Use.WRITES:
                return [self._own_file(tool, use, path) for path in [*texts_in(value)] or [""]]
            case Use.ANYTHING:
                found = self._perhaps_forbidden(tool, name, value) if self._narrowing else None
                return [] if found is None else [found]
            case _:
                return ()

    def _run(self, tool: str, command: str) -> Sequence[Finding]:
        if tool != COMMAND_TOOL:
            for rule in (*self._narrowing, *self._allowing):
                if rule.covers_all and rule.names(tool) and rule.decision is not Decision.ALLOW:
                    return [Finding(tool, rule.decision, rule)]
        findings = self._command(command, self._look())
        if self._plans and not self._confined and not self._is_known_to_read(command):
            denied = [one for one in findings if one.decision is Decision.DENY]
            return denied or [Finding(command, Decision.DENY, None, _UNCONFINED)]
        return findings

    def _is_known_to_read(self, command: str) -> bool:
        """Whether nothing in a command is known to do more than read, wherever it reads."""
        try:
            reading = self._look().read(command)
        except TooMuchToJudge:
            return False
        parts = [is_neutral(one) or reads_only(one) is not None for one in reading.commands]
        return reading.once and not reading.trouble and bool(parts) and all(parts)

    def _perhaps_forbidden(self, tool: str, name: str, value: Any) -> Finding | None:
        """The rule that narrows and is about an argument of which it is not known what it is."""
        look = self._look()
        try:
            for text in texts_in(value):
                subject = f"{tool} {text}"
                names = look.paths.names(text.removeprefix("file://"), self._root) or ()
                host = host_of(text)
                for rule in self._narrowing:
                    of_files = rule.tool in READS | WRITES and rule.pattern is not None
                    about = of_files and any(self._is_about(rule, one, look) for one in names)
                    if about or (host and rule.concerns("", Use.SENDS) and rule.matches_domain(host)):
                        return Finding(subject, rule.decision, rule)
                if _COMMAND_LIKE.search(name):
                    folders = (self._root,)
                    for command in look.read(text).commands:
                        against = self._against(self._reached(command, folders, look)[0], look)
                        if against is not None:
                            return replace(against, subject=subject)
        except TooMuchToJudge as error:
            return _unjudged(f"{tool} {name}", error)
        return None

    def may_read(self, path: str) -> bool:
        """Whether no rule with a path denies reading this file, or makes it ask."""
        names = self._look().paths.names(path, self._root)
        return names is not None and not any(
            rule.names("read_file") and not rule.covers_all and any(rule.matches_path(name) for name in names)
            for rule in self._narrowing
        )

    def suggestions(self, tool: str, arguments: Mapping[str, Any], judgement: Judgement) -> tuple[str, ...]:
        """The rules that would let this call run unasked; () where a rule says that it asks."""
        asking = [one for one in judgement.findings if one.decision is Decision.ASK]
        if judgement.decision is not Decision.ASK or any(one.rule is not None for one in asking):
            return ()
        if all(one.suggestion for one in asking):
            return tuple(dict.fromkeys(one.suggestion for one in asking))
        if tool != COMMAND_TOOL:
            return ()
        return (f"{COMMAND_TOOL}({exact_pattern(str(arguments.get('command', '')))})",)

    def _look(self) -> _Look:
        budget = JudgementBudget()
        return _Look(budget, Paths(self._root, budget))

    # The parts of a call

    def _joined(self, findings: Sequence[Finding]) -> Judgement:
        if not _only_reads(findings):
            # Beside what may change something, git's settings may be others when it reads.
            decision, why = self._default("command")
            findings = [
                replace(one, decision=decision, why=why, reads=None) if one.reads and one.reads.git else one
                for one in findings
            ]
        if self._approve is Approval.ALL:
            mode = "--approve all: nothing asks"
            findings = [
                replace(one, decision=Decision.ALLOW, rule=None, why=mode)
                if one.decision is Decision.ASK and not self._may_be_denied(one)
                else one
                for one in findings
            ]
        elif not any(one.reads for one in findings) and not any(
            one.rule is not None and one.decision is Decision.ALLOW for one in findings
        ):
            decision, why = self._default("command")
            findings = [replace(one, decision=decision, why=why) if one.neutral else one for one in findings]
        for decision in (Decision.DENY, Decision.ASK):
            if any(one.decision is decision for one in findings):
                return Judgement(decision, tuple(findings))
        return Judgement(Decision.ALLOW, tuple(findings))

    def _may_be_denied(self, finding: Finding) -> bool:
        """Whether a command is perhaps one that a rule denies, which nothing that allows all can know."""
        if finding.unjudged:
            return self._denies
        if finding.rule is not None:
            return finding.rule.decision is Decision.DENY and finding.rule.names(COMMAND_TOOL)
        return finding.hidden and self._denies_commands

    def _default(self, effect: str) -> tuple[Decision, str]:
        if effect == "write" and self._approve is Approval.PLAN:
            return Decision.DENY, _PLANNING
        asks = {"read": False, "dialogue": False, "task": False, "write": self._approve is Approval.ASK}.get(
            effect, self._approve is not Approval.ALL
        )
        if asks:
            return Decision.ASK, f"--approve {self._approve}: no rule applies"
        free = {
            "read": "reading needs no approval",
            "dialogue": "it is a question or an answer",
            "task": "each call of the sub-agent is judged by itself",
        }
        return Decision.ALLOW, free.get(effect, f"--approve {self._approve}")

    def _whole(self, tool: str, effect: str, *, says_it_reads: bool = False) -> Finding:
        if self._plans and effect in {"write", "command"} and not says_it_reads:
            return Finding(tool, Decision.DENY, None, _PLANNING)
        for rule in (*self._narrowing, *self._allowing):
            if rule.covers_all and rule.names(tool):
                return Finding(tool, rule.decision, rule)
        decision, why = self._default(effect)
        return Finding(tool, decision, None, why, suggestion=tool)

    def _address(self, tool: str, effect: str, url: str) -> Finding:
        host = host_of(url)
        for rule in (*self._narrowing, *self._allowing):
            if (rule.names(tool) and rule.covers_all) or (
                rule.concerns(tool, Use.SENDS) and host and rule.matches_domain(host)
            ):
                return Finding(f"{tool} {host or url}", rule.decision, rule)
        if self._plans and effect == "command":
            return Finding(f"{tool} {host or url}", Decision.DENY, None, _PLANNING)
        decision, why = self._default(effect)
        return Finding(
            f"{tool} {host or url}", decision, None, why, suggestion=f"{tool}({host})" if host else ""
        )

    # Files

    def _own_file(self, tool: str, use: Use, path: str) -> Finding:
        subject = f"{tool} {path}"
        try:
            return self._file(tool, use, Word(path), (self._root,), subject, self._look(), own=True)
        except TooMuchToJudge as error:
            return _unjudged(subject, error)

    def _file(
        self,
        tool: str,
        use: Use,
        word: Word,
        folders: Sequence[str] | None,
        subject: str,
        look: _Look,
        *,
        own: bool,
    ) -> Finding:
        """One file that a tool or the shell opens. `own`: by a tool of ours, which checks its paths itself."""
        writes = use is Use.WRITES
        look.budget.step(8)
        found = list(self._in_folders(word.text, folders, look))
        names = [name for one in found if one is not None for name in one]
        for rule in self._narrowing:
            if rule.concerns(tool, use) and any(self._is_about(rule, name, look) for name in names):
                return Finding(subject, rule.decision, rule)
        if writes and self._plans:
            return Finding(subject, Decision.DENY, None, _PLANNING)
        if word.kind != "literal" or None in found:
            return Finding(subject, Decision.ASK, None, "it is not known which file this is")
        guarded = any(_is_guarded(name) for name in names)
        if not guarded or not writes:
            for rule in self._allowing:
                if rule.concerns(tool, use) and all(rule.matches_path(name) for name in names):
                    outside = any(name.startswith("/") for name in names)
                    if not outside or rule.path_pattern.startswith("/") or own:
                        return Finding(subject, Decision.ALLOW, rule)
        if not own and any(name.startswith("/") for name in names):
            return Finding(subject, Decision.ASK, None, "it is outside the workspace")
        if guarded and writes and not own:
            return Finding(subject, Decision.ASK, None, "it holds settings that run commands")
        decision, why = self._default("write" if writes else "read")
        pattern = "**" if own else glob.escape(names[0])
        return Finding(subject, decision, None, why, suggestion=f"edit_file({pattern})" if writes else "")

    def _in_folders(
        self, path: str, folders: Sequence[str] | None, look: _Look
    ) -> Iterator[tuple[str, ...] | None]:
        """The names of a path in each folder where it may begin; None where it is not known."""
        if folders is None and not path.startswith(("/", "~")):
            yield None
            return
        for folder in folders or (self._root,):
            yield look.paths.names(path, folder)

    def _is_about(self, rule: PermissionRule, name: str, look: _Look) -> bool:
        """Whether a rule that narrows is about this file, by the name of the file or of a link in the rule."""
        if rule.matches_path(name):
            return True
        real = self._followed(rule, look)
        return real is not None and real.matches_path(name)

    def _followed(self, rule: PermissionRule, look: _Look) -> PermissionRule | None:
        """The rule with the links in the beginning of its path followed; None where there are none."""
        if rule.text not in look.followed:
            parts = rule.path_pattern.split("/")
            plain = "/".join(takewhile(lambda part: not _WILD.search(part), parts))
            names = look.paths.names(plain, self._root) if plain else None
            rest = rule.path_pattern[len(plain) :]
            linked = names is not None and len(names) > 1
            look.followed[rule.text] = (
                replace(rule, pattern=f"{glob.escape(names[-1])}{rest}") if names and linked else None
            )
        return look.followed[rule.text]

    # Commands

    def _command(
        self, command: str, look: _Look, depth: int = 0, where: tuple[str, ...] = ()
    ) -> list[Finding]:
        for rule in (*self._narrowing, *self._allowing):
            if rule.names(COMMAND_TOOL) and (rule.covers_all or rule.is_exactly(command)):
                found = Finding(command, rule.decision, rule)
                if rule.decision is not Decision.ALLOW or not (self._narrowing or self._plans):
                    return [found]
                return self._narrowed(self._parts(command, look, depth, where), found)
        return self._parts(command, look, depth, where) or [
            Finding(command, Decision.ASK, None, "it holds no command")
        ]

    def _narrowed(self, parts: Sequence[Finding], allowed: Finding) -> list[Finding]:
        """What is allowed as a whole, but for the parts about which a rule says otherwise."""
        everything = allowed.rule is not None and allowed.rule.covers_all
        against = [
            one
            for one in parts
            if one.decision is not Decision.ALLOW
            and (
                one.rule is not None
                or (everything and self._may_be_denied(one))
                or (self._plans and one.decision is Decision.DENY)
            )
        ]
        return against or [allowed]

    def _parts(self, command: str, look: _Look, depth: int, where: tuple[str, ...]) -> list[Finding]:
        """What is found in a command, up to where it takes too long."""
        findings: list[Finding] = []
        try:
            findings.extend(self._each_part(command, look, depth, where or (self._root,)))
        except TooMuchToJudge as error:
            if depth:
                raise
            findings.append(_unjudged(command, error))
        return findings

    def _each_part(self, command: str, look: _Look, depth: int, where: tuple[str, ...]) -> Iterator[Finding]:
        reading = look.read(command)
        folders = self._folders(reading, where, look)
        free = self._reads_free and reading.once and not depth
        for one in reading.commands:
            yield self._simple(one, folders, look, depth, free=free)
        for redirection in reading.redirections:
            if redirection.path.text not in SINKS or redirection.path.kind != "literal":
                use = Use.WRITES if redirection.writes else Use.READS
                tool = "write_file" if redirection.writes else "read_file"
                verb = "writes" if redirection.writes else "reads"
                subject = f"{verb} {redirection.path.text}"
                found = self._file(tool, use, redirection.path, folders, subject, look, own=False)
                free = found.rule is None and found.decision is Decision.ALLOW and not redirection.writes
                yield replace(found, reads=Reads("")) if free and self._reads_free else found
        for assignment in reading.assignments:
            if not sets_harmlessly(assignment, for_programs=False):
                why = "the variable may change what programs do"
                yield Finding(f"sets {assignment}", Decision.ASK, None, why)
        for why in reading.trouble:
            yield Finding(command, Decision.ASK, None, why, hidden=reading.unread)

    def _folders(
        self, reading: Reading, where: tuple[str, ...] | None, look: _Look
    ) -> tuple[str, ...] | None:
        """Where relative paths of a command may start: where it begins, and where it goes by `cd`; None: unknown."""
        if where is None or any("CDPATH" in one for one in reading.assignments):
            return None
        folders = dict.fromkeys(where)
        for one in reading.commands:
            look.budget.step()
            for target in _targets(one):
                if target is None:
                    return None
                for folder in [*folders]:
                    full = os.path.normpath(look.paths.joined(folder, target))
                    # A folder that is not there yet is made by the command itself, and mostly once.
                    if full not in folders and (folder in where or is_folder(full)):
                        look.budget.step(4)
                        folders[full] = None
                if len(folders) > _MOST_FOLDERS:
                    return None
        return tuple(folders)

    def _simple(
        self,
        command: SimpleCommand,
        folders: tuple[str, ...] | None,
        look: _Look,
        depth: int,
        *,
        free: bool = False,
    ) -> Finding:
        subject, wrappers = command.source, list[str]()
        look.budget.step(2)
        hidden = False
        if self._narrowing or self._plans:
            reached, hidden = self._reached(command, folders, look)
            against = self._against(reached, look)
            if against is not None:
                return replace(against, subject=subject)
            if self._plans and any(one.writes for one in reached):
                return Finding(subject, Decision.DENY, None, _PLANNING)
        look.budget.need(len(command.words))
        for _ in range(MOST_WRAPPERS):
            inside = self._stays(command, folders, look)
            for rule in self._allowing:
                look.budget.step()
                look.budget.need(len(command.words))
                if (
                    rule.names(COMMAND_TOOL)
                    and rule.pattern is not None
                    and (command.assignments or not command.words or rule.may_begin_with(command.words[0]))
                    and covers(rule, command, inside)
                ):
                    return Finding(subject, Decision.ALLOW, rule)
            inner = within(command)
            if inner is None:
                break
            wrappers.append(command.program)
            command = inner
        else:
            raise TooMuchToJudge(f"{MOST_WRAPPERS} or more other programs come before it")
        reads, why = self._read(command, wrappers, folders, look) if free else (None, "")
        if reads is not None and not why:
            if reads.along:
                return Finding(subject, Decision.ALLOW, None, "it changes nothing", neutral=True)
            return Finding(subject, Decision.ALLOW, None, READS_ONLY, reads=reads)
        found = self._by_itself(command, folders, look, depth, subject, hidden=hidden)
        return replace(found, why=why) if why and found.decision is Decision.ASK else found

    def _read(
        self, command: SimpleCommand, wrappers: Sequence[str], folders: tuple[str, ...] | None, look: _Look
    ) -> tuple[Reads | None, str]:
        """Say what a command reads if it does nothing else, and why it asks all the same; "" if it need not."""
        reads = reads_only(command) if len(command.words) <= _MOST_SUGGESTED else None
        if reads is None:
            return None, ""
        inside = self._stays(command, folders, look)
        if folders is None:
            return reads, "it is not known in which folder it runs"
        if not all(word.text != "/dev/zero" and inside(word) for word in reads.opens):
            return reads, "it reads outside the workspace"
        if any(self._may_be_an_option(word, folders, look) for word in command.words[1:]):
            return reads, "a file there is named like an option"
        for program in (*wrappers, reads.program):
            if program not in _OF_THE_SHELL and not look.from_outside(program, self._root, folders):
                return reads, f"the workspace says which program {program} is"
        if reads.git:
            for folder in folders:
                if runs := look.run_by_git(folder):
                    return reads, runs
        if reads.walks and self._keeping and (reads.git or self._holds_kept(look)):
            return reads, f"it reads many files, and a rule keeps some from being read ({self._keeping[0]})"
        return reads, ""

    def _may_be_an_option(self, word: Word, folders: Sequence[str], look: _Look) -> bool:
        """Whether a wildcard stands for a file whose name begins with a dash."""
        if word.kind != "glob" or becomes_no_option(word):
            return False
        found = (names for folder in folders for names in look.paths.matching(word.text, folder))
        return any(name.rpartition("/")[2].startswith("-") for names in found for name in names)

    def _holds_kept(self, look: _Look) -> bool:
        """Whether there is a file in the workspace that a rule keeps from being read, or too many to look at."""
        pending, seen = [self._root], 0
        while pending:
            folder = pending.pop()
            try:
                with os.scandir(folder) as entries:
                    for entry in entries:
                        seen += 1
                        look.budget.step(8)
                        if seen > _MOST_LOOKED_AT:
                            return True
                        name = os.path.relpath(entry.path, self._root)
                        if any(self._is_about(rule, name, look) for rule in self._keeping):
                            return True
                        if entry.is_dir(follow_symlinks=False):
                            pending.append(entry.path)
            except OSError:
                return True
        return False

    def _by_itself(
        self,
        command: SimpleCommand,
        folders: tuple[str, ...] | None,
        look: _Look,
        depth: int,
        subject: str,
        *,
        hidden: bool,
    ) -> Finding:
        """A command about which no rule speaks."""
        scripts, alone = scripts_within(command)
        if scripts and alone and depth < _DEEPEST and folders is not None:
            parts = self._command(scripts[0], look, depth + 1, folders)
            if all(one.decision is Decision.ALLOW and (one.rule or one.neutral) for one in parts):
                speaking = next((one.rule for one in parts if one.rule), None)
                return Finding(subject, Decision.ALLOW, speaking, neutral=speaking is None)
        inside = self._stays(command, folders, look)
        look.budget.need(len(command.words))
        suggestion = suggested_rule(command, inside) if len(command.words) <= _MOST_SUGGESTED else ""
        if is_neutral(command) and (command.program != "cd" or inside(command.words[1])):
            why = "it changes nothing"
            return Finding(subject, Decision.ALLOW, None, why, neutral=True, suggestion=suggestion)
        if self._denies_commands and hidden:
            why = "it is not known which program runs, and a rule denies some"
            return Finding(subject, Decision.ASK, None, why, suggestion=suggestion, hidden=True)
        decision, why = self._default("command")
        return Finding(subject, decision, None, why, suggestion=suggestion)

    def _stays(
        self, command: SimpleCommand, folders: tuple[str, ...] | None, look: _Look
    ) -> Callable[[Word], bool]:
        """Whether an argument of a command is, at this moment, no path that leads out of the workspace or to what
        is guarded, links and wildcards followed.
        """
        writes = writes_its_arguments(command)

        def inside(word: Word) -> bool:
            look.budget.step(2)
            if word.text in SINKS:
                return True
            for names in self._names_of(word, folders, look):
                if names is None or any(name.startswith("/") for name in names):
                    return False
                if writes and any(_is_guarded(name) for name in names):
                    return False
            return True

        return inside

    def _reached(
        self, command: SimpleCommand, folders: tuple[str, ...] | None, look: _Look
    ) -> tuple[list[_Reached], bool]:
        """The command with every one that it could run, and whether it is not known which program runs somewhere."""
        reached: list[_Reached] = []
        hidden = False
        read: set[str] = set()
        pending = [(command, folders, 0)]
        while pending:
            one, where, depth = pending.pop()
            look.budget.step(len(one.words))
            reached.append(_Reached(one, where))
            hidden = hidden or hides_its_program(one)
            for script in scripts_within(one)[0]:
                if script in read:
                    continue
                read.add(script)
                if depth == _DEEPEST:
                    hidden = True
                    continue
                reading = look.read(script)
                hidden = hidden or reading.unread
                inner = self._folders(reading, where, look)
                pending += [(each, inner, depth + 1) for each in reading.commands]
        return reached, hidden

    def _against(self, reached: Sequence[_Reached], look: _Look) -> Finding | None:
        """The rule that forbids one of these commands or makes it ask."""
        uncertain: Finding | None = None
        for rule in self._narrowing:
            says = self._says(rule, reached, look)
            if says == "yes":
                return Finding("", rule.decision, rule)
            if says == "perhaps" and uncertain is None:
                uncertain = Finding("", Decision.ASK, rule, "it is not known whether this rule covers it")
        return uncertain

    def _says(self, rule: PermissionRule, reached: Sequence[_Reached], look: _Look) -> str:
        """Whether a rule that narrows is about one of these: yes, perhaps, or ""."""
        perhaps = False
        for one in reached:
            look.budget.step(2)
            if rule.names(COMMAND_TOOL) and rule.pattern is not None:
                answer = self._resembles(rule, one, look)
            elif rule.pattern is None or rule.covers_all:
                continue
            elif any(rule.names(tool) for tool in READS):
                answer = self._touches(rule, one, look)
            elif any(rule.names(tool) for tool in WRITES):
                answer = self._touches(rule, one, look) if one.writes else ""
            else:
                hosts = (host_of(word.text) for word in one.command.words[1:])
                answer = "yes" if any(host and rule.matches_domain(host) for host in hosts) else ""
            if answer == "yes":
                return answer
            perhaps = perhaps or answer == "perhaps"
        return "perhaps" if perhaps else ""

    def _resembles(self, rule: PermissionRule, one: _Reached, look: _Look) -> str:
        perhaps = False
        for place in one.places:
            look.budget.step()
            if not rule.may_begin_with(one.command.words[place]) and not one.command.assignments:
                continue
            look.budget.step(len(one.command.words))
            look.budget.need(len(one.command.words))
            answer = resembles(rule, tail_of(one.command, place) if place else one.command)
            if answer == "yes":
                return answer
            perhaps = perhaps or answer == "perhaps"
        return "perhaps" if perhaps else ""

    def _touches(self, rule: PermissionRule, one: _Reached, look: _Look) -> str:
        """Whether an argument is a path that the rule is about."""
        perhaps = False
        for word in () if one.command.program == "echo" else one.command.words[1:]:
            for names in self._names_of(word, one.folders, look):
                look.budget.step()
                if names is None:
                    perhaps = True
                elif any(self._is_about(rule, name, look) for name in names):
                    return "yes"
        return "perhaps" if perhaps else ""

    def _names_of(
        self, word: Word, folders: tuple[str, ...] | None, look: _Look
    ) -> Iterator[tuple[str, ...] | None]:
        """The names of every file that an argument may be, or hold as a part; None where that is not known."""
        if word.kind == "unknown":
            yield None
            return
        for part in _paths_in(word.text):
            if word.kind == "glob" and folders is not None:
                for folder in folders:
                    yield from look.paths.matching(part, folder)
            else:
                yield from self._in_folders(part, folders, look)


_WILD = re.compile(r"[*?\[{\\]")
_OF_THE_SHELL = frozenset({"", "command", "builtin", "time"})
_MOST_SUGGESTED = 1_000
"""Words of a command that somebody reads and wants again."""
_MOST_LOOKED_AT = 3_000
"""Names among which a file is looked for that a rule keeps from being read."""


def _unjudged(subject: str, error: TooMuchToJudge) -> Finding:
    return Finding(subject, Decision.ASK, None, f"it could not be judged: {error}", unjudged=True)


def _is_guarded(name: str) -> bool:
    parts = [part.casefold() for part in name.split("/")]
    return GUARDED[0] in parts or parts[-1] == GUARDED[1]


def _paths_in(text: str) -> Iterator[str]:
    """What may be a path in one argument: itself, what is joined to an option, to a name or to other paths."""
    if not text.startswith(("-", "@")) and not _JOINS.search(text):
        if text:
            yield text
        return
    attached = text[2:] if text.startswith("-") and not text.startswith("--") else ""
    of_option = text.rpartition("=")[2].lstrip("@")
    yield from filter(None, dict.fromkeys((text, attached, of_option, *_JOINS.split(text))))


_JOINS = re.compile(r"[=:,]")
_GOES = frozenset({"cd", "pushd"})
_GOES_BEFORE = frozenset({"-C", "--directory", "--chdir", "-D"})


def _targets(command: SimpleCommand) -> Iterator[str | None]:
    """The folders to which a command goes, or lets another one go; None for one that is not known."""
    for _ in range(MOST_WRAPPERS):
        inner = within(command) if command.program in {"builtin", "command"} else None
        if inner is None:
            break
        command = inner
    words = command.words[1:]
    if command.program == "popd" or any("CDPATH" in word.text for word in words):
        yield None
    if command.program in _GOES:
        plain = [
            word for word in words if word.kind != "literal" or not re.fullmatch(r"-[LPe@]+|--", word.text)
        ]
        if not plain and command.program == "cd":
            yield "~"
        elif len(plain) == 1 and names_a_folder(plain[0]):
            yield plain[0].text
        else:
            yield None
    elif command.program not in {"", "echo", "grep"}:
        for option, value in pairwise(words):
            if option.text in _GOES_BEFORE:
                yield value.text if value.kind == "literal" else None
