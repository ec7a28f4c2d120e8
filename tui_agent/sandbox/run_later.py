"""Files that programs outside run or obey later, of their own accord: git, shells, editors, agents.

This module finds them; their names are in `obeyed`. Changes to them during a command are judged in
`watch`.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tui_agent.sandbox.obeyed import TABLE

GIT = ".git"
AT_HOME = (
    ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc", ".zshenv",
    ".zprofile", ".zlogin", ".zlogout", ".inputrc", ".tmux.conf", ".screenrc", ".gitconfig", ".pam_environment",
    ".xprofile", ".xsession", ".xsessionrc", ".xinitrc", ".Xresources", ".config/git", ".config/fish", ".ssh",
    ".config/autostart", ".config/systemd", ".config/environment.d", ".config/tmux", ".config/nvim", ".vim",
    ".emacs", ".emacs.d", ".local/bin", "bin", ".npmrc", ".config/pip", ".cargo/config.toml", ".cargo/bin",
    ".gnupg/gpg.conf", ".gnupg/gpg-agent.conf", ".python-startup", ".config/agent-tui", ".crontab",
)  # fmt: skip
"""In the home folder, if that is in a place that commands may write."""

GIT_FILES = (
    "config",
    "config.worktree",
    "commondir",
    "info/attributes",
    "objects/info/alternates",
    "objects/info/http-alternates",
    "rebase-merge/git-rebase-todo",
    "sequencer/todo",
    "lazygit.yml",
)
"""In a folder of git's: what makes it run something, or work elsewhere."""
_SETTINGS = frozenset({"config", "config.worktree"})
_NEVER_MOUNTED = frozenset({"rebase-merge/git-rebase-todo", "sequencer/todo"})
HOOKS = "hooks"
_MOST_MOUNTED = 16
"""Folders of git's that are protected by mounts, which cost time each; the others are compared."""


@dataclass(frozen=True)
class Places:
    """Folders that commands may write, in which such files are looked for. Paths are real."""

    roots: tuple[Path, ...] = ()
    single: tuple[Path, ...] = ()
    """Files and folders that are meant by their whole path."""

    @classmethod
    def of(
        cls, workspace: Path, writable: tuple[Path, ...], home: Path, single: tuple[Path, ...] = ()
    ) -> Places:
        """Of a workspace and what may be written beside it; `single`: what else is run outside."""
        roots = tuple(path for path in (workspace, *writable) if path.is_dir())
        inside = any(home.is_relative_to(root) for root in roots)
        return cls(roots, (*(home / name for name in AT_HOME if inside), *single))

    def there(
        self, gits: tuple[Path, ...] = (), named: Iterable[Path] = (), *, git_settings: bool = True
    ) -> tuple[Path, ...]:
        """Those that exist, so that a mount can protect them: in the roots, in `gits` (folders of git's and
        files that lead to one), and files that are `named` elsewhere.
        """
        found: dict[Path, None] = {}
        for path in (*self._candidates(), *self.single, *named):
            _add(found, path)
        for git in dict.fromkeys((*(root / GIT for root in self.roots), *gits[:_MOST_MOUNTED])):
            if git.name == GIT:
                _add(found, git)
            for name in (*GIT_FILES, HOOKS):
                if name not in _NEVER_MOUNTED and (git_settings or name not in _SETTINGS):
                    _add(found, git / name)
        return tuple(path for path in found if any(path.is_relative_to(root) for root in self.roots))

    def _candidates(self) -> Iterator[Path]:
        for root in self.roots:
            for one in TABLE:
                yield from (
                    (root / one.name / entry for entry in one.entries) if one.entries else [root / one.name]
                )


def _add(found: dict[Path, None], path: Path) -> None:
    """A regular file or a folder; of a link what it leads to. A folder of git's itself is written by git."""
    try:
        kind = path.lstat().st_mode
        if stat.S_ISLNK(kind):
            path = Path(os.path.realpath(path))
            kind = path.lstat().st_mode
    except OSError:
        return
    if stat.S_ISREG(kind) or (stat.S_ISDIR(kind) and path.name != GIT):
        found[path] = None
