"""Work that a task asks for: whether that is a change, whether the run has made one, and whether it begins where the
files are. Pure, and bounded in time for any text.

What cannot be told counts as work done: a program of which nothing is known may have changed something outside.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tui_agent.core.evolve import evolve
from tui_agent.core.recovery import command_reading
from tui_agent.core.recovery.claims import files_named
from tui_agent.core.recovery.iteration import CallResult, CallStatus, command_of
from tui_agent.core.recovery.remarks import Remark
from tui_agent.core.recovery.rules import Rule
from tui_agent.core.recovery.writes import Writes, writes
from tui_agent.terminal_text import clipped, one_line

_LONGEST = 8_000
"""Characters of a task or a result that are looked at."""
_LONGEST_CALL = 80

_CHANGES = (
    "fix|implement|refactor|rename|remove|delete|replace|extend|migrate|port|upgrade|update|modify|edit|correct|repair"
    "|improve|optimi[sz]e|rewrite|simplify|convert|integrate|add|append|insert|change|adapt|adjust|move|split|merge"
    "|clean|complete|finish|create|write|generate|enable|disable|resolve|support"
)
_ASKS = re.compile(
    rf"""
    (?:^|[.!?:;]\s{{1,3}}|\n[\ \t]{{0,8}}(?:[-*•]\ {{1,3}}|\d{{1,3}}[.)]\ {{1,3}})?
        |,?\b(?:and|then|please|to)\s{{1,3}})
    (?:(?:please|now|then|also|(?:can|could|would|will)\ you|you\ (?:should|must|need\ to)
        |(?:i|we)(?:'d\ like|\ would\ like|\ want|\ need)(?:\ you)?\ to|your\ task\ is\ to|help\ me|let's)\s{{1,3}}
    ){{0,3}}
    (?:{_CHANGES})\b(?!\s{{1,3}}(?:sure|sense|me\b|up\b))
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""A sentence, an item of a list or its second half that begins with the verb of a change."""
_OF_CODE = re.compile(
    r"\b(?:bugs?|tests?|functions?|class(?:es)?|methods?|modules?|packages?|endpoints?|repo(?:sitory)?|code(?:base)?"
    r"|projects?|scripts?|files?|folders?|director(?:y|ies)|config(?:uration)?|build|imports?|types?|docs|readme"
    r"|changelog|dependenc\w+|handlers?|parsers?|components?|routes?|queries|schemas?|pipelines?|workflows?|interfaces?)\b",
    re.IGNORECASE,
)
"""Words for what a workspace holds: a verse or a sum is written in the answer."""
_NO_CHANGE = re.compile(
    r"\b(?:do\ not|don't|without|never|not\ to)\s+(?:\w+\s+){0,2}?(?:chang|modif|edit|writ|touch|fix|implement)\w*"
    r"|\bread[ -]only\b|\bhow\ (?:do|can|could|would|should|to)\b|\bwhat\ (?:would|should|could)\b|\bwhy\b"
    r"|\b(?:plan|propose|proposal|suggest\w*|explain|describe|review|analy[sz]e|summari[sz]e|outline|list|compare)\b",
    re.IGNORECASE | re.VERBOSE,
)
"""Words of a task that is done by an answer."""
_EXISTING = re.compile(
    r"\b(?:fix\w*|bugs?|existing|currently?|already|regress\w*|refactor\w*|preserv\w*|continue\ to|codebase|unchanged"
    r"|still|repositor(?:y|ies)|extend|migrate|upgrade|behaviou?r|legacy|backwards?)\b",
    re.IGNORECASE | re.VERBOSE,
)
"""Words of a task about something that is there already."""
_FROM_NOTHING = re.compile(
    r"\b(?:from\ scratch|install|download|clone|set\ up|scaffold|bootstrap|initiali[sz]e|new\ (?:project|repo\w*"
    r"|package|app\w*|folder|directory)|reproduc\w+)\b",
    re.IGNORECASE | re.VERBOSE,
)
"""Words of a task that begins with nothing, or with what it fetches itself."""

_BEGINS_NEW = re.compile(
    r"\bgit\ (?:clone|init)\b|\bgo\ mod\ init\b|\b(?:npm|yarn|pnpm)\ (?:init|create)\b|\bnpx\ create-"
    r"|\b(?:cargo|uv|poetry|dotnet|rails|mix)\ (?:init|new)\b|\bdjango-admin\ startproject\b|\bmkdir\b",
    re.VERBOSE,
)
"""Commands with which a project or a folder of its own begins."""
_REPRODUCES = re.compile(r"repro|\btmp\b|\btemp\b|sandbox|scratch|demo|debug|\btest_\w+$", re.IGNORECASE)
"""Names of what is made to look at a failure."""
_SHOWS = re.compile(
    r"\s*(?:cd [^;&|]+&&\s*)?(?:cat|sed|head|tail|grep|rg|nl|less|bat|awk|git (?:log|show|diff|grep|status))\b"
)
"""Commands that show what files hold."""
_SOURCE = re.compile(
    r"(?<![\w/])(?!/?(?:usr|lib|opt|proc|sys|etc|root/\.|go/pkg)\b)[\w./+-]{0,200}\.(?:py|go|rs|[cm]?[jt]sx?|java|kt|rb"
    r"|php|cs|cc?|cpp|h|hpp|swift|scala|ex|exs|sh|vue|svelte|sql|tf|lua|dart|zig|ml|hs|clj)\b(?!\S)",
)
_ELSEWHERE = re.compile(r"(?:node_modules|site-packages|dist-packages|go/pkg/mod)/")
_NOTES = (".md", ".txt", ".rst")
_NOTHING = re.compile(r"\s*(?:\(no output\)|no (?:files|matches)[^\n]{0,80}|0|total 0)?\s*", re.IGNORECASE)
"""A result that shows nothing."""


NOTHING_CHANGED = "The task asks for a change, and nothing was changed"
WORKED_ELSEWHERE = (
    "The task is about files that are there already, none of them was seen, and others were made"
)
_NAMED = 3
"""Names of files that are said."""
_SAYS_NOT_THERE = re.compile(
    r"\b(?:not|n't|no|never|neither|none|nowhere|without|missing|absent|empty|instead|from\ scratch)\b|n't\b",
    re.IGNORECASE | re.VERBOSE,
)
"""Words of an answer that says what was not there."""
_MAKES = re.compile(
    r"\b(?:creat\w*|writ\w*|add\w*|new|generat\w*|sav\w*|produc\w*|outputs?|called|named|into|as)\b[^.;\n]{0,80}$",
    re.IGNORECASE,
)
"""Words before the name of a file that is to be made."""


def asks_for_change(task: str) -> bool:
    """Tell if a task asks for a change of files, and not for words about them."""
    words = task[:_LONGEST]
    if not _ASKS.search(words) or (len(words) < _SHORT and _NO_CHANGE.search(words)):
        return False
    return bool(files_named(task) or _OF_CODE.search(words))


def files_meant(task: str) -> tuple[str, ...]:
    """The files that a task names and that are not to be made by it."""
    words = task[:_LONGEST]
    return tuple(name for name in files_named(task) if not _MAKES.search(words[: words.find(name)]))


_SHORT = 400
"""Characters of a task in which a single word says what is wanted; a longer one describes the work with all of them."""


_ENDED_WELL = frozenset({CallStatus.SUCCEEDED, CallStatus.NOT_KNOWN})
"""Nothing says that it failed."""


@dataclass(frozen=True)
class Work:
    """The work of one run. `change`: its task asks for one; `existing`: of something that is there already."""

    change: bool = False
    existing: bool = False
    named: bool = False
    """The task names a file."""
    done: bool = False
    """Something changed, or may have."""
    found: bool = False
    """A result showed what some file of the work holds, or where it is."""
    missed: bool = False
    """A look found nothing."""
    absent: tuple[str, ...] = ()
    """The files that the task names, if none of them was there when the run began."""
    anew: bool = False
    """It was remarked upon that the work begins anew, or that none of its files is here."""

    @classmethod
    def of(cls, task: str) -> Work:
        """The work that a task asks for, none of it done."""
        change = asks_for_change(task)
        words = task[:_LONGEST]
        existing = change and bool(_EXISTING.search(words)) and not _FROM_NOTHING.search(words[:_SHORT])
        return cls(change=change, existing=existing, named=change and bool(files_named(task)))

    def changed(self) -> Work:
        """Take in that something changed in the workspace."""
        return self if self.done else evolve(self, done=True)

    def after(self, result: CallResult) -> Work:
        """Take in one result."""
        if not self.change or (self.done and (self.found or not self.existing)):
            return self
        if result.status is CallStatus.DENIED:  # what the operator does not want is not asked for again
            return self.changed()
        command, passed = command_of(result.input), result.status in _ENDED_WELL
        looks = bool(result.facts.looks) or result.facts.looks_only
        if command is not None:
            looks = writes(command) is Writes.NOTHING
        if not looks:
            return evolve(self, done=True) if not self.done and (passed or result.changed) else self
        if not passed or _NOTHING.fullmatch(result.content[:_LONGEST]):
            return self if self.missed else evolve(self, missed=True)
        return evolve(self, found=True) if not self.found and _shows_work(result, command) else self

    def elsewhere(self, result: CallResult) -> Remark | None:
        """Remark on a call that begins the work anew before anything of it was found."""
        if not self.existing or self.found or not self.missed or result.status not in _ENDED_WELL:
            return None
        begun = _begun(result)
        if not begun or _REPRODUCES.search(begun):
            return None
        call = clipped(one_line(f"{result.tool} {begun}", 4 * _LONGEST_CALL), _LONGEST_CALL)
        reason = f"The task is about files that are there, none of them was found, and the work begins anew ({call})"
        text = (
            f"{reason}. What is made here is not what the task means. Look for the files first, also outside of this "
            "folder (by a name that the task gives); if they are nowhere, say so in the answer and make nothing."
        )
        return Remark(Rule.IMPLICIT_ELSEWHERE, reason, text, "elsewhere")

    def nowhere(self) -> Remark | None:
        """Remark on a run whose task is about files of which none is here."""
        if not self.absent or not self.existing or self.anew:
            return None
        names = ", ".join(self.absent[:_NAMED])
        reason = f"The task is about files that are there already, and none that it names is here ({names})"
        text = (
            f"{reason}. Look for them outside of this folder before you make anything; if they are nowhere, say so in "
            "the answer, and make nothing in their place."
        )
        return Remark(Rule.IMPLICIT_ELSEWHERE, reason, text, "elsewhere")

    def misplaced(self, answer: str) -> Remark | None:
        """Remark on the answer of a run that worked where the files of its task are not, if it does not say so."""
        if not self.anew or self.found or not self.done or _SAYS_NOT_THERE.search(answer[:_LONGEST]):
            return None
        text = (
            f"{WORKED_ELSEWHERE}. Say in the answer that the files were not found, where you looked, and what you made "
            "in their place."
        )
        return Remark(Rule.IMPLICIT_ELSEWHERE, WORKED_ELSEWHERE, text, "elsewhere, at the end")

    def undone(self) -> Remark | None:
        """Remark on an answer to a task that asks for a change, if nothing was changed."""
        began = self.named or self.found or self.missed
        if not self.change or self.done or not began:
            return None
        text = (
            f"{NOTHING_CHANGED}: no file was written, and no command ran that writes one. Make the change now; if it "
            "is not needed or cannot be made, say so in the answer, and why."
        )
        return Remark(Rule.IMPLICIT_NOTHING, NOTHING_CHANGED, text, "nothing")


def _begun(result: CallResult) -> str:
    """The call's words, if it begins a project, a folder or a file of its own."""
    command = command_of(result.input)
    if command is not None:
        return command if _BEGINS_NEW.search(command) or command_reading.read(command).writes else ""
    path = result.input.get("path", result.input.get("file_path"))
    writes_whole = any(isinstance(result.input.get(name), str) for name in ("content", "file_text"))
    return path if writes_whole and isinstance(path, str) and not result.facts.looks else ""


def _shows_work(result: CallResult, command: str | None) -> bool:
    if command is None and result.facts.looks == "file":
        return not str(result.input.get("path", result.input.get("file_path", ""))).endswith(_NOTES)
    if command is not None and _SHOWS.match(command) and not _only_notes(command):
        return True
    shown = _SOURCE.finditer(result.content[:_LONGEST])
    return any(not _ELSEWHERE.search(match[0]) for match in shown)


def _only_notes(command: str) -> bool:
    named = files_named(command)
    return bool(named) and all(name.endswith(_NOTES) for name in named)
