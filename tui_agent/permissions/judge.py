"""The decision if a call may run: deny before ask before allow, and for a command each simple command by itself.

Pure but for looking up links and wildcards in the workspace. The keeping of rules, and the asking, are
elsewhere.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tui_agent.core.names import READS_ONLY, Approval, Decision
from tui_agent.core.tool_facts import COMMAND_TOOL, Use, Uses
from tui_agent.permissions.budget import TooMuchToJudge
from tui_agent.permissions.commands import SimpleCommand, Word
from tui_agent.permissions.coverage import MOST_SUGGESTED, covers, suggested_rule
from tui_agent.permissions.findings import Finding, Judgement, only_reads, unjudged
from tui_agent.permissions.look import DEEPEST, Look, is_guarded
from tui_agent.permissions.narrowing import rule_against, what_could_run
from tui_agent.permissions.programs import (
    MOST_WRAPPERS,
    SINKS,
    is_neutral,
    scripts_within,
    sets_harmlessly,
    tables,
    within,
)
from tui_agent.permissions.readers import Reads, reads_only
from tui_agent.permissions.risky import risks
from tui_agent.permissions.rules import READS, WRITES, PermissionRule, exact_pattern, host_of
from tui_agent.permissions.unasked import read_unasked
from tui_agent.permissions.uses import OF_RULES, texts_in
from tui_agent.shell_syntax import language

_PLANNING = "in plan mode nothing is changed: put it into the plan"
_UNCONFINED = f"{_PLANNING}. Without a sandbox only commands that are known to read run in it"


def looks_at_files(uses: Uses | None) -> bool:
    """Tell if judging a call of a tool follows links and wildcards on the disk, which may take its time."""
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


class Permissions:
    """The rules that hold in a workspace, with the mode that decides if none of them applies."""

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
        # Loading these takes its time, and is part of no judgement.
        language()
        tables()
        risks()
        look = self._look()
        given = {name: use for name, use in uses.items() if name in arguments}
        if Use.READS in uses.values() and Use.READS not in given.values():
            findings = self._own_files(tool, Use.READS, ".", look)
        else:
            findings = []
        for name, value in arguments.items():
            findings += self._used(tool, effect, name, uses.get(name, Use.ANYTHING), value, look)
            if findings and findings[-1].unjudged:
                break
        if not findings or _BY_EFFECT.get(effect, frozenset(given.values())).isdisjoint(uses.values()):
            findings.append(self._whole(tool, effect, says_it_reads=says_it_reads))
        return self._joined(findings)

    def _used(self, tool: str, effect: str, name: str, use: Use, value: Any, look: Look) -> Sequence[Finding]:
        """Decide on one argument."""
        match use:
            case Use.RUNS:
                return self._run(tool, str(value), look)
            case Use.SENDS:
                return [self._address(tool, effect, str(value))]
            case Use.READS | Use.WRITES:
                return self._own_files(tool, use, value, look)
            case Use.ANYTHING:
                found = self._perhaps_forbidden(tool, name, value, look) if self._narrowing else None
                return [] if found is None else [found]
            case _:
                return ()

    def _run(self, tool: str, command: str, look: Look) -> Sequence[Finding]:
        if tool != COMMAND_TOOL:
            for rule in (*self._narrowing, *self._allowing):
                if rule.covers_all and rule.names(tool) and rule.decision is not Decision.ALLOW:
                    return [Finding(tool, rule.decision, rule)]
        findings = self._command(command, look)
        if self._plans and not self._confined and not self._is_known_to_read(command, look):
            denied = [one for one in findings if one.decision is Decision.DENY]
            return denied or [Finding(command, Decision.DENY, None, _UNCONFINED)]
        return findings

    def _is_known_to_read(self, command: str, look: Look) -> bool:
        """Tell if nothing in a command is known to do more than read, wherever it reads."""
        try:
            reading = look.read(command)
        except TooMuchToJudge:
            return False
        parts = [is_neutral(one) or reads_only(one) is not None for one in reading.commands]
        return reading.once and not reading.trouble and bool(parts) and all(parts)

    def _perhaps_forbidden(self, tool: str, name: str, value: Any, look: Look) -> Finding | None:
        """Find the rule that narrows and is about an argument, if it is not known what that is."""
        try:
            for text in texts_in(value):
                look.budget.step(8)
                subject = f"{tool} {text}"
                names = look.paths.names(text.removeprefix("file://"), self._root) or ()
                host = host_of(text)
                for rule in self._narrowing:
                    of_files = rule.tool in READS | WRITES and rule.pattern is not None
                    about = of_files and any(look.is_about(rule, one) for one in names)
                    if about or (host and rule.concerns("", Use.SENDS) and rule.matches_domain(host)):
                        return Finding(subject, rule.decision, rule)
                if _COMMAND_LIKE.search(name):
                    folders = (self._root,)
                    for command in look.read(text).commands:
                        could_run, _ = what_could_run(command, folders, look)
                        against = rule_against(self._narrowing, could_run, look)
                        if against is not None:
                            return replace(against, subject=subject)
        except TooMuchToJudge as error:
            return unjudged(f"{tool} {name}", error)
        return None

    def may_read(self, path: str) -> bool:
        """Tell if no rule with a path denies reading this file, or makes it ask."""
        names = self._look().paths.names(path, self._root)
        return names is not None and not any(
            any(rule.names(tool) for tool in READS)
            and not rule.covers_all
            and any(rule.matches_path(name) for name in names)
            for rule in self._narrowing
        )

    def suggestions(self, tool: str, arguments: Mapping[str, Any], judgement: Judgement) -> tuple[str, ...]:
        """List the rules that would let this call run unasked; () if a rule says that it asks."""
        asking = [one for one in judgement.findings if one.decision is Decision.ASK]
        if judgement.decision is not Decision.ASK or any(one.rule is not None for one in asking):
            return ()
        if all(one.suggestion for one in asking):
            return tuple(dict.fromkeys(one.suggestion for one in asking))
        if tool != COMMAND_TOOL:
            return ()
        return (f"{COMMAND_TOOL}({exact_pattern(str(arguments.get('command', '')))})",)

    def _look(self) -> Look:
        return Look(self._root)

    # The parts of a call

    def _joined(self, findings: Sequence[Finding]) -> Judgement:
        if not only_reads(findings):
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
        elif not any(one.rule is not None and one.decision is Decision.ALLOW for one in findings):
            decision, why = self._default("command")
            reading = any(one.reads for one in findings)
            findings = [
                replace(one, decision=decision, why=one.doubt or why)
                if one.neutral and (one.doubt or not reading)
                else one
                for one in findings
            ]
        for decision in (Decision.DENY, Decision.ASK):
            if any(one.decision is decision for one in findings):
                return Judgement(decision, tuple(findings))
        return Judgement(Decision.ALLOW, tuple(findings))

    def _may_be_denied(self, finding: Finding) -> bool:
        """Tell if a command is perhaps one that a rule denies, which nothing that allows all can know."""
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

    def _own_files(self, tool: str, use: Use, value: Any, look: Look) -> list[Finding]:
        """Decide on each file that an argument names, up to the point at which it takes too long."""
        findings: list[Finding] = []
        try:
            for path in texts_in(value):
                findings.append(self._own_file(tool, use, path, look))  # noqa: PERF401 - they count up to an error
        except TooMuchToJudge as error:
            findings.append(unjudged(tool, error))
        return findings or [self._own_file(tool, use, "", look)]

    def _own_file(self, tool: str, use: Use, path: str, look: Look) -> Finding:
        return self._file(tool, use, Word(path), (self._root,), f"{tool} {path}", look, own=True)

    def _file(
        self,
        tool: str,
        use: Use,
        word: Word,
        folders: Sequence[str] | None,
        subject: str,
        look: Look,
        *,
        own: bool,
    ) -> Finding:
        """Decide on a file that a tool or the shell opens. `own`: by a tool of ours, which checks its paths itself."""
        writes = use is Use.WRITES
        look.budget.step(8)
        found = list(look.in_folders(word.text, folders))
        names = [name for one in found if one is not None for name in one]
        for rule in self._narrowing:
            if rule.concerns(tool, use) and any(look.is_about(rule, name) for name in names):
                return Finding(subject, rule.decision, rule)
        if writes and self._plans:
            return Finding(subject, Decision.DENY, None, _PLANNING)
        if word.kind != "literal" or None in found:
            return Finding(subject, Decision.ASK, None, "it is not known which file this is")
        guarded = any(is_guarded(name) for name in names)
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

    # Commands

    def _command(
        self, command: str, look: Look, depth: int = 0, where: tuple[str, ...] = ()
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
        """Allow the whole, but for the parts about which a rule says otherwise."""
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

    def _parts(self, command: str, look: Look, depth: int, where: tuple[str, ...]) -> list[Finding]:
        """List the findings in a command, up to the point at which it takes too long."""
        findings: list[Finding] = []
        try:
            findings.extend(self._each_part(command, look, depth, where or (self._root,)))
        except TooMuchToJudge as error:
            if depth:
                raise
            findings.append(unjudged(command, error))
        return findings

    def _each_part(self, command: str, look: Look, depth: int, where: tuple[str, ...]) -> Iterator[Finding]:
        reading = look.read(command)
        folders = look.folders(reading, where)
        free = self._reads_free and reading.once and not depth
        own = frozenset(one.partition("=")[0].rstrip("+") for one in reading.assignments)
        for one in reading.commands:
            yield self._simple(one, folders, look, depth, own if free else None)
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

    def _simple(
        self,
        command: SimpleCommand,
        folders: tuple[str, ...] | None,
        look: Look,
        depth: int,
        own: frozenset[str] | None,
    ) -> Finding:
        """Decide on a command. `own`: variables that the line sets, with which what only reads is free; None: it is
        not.
        """
        subject, wrappers = command.source, list[str]()
        look.budget.step(2)
        hidden = False
        if self._narrowing or self._plans:
            could_run, hidden = what_could_run(command, folders, look)
            against = rule_against(self._narrowing, could_run, look)
            if against is not None:
                return replace(against, subject=subject)
            if self._plans and any(one.writes for one in could_run):
                return Finding(subject, Decision.DENY, None, _PLANNING)
        look.budget.need(len(command.words))
        for _ in range(MOST_WRAPPERS):
            inside = look.stays(command, folders)
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
        reads, why = None, ""
        if own is not None:
            reads, why = read_unasked(command, wrappers, folders, self._keeping, look, own)
        if reads is not None and not why:
            return Finding(subject, Decision.ALLOW, None, READS_ONLY, reads=reads)
        found = self._by_itself(command, folders, look, depth, subject, hidden=hidden)
        if found.neutral:
            return replace(found, doubt=why)
        return replace(found, why=why) if why and found.decision is Decision.ASK else found

    def _by_itself(
        self,
        command: SimpleCommand,
        folders: tuple[str, ...] | None,
        look: Look,
        depth: int,
        subject: str,
        *,
        hidden: bool,
    ) -> Finding:
        """Decide on a command about which no rule speaks."""
        scripts, alone = scripts_within(command)
        if scripts and alone and depth < DEEPEST and folders is not None:
            parts = self._command(scripts[0], look, depth + 1, folders)
            if all(one.decision is Decision.ALLOW and (one.rule or one.neutral) for one in parts):
                speaking = next((one.rule for one in parts if one.rule), None)
                return Finding(subject, Decision.ALLOW, speaking, neutral=speaking is None)
        inside = look.stays(command, folders)
        look.budget.need(len(command.words))
        suggestion = suggested_rule(command, inside) if len(command.words) <= MOST_SUGGESTED else ""
        if is_neutral(command) and (command.program != "cd" or inside(command.words[1])):
            why = "it changes nothing"
            return Finding(subject, Decision.ALLOW, None, why, neutral=True, suggestion=suggestion)
        if self._denies_commands and hidden:
            why = "it is not known which program runs, and a rule denies some"
            return Finding(subject, Decision.ASK, None, why, suggestion=suggestion, hidden=True)
        decision, why = self._default("command")
        return Finding(subject, decision, None, why, suggestion=suggestion)
