"""Whether a call may run: deny before ask before allow, and for a command each simple command by itself.

Pure but for looking up links and wildcards in the workspace. Where rules are kept, and who is asked, is decided
elsewhere.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tui_agent.core.names import Approval, Decision
from tui_agent.permissions.commands import Reading, SimpleCommand, Word, read_command
from tui_agent.permissions.programs import (
    SINKS,
    base_name,
    becomes_no_option,
    changes_the_shell,
    hides_its_program,
    is_neutral,
    known_program,
    runs_its_input,
    scripts_within,
    sets_harmlessly,
    stays_inside,
    tails,
    within,
    writes_its_arguments,
)
from tui_agent.permissions.rules import (
    GUARDED,
    READS,
    WRITES,
    Rule,
    exact_pattern,
    literal_pattern,
    word_matches,
    words_match,
)

COMMAND_TOOL = "bash"
_DEEPEST = 4
_MOST_EXPANDED = 1_000
"""Files that a wildcard may stand for and still be looked at one by one."""


@dataclass(frozen=True)
class Finding:
    """What was decided about one part of a call. `rule` is None where no rule applies; `why` then says what decided."""

    subject: str
    decision: Decision
    rule: Rule | None = None
    why: str = ""
    neutral: bool = False
    """It changes nothing and goes along with what a rule allows."""
    suggestion: str = ""
    """The rule that would allow just this; empty where only the exact call can be allowed."""
    hidden: bool = False
    """It is not known which program runs."""

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
        return next((one for one in deciding if one.rule), deciding[0])

    @property
    def by(self) -> str:
        """Every rule, mode or reason that let the call run, for the audit."""
        return "; ".join(dict.fromkeys(one.words() for one in self.findings if one.words()))


def looks_at_files(tool: str) -> bool:
    """Whether judging a call of this tool follows links and wildcards on the disk, which may take its time."""
    return tool == COMMAND_TOOL or tool in READS | WRITES


class Permissions:
    """The rules that hold in a workspace, with the mode that decides where none of them applies."""

    def __init__(self, rules: Sequence[Rule], workspace: Path, approve: Approval = Approval.ASK) -> None:
        by_decision = {each: [rule for rule in rules if rule.decision is each] for each in Decision}
        self._narrowing = [*by_decision[Decision.DENY], *by_decision[Decision.ASK]]
        self._allowing = by_decision[Decision.ALLOW]
        self._denies_commands = any(rule.names(COMMAND_TOOL) for rule in by_decision[Decision.DENY])
        self._root = Path(os.path.realpath(workspace))
        self._approve = approve

    def judge(self, tool: str, effect: str, arguments: Mapping[str, Any]) -> Judgement:
        """Decide on one call. `effect` is the tool's: read, write, command or dialogue."""
        if tool == COMMAND_TOOL:
            findings = self._command(str(arguments.get("command", "")))
        elif isinstance(arguments.get("url"), str):
            findings = [self._address(tool, effect, str(arguments["url"]))]
        elif tool in READS | WRITES:
            path = str(arguments.get("path", "."))
            findings = [self._file(tool, Word(path), (self._root,), f"{tool} {path}", own=True)]
        else:
            findings = [self._whole(tool, effect)]
        return self._joined(findings)

    def may_read(self, path: str) -> bool:
        """Whether no rule with a path denies reading this file, or makes it ask."""
        names = self._names(path, self._root)
        return not any(
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

    # The parts of a call

    def _joined(self, findings: Sequence[Finding]) -> Judgement:
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
            findings = [replace(one, decision=decision, why=why) if one.neutral else one for one in findings]
        for decision in (Decision.DENY, Decision.ASK):
            if any(one.decision is decision for one in findings):
                return Judgement(decision, tuple(findings))
        return Judgement(Decision.ALLOW, tuple(findings))

    def _may_be_denied(self, finding: Finding) -> bool:
        """Whether a command is perhaps one that a rule denies, which nothing that allows all can know."""
        if finding.rule is not None:
            return finding.rule.decision is Decision.DENY and finding.rule.names(COMMAND_TOOL)
        return finding.hidden and self._denies_commands

    def _default(self, effect: str) -> tuple[Decision, str]:
        asks = {"read": False, "dialogue": False, "write": self._approve is Approval.ASK}.get(
            effect, self._approve is not Approval.ALL
        )
        if asks:
            return Decision.ASK, f"--approve {self._approve}: no rule applies"
        free = {"read": "reading needs no approval", "dialogue": "it is a question or an answer"}
        return Decision.ALLOW, free.get(effect, f"--approve {self._approve}")

    def _whole(self, tool: str, effect: str) -> Finding:
        for rule in (*self._narrowing, *self._allowing):
            if rule.covers_all and rule.names(tool):
                return Finding(tool, rule.decision, rule)
        decision, why = self._default(effect)
        return Finding(tool, decision, None, why, suggestion=tool)

    def _address(self, tool: str, effect: str, url: str) -> Finding:
        host = host_of(url)
        for rule in (*self._narrowing, *self._allowing):
            if rule.names(tool) and (rule.covers_all or (host and rule.matches_domain(host))):
                return Finding(f"{tool} {host or url}", rule.decision, rule)
        decision, why = self._default(effect)
        return Finding(
            f"{tool} {host or url}", decision, None, why, suggestion=f"{tool}({host})" if host else ""
        )

    # Files

    def _file(self, tool: str, word: Word, folders: Sequence[Path], subject: str, *, own: bool) -> Finding:
        """One file that a tool or the shell opens. `own`: by a tool of ours, which has its own walls."""
        writes = tool in WRITES
        names = [name for folder in folders for name in self._names(word.text, folder)]
        for rule in self._narrowing:
            if rule.names(tool) and any(rule.matches_path(name) for name in names):
                return Finding(subject, rule.decision, rule)
        if word.kind != "literal":
            return Finding(subject, Decision.ASK, None, "it is not known which file this is")
        guarded = any(self._is_guarded(name) for name in names)
        if not guarded or not writes:
            for rule in self._allowing:
                if rule.names(tool) and all(rule.matches_path(name) for name in names):
                    outside = any(name.startswith("/") for name in names)
                    if not outside or (rule.pattern or "").startswith("/") or own:
                        return Finding(subject, Decision.ALLOW, rule)
        if not own and any(name.startswith("/") for name in names):
            return Finding(subject, Decision.ASK, None, "it is outside the workspace")
        if guarded and writes and not own:
            return Finding(subject, Decision.ASK, None, "it holds settings that run commands")
        decision, why = self._default("write" if writes else "read")
        pattern = "**" if own else glob.escape(names[0])
        return Finding(subject, decision, None, why, suggestion=f"edit_file({pattern})" if writes else "")

    def _names(self, path: str, folder: Path) -> list[str]:
        """A path as rules see it, as written and with links followed: relative inside the workspace, else absolute."""
        full = os.path.normpath(folder / os.path.expanduser(path.replace("\0", "")))  # noqa: PTH111 - of any user
        names = []
        for each in dict.fromkeys((full, os.path.realpath(full))):
            inside = Path(each)
            names.append(
                inside.relative_to(self._root).as_posix() if inside.is_relative_to(self._root) else each
            )
        return names

    def _is_guarded(self, name: str) -> bool:
        parts = [part.casefold() for part in name.split("/")]
        return GUARDED[0] in parts or parts[-1] == GUARDED[1]

    # Commands

    def _command(self, command: str, depth: int = 0) -> list[Finding]:
        for rule in (*self._narrowing, *self._allowing):
            if rule.names(COMMAND_TOOL) and (rule.covers_all or rule.is_exactly(command)):
                found = Finding(command, rule.decision, rule)
                if rule.decision is not Decision.ALLOW:
                    return [found]
                return self._narrowed(self._parts(command, depth), found)
        return self._parts(command, depth) or [Finding(command, Decision.ASK, None, "it holds no command")]

    def _narrowed(self, parts: Sequence[Finding], allowed: Finding) -> list[Finding]:
        """What is allowed as a whole, but for the parts about which a rule says otherwise."""
        everything = allowed.rule is not None and allowed.rule.covers_all
        against = [
            one
            for one in parts
            if one.decision is not Decision.ALLOW
            and (one.rule is not None or (everything and self._may_be_denied(one)))
        ]
        return against or [allowed]

    def _parts(self, command: str, depth: int) -> list[Finding]:
        reading = read_command(command)
        folders = self._folders(reading)
        findings = [self._simple(one, folders, depth) for one in reading.commands]
        for redirection in reading.redirections:
            if redirection.path.text not in SINKS or redirection.path.kind != "literal":
                tool = "write_file" if redirection.writes else "read_file"
                verb = "writes" if redirection.writes else "reads"
                subject = f"{verb} {redirection.path.text}"
                findings.append(self._file(tool, redirection.path, folders, subject, own=False))
        findings += [
            Finding(f"sets {one}", Decision.ASK, None, "the variable may change what programs do")
            for one in reading.assignments
            if not sets_harmlessly(one, for_programs=False)
        ]
        findings += [
            Finding(command, Decision.ASK, None, why, hidden=reading.unread) for why in reading.trouble
        ]
        return findings

    def _folders(self, reading: Reading) -> tuple[Path, ...]:
        """Where relative paths of a command may start: the workspace, and where it goes by `cd`."""
        folders = [self._root]
        for one in reading.commands:
            if one.program in {"cd", "pushd"} and len(one.words) == 2:
                folders += [folder / one.words[1].text for folder in folders]
        return tuple(folders[:16])

    def _simple(self, command: SimpleCommand, folders: Sequence[Path], depth: int) -> Finding:
        subject = command.source
        against = self._against(command, folders, depth)
        if against is not None:
            return replace(against, subject=subject)
        for rule in self._allowing:
            if rule.names(COMMAND_TOOL) and rule.pattern is not None and covers(rule, command):
                return Finding(subject, Decision.ALLOW, rule)
        inner = within(command)
        if inner is not None:
            return replace(self._simple(inner, folders, depth), subject=subject)
        scripts, alone = scripts_within(command)
        if scripts and alone and depth < _DEEPEST:
            parts = self._command(scripts[0], depth + 1)
            if all(one.decision is Decision.ALLOW and (one.rule or one.neutral) for one in parts):
                speaking = next((one.rule for one in parts if one.rule), None)
                return Finding(subject, Decision.ALLOW, speaking, neutral=speaking is None)
        suggestion = _suggestion(command)
        if is_neutral(command):
            return Finding(
                subject, Decision.ALLOW, None, "it changes nothing", neutral=True, suggestion=suggestion
            )
        if self._denies_commands and _hides(command, depth):
            why = "it is not known which program runs, and a rule denies some"
            return Finding(subject, Decision.ASK, None, why, suggestion=suggestion, hidden=True)
        decision, why = self._default("command")
        return Finding(subject, decision, None, why, suggestion=suggestion)

    def _against(self, command: SimpleCommand, folders: Sequence[Path], depth: int) -> Finding | None:
        """The rule that forbids this command or makes it ask: itself, and all that it could run or touch."""
        candidates = list(_runnable(command, depth))
        uncertain: Finding | None = None
        for rule in self._narrowing:
            says = self._says(rule, candidates, folders)
            if says == "yes":
                return Finding("", rule.decision, rule)
            if says == "perhaps" and uncertain is None:
                uncertain = Finding("", Decision.ASK, rule, "it is not known whether this rule means it")
        return uncertain

    def _says(self, rule: Rule, candidates: Sequence[SimpleCommand], folders: Sequence[Path]) -> str:
        """Whether a rule that narrows is about one of these: yes, perhaps, or ""."""
        perhaps = False
        for command in candidates:
            if rule.names(COMMAND_TOOL) and rule.pattern is not None:
                answer = resembles(rule, command)
            elif rule.pattern is None or rule.covers_all:
                continue
            elif any(rule.names(tool) for tool in READS):
                answer = self._touches(rule, command, folders)
            elif any(rule.names(tool) for tool in WRITES):
                answer = self._touches(rule, command, folders) if writes_its_arguments(command) else ""
            else:
                hosts = (host_of(word.text) for word in command.words[1:])
                answer = "yes" if any(host and rule.matches_domain(host) for host in hosts) else ""
            if answer == "yes":
                return answer
            perhaps = perhaps or answer == "perhaps"
        return "perhaps" if perhaps else ""

    def _touches(self, rule: Rule, command: SimpleCommand, folders: Sequence[Path]) -> str:
        """Whether an argument is a path that the rule is about."""
        perhaps = False
        for word in () if command.program == "echo" else command.words[1:]:
            if word.kind == "unknown":
                perhaps = True
                continue
            for text in self._paths_in(word):
                if any(rule.matches_path(name) for folder in folders for name in self._names(text, folder)):
                    return "yes"
        return "perhaps" if perhaps else ""

    def _paths_in(self, word: Word) -> Iterator[str]:
        text = word.text
        value = text.rpartition("=")[2]
        for part in dict.fromkeys((text, value, value.lstrip("@"), text.partition(":")[2])):
            if not part:
                continue
            yield part
            if word.kind == "glob":
                found = glob.iglob(part, root_dir=self._root, include_hidden=True)  # noqa: PTH207 - as a shell does
                yield from islice(found, _MOST_EXPANDED)


def _runnable(command: SimpleCommand, depth: int) -> Iterator[SimpleCommand]:
    """The command, and every one that it could run."""
    yield command
    for one in (command, *tails(command)):
        if one is not command:
            yield one
        if depth < _DEEPEST:
            for script in scripts_within(one)[0]:
                for inner in read_command(script).commands:
                    yield from _runnable(inner, depth + 1)


def _hides(command: SimpleCommand, depth: int) -> bool:
    """Whether it is not known which program it runs, or one of the scripts in it."""
    if hides_its_program(command):
        return True
    readings = [read_command(script) for script in scripts_within(command)[0]] if depth < _DEEPEST else []
    return any(
        reading.unread or any(_hides(inner, depth + 1) for inner in reading.commands) for reading in readings
    )


def host_of(url: str) -> str:
    """The host that an address names; "" where it names none."""
    try:
        parts = urlsplit(url)
        return (parts.hostname or "").rstrip(".") if parts.scheme in {"http", "https", "ftp", "ssh"} else ""
    except ValueError:
        return ""


def covers(rule: Rule, command: SimpleCommand) -> bool:
    """Whether an allowing rule covers this command, as strictly as its words do."""
    patterns = list(rule.words)
    assignments = list(command.assignments)
    while patterns and assignments and re.match(r"[A-Za-z_]\w*=", patterns[0]):
        if not word_matches(patterns.pop(0), assignments.pop(0)):
            return False
    if not all(sets_harmlessly(one, for_programs=True) for one in assignments):
        return False
    if not command.words or command.words[0].kind != "literal":
        return False
    known = known_program(command.words)

    def covered(word: Word) -> bool:
        if known is None:
            return stays_inside(word) or bool(word.kind == "literal" and host_of(word.text))
        plain = known[1].options is None or becomes_no_option(word)
        return plain and stays_inside(word) and known[1].takes(word.text)

    def same(pattern: str, word: Word) -> bool:
        if word.kind == "unknown" or not word_matches(pattern, word.text):
            return False
        fixed = pattern == literal_glob(word)
        return fixed or (word.kind == "literal" and not re.search(r"(?:^|/)\.\.(?:/|$)", word.text))

    return words_match(patterns, command.words, covered, same)


def literal_glob(word: Word) -> str:
    """The glob that means this word and no other."""
    return re.sub(r"([*?\[])", r"[\1]", word.text)


_LONG_FORMS = {"--recursive": "r", "--force": "f", "--all": "a"}


def resembles(rule: Rule, command: SimpleCommand) -> str:
    """Whether a rule that narrows is about this command, however it is written: yes, perhaps, or "".

    A program counts in any folder, options in any order, joined or apart; options that the rule does not name
    make no difference.
    """
    patterns = list(rule.words)
    if not patterns or rule.pattern is None or rule.pattern.startswith("="):
        return ""
    while patterns and command.assignments and re.match(r"[A-Za-z_]\w*=", patterns[0]):
        if not any(word_matches(patterns[0], one) for one in command.assignments):
            return ""
        patterns.pop(0)
    words = _without_globals(command.words)
    wanted, plain = _options([Word(pattern) for pattern in patterns])
    given, rest = _options(words)
    if not wanted <= given:
        return ""
    uncertain = any(word.kind == "unknown" for word in rest)
    if rest and rest[0].kind == "literal" and plain and "/" not in plain[0].text:
        rest = [Word(base_name(rest[0].text)), *rest[1:]]
    fits = words_match(
        [word.text for word in plain],
        rest,
        lambda _: True,
        lambda pattern, word: word.kind != "unknown" and word_matches(pattern, word.text),
    )
    if fits:
        return "yes"
    could = uncertain and words_match(
        [word.text for word in plain],
        rest,
        lambda _: True,
        lambda pattern, word: word.kind == "unknown" or word_matches(pattern, word.text),
    )
    return "perhaps" if could else ""


def _options(words: Sequence[Word]) -> tuple[set[str], list[Word]]:
    """The options of a command, joined ones taken apart, and its other words."""
    options: set[str] = set()
    rest: list[Word] = []
    for place, word in enumerate(words):
        text = word.text
        if text == "--":
            return options, [*rest, *words[place + 1 :]]
        if word.kind == "unknown" or not re.match(r"--?\w", text) or place == 0:
            rest.append(word)
        elif text.startswith("--"):
            options |= {text.partition("=")[0], _LONG_FORMS.get(text, text)}
        elif len(text) > _LONGEST_JOINED:
            options.add(f"-{text}")
        else:
            options |= set(text[1:].replace("R", "r"))
    if options & set(_LONG_FORMS.values()):
        options -= set(_LONG_FORMS)
    return options, rest


_LONGEST_JOINED = 5
"""Characters of joined one-letter options with their dash; a longer word behind one dash is a name (`-delete`)."""
_GIT_GLOBALS = frozenset(
    {"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env"}
)


def _without_globals(words: Sequence[Word]) -> Sequence[Word]:
    """Git's words without the options before its subcommand."""
    if not words or base_name(words[0].text) != "git":
        return words
    place = 1
    while place < len(words) and words[place].text.startswith("-"):
        place += 2 if words[place].text in _GIT_GLOBALS else 1
    return [words[0], *words[place:]]


def _suggestion(command: SimpleCommand) -> str:
    """The rule that would allow this command: as a known program's, or as these words alone."""
    known = known_program(command.words)
    if known is not None:
        rule = Rule(Decision.ALLOW, "", "", COMMAND_TOOL, f"{known[0]} *")
        if covers(rule, command):
            return f"{COMMAND_TOOL}({known[0]} *)"
    if any(word.kind != "literal" for word in command.words) or command.assignments or not command.words:
        return ""
    if changes_the_shell(command) or runs_its_input(command):
        return ""
    return f"{COMMAND_TOOL}({literal_pattern(command.words)})"
