"""Commands that only read run unasked, unless what they read, or the program that runs, is not what it seems."""

from __future__ import annotations

import os
from collections.abc import Sequence

from tui_agent.permissions.commands import SimpleCommand, Word
from tui_agent.permissions.coverage import MOST_SUGGESTED
from tui_agent.permissions.look import Look
from tui_agent.permissions.programs import becomes_no_option
from tui_agent.permissions.readers import Reads, reads_only
from tui_agent.permissions.rules import PermissionRule

_OF_THE_SHELL = frozenset({"", "command", "builtin", "time"})
_HARMLESS = frozenset(
    {"PWD", "OLDPWD", "HOME", "USER", "SHELL", "PATH", "LANG", "UID", "EUID", "RANDOM", "SECONDS"}
)
"""Variables that hold no secret."""
_MOST_LOOKED_AT = 3_000
"""Names among which a file is looked for that a rule keeps from being read."""


def read_unasked(
    command: SimpleCommand,
    wrappers: Sequence[str],
    folders: tuple[str, ...] | None,
    keeping: Sequence[PermissionRule],
    look: Look,
    own: frozenset[str] = frozenset(),
) -> tuple[Reads | None, str]:
    """Say what a command reads if it does nothing else, and why it asks all the same; "" if it need not. `own`:
    variables that stand for what the line of commands itself sets.
    """
    reads = reads_only(command) if len(command.words) <= MOST_SUGGESTED else None
    if reads is None:
        return None, ""
    if not reads.variables <= own | _HARMLESS:
        return reads, "it prints a variable that it does not set"
    inside = look.stays(command, folders)
    if folders is None:
        return reads, "it is not known in which folder it runs"
    if not all(word.text != "/dev/zero" and inside(word) for word in reads.opens):
        return reads, "it reads outside the workspace"
    if any(_may_be_an_option(word, folders, look) for word in command.words[1:]):
        return reads, "a file there is named like an option"
    for program in (*wrappers, reads.program):
        if program not in _OF_THE_SHELL and not look.from_outside(program, folders):
            return reads, f"the workspace says which program {program} is"
    if reads.git:
        for folder in folders:
            if runs := look.run_by_git(folder):
                return reads, runs
    if reads.walks and keeping and (reads.git or _holds_kept(keeping, look)):
        return reads, f"it reads many files, and a rule keeps some from being read ({keeping[0]})"
    return reads, ""


def _may_be_an_option(word: Word, folders: Sequence[str], look: Look) -> bool:
    """Tell if a wildcard stands for a file whose name begins with a dash."""
    if word.kind != "glob" or becomes_no_option(word):
        return False
    found = (names for folder in folders for names in look.paths.matching(word.text, folder))
    return any(name.rpartition("/")[2].startswith("-") for names in found for name in names)


def _holds_kept(keeping: Sequence[PermissionRule], look: Look) -> bool:
    """Tell if the workspace holds a file that a rule keeps from being read, or too many to look at."""
    pending, seen = [look.root], 0
    while pending:
        folder = pending.pop()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    seen += 1
                    look.budget.step(8)
                    if seen > _MOST_LOOKED_AT:
                        return True
                    name = os.path.relpath(entry.path, look.root)
                    if any(look.is_about(rule, name) for rule in keeping):
                        return True
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
        except OSError:
            return True
    return False
