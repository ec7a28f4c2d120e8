"""A worktree of git's for each task: made with a branch of its own, and removed without loss or not at all."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tui_agent import processes

_SECONDS = 300.0
_QUIET = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false")
"""Settings by which git runs nothing that a checkout brings along."""


class WorktreeError(Exception):
    """git would not; the message is its own."""


def git(folder: Path, *words: str) -> str:
    """The output of git in a folder, without the end of its line. Raises `WorktreeError`. Blocking."""
    program = processes.own_program("git", folder)
    if program is None:
        raise WorktreeError("git is not installed")
    try:
        done = subprocess.run(
            [program, *_QUIET, "-C", str(folder), *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise WorktreeError(str(error)) from error
    if done.returncode:
        raise WorktreeError(done.stderr.decode("utf-8", "replace").strip())
    return done.stdout.decode("utf-8", "replace").rstrip("\n")


def made(repository: Path, place: Path, branch: str) -> str:
    """Make the worktree, if it is not there, and give the commit from which it began. Raises `WorktreeError`."""
    base = git(repository, "rev-parse", "HEAD")
    if not place.exists():
        git(repository, "worktree", "prune")
        git(repository, "worktree", "add", "-b", branch, str(place), base)
    return base


def removed(repository: Path, place: Path) -> str:
    """Remove the worktree and keep its branch; the reason why it stays, or nothing if it is gone."""
    try:
        git(repository, "worktree", "remove", str(place))
    except WorktreeError as error:
        return str(error)
    return ""


def changes(place: Path, base: str) -> str:
    """Changes since the beginning, in a line: `2 files changed, 5 insertions(+)`; empty if nobody knows."""
    try:
        said = git(place, "diff", "--no-ext-diff", "--no-textconv", "--shortstat", base).strip()
        new = len(git(place, "ls-files", "--others", "--exclude-standard").splitlines())
    except WorktreeError:
        return ""
    parts = [said] if said else []
    return ", ".join([*parts, f"{new} new"] if new else parts) or "nothing changed"
