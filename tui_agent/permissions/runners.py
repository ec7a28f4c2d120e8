"""Programs that run what their arguments say, name or load: no rule that a card offers covers them with any arguments.

One table (`runners.txt`), from the programs' own manuals: 112 of its 847 names were found beside an option
that stands there in the manual pages of Debian 12, of 53 more the page was looked at, and 682 rest on memory
of them. A program that is dangerous by an option alone, with its others known, stands in `programs.toml`
instead, and a rule covers those.
"""

from __future__ import annotations

import re
from pathlib import Path

from tui_agent.permissions.commands import SimpleCommand
from tui_agent.permissions.programs import known_program, runs_another, runs_code
from tui_agent.shell_programs import base_name

_TABLE = Path(__file__).with_suffix(".txt").read_text("utf-8")
RUNNERS = frozenset(
    name for row in re.split(r"\n(?! )", _TABLE)[1:] for name in row.partition(" | ")[0].split()
)
"""Their names. What the arguments of wrappers and interpreters are is told in `programs`, for rules that forbid too."""

_LOADERS = re.compile(r"ld-[\w.-]*\.so[\w.]*|ld\.so|qemu-\w+|git-.*")
_SUBCOMMAND = 2
"""Words up to which a program with subcommands is named."""
_PLAIN_SUBCOMMANDS = {
    "git": frozenset({
        "add", "commit", "branch", "checkout", "switch", "restore", "reset", "rm", "mv", "stash", "tag", "blame",
        "describe", "rev-parse", "rev-list", "ls-files", "ls-tree", "shortlog", "merge-base", "cat-file", "clean",
        "apply", "name-rev", "notes", "show-ref", "for-each-ref", "count-objects", "fsck", "gc", "worktree",
    }),
    "cargo": frozenset({"fmt"}),
}  # fmt: skip
"""Subcommands without an option that runs something, of programs of which others have one: git-SUBCOMMAND(1)."""


def runs_what_it_is_given(command: SimpleCommand, prefix: int) -> bool:
    """Tell if the words behind the first `prefix` may be a program, so that no rule should cover them all."""
    known = known_program(command.words[:prefix])
    if known is not None and len(known[0].split()) == prefix:
        return False
    name = base_name(command.program).casefold()
    plain = _PLAIN_SUBCOMMANDS.get(name)
    if plain is not None:
        return prefix < _SUBCOMMAND or command.words[1].text not in plain
    return _LOADERS.fullmatch(name) is not None or any(
        one in RUNNERS or runs_another(one) or runs_code(one) for one in _also_known_as(name)
    )


def _also_known_as(name: str) -> tuple[str, ...]:
    """A name as manuals have it: without a version (`gcc-12`), a variant (`vim.tiny`), or a target before it."""
    plain = re.sub(r"-?\d[\d.]*$", "", name)
    of_target = re.search(r"-(?:linux|mingw|elf|eabi)", plain) is not None
    return name, plain, name.partition(".")[0], plain.rpartition("-")[2] if of_target else plain
