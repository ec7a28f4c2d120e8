"""Files of a workspace that programs outside run because something names them: git's settings of every level, the
variables that git and shells read, and hooks that run or source them.

Found before a command runs, by what is written outside of its reach; nothing is run to find them but git, to read its
own settings. What a command may put there is judged in `taken_back`.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from tui_agent import processes
from tui_agent.sandbox.git_settings import LARGEST, is_harmless, is_include, read_settings
from tui_agent.sandbox.hook_managers import managed_by
from tui_agent.untrusted_files import head

_PATIENCE = 5.0
"""Seconds for git to name the places of its settings."""
_DEEPEST = 10
"""Files that include one another."""
_MOST = 400
"""Files that are named, and hooks that are read."""
_LARGEST_HOOK = 64_000
"""Bytes."""
_MOST_GITS, _DEEPEST_SCRIPT = 16, 3
_DATA = frozenset({
    "blame.ignorerevsfile", "commit.template", "core.attributesfile", "core.excludesfile", "diff.orderfile",
    "fetch.fsck.skiplist", "format.signaturefile", "fsck.skiplist", "gpg.ssh.allowedsignersfile",
    "gpg.ssh.revocationfile", "http.cookiefile", "http.sslcainfo", "http.sslcert", "init.defaultbranch", "log.mailmap",
    "mailmap.blob", "mailmap.file", "receive.fsck.skiplist", "safe.directory", "sendemail.aliasesfile",
})  # fmt: skip
"""Settings whose value is a file of text, of which git runs nothing."""
_FOLDERS = frozenset({"core.hookspath", "init.templatedir"})
_VARIABLES = (
    "GIT_ASKPASS", "GIT_EDITOR", "GIT_EXTERNAL_DIFF", "GIT_EXEC_PATH", "GIT_PAGER", "GIT_PROXY_COMMAND",
    "GIT_SEQUENCE_EDITOR", "GIT_SSH", "GIT_SSH_COMMAND", "GIT_TEMPLATE_DIR", "SSH_ASKPASS", "EDITOR", "VISUAL",
    "PAGER", "BASH_ENV", "ENV", "PYTHONSTARTUP", "LESSOPEN", "LESSCLOSE", "MANPAGER", "FCEDIT", "SUDO_ASKPASS",
    "PROMPT_COMMAND", "BROWSER",
)  # fmt: skip
_LISTS = ("LD_PRELOAD", "RUBYOPT", "NODE_OPTIONS", "PERL5OPT")
"""Variables of programs whose options may load a file."""

_SEPARATORS = re.compile(r"[;&|(){}`\n]+")
_WORD = re.compile(r"""(?:"[^"]*"|'[^']*'|[^\s"'])+""")
_TOP = re.compile(
    r"""["']?(?:\$\(\s*git\s+rev-parse\s+--show-toplevel\s*\)|`\s*git\s+rev-parse\s+--show-toplevel\s*`)["']?/"""
)
_BESIDE = re.compile(
    r"""["']?(?:\$\(\s*dirname\s+(?:--\s+)?["']?\$0["']?\s*\)|\$\{0%/\*\}|\$\{BASH_SOURCE%/\*\})["']?/"""
)
_VARIABLE = re.compile(r"^\$\{?\w+\}?/")
_ASSIGNMENT = re.compile(r"^\w+=")
_BEFORE_A_PROGRAM = frozenset({
    "!", "then", "do", "else", "if", "elif", "while", "until", "time", "exec", "env", "sudo", "nice", "command",
    "nohup", "builtin", "xargs", "eval", "ionice", "timeout",
})  # fmt: skip
_INTERPRETERS = re.compile(
    r"(?:sh|bash|zsh|dash|ksh|fish|python[\d.]*|node|nodejs|ruby|perl|php|deno|bun|tsx|ts-node|lua|pwsh|source|\.)"
)
_SHELL = re.compile(r"#!\s*\S*(?:/|\benv\s+)(?:ba|z|da|k)?sh\b")
_HERE = "\0"
"""Stands for the folder of a hook."""


@dataclass
class Names:
    """Files in the places that commands may write that something outside names, each with its namer."""

    files: dict[Path, str] = field(default_factory=dict)
    folders: dict[Path, str] = field(default_factory=dict)
    """Everything in them is run."""
    settings: dict[Path, str] = field(default_factory=dict)
    """Files of git's settings."""

    def about(self, path: Path) -> str:
        """The setting or script that names it; "" if nothing does."""
        for table in (self.files, self.settings):
            if said := table.get(path):
                return said
        # What is named and does not exist yet may become a folder.
        either = {**self.files, **self.folders}
        return next((either[one] for one in (path, *path.parents) if one in either), "")


