"""Options and arguments by which a program runs another one or writes to a place that it is told: a wide rule
leaves them out.

A rule such as `bash(git *)` was written with what git does in mind, not with what any program could do behind its
options. What stands here asks under such a rule, unless the rule's own words hold it (`bash(tar --to-command=* *)`) or
it ends in `**`. Each row names the manual that says so.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from tui_agent.permissions.commands import SimpleCommand
from tui_agent.permissions.programs import becomes_no_option, runs_another, runs_code
from tui_agent.permissions.readers import reads_only
from tui_agent.shell_programs import GIT_OPTIONS, base_name


@dataclass(frozen=True)
class Risks:
    """Of one program. `words` matches a whole word that runs or writes something."""

    words: re.Pattern[str]
    said: str
    """The most telling of them, for a person."""
    source: str
    always: str = ""
    """Why a rule for all of its calls deserves a warning; "" if it does not."""


def _long(*names: str) -> str:
    """Long options, and whatever they may be shortened to."""
    tails = ((name[:2], name[2:]) for name in names)
    return "|".join(
        f"--{head}" + "".join(f"(?:{char}" for char in tail) + ")?" * len(tail) for head, tail in tails
    )


@cache
def risks() -> Mapping[str, Risks]:
    """Read `risky.toml`, which takes some milliseconds the first time."""
    given = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
    return {name: _risks(**row) for names, row in given.items() for name in names.split(", ")}


def _risks(words: Sequence[str] = (), options: str = "", *, examples: Any, **said: str) -> Risks:
    shortened = [f"(?:{_long(*options.split())})(?:=.*)?"] if options else []
    return Risks(re.compile("|".join([*words, *shortened]) or "(?!)", re.DOTALL), **said)


_OF_GIT = re.compile(
    rf"(?:{_long('exec', 'upload-pack', 'receive-pack', 'ext-diff', 'textconv', 'show-signature', 'template')}"
    rf"|{_long('open-files-in-pager', 'strategy', 'separate-git-dir', 'filters', 'output-directory', 'unsafe-paths')})"
    r"(?:=.*)?"
    r"|--output(?:=.*)?|-[a-zA-Z]*O.*|(?:ext|fd)::.*|[\w.+-]+::.*|--(?:edit|open|edit-description)|.*%G.*"
)
"""Options of subcommands that run what they name, or write a file that they name; addresses that are commands."""
_BEFORE = re.compile(
    r"-c.*|--config-env(?:=.*)?|--exec-path=.*|--git-dir(?:=.*)?|--work-tree(?:=.*)?|-p|--paginate"
)
_ONE_LETTER = {
    "clone": re.compile(r"-[cu].*|--config(?:=.*)?"),
    "rebase": re.compile(r"-[xs].*"),
    **dict.fromkeys(("merge", "pull", "cherry-pick", "revert"), re.compile(r"-s.*")),
    **dict.fromkeys(("archive", "format-patch"), re.compile(r"-o.*")),
    "branch": re.compile(r"--edit-description"),
    "notes": re.compile(r"edit"),
}
_GIT_COMMANDS = frozenset({
    "add", "am", "annotate", "apply", "archive", "blame", "branch", "bundle", "cat-file", "check-attr", "check-ignore",
    "checkout", "cherry", "cherry-pick", "clean", "clone", "commit", "count-objects", "describe", "diff", "diff-files",
    "diff-index", "diff-tree", "fetch", "for-each-ref", "format-patch", "fsck", "gc", "grep", "hash-object", "init",
    "log", "ls-files", "ls-remote", "ls-tree", "merge", "merge-base", "merge-tree", "mktag", "mktree", "mv",
    "name-rev", "notes", "pack-refs", "prune", "pull", "push", "range-diff", "read-tree", "rebase", "reflog", "remote",
    "repack", "replace", "rerere", "reset", "restore", "rev-list", "rev-parse", "revert", "rm", "shortlog", "show",
    "show-branch", "show-ref", "sparse-checkout", "stash", "status", "switch", "symbolic-ref", "tag", "update-ref",
    "var", "verify-commit", "verify-tag", "version", "whatchanged", "worktree", "write-tree",
})  # fmt: skip
"""Subcommands that by their name alone run nothing and change no setting: what is not here may be an alias."""
_CODE_READERS = frozenset({"awk", "gawk", "mawk", "nawk", "sed", "gsed"})


def risky_words(command: SimpleCommand) -> frozenset[int]:
    """Give the places of the words that run or write something under a rule for all calls of the program."""
    program, words = base_name(command.program), command.words
    known = risks().get(program)
    if known is None:
        return frozenset()
    globs = {place for place, word in enumerate(words) if place and not becomes_no_option(word)}
    if reads_only(command) is not None and not globs:
        return frozenset()
    texts = [word.text for word in words]
    found = {place for place, text in enumerate(texts) if place and known.words.fullmatch(text)}
    if program in _CODE_READERS:
        plain = tuple(word for place, word in enumerate(words) if place not in found)
        if reads_only(replace(command, words=plain)) is None:
            return frozenset(range(1, len(words)))
    if program == "git":
        found |= _risky_in_git(texts)
    # A wildcard may stand for a file that is named like an option.
    return frozenset(found | globs)


def _risky_in_git(texts: Sequence[str]) -> set[int]:
    place, found = 1, set[int]()
    while place < len(texts) and texts[place].startswith("-"):
        if _BEFORE.fullmatch(texts[place]):
            found.add(place)
        place += 2 if texts[place] in GIT_OPTIONS else 1
    if place >= len(texts) or texts[place] not in _GIT_COMMANDS:
        return set(range(1, len(texts)))
    letters = _ONE_LETTER.get(texts[place])
    for at in range(place + 1, len(texts)):
        if _OF_GIT.fullmatch(texts[at]) or (letters is not None and letters.fullmatch(texts[at])):
            found.add(at)
    return found


def warning_about(program: str) -> str:
    """Say what whoever allows all calls of a program should know; "" for nothing."""
    like = "awk" if runs_code(program.casefold()) else "env" if runs_another(program) else ""
    known = risks().get(program) or risks().get(like)
    return known.always if known is not None else ""


def still_asks(program: str) -> str:
    """Name the words of a program that a rule for all of its calls leaves out, for a person; "" for none."""
    known = risks().get(program)
    return known.said if known is not None else ""
