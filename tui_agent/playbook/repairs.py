"""The repair in a call: another way to what was missing, or a command that brought it.

A call that only succeeded next is none. One in the place of the failed call must have its aim; one before the same call
must be able to bring what was missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

from tui_agent.core.projections.call_subject import alike, families_of, family_of, holds, subject_of
from tui_agent.core.recovery.iteration import command_of
from tui_agent.playbook.missing import Missing
from tui_agent.shell_programs import unwrapped
from tui_agent.shell_syntax import UnreadableCommand, parse
from tui_agent.terminal_text import one_line

Form = Literal["instead", "first"]
"""Another call in the place of the one that failed, or a command before the same call again."""

LONGEST_EXAMPLE = 160
"""Characters of a command that may be shown as an example; of a longer one, or one of several lines, none is."""
LONGEST_NAME = 120
_MOST_OPERANDS = 4
"""Packages of one command that may each have been the one that helped."""
_PROGRAM = re.compile(r"(?![A-Z]{2,}\b)[\w./+@-]{2,}(?: .*)?")
"""Names that may be a program: no keyword of another language that a tool is given as its command."""
_BARE = re.compile(r"[A-Za-z][\w+-]{0,30}(?:\.py)?(?: -[mc])?(?: [a-z][\w:-]{0,30})?")
"""A program by its name alone, with a module or a verb: it says nothing of the workspace."""
_SCRIPT = re.compile(r"^(\S+) [\w-]+\.\w+$")
"""An interpreter and a script beside it: models give each script another name."""
_INSTALLS = re.compile(
    r"(?:pip install|uv (?:pip|add|tool)|poetry add|conda install|(?:npm|pnpm) (?:install|i|add)|yarn add|bun add"
    r"|cargo (?:install|add)|go (?:install|get)|gem install|apt-get install|apk add|dnf install|yum install"
    r"|brew install|rustup (?:component|target|toolchain)|dotnet tool)\b"
)
"""Beginnings of a command that brings the packages that it names."""
_PREPARES = re.compile(
    r"(?:pip|uv|poetry|conda|npm|yarn|pnpm|bun|cargo|go|gem|bundle|brew|docker|podman|make|chmod|service|systemctl"
    r"|createdb|alembic|manage\.py|mvn|corepack|dotnet|git (?:submodule|fetch|lfs)|python3? -m (?:venv|build))\b"
)
"""Beginnings of a command that prepares another one; edits, and scripts that a model wrote, are no recipe."""
_OF_PROJECT = re.compile(
    r"(?:make|(?:npm|pnpm|yarn|bun) run|(?:python3? )?(?:\S*/)?manage\.py|alembic|createdb|service|systemctl)\b ?\S*"
)
"""Beginnings of a command by which a project makes something of its own: the only repairs of an error that names
nothing as missing, since a common command is no clue to it."""
_ONE_NAME = (
    (re.compile(r"(?:pip3|python[\d.]* -m pip)\b"), "pip"),
    (re.compile(r"apt\b(?!-)"), "apt-get"),
)
"""Programs of two names."""
_PACKAGE = re.compile(r"@?[A-Za-z0-9][\w.+-]*(?:/[\w./+-]+)?")
_VERSION = re.compile(r"(?:\[[^\]]*\])?(?:[=<>~!^].*|@[^/]*|:\w+)?$")
_AFFIX = re.compile(r"^(?:lib|python3?-|py)|(?:\.so|\.hp?p?|-dev|-devel|\d[\d.]*)+$")
_WAY = re.compile(r"(?<![\w$])((?:PYTHON|LD_LIBRARY_)?PATH=[^\s;&|'\"]+)")


class Repair(NamedTuple):
    """A way to recover. `example`: the call itself; `general`: it may be kept at the user's level."""

    form: Form
    name: str
    example: str
    general: bool


def _repair(form: Form, name: str, command: str) -> Repair:
    command = command.strip()
    example = one_line(command) if len(command) <= LONGEST_EXAMPLE and "\n" not in command else ""
    return Repair(form, one_line(name, LONGEST_NAME), example, is_bare(name))


def is_bare(name: str) -> bool:
    """True if a name says nothing of the workspace."""
    return _BARE.fullmatch(name) is not None


def programs_of(command: str) -> tuple[str, ...]:
    """The families of a command that may be programs."""
    return tuple(family for family in families_of(command) if _PROGRAM.fullmatch(family))


def without_script(family: str) -> str:
    """The family; a script beside its interpreter is one file like another."""
    script = _SCRIPT.match(family)
    return f"{script.group(1)} FILE" if script else family


# --- before the same call ----------------------------------------------------------------------------------------


class _Recipe(NamedTuple):
    family: str
    packages: tuple[str, ...]
    command: str


def _recipes(command: str) -> Iterator[_Recipe]:
    try:
        simple_commands = tuple(parse(command).simple_commands())
    except UnreadableCommand:
        return
    for simple in simple_commands:
        words = unwrapped(simple.words) or simple.words
        family = family_of(words) if words else ""
        for pattern, name in _ONE_NAME:
            family = pattern.sub(name, family) if pattern.match(family) else family
        if family == "pip":
            family = " ".join(["pip", *(word for word in words if word == "install")])
        if _INSTALLS.match(family):
            verb = family.split()[-1]
            rest = words[words.index(verb) + 1 :] if verb in words else words[1:]
            operands = [_VERSION.sub("", word) for word in rest if not word.startswith("-")]
            named = tuple(dict.fromkeys(word for word in operands if _PACKAGE.fullmatch(word)))
            yield _Recipe(family, named, command)
        elif _PREPARES.match(family):
            yield _Recipe(family, (), command)


