"""A worktree of git's for each task: made with a branch of its own, and removed without loss or not at all."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tui_agent import processes
from tui_agent.quantities import counted

_SECONDS = 300.0
_QUIET = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false")
"""Settings by which git runs nothing that a checkout brings along."""

_BEGUN = "locked initializing"
"""A line of git about a worktree that it has not finished."""


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
    """Make the worktree, if it is not there, and give the commit from which it began. Raises `WorktreeError`.

    One that git had not finished when it was killed is made anew.
    """
    base = git(repository, "rev-parse", "HEAD")
    known = _known(repository, place)
    if known is not None and _BEGUN in known:
        git(repository, "worktree", "unlock", str(place))
        shutil.rmtree(place, ignore_errors=True)
        known = None
    if place.exists():
        if known is None:
            raise WorktreeError(f"{place} is there, and is no worktree of {repository}")
        return base
    git(repository, "worktree", "prune")
    if _has_nothing(repository, branch, base):
        git(repository, "branch", "-D", branch)
    git(repository, "worktree", "add", "-b", branch, str(place), base)
    return base


def _known(repository: Path, place: Path) -> list[str] | None:
    """The lines of git about a worktree; None if it knows none there."""
    told = git(repository, "worktree", "list", "--porcelain").split("\n\n")
    blocks = (block.splitlines() for block in told)
    return next((lines for lines in blocks if lines[:1] == [f"worktree {place.resolve()}"]), None)


def _has_nothing(repository: Path, branch: str, base: str) -> bool:
    """True for a branch without a commit of its own, as a kill leaves it."""
    try:
        git(repository, "merge-base", "--is-ancestor", f"refs/heads/{branch}", base)
    except WorktreeError:
        return False
    return True


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
    return ", ".join([*parts, counted(new, "new file")] if new else parts) or "nothing changed"
