"""Which files of the workspace a command would take away that git does not have: what git, `rm`, `mv` and redirections
delete or write over.

What this session made itself does not count, nor what a tool makes again (caches). Nothing is run but git, to read its
index; none of a checkout's programs runs by it. Bounded.
"""

from __future__ import annotations

import glob
import hashlib
import os
import stat
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import dropwhile, islice, takewhile
from pathlib import Path
from typing import Literal

from tui_agent import processes
from tui_agent.disk import with_home
from tui_agent.permissions.commands import SimpleCommand, Word, read_command
from tui_agent.permissions.programs import MOST_WRAPPERS, within
from tui_agent.quantities import counted
from tui_agent.untrusted_files import content

_MOST = 5_000
"""Files that are looked at for one command."""
_LARGEST = 16_000_000
"""Bytes of a file that is compared with what git has."""
_PATIENCE = 5.0
_SHOWN = 5
MADE_AGAIN = frozenset({
    "node_modules", "__pycache__", ".venv", ".tox", ".nox", ".mypy_cache", ".pytest_cache", ".ruff_cache",
})  # fmt: skip
"""Folders that tools make again by themselves."""
_TAG = "CACHEDIR.TAG"


What = Literal["any", "untracked", "ignored", "all untracked", "unsaved"]
"""Of the files below a place; `untracked` are not ignored, `unsaved` changed since they were put into git's index."""


@dataclass(frozen=True)
class Loss:
    """What would be lost: paths relative to the workspace, the bytes of all, and whether that is all of it."""

    paths: tuple[str, ...]
    bytes: int
    whole: bool = True

    def __str__(self) -> str:
        shown = ", ".join(self.paths[:_SHOWN])
        more = f" and {len(self.paths) - _SHOWN:,} more" if len(self.paths) > _SHOWN else ""
        least = "" if self.whole else "at least "
        files = counted(len(self.paths), "file")
        return f"{least}{files} that git does not have would be lost ({_size(self.bytes)}): {shown}{more}"


@dataclass(frozen=True)
class _Aim:
    """Something that a command takes away: `path`, or all of a kind below it."""

    path: Path
    what: What = "any"


def _size(number: int) -> str:
    return f"{number / 1e6:,.1f} MB" if number >= 100_000 else f"{number:,} bytes"


def loss_of(command: str, root: Path, since: float) -> Loss | None:
    """What a command would lose of the files that nothing has touched since then (seconds since 1970). Blocks."""
    aims = list(_aims(command, root))
    if not aims:
        return None
    git = _Git(root)
    found: dict[str, int] = {}
    whole = True
    for aim in aims:
        for path, status in _files(aim.path, root):
            if len(found) >= _MOST:
                whole = False
                break
            if status.st_ctime < since and path not in found and git.would_lose(path, aim.what, status):
                found[path] = status.st_size
    return Loss(tuple(found), sum(found.values()), whole) if found else None


def _aims(command: str, folder: Path) -> Iterator[_Aim]:
    reading = read_command(command)
    for one in reading.commands:
        words = [word for word in _innermost(one).words if word.kind != "unknown"]
        if words and words[0].text.rpartition("/")[2] in _WRAPPERS:
            words = list(dropwhile(lambda word: word.text.rpartition("/")[2] not in _TAKE_AWAY, words))
        if not words:
            continue
        program, rest = words[0].text.rpartition("/")[2], words[1:]
        if program == "cd" and len(rest) == 1:
            folder = _joined(folder, rest[0].text)
        elif program in {"bash", "sh", "zsh", "dash"} and len(rest) > 1 and rest[0].text in _SCRIPTS:
            yield from _aims(rest[1].text, folder)
        else:
            yield from _of_program(program, _Arguments(rest), folder)
    for redirection in reading.redirections:
        path = redirection.path
        if redirection.writes and path.kind != "unknown" and not _appends(command, path.text):
            yield from _places([path], folder)


_WRAPPERS = frozenset({
    "command", "doas", "env", "exec", "ionice", "nice", "nohup", "setsid", "stdbuf", "sudo", "time", "timeout",
})  # fmt: skip
_TAKE_AWAY = frozenset({
    "cp", "dd", "find", "git", "install", "ln", "mv", "rm", "rsync", "shred", "tee", "truncate", "unlink",
})  # fmt: skip
_SCRIPTS = frozenset({"-c", "-lc", "-ec", "-euc"})


def _innermost(command: SimpleCommand) -> SimpleCommand:
    """What wrappers (`sudo`, `env`, `nice`) run in the end."""
    for _ in range(MOST_WRAPPERS):
        inner = within(command)
        if inner is None:
            break
        command = inner
    return command


