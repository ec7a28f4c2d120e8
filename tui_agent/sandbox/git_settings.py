"""Which of git's settings a command may change: those by which git runs nothing and looks nowhere else.

A list of what is harmless, not of what is harmful: git has many keys that name a program, and gets new ones. Files are
read by git itself, so that what is judged is what git will obey.
"""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache

from tui_agent import processes

Setting = tuple[str, str | None]
"""Key and value; the value is None if there is none (`[core] bare`)."""

LARGEST = 1_000_000
"""Bytes of a file of settings."""
_PATIENCE = 5.0
"""Seconds for git to read one."""

_KEYS = frozenset({
    "core.repositoryformatversion", "core.filemode", "core.bare", "core.logallrefupdates", "core.ignorecase",
    "core.precomposeunicode", "core.symlinks", "core.autocrlf", "core.eol", "core.safecrlf", "core.quotepath",
    "core.abbrev", "core.sparsecheckout", "core.sparsecheckoutcone", "core.longpaths", "core.preloadindex",
    "core.untrackedcache", "core.whitespace", "core.compression", "core.trustctime", "core.checkstat",
    "core.commitgraph", "core.multipackindex", "core.bigfilethreshold",
    "extensions.objectformat", "extensions.worktreeconfig", "extensions.refstorage", "extensions.relativeworktrees",
    "extensions.preciousobjects", "extensions.partialclone",
    "init.defaultbranch", "pull.rebase", "pull.ff", "push.default", "push.autosetupremote", "push.followtags",
    "merge.conflictstyle", "merge.ff", "merge.renames", "merge.renamelimit", "merge.stat", "merge.autostash",
    "rebase.autosquash", "rebase.autostash", "rebase.updaterefs", "rebase.stat", "fetch.prune", "fetch.prunetags",
    "fetch.parallel", "fetch.recursesubmodules", "diff.algorithm", "diff.renames", "diff.renamelimit", "diff.noprefix",
    "diff.mnemonicprefix", "diff.colormoved", "diff.submodule", "diff.context", "commit.verbose", "commit.status",
    "commit.cleanup", "tag.sort", "branch.autosetupmerge", "branch.autosetuprebase", "branch.sort", "gc.auto",
    "gc.autodetach", "index.version", "index.sparse", "log.date", "log.decorate", "log.follow", "checkout.guess",
    "checkout.defaultremote", "worktree.guessremote", "submodule.active", "submodule.recurse", "http.postbuffer",
    "lfs.repositoryformatversion", "maintenance.auto", "maintenance.strategy", "rerere.enabled", "rerere.autoupdate",
})  # fmt: skip
_SECTIONS = frozenset({"user", "author", "committer", "color", "column", "status", "advice", "i18n"})
_UNDER_A_NAME = {
    "branch": {"remote", "merge", "pushremote", "description", "rebase"},
    "remote": {
        *("url", "pushurl", "fetch", "push", "tagopt", "mirror", "prune", "prunetags", "promisor"),
        *("partialclonefilter", "skipfetchall", "skipdefaultupdate", "followremotehead"),
    },
    "submodule": {"url", "active", "branch", "ignore", "fetchrecursesubmodules", "shallow", "update"},
}
"""By section, what follows a name of one's own."""
_ADDRESSES = frozenset({"url", "pushurl", "remote", "pushremote"})
_BOOLEANS = frozenset({"true", "false", "yes", "no", "on", "off", "0", "1", ""})
_UPDATES = frozenset({"checkout", "rebase", "merge", "none"})


def is_harmless(key: str, value: str | None) -> bool:
    """True if git runs nothing and looks nowhere else by a setting. `core.worktree` depends on its target,
    which is not known here.
    """
    section, _, rest = key.lower().partition(".")
    name, _, variable = rest.rpartition(".")
    said = value or ""
    if key.lower() in _KEYS or (section in _SECTIONS and not name):
        return True
    if key.lower() == "core.fsmonitor":
        return said.lower() in _BOOLEANS
    if not name or variable not in _UNDER_A_NAME.get(section, ()):
        return False
    if variable in _ADDRESSES:
        # `ext::…` is a command, and a name before two colons a program.
        return "::" not in said and not said.startswith("-")
    return variable != "update" or said in _UPDATES


@lru_cache(maxsize=64)
def read_settings(text: bytes) -> tuple[Setting, ...] | None:
    """The settings that git reads in a file, in its order; None if it cannot, or there is no git. Blocks."""
    git = processes.own_program("git")
    if git is None or len(text) > LARGEST:
        return None
    try:
        done = subprocess.run(
            [git, "config", "--file", "-", "--no-includes", "--null", "--list"],
            input=text,
            capture_output=True,
            cwd="/",
            env={
                "GIT_CONFIG_NOSYSTEM": "1",
                "GIT_CONFIG_GLOBAL": "/dev/null",
                "HOME": "/nonexistent",
                "LC_ALL": "C",
            },
            timeout=_PATIENCE,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    if done.returncode != 0:
        return None
    settings: list[Setting] = []
    for entry in done.stdout.decode("utf-8", "surrogateescape").split("\0")[:-1]:
        key, line, value = entry.partition("\n")
        settings.append((key, value if line else None))
    return tuple(settings)


def without_harm(text: bytes, before: Sequence[Setting], inside: Callable[[str], bool]) -> bytes | None:
    """The file without settings that a command may not make; None if it has none of them. Settings from
    `before` may stay. `inside` is true for a value of core.worktree that leads to a place that commands may
    write.

    A file that git cannot read becomes as it was before.
    """
    settings = read_settings(text)
    if settings is None:
        return written(before)
    left = Counter(before)
    kept: list[Setting] = []
    for key, value in settings:
        if left[key, value] > 0:
            left[key, value] -= 1
        elif not is_harmless(key, value) and not (key.lower() == "core.worktree" and inside(value or "")):
            continue
        kept.append((key, value))
    # A harmful setting in the place of one that was there: the old one holds again.
    gone = {key for key, _ in settings} - {key for key, _ in kept}
    kept += [(key, value) for key, value in before if key in gone]
    return None if tuple(kept) == settings else written(kept)


_PLAIN = re.compile(r"[A-Za-z0-9-]+\.[A-Za-z][A-Za-z0-9-]*")


def written(settings: Sequence[Setting]) -> bytes:
    """A file of settings that git reads as these."""
    lines = []
    for key, value in settings:
        section, _, rest = key.partition(".")
        name, _, variable = rest.rpartition(".")
        if not _PLAIN.fullmatch(f"{section}.{variable}") or "\n" in name:
            continue
        lines.append(f"[{section} {_quoted(name)}]" if name else f"[{section}]")
        lines.append(f"\t{variable}" if value is None else f"\t{variable} = {_quoted(value)}")
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'


def is_include(key: str) -> bool:
    """True if the value of a key is a file of more settings."""
    return key.lower() == "include.path" or (
        key.lower().startswith("includeif.") and key.lower().endswith(".path")
    )
