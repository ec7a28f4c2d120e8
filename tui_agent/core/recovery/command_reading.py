"""Facts from a command line about its result: the program that checks something, and the visibility of its
exit code.

Pure, and bounded in time for any text; what cannot be read says nothing. Which programs check (test runners, linters,
compilers, builds) is the table of `findings`; what they printed is read in `output_signs`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tui_agent.core.recovery.exit_code import is_loud, read_command
from tui_agent.core.recovery.findings import checking_program, script_of
from tui_agent.shell_programs import SHELLS, base_name, program_name, shell_code, unwrapped
from tui_agent.shell_syntax import (
    AndOr,
    CommandGroup,
    Compound,
    Pipeline,
    Script,
    Simple,
    UnreadableCommand,
    parse,
    without_bodies,
)
from tui_agent.terminal_text import clipped

_LONGEST_LABEL = 60

_PRINTS_FILES = frozenset({
    "cat", "sed", "nl", "head", "tail", "less", "more", "bat", "grep", "egrep", "fgrep", "rg", "ag", "awk", "git", "gh",
    "diff", "find", "xargs", "strings", "tac", "jq", "zcat", "zgrep", "journalctl", "docker", "kubectl", "curl", "wget",
})  # fmt: skip
"""Programs that print what others have written: an error in their output is not theirs."""
_KEEPS_ALL = frozenset({"tail", "tee", "cat", "ts", "nl"})
"""Filters that let the end of their input through, the place of summaries."""
_ONLY_LISTS = re.compile(
    r"^(?:-{1,2}list\b|-test\.list\b|--(?:help|version|collect-only|co|fixtures|markers|list\w*"
    r"|passWithNoTests|setup-plan|dry-run|no-run|init|showConfig)\b|-h$|-V$)"
)
"""Options by which a test runner runs no test and is not meant to."""
_SHOWS_CODE = re.compile(r"\$\?|PIPESTATUS|pipestatus|pipefail|errexit")
_WRITES = re.compile(
    r"(?<![<>&\d=-])>{1,2}\|? ?([\w./~+-]{1,200})|\btee (?:-a )?([\w./~+-]{1,200})"
    r"|\b(?:cp|mv) (?:-\w+ )*[\w./~+-]{1,200} ([\w./~+-]{1,200})"
)
_MOST_FILES = 20
_AS_OTHERS = frozenset({"su", "runuser"})
_DEEPEST = 2
"""Shells within a command (`bash -c`) that are looked into."""
_IN_PLACE = re.compile(
    r"\b(?:sed|perl)\s+(?:-\S{1,40}\s+){0,4}-\w{0,9}i|\bsed\b[^|;&\n]{0,200}--in-place|\bpatch\s+-|\bgit\s+apply\b"
)
"""Programs that change the lines of a file that is there already."""


@dataclass(frozen=True)
class CommandReading:
    """Facts from a command line.

    `checker`: the program in it that checks something, "" for none; `label`: it with its arguments, shortened.
    `hidden_by`: what sets the exit code in its place, as it is written (`| tail`, `|| true`), "" for nothing.
    `filtered_by`: the filter that may leave out the end of its output. `only_lists`: it is asked for no test.
    `script`: the file that an interpreter or the shell runs. `prints_files`: the output may be others' text.
    `writes`: files that it writes by redirection. `edits`: it changes files in other ways that can be seen.
    `shows_code`: it prints an exit code itself. `runs_other`: it runs a program of which nothing is known, or cannot be
    read. `silenced`: programs whose exit codes a pipe hides, and `last`: what sets it in their place.
    """

    checker: str = ""
    label: str = ""
    hidden_by: str = ""
    filtered_by: str = ""
    only_lists: bool = False
    script: str = ""
    prints_files: bool = False
    writes: tuple[str, ...] = ()
    edits: bool = False
    runs_other: bool = False
    silenced: tuple[str, ...] = ()
    last: str = ""
    shows_code: bool = False


UNREADABLE = CommandReading(prints_files=True, runs_other=True)


@lru_cache(maxsize=32)
def read(command: str) -> CommandReading:
    """Read `command`."""
    parsed = read_command(command)
    if parsed is None:
        return UNREADABLE
    return _ScriptVisitor(command, parsed[0]).read()


class _ScriptVisitor:
    """One pass over the structure; the last program that checks counts."""

    def __init__(self, command: str, script: Script) -> None:
        self.script = script
        self.code_shown = bool(_SHOWS_CODE.search(command))
        self.depth = 0
        self.found: dict[str, Any] = {}
        self.programs: list[str] = []
        self.prints_files = False
        self.runs_other = False
        bare = without_bodies(command)
        self.edits = bool(_IN_PLACE.search(bare))
        names = (match[1] or match[2] or match[3] for match in _WRITES.finditer(bare))
        self.writes = tuple(dict.fromkeys(name for name in names if not name.startswith("/dev/")))[
            :_MOST_FILES
        ]

    def read(self) -> CommandReading:
        self._script(self.script, "")
        silenced, last = self._silenced()
        return CommandReading(
            silenced=silenced,
            last=last,
            prints_files=self.prints_files,
            writes=self.writes,
            edits=self.edits,
            runs_other=self.runs_other,
            shows_code=self.code_shown,
            **self.found,
        )

    def _silenced(self) -> tuple[tuple[str, ...], str]:
        if self.code_shown or len(self.programs) < 2 or len(self.script.lists) != 1:
            return (), ""
        one = self.script.lists[0]
        end = one.pipelines[-1]
        if len(one.pipelines) == 1 and len(end.commands) > 1:
            return tuple(self.programs[:-1]), _pipeline_words(end, "| ")
        return (), ""

    def _script(self, script: Script, outer: str) -> None:
        for place, one in enumerate(script.lists):
            rest = script.lists[place + 1 :]
            hidden = "&" if one.background else _shown(rest[-1], "; ") if rest else outer
            self._and_or(one, hidden)

    def _and_or(self, one: AndOr, hidden: str) -> None:
        for place, pipeline in enumerate(one.pipelines):
            by = hidden
            following = one.operators[place:]
            if "||" in following:
                other = one.pipelines[place + 1 + following.index("||")]
                by = _pipeline_words(other, "|| ") if _never_fails(other) else by
            self._pipeline(pipeline, by)

    def _pipeline(self, pipeline: Pipeline, hidden: str) -> None:
        commands = pipeline.commands
        last = commands[-1]
        for place, command in enumerate(commands):
            by = hidden
            if place < len(commands) - 1:
                by = f"| {_first_word(last)}"
            match command:
                case CommandGroup(body):
                    self._script(body, by)
                case Compound():
                    self.runs_other = self.prints_files = True
                case _:
                    filters = [_first_word(other) for other in commands[place + 1 :]]
                    self._simple(command, by, filters, first=place == 0)

    def _inner(self, code: str, hidden: str) -> None:
        """What `bash -c` runs."""
        try:
            script = parse(code)
        except UnreadableCommand:
            self.runs_other = self.prints_files = True
            return
        self.depth += 1
        self._script(script, hidden)
        self.depth -= 1

    def _simple(self, command: Simple, hidden: str, filters: Sequence[str], *, first: bool) -> None:
        words = unwrapped(command.words)
        if not words:
            return
        code = _code_within(words)
        if code is not None and self.depth < _DEEPEST:
            self._inner(code, hidden)
            return
        name = program_name(words[0])
        self.programs.append(name)
        checker = checking_program(words)
        if checker:
            cut = next((one for one in filters if one not in _KEEPS_ALL), "")
            self.found = {
                "checker": checker,
                "label": _label(words),
                "hidden_by": "" if self.code_shown else hidden,
                "filtered_by": cut,
                "only_lists": any(_ONLY_LISTS.match(word) for word in words[1:])
                or _only_compiles(checker, words),
                "script": script_of(words),
            }
            return
        script = script_of(words)
        if script:
            if not self.found.get("checker"):
                self.found = {"script": script, "label": _label(words)}
            self.runs_other = True
        elif name in _PRINTS_FILES:
            self.prints_files |= first and not command.redirected and not self.edits
        elif not is_loud(command):
            self.runs_other = True
            self.found.setdefault("label", _label(words))


def _code_within(words: Sequence[str]) -> str | None:
    """The command line that a shell is given, also under another user (`su - app -c`, `runuser -u app -- bash -c`)."""
    if program_name(words[0]) not in _AS_OTHERS:
        return shell_code(words)
    shell = next((place for place, word in enumerate(words) if place and base_name(word) in SHELLS), None)
    if shell is not None and (code := shell_code(words[shell:])) is not None:
        return code
    place = words.index("-c") + 1 if "-c" in words else len(words)
    return words[place] if place < len(words) else None


def _only_compiles(checker: str, words: Sequence[str]) -> bool:
    return checker == "go test" and "-c" in words


def _never_fails(pipeline: Pipeline) -> bool:
    """`true`, `:`, `echo …`: what stands behind `||` so that the whole cannot fail."""
    return _first_word(pipeline.commands[-1]) in {"true", ":", "echo", "printf"}


def _first_word(command: object) -> str:
    if isinstance(command, Simple) and command.words:
        words = unwrapped(command.words)
        return program_name(words[0])[:30] if words else ""
    return "…"


def _pipeline_words(pipeline: Pipeline, before: str) -> str:
    return before + _first_word(pipeline.commands[-1])


def _shown(one: AndOr, before: str) -> str:
    """The last program of the command line, if it does not fail by itself; "" if it checks as well."""
    pipeline = one.pipelines[-1]
    last = pipeline.commands[-1]
    if not isinstance(last, Simple) or checking_program(unwrapped(last.words)):
        return ""
    return _pipeline_words(pipeline, before)


def _label(words: Sequence[str]) -> str:
    return clipped(" ".join(" ".join(words).split()), _LONGEST_LABEL)
