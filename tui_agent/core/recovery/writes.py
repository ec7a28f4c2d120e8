"""Possible changes of a shell command, read from its text alone: files, installed packages, the repository,
services.

For runs whose workspace nobody looks at (recordings, no checkpoints), and for what no look at the workspace shows: the
environment. Pure, and bounded in time for any text. What cannot be told counts as `MAYBE`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from functools import lru_cache

from tui_agent.shell_programs import (
    FILE_WRITERS,
    GIT_OPTIONS,
    INLINE,
    SHELLS,
    base_name,
    behind_options,
    interprets,
    shell_code,
    working,
)
from tui_agent.shell_syntax import CommandGroup, Compound, Script, Simple, UnreadableCommand, parse


class Writes(IntEnum):
    """Kinds of changes. `OUTPUT`: the output of a program is kept in a file."""

    NOTHING = 0
    MAYBE = 1
    OUTPUT = 2
    SURELY = 3


_LONGEST = 8_000
"""Characters of a command that are looked at; of a longer one, a script, the structure is not read."""

_DEEPEST = 3
"""Commands within commands (`bash -c`, `xargs`) that are looked into."""

_READERS = frozenset({
    "ls", "cat", "head", "tail", "grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack", "wc", "sort", "uniq", "cut",
    "tr", "echo", "printf", "pwd", "cd", "pushd", "popd", "which", "whereis", "type", "hash", "command", "file",
    "stat", "du", "df", "tree", "less", "more", "diff", "cmp", "comm", "test", "[", "[[", "true", "false", ":",
    "sleep", "wait", "date", "whoami", "id", "groups", "uname", "arch", "nproc", "printenv", "hostname", "ps", "top",
    "free", "uptime", "lsof", "netstat", "ss", "ping", "dig", "nslookup", "host", "jq", "yq", "xxd", "hexdump", "od",
    "strings", "md5sum", "sha1sum", "sha256sum", "cksum", "basename", "dirname", "realpath", "readlink", "nl",
    "column", "paste", "tac", "rev", "seq", "expr", "let", "bc", "history", "man", "help", "info", "awk", "gawk",
    "mawk", "sed", "find", "locate", "fold", "fmt", "join", "split", "look", "nm", "objdump", "ldd", "exit", "return",
    "shift", "set", "shopt", "trap", "read", "pgrep", "pidof", "zcat", "bat", "fd", "base64", "iconv", "tput", "clear",
    "journalctl", "dmesg", "getent", "locale", "ulimit", "jobs", "git-grep", "cloc", "tokei",
})  # fmt: skip
"""Programs that change nothing, unless an option or a redirection says otherwise."""

_CHECKERS = frozenset({
    "pytest", "py.test", "unittest", "nose2", "nosetests", "mypy", "pyright", "flake8", "pylint", "pyflakes",
    "bandit", "vulture", "pycodestyle", "pydocstyle", "eslint", "tsc", "jest", "vitest", "mocha", "shellcheck",
    "hadolint", "yamllint", "stylelint", "golangci-lint", "staticcheck", "rspec", "phpunit", "ctest", "doctest",
    "py_compile", "compileall",
})  # fmt: skip
"""Programs that look at the work and judge it; what they keep for themselves is no work."""

_WRITERS = FILE_WRITERS | frozenset({
    "wget", "apply_patch", "export", "unset", "source", ".", "kill", "pkill", "killall", "createdb", "dropdb", "mktemp",
    "autopep8", "isort", "autoflake", "pyupgrade", "yapf", "direnv", "nvm", "pyenv", "asdf", "mise", "crontab",
    "useradd", "usermod", "mount", "umount", "alias", "xdotool", "ssh-keygen",
})  # fmt: skip
"""Programs whose work is a change of files or of the environment."""

_VERBS: Mapping[str, frozenset[str]] = {
    "git": frozenset({
        "apply", "am", "checkout", "switch", "restore", "reset", "stash", "merge", "rebase", "pull", "fetch", "rm",
        "cherry-pick", "revert", "clean", "mv", "commit", "add", "submodule", "worktree", "clone", "init", "push",
    }),
    "pip": frozenset({"install", "uninstall"}),
    "uv": frozenset({"pip", "sync", "add", "remove", "venv", "lock"}),
    "poetry": frozenset({"install", "add", "remove", "update", "lock"}),
    "pipenv": frozenset({"install", "uninstall", "sync", "update"}),
    "conda": frozenset({"install", "create", "update", "remove", "env"}),
    "npm": frozenset({"install", "i", "ci", "uninstall", "update", "link", "add"}),
    "yarn": frozenset({"add", "install", "remove", "upgrade"}),
    "pnpm": frozenset({"add", "install", "i", "remove", "update"}),
    "apt": frozenset({"install", "remove", "update", "upgrade", "purge"}),
    "apk": frozenset({"add", "del", "update"}),
    "dnf": frozenset({"install", "remove", "update"}),
    "brew": frozenset({"install", "uninstall", "upgrade", "services"}),
    "cargo": frozenset({"add", "remove", "update", "install", "fmt", "fix", "clean", "init", "new"}),
    "go": frozenset({"get", "install", "mod", "generate", "fmt"}),
    "gem": frozenset({"install", "uninstall", "update"}),
    "bundle": frozenset({"install", "update", "add"}),
    "composer": frozenset({"install", "require", "update"}),
    "systemctl": frozenset({"start", "stop", "restart", "reload", "enable", "disable"}),
    "service": frozenset(),
    "ruff": frozenset({"format"}),
    "docker": frozenset({"start", "stop", "restart", "rm", "kill", "pull", "build"}),
}  # fmt: skip
"""By program: the subcommands that change something."""

_SAME = {
    "pip3": "pip", "mamba": "conda", "micromamba": "conda", "apt-get": "apt", "yum": "dnf", "podman": "docker",
    "bun": "npm",
}  # fmt: skip

_LOOKING_VERBS: Mapping[str, frozenset[str]] = {
    "git": frozenset({
        "status", "log", "diff", "show", "blame", "grep", "ls-files", "ls-tree", "rev-parse", "describe",
        "shortlog", "cat-file", "reflog", "remote", "branch", "tag", "config", "rev-list", "for-each-ref", "help",
    }),
    "go": frozenset({"test", "vet", "version", "env", "list", "doc"}),
    "cargo": frozenset({"test", "check", "clippy", "tree", "metadata", "nextest"}),
    "npm": frozenset({"test", "t", "ls", "list", "view", "outdated", "audit"}),
    "yarn": frozenset({"test", "lint", "list", "why"}),
    "pnpm": frozenset({"test", "lint", "list", "why"}),
    "pip": frozenset({"list", "show", "freeze", "check"}),
    "ruff": frozenset({"check", "rule"}),
    "docker": frozenset({"ps", "logs", "inspect", "images"}),
}  # fmt: skip
"""By program: the subcommands that change nothing."""

_FIXING = frozenset(
    {"--fix", "--write", "-w", "--in-place", "--fix-dry-run", "--unsafe-fixes", "--overwrite"}
)
"""Options by which a checker or formatter writes what it has found."""

_FORMATTERS = frozenset({"black", "prettier", "gofmt", "goimports", "rustfmt", "clang-format", "shfmt"})
_ONLY_CHECKING = frozenset({"--check", "--diff", "-d", "-l", "--list-different", "--dry-run"})

_CODE_THAT_WRITES = re.compile(
    r"""open\s*\([^)\n]{0,200}['"][rb]{0,2}[wax]\+?[bt]?['"]
      | \.write_(?:text|bytes)\s*\( | \bshutil\.(?:copy|move|rmtree)
      | \bos\.(?:remove|rename|replace|unlink|makedirs|mkdir|rmdir|chmod|symlink|system)\s*\(
      | \.(?:unlink|rename|mkdir|touch)\( | \bwriteFile(?:Sync)?\s*\( | \b(?:append|copy|rename|unlink)(?:File)?Sync\(
      | \bFile\.(?:write|open)\b | \bfile_put_contents\b | \.to_(?:csv|json|excel|parquet|pickle)\s*\(
      | \b(?:json|pickle|yaml|toml)\.dump\s*\( | \bnp\.savez?\s*\( | \bsubprocess\.
      | \b(?:INSERT\s+INTO|UPDATE\s+\S+\s+SET|DELETE\s+FROM|(?:CREATE|ALTER|DROP)\s+TABLE)\b
    """,
    re.VERBOSE | re.IGNORECASE,
)
"""Code that writes files or tables, in the languages that are given on the command line."""

_SQL_LOOKS = frozenset({"select", "show", "desc", "describe", "explain", "use", "with", "pragma"})
_SQL_WRITES = frozenset(
    {"insert", "update", "delete", "create", "alter", "drop", "truncate", "replace", "grant"}
)
_SQL_PROGRAMS = frozenset({"psql", "mysql", "mariadb", "sqlite3", "duckdb"})

_REDIRECTED = re.compile(
    r"""'[^']*' | "(?:[^"\\]|\\.)*" | \\. | <[<&(]?-?
      | (?P<out>&?>>?[|]?(?![&(]))\s*(?P<target>"[^"]*"|'[^']*'|[^\s;|&<>()]+)?""",
    re.VERBOSE | re.DOTALL,
)
_NO_FILE = re.compile(r"/dev/(?:null|std(?:out|err|in)|tty|fd/\d+)|&\d|\d|-")
_LOOSE = re.compile(
    r"\bsed\s+(?:-\S{1,40}\s+){0,4}(?:-\w{0,9}i|--in-place)|\bperl\s+-\w*i|\b(?:tee|patch|mv|cp|rm|touch|mkdir|ln|chmod)\s"
    r"|\bgit\s+(?:apply|checkout|restore|reset|stash)\b|\b(?:pip3?|npm|apt(?:-get)?)\s+install\b"
)
"""Writing commands in a text whose structure is not read: loops, functions, what is too long."""


@lru_cache(maxsize=512)
def writes(command: str) -> Writes:
    """Possible changes of a command that ended well."""
    return _of_text(command, 0)


def writes_before_its_end(command: str, output: str = "") -> bool:
    """True if a command that failed surely changed something before the part that failed: `sed -i … &&
    pytest`.

    What complains in the output by its own name has failed, and what follows it by `&&` did not run.
    """
    for pipelines in _before_the_end(command):
        for programs, wrote in pipelines:
            if any(re.search(rf"(?<![\w.+-]){re.escape(name)}: ", output[:_LONGEST]) for name in programs):
                break
            if wrote:
                return True
    return False


@lru_cache(maxsize=512)
def _before_the_end(command: str) -> tuple[tuple[tuple[tuple[str, ...], bool], ...], ...]:
    """By list, the pipelines before the last one: their programs, and whether they surely write."""
    script = _parsed(command)
    lists = [one.pipelines for one in script.lists] if script else []
    if lists:
        lists[-1] = lists[-1][:-1]
    return tuple(
        tuple(
            (_programs(one.commands), _of_commands(one.commands, command, 0) is Writes.SURELY)
            for one in pipelines
        )
        for pipelines in lists
    )


def _programs(commands: Sequence[object]) -> tuple[str, ...]:
    return tuple(base_name(one.words[0]) for one in commands if isinstance(one, Simple) and one.words)


@lru_cache(maxsize=512)
def program_of(command: str) -> str:
    """The program that does a command's work, without folders, wrappers and what only prepares it; "" for none."""
    script = _parsed(command)
    if script is None:
        return ""
    for simple in script.simple_commands():
        words = working(simple.words)
        name = base_name(words[0]) if words else ""
        if name and name not in {"cd", "export", "set", "source", ".", "echo", "sleep"}:
            return name
    return ""


def _parsed(command: str) -> Script | None:
    try:
        return parse(command) if len(command) <= _LONGEST else None
    except UnreadableCommand:
        return None


def _of_text(command: str, depth: int) -> Writes:
    if depth > _DEEPEST:
        return Writes.MAYBE
    script = _parsed(command)
    if script is None:
        return _of_unread(command)
    found = Writes.NOTHING
    for one in script.lists:
        for pipeline in one.pipelines:
            found = max(found, _of_commands(pipeline.commands, command, depth))
    return found


def _of_unread(command: str) -> Writes:
    text = command[:_LONGEST]
    return Writes.SURELY if _LOOSE.search(text) or _keeps_output(text) else Writes.MAYBE


def _of_commands(commands: Sequence[object], whole: str, depth: int) -> Writes:
    """A pipeline. A redirection keeps the text that a writer of text prints, or the output of a program."""
    found, redirected, checkers = Writes.NOTHING, False, 0
    for command in commands:
        match command:
            case Simple():
                kind, checks = _of_simple(command, whole, depth)
                found, checkers = max(found, kind), checkers + checks
                redirected |= command.redirected
            case CommandGroup(body):
                for one in body.lists:
                    for pipeline in one.pipelines:
                        found = max(found, _of_commands(pipeline.commands, whole, depth + 1))
            case Compound():
                found = max(found, _of_unread(whole))
    if redirected and not checkers and _keeps_output(whole):
        return max(found, Writes.SURELY if _prints_text(commands) else Writes.OUTPUT)
    if checkers and found is Writes.SURELY and all(_is_log(command) for command in commands):
        return Writes.NOTHING
    return found


def _prints_text(commands: Sequence[object]) -> bool:
    """True if the redirected text stands in the command itself (`cat > f <<EOF`, `echo x > f`)."""
    last = commands[-1]
    return isinstance(last, Simple) and bool(last.words) and last.words[0] in {"cat", "echo", "printf"}


def _is_log(command: object) -> bool:
    """True if it only checks, filters or keeps the output of a checker (`pytest | tee out.txt`)."""
    if not isinstance(command, Simple):
        return False
    words = working(command.words)
    return not words or base_name(words[0]) == "tee" or _of_simple(command, "", 0)[0] is Writes.NOTHING


def _keeps_output(text: str) -> bool:
    """True if some output is redirected into a file."""
    for found in _REDIRECTED.finditer(text[:_LONGEST]):
        target = (found["target"] or "").strip("\"'")
        if found["out"] and target and not _NO_FILE.fullmatch(target):
            return True
    return False


def _of_simple(command: Simple, whole: str, depth: int) -> tuple[Writes, bool]:
    """Possible changes of one program, and a mark if it checks the work."""
    words = working(command.words)
    if not words:
        return Writes.NOTHING, False  # an assignment, or a redirection alone
    name, rest = base_name(words[0]), words[1:]
    name = _SAME.get(name, name)
    if name in SHELLS:
        code = shell_code(words)
        return (Writes.MAYBE if code is None else _of_text(code, depth + 1)), False
    if name == "xargs":
        inner = next((at for at, word in enumerate(rest) if not word.startswith("-")), len(rest))
        return _of_words(rest[inner:], whole, depth + 1), False
    if interprets(name):
        return _of_interpreter(name, rest, whole, depth)
    if name in _CHECKERS or name in _FORMATTERS:
        return _of_checker(name, rest)
    if name in _VERBS or name in _LOOKING_VERBS:
        return _of_verb(name, rest)
    special = _SPECIAL.get(name)
    return (_of_name(name) if special is None else special(rest, whole, depth)), False


def _of_name(name: str) -> Writes:
    if name in _WRITERS or name.lower() in _SQL_WRITES:
        return Writes.SURELY
    looks = name in _READERS or name.startswith("((") or name.lower() in _SQL_LOOKS
    return Writes.NOTHING if looks else Writes.MAYBE


def _of_checker(name: str, rest: Sequence[str]) -> tuple[Writes, bool]:
    if not _FIXING.isdisjoint(rest) or (name in _FORMATTERS and _ONLY_CHECKING.isdisjoint(rest)):
        return Writes.SURELY, False
    return Writes.NOTHING, True


def _of_words(words: Sequence[str], whole: str, depth: int) -> Writes:
    if depth > _DEEPEST or not words:
        return Writes.MAYBE if words else Writes.NOTHING
    return _of_simple(Simple(tuple(words)), whole, depth)[0]


def _of_interpreter(name: str, rest: Sequence[str], whole: str, depth: int) -> tuple[Writes, bool]:
    if not rest:
        return _of_code(whole), False
    if rest[0] in {"--version", "-V", "-v", "--help", "-h"}:
        return Writes.NOTHING, False
    if name == "perl" and any(re.fullmatch(r"-\w*i\S*", word) for word in rest):
        return Writes.SURELY, False
    if INLINE.fullmatch(rest[0]):
        return _of_code(" ".join(rest[1:]) if rest[0] != "-" else whole), False
    return Writes.MAYBE, False


def _of_code(code: str) -> Writes:
    return Writes.SURELY if _CODE_THAT_WRITES.search(code[:_LONGEST]) else Writes.NOTHING


def _of_verb(name: str, rest: Sequence[str]) -> tuple[Writes, bool]:
    words = behind_options(rest, GIT_OPTIONS | {"--prefix", "--cwd"})
    verb = words[0] if words else ""
    if name == "git" and verb == "stash" and {"list", "show"}.intersection(words[1:2]):
        return Writes.NOTHING, False
    if verb in _VERBS.get(name, ()) or name == "service" or not _FIXING.isdisjoint(rest):
        return Writes.SURELY, False
    if verb in _LOOKING_VERBS.get(name, ()) or not verb:
        return Writes.NOTHING, name != "git"
    script = words[1] if verb == "run" and len(words) > 1 else ""
    if re.fullmatch(r"(?:test|lint|check|typecheck)\b.*", script):
        return Writes.NOTHING, True
    return Writes.MAYBE, False


def _sed(rest: Sequence[str], _: str, __: int) -> Writes:
    in_place = any(re.match(r"-[a-zA-Z]*i|--in-place", word) for word in rest)
    return Writes.SURELY if in_place else Writes.NOTHING


def _awk(rest: Sequence[str], _: str, __: int) -> Writes:
    return Writes.SURELY if "inplace" in rest else Writes.NOTHING


def _find(rest: Sequence[str], whole: str, depth: int) -> Writes:
    if "-delete" in rest:
        return Writes.SURELY
    run = next((at for at, word in enumerate(rest) if word in {"-exec", "-execdir", "-ok"}), None)
    return Writes.NOTHING if run is None else _of_words(rest[run + 1 :], whole, depth + 1)


def _tar(rest: Sequence[str], _: str, __: int) -> Writes:
    return Writes.NOTHING if rest and re.fullmatch(r"-?\w*t\w*", rest[0]) else Writes.SURELY


def _curl(rest: Sequence[str], _: str, __: int) -> Writes:
    if any(re.fullmatch(r"-\w*[oO]|--output|--remote-name", word) for word in rest):
        return Writes.SURELY
    sends = any(re.match(r"-X|-d|-F|-T|--request|--data|--form|--upload", word) for word in rest)
    return Writes.MAYBE if sends else Writes.NOTHING


def _tee(rest: Sequence[str], _: str, __: int) -> Writes:
    kept = [word for word in rest if not word.startswith("-") and not _NO_FILE.fullmatch(word)]
    return Writes.SURELY if kept else Writes.NOTHING


def _wget(rest: Sequence[str], _: str, __: int) -> Writes:
    return Writes.NOTHING if {"--spider", "-qO-", "-O-"}.intersection(rest) else Writes.SURELY


_SPECIAL: Mapping[str, Callable[[Sequence[str], str, int], Writes]] = {
    "sed": _sed,
    "awk": _awk,
    "gawk": _awk,
    "find": _find,
    "tar": _tar,
    "curl": _curl,
    "tee": _tee,
    "wget": _wget,
    **dict.fromkeys(_SQL_PROGRAMS, lambda _, whole, __: _of_code(whole)),
}
"""Programs whose options say whether they write."""