def repairs_before(lacks: Missing | None, prepared: Iterable[str], *, same_call: bool) -> list[Repair]:
    """The commands before a call that may have brought what it lacked: those that name it; else the only one, if it
    was the same call that ended it.
    """
    recipes = list(
        {(one.family, one.packages): one for command in prepared for one in _recipes(command)}.values()
    )
    if lacks is not None:
        named = [
            _repair("first", f"{one.family} {package}", one.command)
            for one in recipes
            for package in one.packages
            if _resembles(lacks.name, package)
        ]
        if named:
            return named
    if len(recipes) != 1 or not same_call:
        return []
    (only,) = recipes
    if not only.packages:
        own = _OF_PROJECT.match(only.family) is not None
        return [_repair("first", only.family, only.command)] if own or lacks is not None else []
    if lacks is None or len(only.packages) > _MOST_OPERANDS:
        return []
    return [_repair("first", f"{only.family} {package}", only.command) for package in only.packages]


def _resembles(name: str, package: str) -> bool:
    """True if a package has the name of what was missing."""
    one, other = (_core(text) for text in (name, package))
    return len(one) > 1 and (
        one == other or (min(len(one), len(other)) > 2 and (one in other or other in one))
    )


def _core(name: str) -> str:
    last = name.rstrip("/").rpartition("/")[2].casefold()
    return re.sub(r"[^a-z\d]", "", _AFFIX.sub("", _AFFIX.sub("", last)))


# --- in the place of the call -------------------------------------------------------------------------------------


def repair_instead(
    lacks: Missing | None, was: Mapping[str, Any], tool: str, arguments: Mapping[str, Any]
) -> Repair | None:
    """The other way to the aim of a call that another call takes; None if it has another aim or lacks the same."""
    if lacks is None or dict(was) == dict(arguments):
        return None
    if lacks.kind == "path":
        return _other_path(lacks, was, tool, arguments)
    command, before = command_of(arguments), command_of(was)
    if command is None or before is None or lacks.kind not in ("program", "module"):
        return None
    return _other_program(lacks, before, tool, command)


def _other_path(
    lacks: Missing, was: Mapping[str, Any], tool: str, arguments: Mapping[str, Any]
) -> Repair | None:
    old = {*subject_of(tool, was).paths, lacks.name}
    new = [path for path in subject_of(tool, arguments).paths if path not in old and alike(lacks.name, path)]
    if not new or len(new[0]) > LONGEST_NAME:
        return None
    return Repair("instead", one_line(new[0], LONGEST_NAME), "", general=False)


def _other_program(lacks: Missing, before: str, tool: str, command: str) -> Repair | None:
    program = lacks.name.rpartition("/")[2]
    if not _runs(program, before):
        return None
    families = programs_of(command)
    by_module = next((one for one in families if one.endswith(f" -m {program}")), "")
    if by_module and by_module not in programs_of(before):
        return _repair("instead", by_module, command)
    if _runs(program, command):
        way = _WAY.search(command) if lacks.kind == "program" else None
        if way and way[1] not in before:
            return _repair("instead", f"{way[1]} {program}", command)
        placed = re.search(rf"(?<![\w./$])(?:[\w.~-]*/)+{re.escape(program)}(?![\w/-])", command)
        placed_name = placed[0] if placed and placed[0] not in before else ""
        return _repair("instead", placed_name, command) if placed_name else None
    family = families[-1] if families else ""
    if not family or family in programs_of(before) or _SCRIPT.match(family) or family.endswith(" -c"):
        return None
    return _repair("instead", family, command) if _same_aim(program, family, tool, before, command) else None


def _runs(program: str, command: str) -> bool:
    """True if one of a command's programs, or a module that it runs, has this name."""
    return any(
        program in (family.split()[0].rpartition("/")[2], family.rpartition(" -m ")[2])
        for family in programs_of(command)
    )


def _same_aim(program: str, family: str, tool: str, before: str, command: str) -> bool:
    """True if a program stands for the missing one: by its name, or as it is given the same."""
    if (
        alike(program, family.rsplit(maxsplit=1)[-1])
        or family.split(maxsplit=1)[0].rstrip("0123456789.") == program
    ):
        return True
    one, other = (subject_of(tool, {"command": text}) for text in (before, command))
    if one.looks != other.looks:
        return False
    given, taken = _operands(before), _operands(command)
    return any(holds(outer, operand) for outer in taken for operand in given)


def _operands(command: str) -> set[str]:
    """The words that a command's programs are given, without options and the whole folder."""
    try:
        simple_commands = tuple(parse(command).simple_commands())
    except UnreadableCommand:
        return set()
    words = {word for one in simple_commands if one.words[:1] != ("cd",) for word in one.words[1:]}
    return {word for word in words if not word.startswith("-") and len(word.strip("./")) > 1}