def _appends(command: str, path: str) -> bool:
    """Whether all that is redirected to a file is added to it."""
    spaced = command.replace(">> ", ">>").replace("> ", ">")
    return f">>{path}" in spaced and f">{path}" not in spaced.replace(f">>{path}", "")


@dataclass(frozen=True)
class _Arguments:
    """The words behind a program, told apart."""

    words: Sequence[Word]

    @property
    def plain(self) -> list[Word]:
        """What is no option."""
        return [word for word in self.words if not word.text.startswith("-")]

    @property
    def after(self) -> list[Word]:
        """What follows `--`."""
        texts = [word.text for word in self.words]
        return list(self.words[texts.index("--") + 1 :]) if "--" in texts else []

    def has(self, *options: str) -> bool:
        """Whether one of these is given; a single letter also among others (`-fdx`)."""
        given = [word.text for word in self.words if word.text.startswith("-")]
        letters = "".join(one[1:] for one in given if not one.startswith("--"))
        return any(one in given if len(one) > 1 else one in letters for one in options)


def _of_program(program: str, given: _Arguments, folder: Path) -> Iterator[_Aim]:
    plain = given.plain
    match program:
        case "rm" | "unlink" | "shred":
            yield from _places(plain, folder)
        case "truncate":
            yield from _places(plain[-1:], folder)
        case "tee" if not given.has("a", "--append"):
            yield from _places(plain, folder)
        case "dd":
            yield from _places([Word(one.text[3:]) for one in plain if one.text.startswith("of=")], folder)
        case "mv" | "cp" | "install" | "rsync" if not given.has("n", "--no-clobber"):
            yield from _written_over(plain, folder)
        case "ln" if given.has("f", "--force"):
            yield from _written_over(plain, folder)
        case "find" if given.has("-delete") or any(one.text in {"rm", "unlink", "shred"} for one in plain):
            places = list(takewhile(lambda word: not word.text.startswith("-"), given.words))
            yield from _places(places or [Word(".")], folder)
        case "git":
            yield from _of_git(list(given.words), folder)


def _written_over(plain: Sequence[Word], folder: Path) -> Iterator[_Aim]:
    if len(plain) < 2:
        return
    *sources, target = plain
    for place in _expanded(target, folder):
        if place.is_dir():
            for source in sources:
                yield from (_Aim(place / one.name) for one in _expanded(source, folder))
        else:
            yield _Aim(place)


def _of_git(words: list[Word], folder: Path) -> Iterator[_Aim]:
    while words and words[0].text.startswith("-"):
        option = words.pop(0).text
        if option in {"-C", "-c", "--git-dir", "--work-tree"} and words:
            value = words.pop(0).text
            folder = _joined(folder, value) if option == "-C" else folder
    if words:
        given = _Arguments(words[1:])
        yield from _GIT.get(words[0].text, _nothing)(given, folder)


def _nothing(_: _Arguments, __: Path) -> Iterator[_Aim]:
    return iter(())


def _clean(given: _Arguments, folder: Path) -> Iterator[_Aim]:
    if not given.has("n", "--dry-run"):
        what: What = "all untracked" if given.has("x") else "ignored" if given.has("X") else "untracked"
        yield from _places(given.after or given.plain or [Word(".")], folder, what)


def _checkout(given: _Arguments, folder: Path) -> Iterator[_Aim]:
    named = given.after or [word for word in given.plain if any(True for _ in _expanded(word, folder))]
    if named:
        yield from _places(named, folder, "unsaved")
    elif given.has("f", "--force"):
        yield _Aim(folder, "unsaved")


def _restore(given: _Arguments, folder: Path) -> Iterator[_Aim]:
    if not given.has("S", "--staged") or given.has("W", "--worktree"):
        yield from _places(given.after or given.plain, folder, "unsaved")


def _reset(given: _Arguments, folder: Path) -> Iterator[_Aim]:
    if given.has("--hard", "--merge"):
        yield _Aim(folder, "unsaved")


def _switch(given: _Arguments, folder: Path) -> Iterator[_Aim]:
    if given.has("f", "--force", "--discard-changes"):
        yield _Aim(folder, "unsaved")


def _stash(given: _Arguments, folder: Path) -> Iterator[_Aim]:
    if not given.plain or given.plain[0].text in {"push", "save"}:
        if given.has("a", "--all"):
            yield _Aim(folder, "all untracked")
        elif given.has("u", "--include-untracked"):
            yield _Aim(folder, "untracked")