def names_in(roots: Sequence[Path], gits: Sequence[Path]) -> Names:
    """Files in `roots` that are named, for the folders of git's in them. Blocks, for a few milliseconds once."""
    found = Names()
    trees = [git.parent if git.name == ".git" else git for git in gits[:_MOST_GITS]]
    bases = tuple(dict.fromkeys((*trees, *roots)))
    look = _Look(tuple(roots), found)
    for file in _above():
        look.settings(file, bases)
    for name, value in _of_the_environment():
        look.value(name, value, bases, "the environment")
    for git, tree in zip(gits[:_MOST_GITS], trees, strict=False):
        for name in ("config", "config.worktree"):
            look.settings(git / name, (tree,), own=True)
        look.hooks(git / "hooks", tree)
    done: set[Path] = set()
    while rest := [folder for folder in found.folders if folder not in done]:
        for folder in rest:  # what is found there may lead to more
            done.add(folder)
            look.hooks(folder, next((tree for tree in trees if folder.is_relative_to(tree)), folder.parent))
    for place in os.environ.get("PATH", "").split(os.pathsep):
        if place and not place.startswith(os.sep):
            for base in roots:
                look.note_folder(base / place, "PATH names it")
    return found


def on_path(roots: Sequence[Path]) -> tuple[Path, ...]:
    """Folders of the workspace in which programs are looked for by their names."""
    folders = (
        Path(os.path.normpath(one))
        for one in os.environ.get("PATH", "").split(os.pathsep)
        if one[:1] == os.sep
    )
    return tuple(dict.fromkeys(one for one in folders if any(one.is_relative_to(root) for root in roots)))


@lru_cache(maxsize=1)
def system_programs() -> frozenset[str]:
    """Names of the programs that come with the system, but for languages, which an environment has of its own."""
    found: set[str] = set()
    for folder in ("/bin", "/usr/bin", "/usr/sbin", "/sbin", "/usr/local/bin"):
        try:
            found.update(entry.name for entry in Path(folder).iterdir())
        except OSError:
            continue
    return frozenset(
        name for name in found if not re.match(r"(?:python|pip|pydoc|2to3|idle|node|np[mx]|ruby|gem)", name)
    )


class _Look:
    def __init__(self, roots: tuple[Path, ...], found: Names) -> None:
        self._roots = roots
        self._found = found
        self._read: set[Path] = set()

    def settings(self, file: Path, bases: Sequence[Path], depth: int = 0, *, own: bool = False) -> None:
        """A file of settings, with those that it includes under whatever condition."""
        if file in self._read or depth > _DEEPEST:
            return
        self._read.add(file)
        if not own:
            self._note(self._found.settings, file, "git's settings include it")
        for key, value in read_settings(_text(file, LARGEST)) or ():
            if value is None:
                continue
            if is_include(key):
                self.settings(_joined(file.parent, value), bases, depth + 1)
            else:
                self.value(key, value, bases, _shown(file))

    def value(self, key: str, value: str, bases: Sequence[Path], where: str) -> None:
        """The value of a setting or a variable that git or a shell acts on."""
        name = key.lower()
        if name in _DATA or is_harmless(key, value):
            return
        why = f"{key} in {where} names it"
        for base in bases:
            if name in _FOLDERS:
                self.note_folder(_joined(base, value), why)
            for path in _paths(value, base, base):
                self._note(self._found.files, path, why)

    def hooks(self, folder: Path, tree: Path) -> None:
        """Files of the tree that the hooks in a folder run or source, and the settings of their managers."""
        try:
            with os.scandir(folder) as entries:
                hooks = [one for one in entries if not one.name.endswith(".sample") and one.is_file()]
        except OSError:
            return
        for hook in sorted(hooks, key=lambda one: one.name)[:_MOST]:
            text = _text(Path(hook.path), _LARGEST_HOOK).decode("utf-8", "replace")
            self._run_by(text, tree, folder, f"the hook {hook.name} runs it")
            for path in managed_by(text, folder, tree):
                if path.is_dir() and not path.is_symlink():
                    self.note_folder(path, f"the hook {hook.name} runs what is in it")
                else:
                    self._note(self._found.files, path, f"the hook {hook.name} runs what it says")

    def _run_by(self, text: str, tree: Path, here: Path, why: str, depth: int = 0) -> None:
        """Files that a script runs, and those that these run in turn."""
        for path in _paths(text, tree, here):
            known = path in self._found.files or path in self._read
            if path.parent != here or here not in self._found.folders:
                self._note(self._found.files, path, why)
            if path in self._found.files and not known and depth < _DEEPEST_SCRIPT:
                inner = _text(path, _LARGEST_HOOK).decode("utf-8", "replace")
                if _SHELL.match(inner) or path.suffix in {".sh", ".bash"}:
                    self._run_by(inner, tree, path.parent, f"{why}, by {path.name}"[:200], depth + 1)

    def note_folder(self, folder: Path, why: str) -> None:
        """A folder in which everything is run."""
        path = Path(os.path.normpath(folder))
        if path not in self._roots:
            self._note(self._found.folders, path, why)

    def _note(self, table: dict[Path, str], path: Path, why: str) -> None:
        path = Path(os.path.normpath(path))
        inside = any(path != root and path.is_relative_to(root) for root in self._roots)
        if inside and ".git" not in path.parts and len(table) < _MOST:
            table.setdefault(path, why)


