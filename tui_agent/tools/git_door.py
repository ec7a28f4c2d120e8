"""Which commands may change the settings of a repository: those that run git alone, so that it runs nothing else.

Mounts keep `.git/config` from being written. `git config user.name`, `git remote add` and their kind write it
harmlessly; for a command that is made of nothing else the mount is left out, and what it wrote is judged afterwards
all the same (`sandbox.git_settings`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tui_agent.permissions.commands import SimpleCommand, read_command
from tui_agent.permissions.programs import is_neutral
from tui_agent.sandbox.git_settings import is_harmless

_WRITE_SETTINGS = frozenset(
    {"config", "remote", "submodule", "branch", "push", "switch", "checkout", "init", "fetch"}
)
_GO_ALONG = frozenset(
    {"add", "commit", "status", "log", "diff", "show", "rev-parse", "worktree", "stash", "tag", "mv"}
)
_ONLY_SHOW = frozenset({"grep", "head", "tail", "wc", "cat", "ls", "mkdir", "touch", "tr", "cut"})
_RUNS = re.compile(
    r"-c|--config(-env)?\b.*|--exec.*|--upload-pack.*|--receive-pack.*|-u.+|foreach|--template.*|-x.*"
)
_READS = frozenset({"--get", "--get-all", "--get-regexp", "--list", "-l", "get", "list", "--show-origin"})
_UNSETS = frozenset({"--unset", "--unset-all", "unset", "--remove-section"})
_WHERE = frozenset(
    {"--local", "--worktree", "--add", "--replace-all", "--bool", "--int", "--type=bool", "--type=int"}
)


def changes_git_settings(command: str) -> bool:
    """True if a command changes settings of git's, and does nothing by which anything but git would run."""
    if "git" not in command:
        return False
    reading = read_command(command)
    if reading.trouble or reading.assignments or any(one.writes for one in reading.redirections):
        return False
    changes = [_git_alone(one) for one in reading.commands]
    return all(change is not None for change in changes) and any(changes)


def _git_alone(command: SimpleCommand) -> bool | None:
    """True if a simple command changes settings; None if it is something else than git."""
    words = [word.text for word in command.words if word.kind == "literal"]
    if is_neutral(command) or (command.program in _ONLY_SHOW and not command.assignments):
        return False
    if len(words) != len(command.words) or command.assignments or words[0] != "git" or len(words) < 2:
        return None
    name, rest = words[1], words[2:]
    if any(_RUNS.fullmatch(word) for word in rest if word != "-u"):
        return None
    if name == "config":
        return _config(rest)
    return True if name in _WRITE_SETTINGS else False if name in _GO_ALONG else None


def _config(words: Sequence[str]) -> bool | None:
    if any(word in _READS for word in words):
        return False
    left = [word for word in words if word not in _WHERE]
    if left and left[0] in _UNSETS:
        return True
    if left and left[0] == "set":
        left = left[1:]
    match left:
        case [key]:
            return False if not key.startswith("-") else None
        case [key, value] if not key.startswith("-") and is_harmless(key, value):
            return True
    return None
