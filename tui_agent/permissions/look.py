"""Facts that are looked up while one call is judged: the files that its words may be, the folders in which
its commands may run.

Each thing is looked up once, within the budget of the judgement; no rule is applied here.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise, takewhile

from tui_agent.permissions.budget import JudgementBudget
from tui_agent.permissions.commands import Reading, SimpleCommand, Word, read_command
from tui_agent.permissions.paths import Paths, is_folder
from tui_agent.permissions.programs import (
    MOST_WRAPPERS,
    SINKS,
    names_a_folder,
    within,
    writes_its_arguments,
)
from tui_agent.permissions.programs_there import is_from_outside, run_by_git
from tui_agent.permissions.rules import GUARDED, PermissionRule

DEEPEST = 4
"""Scripts within scripts."""
_MOST_FOLDERS = 16
"""Folders in which a part of a command may run and still be looked at one by one."""
_WILD = re.compile(r"[*?\[{\\]")
_JOINS = re.compile(r"[=:,]")
_GOES = frozenset({"cd", "pushd"})
_GOES_BEFORE = frozenset({"-C", "--directory", "--chdir", "-D"})


@dataclass
class Look:
    """The state of one judgement: the rest of its budget, its paths, the scripts that were read."""

    root: str
    """Of the workspace, a real path."""
    budget: JudgementBudget = field(default_factory=JudgementBudget)
    readings: dict[str, Reading] = field(default_factory=dict)
    followed: dict[str, PermissionRule | None] = field(default_factory=dict)
    """Rules about paths that begin with a link, by their texts: as they are with the link followed."""
    programs: dict[str, bool] = field(default_factory=dict)
    """By name, true if the program lies outside of the workspace."""
    settings: dict[str, str] = field(default_factory=dict)
    """By folder, the setting by which git would run something there."""

    @cached_property
    def paths(self) -> Paths:
        """The paths of the call, each followed once."""
        return Paths(self.root, self.budget)

    def from_outside(self, program: str, folders: Sequence[str]) -> bool:
        """Tell if a program lies outside of the workspace, looked up once."""
        if program not in self.programs:
            self.programs[program] = is_from_outside(program, self.root, folders)
        return self.programs[program]

    def run_by_git(self, folder: str) -> str:
        """Name the setting by which git would run something in a folder, asked once."""
        if folder not in self.settings:
            self.budget.step(32)
            self.settings[folder] = run_by_git(folder)
        return self.settings[folder]

    def read(self, script: str) -> Reading:
        """Read a script, once."""
        if script not in self.readings:
            self.readings[script] = read_command(script, self.budget)
        return self.readings[script]

    def in_folders(self, path: str, folders: Sequence[str] | None) -> Iterator[tuple[str, ...] | None]:
        """List the names of a path in each folder in which it may begin; None if that is not known."""
        if folders is None and not path.startswith(("/", "~")):
            yield None
            return
        for folder in folders or (self.root,):
            yield self.paths.names(path, folder)

    def is_about(self, rule: PermissionRule, name: str) -> bool:
        """Tell if a rule is about this file, by the name of the file or of a link in the rule."""
        if rule.matches_path(name):
            return True
        real = self._followed(rule)
        return real is not None and real.matches_path(name)

    def _followed(self, rule: PermissionRule) -> PermissionRule | None:
        """Follow the links in the beginning of the path of a rule; None if there are none."""
        if rule.text not in self.followed:
            parts = rule.path_pattern.split("/")
            plain = "/".join(takewhile(lambda part: not _WILD.search(part), parts))
            names = self.paths.names(plain, self.root) if plain else None
            rest = rule.path_pattern[len(plain) :]
            linked = names is not None and len(names) > 1
            self.followed[rule.text] = (
                replace(rule, pattern=f"{glob.escape(names[-1])}{rest}") if names and linked else None
            )
        return self.followed[rule.text]

    def folders(self, reading: Reading, where: tuple[str, ...] | None) -> tuple[str, ...] | None:
        """List the folders in which a command begins, and to which it goes by `cd`; None if that is not known."""
        if where is None or any("CDPATH" in one for one in reading.assignments):
            return None
        folders = dict.fromkeys(where)
        for one in reading.commands:
            self.budget.step()
            for target in _targets(one):
                if target is None:
                    return None
                for folder in [*folders]:
                    full = os.path.normpath(self.paths.joined(folder, target))
                    # A folder that is not there yet is made by the command itself, and mostly once.
                    if full not in folders and (folder in where or is_folder(full)):
                        self.budget.step(4)
                        folders[full] = None
                if len(folders) > _MOST_FOLDERS:
                    return None
        return tuple(folders)

    def stays(self, command: SimpleCommand, folders: tuple[str, ...] | None) -> Callable[[Word], bool]:
        """Make a test of a command's arguments: none may lead out of the workspace, nor to what is guarded if the
        command writes. Links and wildcards are followed as they are at this moment.
        """
        writes = writes_its_arguments(command)

        def inside(word: Word) -> bool:
            self.budget.step(2)
            if word.text in SINKS:
                return True
            for names in self.names_of(word, folders):
                if names is None or any(name.startswith("/") for name in names):
                    return False
                if writes and any(is_guarded(name) for name in names):
                    return False
            return True

        return inside

    def names_of(self, word: Word, folders: tuple[str, ...] | None) -> Iterator[tuple[str, ...] | None]:
        """List the names of every file that an argument may be, or hold as a part; None if that is not known."""
        if word.kind == "unknown":
            yield None
            return
        for part in _paths_in(word.text):
            if word.kind == "glob" and folders is not None:
                for folder in folders:
                    yield from self.paths.matching(part, folder)
            else:
                yield from self.in_folders(part, folders)


def is_guarded(name: str) -> bool:
    """Tell if a name is that of a file whose settings run commands."""
    parts = [part.casefold() for part in name.split("/")]
    return GUARDED[0] in parts or parts[-1] == GUARDED[1]


def _paths_in(text: str) -> Iterator[str]:
    """List what may be a path in one argument: itself, what is joined to an option, to a name or to other paths."""
    if not text.startswith(("-", "@")) and not _JOINS.search(text):
        if text:
            yield text
        return
    attached = text[2:] if text.startswith("-") and not text.startswith("--") else ""
    of_option = text.rpartition("=")[2].lstrip("@")
    yield from filter(None, dict.fromkeys((text, attached, of_option, *_JOINS.split(text))))


def _targets(command: SimpleCommand) -> Iterator[str | None]:
    """List the folders to which a command goes, or lets another one go; None for one that is not known."""
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