def _above() -> Iterator[Path]:
    """Files of git's settings that hold for every repository."""
    environment = os.environ
    if environment.get("GIT_CONFIG_NOSYSTEM", "") in {"", "0", "false"}:
        yield Path(environment.get("GIT_CONFIG_SYSTEM") or "/etc/gitconfig")
        yield from _of_the_system()
    if named := environment.get("GIT_CONFIG_GLOBAL"):
        yield Path(named)
        return
    home = Path(environment.get("HOME") or "~").expanduser()
    yield Path(environment.get("XDG_CONFIG_HOME") or home / ".config") / "git" / "config"
    yield home / ".gitconfig"


@lru_cache(maxsize=1)
def _of_the_system() -> tuple[Path, ...]:
    """The file of this git's settings for everyone, as git itself says."""
    git = processes.own_program("git")
    try:
        done = subprocess.run(
            [git or "git", "config", "--system", "--show-origin", "--null", "--list"],
            capture_output=True,
            cwd="/",
            timeout=_PATIENCE,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return ()
    origins = (one for one in done.stdout.split(b"\0") if one.startswith(b"file:"))
    return tuple(dict.fromkeys(Path(os.fsdecode(one.removeprefix(b"file:"))) for one in origins))


def _of_the_environment() -> Iterator[tuple[str, str]]:
    environment = os.environ
    for name in (*_VARIABLES, *_LISTS):
        if value := environment.get(name):
            yield name, value
    count = environment.get("GIT_CONFIG_COUNT", "")
    for number in range(min(int(count), _MOST) if count.isascii() and count.isdecimal() else 0):
        yield (
            environment.get(f"GIT_CONFIG_KEY_{number}", ""),
            environment.get(f"GIT_CONFIG_VALUE_{number}", ""),
        )
    for pair in re.findall(
        r"'((?:[^']|'\\'')*)'(?:=?'((?:[^']|'\\'')*)')?", environment.get("GIT_CONFIG_PARAMETERS", "")
    ):
        key, _, value = pair[0].partition("=")
        yield key, pair[1] or value


def _paths(text: str, base: Path, here: Path) -> Iterator[Path]:
    """Files that a command line or a script runs or sources: programs with a path, and what an interpreter is given.
    Relative ones begin at `base`, those beside a hook in `here`.
    """
    text = _BESIDE.sub(_HERE, _TOP.sub("./", text))
    for part in _SEPARATORS.split(text):
        words = [one.replace('"', "").replace("'", "") for one in _WORD.findall(part)]
        words = words[1:] if words[:1] == ["!"] else words
        program = True
        for number, word in enumerate(words):
            if program and (_ASSIGNMENT.match(word) or word in _BEFORE_A_PROGRAM or word.startswith("-")):
                continue
            if not program:
                break
            program = False
            word = word.lstrip("!@")
            if "/" in word or _HERE in word:
                yield _placed(word, base, here)
            if _INTERPRETERS.fullmatch(word.rpartition("/")[2]):
                given = [one for one in words[number + 1 :] if not one.startswith("-")]
                inner = [one for one in given[:1] if " " in one]
                yield from (_placed(one, base, here) for one in given[:1] if not inner)
                for one in inner:
                    yield from _paths(one, base, here)
        for word in words:
            # An option may be given a program (`--file=./x`), and a script within quotes a command.
            _, equals, value = word.partition("=")
            if equals and value.startswith(("./", "../", "/", ".")) and "/" in value:
                yield _placed(value, base, here)


def _placed(word: str, base: Path, here: Path) -> Path:
    if _HERE in word:
        return Path(os.path.normpath(here / word.rpartition(_HERE)[2]))
    return _joined(base, _VARIABLE.sub("", word))


def _joined(base: Path, said: str) -> Path:
    said = said.replace("\0", "")
    path = Path(said).expanduser() if said.startswith("~/") else Path(said)
    return Path(os.path.normpath(base / path))


def _shown(file: Path) -> str:
    home = os.environ.get("HOME", "")
    return f"~{os.fspath(file)[len(home) :]}" if home and file.is_relative_to(home) else os.fspath(file)


def _text(file: Path, largest: int) -> bytes:
    """The beginning of a regular file; nothing of any other."""
    try:
        return head(file, largest)
    except (OSError, ValueError):
        return b""