def _remove(given: _Arguments, folder: Path) -> Iterator[_Aim]:
    if not given.has("--cached"):
        yield from _places(given.after or given.plain, folder)


def _move(given: _Arguments, folder: Path) -> Iterator[_Aim]:
    if given.has("f", "--force"):
        yield from _written_over(given.plain, folder)


_GIT: dict[str, Callable[[_Arguments, Path], Iterator[_Aim]]] = {
    "clean": _clean, "checkout": _checkout, "restore": _restore, "reset": _reset, "switch": _switch, "stash": _stash,
    "rm": _remove, "mv": _move,
}  # fmt: skip


def _places(words: Sequence[Word], folder: Path, what: What = "any") -> Iterator[_Aim]:
    for word in words:
        yield from (_Aim(place, what) for place in _expanded(word, folder))


def _joined(folder: Path, said: str) -> Path:
    return Path(os.path.normpath(folder / with_home(said.replace("\0", ""))))


def _expanded(word: Word, folder: Path) -> Iterator[Path]:
    """What a word leads to that exists."""
    if word.kind == "glob":
        pattern = os.fspath(folder / with_home(word.text.replace("\0", "")))
        yield from map(Path, islice(glob.iglob(pattern), _MOST))  # noqa: PTH207 - absolute ones too
    elif os.path.lexists(place := _joined(folder, word.text.removeprefix(":/"))):
        yield place


def _files(place: Path, root: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Files at and below a place of the workspace, but for what is made again and what is git's."""
    if not place.is_relative_to(root):
        return
    queue, seen = [place], 0
    for one in queue:  # grows
        try:
            status = one.lstat()
            if not stat.S_ISDIR(status.st_mode):
                if stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
                    yield one.relative_to(root).as_posix(), status
                continue
            if one.name in MADE_AGAIN or one.name == ".git" or os.path.lexists(one / _TAG):
                continue
            inside = sorted(one.iterdir())
        except OSError:
            continue
        seen += len(inside)
        if seen > 4 * _MOST:
            return
        queue += inside


class _Git:
    """What git's index holds, and what it ignores."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._index: dict[str, str] | None = None
        self._ignored: frozenset[str] | None = None

    def would_lose(self, path: str, what: What, status: os.stat_result) -> bool:
        """Whether a file of this path is of the kind, and nothing of git's holds it as it is."""
        known = self.index.get(path)
        if what == "unsaved":
            return known is not None and not self._is(known, path, status)
        if known is not None:
            return what == "any" and not self._is(known, path, status)
        if what == "untracked":
            return path not in self.ignored
        if what == "ignored":
            return path in self.ignored
        return True

    def _is(self, blob: str, path: str, status: os.stat_result) -> bool:
        if status.st_size > _LARGEST:
            return False
        full = self._root / path
        try:
            data = os.fsencode(full.readlink()) if stat.S_ISLNK(status.st_mode) else content(full, _LARGEST)
        except OSError:
            return True
        make = hashlib.sha256 if len(blob) == 64 else hashlib.sha1
        bare = data.replace(b"\r\n", b"\n")  # as it is kept under core.autocrlf
        return any(make(b"blob %d\0" % len(one) + one).hexdigest() == blob for one in (data, bare))

    @property
    def index(self) -> dict[str, str]:
        """Blobs by their paths, relative to the workspace."""
        if self._index is None:
            rows = self._run("ls-files", "--stage", "-z").split(b"\0")
            fields = (row.partition(b"\t") for row in rows if row)
            self._index = {os.fsdecode(path): info.split()[1].decode() for info, _, path in fields}
        return self._index

    @property
    def ignored(self) -> frozenset[str]:
        """Files that git ignores."""
        if self._ignored is None:
            rows = self._run("ls-files", "--others", "--ignored", "--exclude-standard", "-z").split(b"\0")
            self._ignored = frozenset(map(os.fsdecode, filter(None, rows)))
        return self._ignored

    def _run(self, *words: str) -> bytes:
        git = processes.own_program("git", self._root)
        if git is None:
            return b""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        safe = (
            "-c",
            "core.fsmonitor=false",
            "-c",
            "core.hooksPath=/dev/null",
            "-c",
            "core.untrackedCache=false",
        )
        try:
            done = subprocess.run(
                [git, *safe, *words],
                cwd=self._root,
                env={**kept, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"},
                capture_output=True,
                timeout=_PATIENCE,
                check=False,
            )
        except (OSError, subprocess.SubprocessError):
            return b""
        return done.stdout if done.returncode == 0 else b""
