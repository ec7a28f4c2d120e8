"""The subject of a call, and the test if a call that succeeded makes another one good that had failed.

A call is about the paths that it names, or the program that it really runs: of `python3 -m pytest tests` that is
`pytest`, of `sed -n 1p a.py` the file `a.py`. Everything here is bounded; a command that cannot be read is about its
first word.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from tui_agent.shell_programs import (
    INLINE,
    SHELL_CODE,
    SHELLS,
    base_name,
    interprets,
    program_name,
    unwrapped,
    working,
)
from tui_agent.shell_syntax import UnreadableCommand, parse

Relation = Literal["", "same_call", "target", "named", "corrected", "identifier", "not_needed"]
"""How a success makes a failure good: the same call; one for the same target; one whose target the error had named;
one with a small correction of the name; another identifier for the same tool. `not_needed`: a guess at a name, and
the run found elsewhere what it looked for. "": not at all."""

_PATHS = ("path", "file_path", "notebook_path", "filename", "file", "directory", "dir")
_NAMES = ("pattern", "url")
_COMMANDS = ("command", "cmd")

_LOOKS = frozenset({
    "ls", "cat", "head", "tail", "sed", "awk", "grep", "egrep", "rg", "ag", "find", "fd", "wc", "stat", "file", "tree",
    "less", "more", "nl", "diff", "which", "type", "readlink", "realpath", "du", "sort", "uniq", "cut",
})  # fmt: skip
_SCRIPTED = frozenset({"sed", "awk", "grep", "egrep", "rg", "ag"})
"""Those whose first word is no file."""
_CLEARS = frozenset({"rm", "rmdir", "unlink"})
_ON_FILES = _LOOKS | _CLEARS | frozenset({"cp", "mv", "touch", "mkdir", "chmod", "ln", "tee"})
"""Programs that work on the files they are given: such a call is about the files, not about the program."""
_SILENT = frozenset({
    "cd", "pushd", "popd", "export", "unset", "set", "source", ".", "echo", "printf", "true", ":", "pwd", "sleep",
    "test", "[", "exit", "date", "shopt", "ulimit",
})  # fmt: skip
_RUN_THE_REST = frozenset({"command", "xargs"})
_SUBCOMMANDS = frozenset({
    "git", "gh", "npm", "yarn", "pnpm", "cargo", "go", "docker", "podman", "kubectl", "pip", "pip3", "uv", "poetry",
    "conda", "apt", "apt-get", "brew", "dotnet", "terraform", "manage.py", "make",
})  # fmt: skip
"""Programs whose first word says what they do."""
_VERB = re.compile(r"[a-z][\w:-]*")
_ABOUT_ITSELF = frozenset({"--version", "--help", "-V", "-h", "version", "help"})
"""With nothing else, a program only says something about itself."""
_PATH_LIKE = re.compile(r"[^\s*?]*/\S*|\.|[\w-]*(?:\.[\w-]+)+(?:::.*)?")

_VERSION = re.compile(r"(?:[_-]?v?\d+|[_-](?:new|fixed|final|debug|clean))(?=\.\w+\Z)")
_CODE_NAME = re.compile(r"\b(?!(?:import|from|print)\b)[A-Za-z_]\w+")

_LONGEST = 4_000
"""Characters of a command, and of an error, that are looked at."""
_MOST = 12
"""Paths of one call."""
_COMPARED = 100
_ALIKE = 0.8
"""Of two names without their endings, the share that must be alike: `carts` and `cart`, `mising` and `missing`."""

_SHARED = 0.4
"""The share of common names in two pieces of code from which one counts as the other corrected."""

_MISSING = re.compile(
    r"no such|not found|does ?n[o']t exist|there is no|cannot find|could ?n[o']t find|can't (?:read|open|find)"
    r"|cannot access|no module named|unknown|did not match any|no matches|not exist",
    re.IGNORECASE,
)
_NO_PROGRAM = re.compile(
    r"command not found|: not found\s*\Z|is not recognized as"
    r"|\A(?:exit code \d+[.:]?\s*)?\S+: No module named \S+\s*\Z",
    re.IGNORECASE,
)
"""The program itself is missing; nothing has run."""
_ADVICE = re.compile(
    r"\b(?:did you mean|maybe you meant|perhaps|instead|try|use|similar)\b[^\n]*", re.IGNORECASE
)
_LOOKING_NAME = re.compile(
    r"(?:read|view|open|list|ls|glob|grep|find|search|get|look|fetch|show|stat|cat|load)(?-i:(?![a-z]))",
    re.IGNORECASE,
)
"""Words in the names of tools that only look; camel case counts as words."""


class Subject(NamedTuple):
    """`paths`: files and folders, as named. `programs`: what is run; `called`: by what a command begins, an interpreter
    too. `looks`: it only looks at files; `clears`: it only takes some away. `code`: names in code that stands in the
    command itself."""

    paths: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    called: tuple[str, ...] = ()
    looks: bool = False
    clears: bool = False
    code: frozenset[str] = frozenset()

    @property
    def word(self) -> str:
        """The one name that says most; "" for a call with neither."""
        return (*self.programs, *self.paths, "")[0]


NOTHING = Subject()


def subject_of(tool: str, arguments: Mapping[str, Any]) -> Subject:
    """The subject of a call."""
    for name in _COMMANDS:
        command = arguments.get(name)
        if isinstance(command, list):  # as the program is started; a shell's own command is its last word
            words = [str(word) for word in command]
            command = words[-1] if words[1:2] and SHELL_CODE.fullmatch(words[1]) else " ".join(words)
        if isinstance(command, str):
            return _of_command(command[:_LONGEST])
    looks = _LOOKING_NAME.match(tool.rpartition("__")[2]) is not None
    for name in (*_PATHS, *_NAMES):
        value = arguments.get(name)
        if isinstance(value, str) and value:
            return Subject((value[:_LONGEST],), looks=looks)
    return Subject(looks=looks)


@lru_cache(maxsize=64)
def _of_command(command: str) -> Subject:
    try:
        script = parse(command)
    except UnreadableCommand:
        first = re.match(r"\s*(?:cd\s+\S+\s*(?:&&|;)\s*)?(?:\w+=\S*\s+)*([^\s;&|]+)", command)
        name = (first.group(1),) if first else ()
        return Subject(programs=name, called=name)
    paths, programs = dict[str, None](), dict[str, None]()
    kinds, code, called = set[str](), set[str](), dict[str, None]()
    for simple in script.simple_commands():
        words = simple.words
        if not words:
            continue
        program, operands = _run_by(words)
        if program in _SILENT and words[0] == program:
            continue
        called[words[0].rpartition("/")[2]] = None
        if program in _SCRIPTED:
            operands = operands[1:]
        if program.endswith(" -c"):
            code.update(_CODE_NAME.findall(max(words, key=len)))
        found = [word for word in operands if _PATH_LIKE.fullmatch(word) or (program in _ON_FILES and word)]
        paths.update(dict.fromkeys(found[:_MOST]))
        kinds.add("looks" if program in _LOOKS else "clears" if program in _CLEARS else "other")
        if program not in _ON_FILES:
            programs[program] = None
    if not paths and not programs:
        programs.update(dict.fromkeys(command.split()[:1]))
    return Subject(
        tuple(paths)[:_MOST],
        tuple(programs)[:_MOST],
        tuple(called)[:_MOST],
        looks=kinds == {"looks"},
        clears=kinds == {"clears"},
        code=frozenset(code),
    )


@lru_cache(maxsize=64)
def families_of(command: str) -> tuple[str, ...]:
    """The programs of a command, without their operands: `python3 -m pytest`, `pip install`, `bin/test`, each
    once.

    Programs that only look at files, say something or prepare the shell are left out if anything else is run.
    """
    try:
        script = parse(command[:_LONGEST])
    except UnreadableCommand:
        return ()
    found, quiet = dict[str, None](), dict[str, None]()
    for simple in script.simple_commands():
        words = simple.words
        if words:
            family = family_of(unwrapped(words) or words)
            told = words[0] in _SILENT or family.rpartition("/")[2] in _LOOKS
            (quiet if told else found)[family] = None
    return tuple(found or quiet)


def family_of(words: Sequence[str]) -> str:
    """The program that these words run, with its module, script or subcommand."""
    program, rest = program_name(words[0]).removeprefix("./"), words[1:]
    if program in SHELLS or interprets(program):
        for place, word in enumerate(rest[:_MOST]):
            if word == "-m" and rest[place + 1 :]:
                return f"{program} -m {rest[place + 1]}"
            if INLINE.fullmatch(word):
                return f"{program} -c"
            if not word.startswith("-"):
                return f"{program} {_with_verb(word.removeprefix('./'), rest[place + 1 :])}"
        return program
    return _with_verb(program, rest)


def _with_verb(program: str, rest: Sequence[str]) -> str:
    """The program and its first word, if that is a subcommand."""
    named = next((word for word in rest if _VERB.fullmatch(word)), "") if program in _SUBCOMMANDS else ""
    return f"{program} {named}".rstrip()


def _run_by(words: Sequence[str]) -> tuple[str, list[str]]:
    """The program that does the work, without its folder, and the words that are no options of it."""
    words = working(words) or words
    while len(words) > 1 and words[0] in _RUN_THE_REST:
        words = words[1:]
        while len(words) > 1 and words[0].startswith("-"):
            words = words[1:]
    program, rest = base_name(words[0]), words[1:]
    if rest and _ABOUT_ITSELF.issuperset(rest):
        return f"{rest[0]} {program}", []
    if program in SHELLS or interprets(program):
        return _interpreted(program, rest)
    if program in _SUBCOMMANDS:
        return _with_verb(program, rest), [word for word in rest if not word.startswith("-")]
    return program, [word for word in rest if not word.startswith("-")]


def _interpreted(program: str, rest: Sequence[str]) -> tuple[str, list[str]]:
    """The script that an interpreter runs, or the code that stands in the command."""
    for place, word in enumerate(rest):
        if INLINE.fullmatch(word):
            return f"{program} -c", []
        if not word.startswith("-"):
            operands = [other for other in rest[place + 1 :] if not other.startswith("-")]
            name = word.rpartition("/")[2]
            if name in _SUBCOMMANDS and operands:
                return f"{name} {operands[0]}", operands[1:]
            return name, operands
    return " ".join([program, *rest[:1]]), []


# --- one call for another ---------------------------------------------------------------------------------------


def relation(
    tool: str,
    failed: Subject,
    error: str,
    other_tool: str,
    succeeded: Subject,
) -> Relation:
    """How the call that succeeded makes the failed one good; two calls that are not the same.

    `error`: what the failed call's result and hint said.
    """
    if tool != other_tool:
        return ""
    if not failed.paths and not failed.programs:
        return "" if succeeded.paths or succeeded.programs else "identifier"
    if failed.called and missing_program(error):
        return _for_missing_program(failed, error, succeeded)
    if failed.programs:
        return _for_program(failed, succeeded)
    if set(failed.paths) & set(succeeded.paths):
        return "target"
    return _for_path(failed, error, succeeded)


def _for_program(failed: Subject, succeeded: Subject) -> Relation:
    if failed.code and succeeded.code and not _much_alike(failed.code, succeeded.code):
        return ""
    if any(_same(failed.programs[-1], name) for name in succeeded.programs) and _covers(
        failed.paths, succeeded.paths
    ):
        return "target"
    if any(_is_version(failed.programs[-1], name) for name in succeeded.programs):
        return "corrected"
    return ""


def _for_missing_program(failed: Subject, error: str, succeeded: Subject) -> Relation:
    covered = _covers(failed.paths, succeeded.paths)
    if covered and set(failed.programs) & set(succeeded.programs):
        return "target"
    names = {*succeeded.called, *succeeded.programs} - {*failed.called, *failed.programs}
    advice = " ".join(_ADVICE.findall(_head(error)))
    if any(_word_in(name, advice) for name in names):
        return "named"
    if any(
        alike(failed.called[-1], name) or alike(failed.programs[-1], name)
        for name in names
        if failed.programs
    ):
        return "corrected"
    return "target" if covered and failed.paths and succeeded.paths and succeeded.programs else ""


def _is_version(script: str, other: str) -> bool:
    """True if two scripts are versions of one: `check.py`, `check_v2.py`, `check_new.py`."""
    return script != other and _VERSION.sub("", script) == _VERSION.sub("", other)


def _same(one: str, other: str) -> bool:
    """True if two programs are the same; one without a subcommand stands for all of its subcommands."""
    return one == other or other.startswith(f"{one} ") or one.startswith(f"{other} ")


def _much_alike(one: frozenset[str], other: frozenset[str]) -> bool:
    """True if two pieces of code are mostly about the same names."""
    return len(one & other) >= _SHARED * len(one | other)


def _for_path(failed: Subject, error: str, succeeded: Subject) -> Relation:
    said = _head(error)
    if not _MISSING.search(said):
        return ""
    own = set(failed.paths)
    if any(path not in own and _word_in(path, said) for path in succeeded.paths):
        return "named"
    if any(alike(path, other) for path in failed.paths for other in succeeded.paths):
        return "corrected"
    return ""


def ends_guess(failed: Subject, error: str, succeeded: Subject) -> bool:
    """True if the failed call only guessed at a name, of a file or a program, and the other found the real
    ones.
    """
    if failed.programs:
        return bool(succeeded.programs) and missing_program(error)
    return failed.looks and succeeded.looks and _MISSING.search(_head(error)) is not None


def clears_nothing(failed: Subject, error: str) -> bool:
    """True if the call only had to clear away a thing that is not there."""
    return failed.clears and _MISSING.search(_head(error)) is not None


@lru_cache(maxsize=64)
def missing_program(error: str) -> bool:
    """True if the program that was called does not exist."""
    return _NO_PROGRAM.search(_head(error)) is not None


def _covers(failed: tuple[str, ...], succeeded: tuple[str, ...]) -> bool:
    """True if the second call has the aim of the first one, or a wider one: a test file, and then the folder."""
    return not failed or not succeeded or any(holds(outer, path) for outer in succeeded for path in failed)


def holds(outer: str, path: str) -> bool:
    """True if a path is another one, or in it: a file in a folder, a test in a file (`test_a.py::test_x`)."""
    outer, path = outer.strip("./"), path.strip("./")
    return path == outer or not outer or path.startswith((f"{outer}/", f"{outer}::"))


def alike(one: str, other: str) -> bool:
    """True if one name is a small correction of the other: the same name elsewhere, or almost the same
    letters.
    """
    first, second = _stem(one), _stem(other)
    if not first or not second:
        return False
    if first == second:
        return True
    matcher = SequenceMatcher(None, first, second, autojunk=False)
    return matcher.real_quick_ratio() >= _ALIKE and matcher.ratio() >= _ALIKE


def _stem(path: str) -> str:
    name = path.rstrip("/").rpartition("/")[2].casefold()
    return (name.rpartition(".")[0] or name)[:_COMPARED]


def _word_in(name: str, text: str) -> bool:
    """True if the name stands in the text as a word of its own."""
    if len(name) < 3 or name not in text:
        return False
    return re.search(rf"(?<![\w/.-]){re.escape(name)}(?![\w/-]|\.\w)", text) is not None


def _head(error: str) -> str:
    """Beginning and end of a text, the places of errors."""
    return error if len(error) <= 2 * _COMPARED * 10 else f"{error[:1000]}\n{error[-1000:]}"
