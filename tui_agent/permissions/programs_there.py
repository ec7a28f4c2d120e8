"""Which file a name runs, and what git's settings would run: looked up, so that a command that only reads is one.

Blocks: each look takes a few milliseconds, and git is asked once for each folder of a judgement.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tui_agent import processes
from tui_agent.sandbox.git_settings import is_harmless

_PATIENCE = 2.0
"""Seconds for git to say its settings."""
_LARGEST = 200_000
"""Bytes of them."""
_RUN_WHILE_READING = re.compile(
    r"core\.(?:fsmonitor|hookspath|attributesfile)|diff\.external|diff\..+\.(?:command|textconv)|filter\..+"
    r"|log\.showsignature|gpg\..*program|pretty\..+|format\.pretty|include(?:if)?\..+"
)
"""Of one's own settings, those by which reading could run something of the tree; others of them are one's own."""
_FILTERS_OF_LFS = re.compile(r"filter\.lfs\.(?:clean|smudge|process|required)")
_OF_EDITORS = frozenset({"core.editor", "gui.wmstate", "gui.geometry"})
_CHANGES_GIT = ("GIT_EXTERNAL_DIFF", "GIT_CONFIG_COUNT", "GIT_CONFIG_PARAMETERS", "GIT_DIR", "GIT_WORK_TREE")


_CHOSEN_BY = (
    ".python-version", ".tool-versions", ".mise.toml", "mise.toml", ".node-version", ".nvmrc", ".ruby-version",
    ".perl-version",
)  # fmt: skip
"""Files of a tree by which a shim chooses the program that it runs: pyenv, asdf, mise, nodenv, rbenv."""


def is_from_outside(program: str, workspace: str, folders: Sequence[str]) -> bool:
    """Tell if the file that a name runs lies in an absolute folder of PATH outside of the workspace.

    A shim does not count: one of the `folders`, or one above them, chooses the program that it runs.
    """
    if "/" in program:
        return True
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        if not Path(folder).is_absolute():
            return False
        path = Path(folder, program)
        if os.access(path, os.X_OK) and path.is_file():
            real = os.path.realpath(path)
            places = (os.path.realpath(folder), real)
            inside = any(os.path.commonpath((place, workspace)) == workspace for place in places)
            return not inside and not ("/shims/" in f"{path}{real}" and _chosen_in(folders))
    return True  # it is not there, which the shell will say


def _chosen_in(folders: Sequence[str]) -> bool:
    above = {place for folder in folders for place in (Path(folder), *Path(folder).parents)}
    return any((place / name).exists() for place in above for name in _CHOSEN_BY)


def run_by_git(folder: str) -> str:
    """Name the setting by which git would run something for a command that reads in this folder, in words; "" for
    none.
    """
    if any(name in os.environ for name in _CHANGES_GIT):
        return "a variable of your environment changes what git does"
    git = processes.own_program("git")
    if git is None:
        return "git is not there"
    try:
        done = subprocess.run(
            [git, "config", "--list", "--null", "--show-scope", "--includes"],
            cwd=folder,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=_PATIENCE,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return "git does not say its settings"
    if done.returncode != 0 or len(done.stdout) > _LARGEST:
        return "git does not say its settings"
    parts = done.stdout.decode("utf-8", "surrogateescape").split("\0")[:-1]
    for scope, entry in zip(parts[::2], parts[1::2], strict=False):
        key, line, value = entry.partition("\n")
        own = scope in {"system", "global"}
        if _may_run(key, value if line else None, own=own):
            whose = "your own" if own else "the repository's"
            return f"{key} in {whose} settings of git may run a program"
    return "a submodule has settings of git of its own" if _has_submodules(folder) else ""


def _may_run(key: str, value: str | None, *, own: bool) -> bool:
    if own:
        return _RUN_WHILE_READING.fullmatch(key) is not None and not _is_elsewhere(key, value or "")
    return not is_harmless(key, value) and key not in _OF_EDITORS


def _is_elsewhere(key: str, value: str) -> bool:
    """Tell if it names no file of the tree: the filters of git-lfs, a folder of hooks elsewhere."""
    if key == "core.fsmonitor":
        return is_harmless(key, value)
    if _FILTERS_OF_LFS.fullmatch(key):
        return value == "true" or value.startswith("git-lfs ")
    return key in {"core.hookspath", "core.attributesfile"} and value.startswith(("/", "~/"))


def _has_submodules(folder: str) -> bool:
    place = Path(folder)
    for above in (place, *place.parents):
        if (above / ".git").exists():
            return (above / ".gitmodules").exists() or (above / ".git" / "modules").exists()
    return False
