"""Hints: what would help with a failed command, if its error does not say it. The errors stand in `failure_hints.toml`.

A hint knows the workspace: it names the file, script or interpreter that is there, and the call that is ready to be
made, if there is one. It is bounded, and made in bounded time. Patterns look at one line each, the last one first: of a
traceback at its end alone, of a test run at its errors, and never at what a program logs. A configuration adds
patterns of its own in front.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import shutil
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from tui_agent.core.tool_facts import COMMAND_TOOL
from tui_agent.tools.hints import nearest_paths
from tui_agent.tools.workspace import WallError, Workspace, either, quoted

_LOOKED_AT = 4_000
"""Characters of an error that are looked at, at each end."""
_LINE = 400
_MOST_LINES = 160
_CONFIGURED_LINE, _CONFIGURED_LINES = 200, 40
"""Bounds of the lines of an error that the patterns of a configuration see: so long, and so many. With the bounds on
the patterns themselves (`config.sections.HintRule`) none can take noticeable time.
"""
_LONGEST = 500
_LONGEST_CALL = 300
_SMALL_FILE = 200_000
_ALIKE = 0.8
_KINDS_ALIKE = 0.5
"""Likeness of two file names, and of their endings, from which on one may be meant by the other."""


@dataclass(frozen=True)
class _Failure:
    """A failed command, as the makers of hints see it: the line that speaks is `match.string`."""

    command: str
    message: str
    match: re.Match[str]
    workspace: Workspace

    @property
    def name(self) -> str:
        """The text that the pattern caught in its group."""
        return str(self.match[self.match.lastindex or 0]).strip("'\"`‘’")

    @property
    def went_elsewhere(self) -> bool:
        """The command changed its folder, so that its paths are not the workspace's."""
        return re.search(r"(?:^|[;&|\n(]\s*)(?:cd|pushd)\s", self.command) is not None

    def has(self, *paths: str) -> str:
        """Give the first of these paths that is in the workspace; "" for none."""
        return next((path for path in paths if self._exists(path)), "")

    def _exists(self, path: str) -> bool:
        try:
            return self.workspace.resolve(path).exists()
        except (WallError, OSError):
            return False

    def runs(self, path: str) -> bool:
        """Tell if a file of the workspace may be executed as it is."""
        try:
            return os.access(self.workspace.resolve(path), os.X_OK)
        except WallError:
            return False

    def text(self, path: str) -> str:
        """Read a small file of the workspace; "" if it cannot be read."""
        try:
            with self.workspace.open(self.workspace.resolve(path)) as stream:
                return stream.read(_SMALL_FILE).decode("utf-8", "replace")
        except (WallError, OSError):
            return ""

    def near(self, name: str) -> list[str]:
        """Find paths of the workspace that may be meant by a missing one, the likeliest first: those of the same name
        elsewhere, or of almost the same.
        """
        found = nearest_paths(self.workspace, name)
        return [path for path in found if _are_alike(_base(name), _base(path))]

    def again(self, command: str) -> str:
        """Say the call that makes this command; "" for the one that has just failed, and for long ones."""
        if command == self.command or "\n" in command or not command:
            return ""
        call = f"bash {json.dumps({'command': command}, ensure_ascii=False)}"
        return f" Try: {call}" if len(call) <= _LONGEST_CALL else ""

    def with_instead(self, name: str, other: str) -> str:
        """Say the same command with another path in the place of one, if that is sure to be harmless; else a call
        that reads it."""
        word = re.compile(rf"(?<![\w./-]){re.escape(name)}(?![\w/-]|\.\w)")
        if len(word.findall(self.command)) == 1 and not self.went_elsewhere:
            if _CHANGES.search(self.command):
                return ""
            if again := self.again(word.sub(lambda _: other, self.command)):
                return again
        try:
            readable = self.workspace.resolve(other).is_file()
        except (WallError, OSError):
            return ""
        return f" To read it: read_file {json.dumps({'path': other}, ensure_ascii=False)}" if readable else ""


def _base(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2].casefold()[:100]


def _are_alike(one: str, other: str) -> bool:
    """Tell if one name may be a slip for the other, a kind of file for one of almost the same letters."""
    kinds = one.rpartition(".")[2], other.rpartition(".")[2]
    if ("." in one) != ("." in other) or difflib.SequenceMatcher(None, *kinds).ratio() < _KINDS_ALIKE:
        return False
    return difflib.SequenceMatcher(None, one, other).ratio() >= _ALIKE


_CHANGES = re.compile(
    r">|\b(?:rm|mv|cp|dd|tee|truncate|shred|unlink|rmdir|chmod|chown|ln|sudo|install|sed -i|perl -i|patch)\b"
    r"|\bgit (?:rm|mv|clean|reset|checkout|restore)\b"
)
"""Commands in which another path could do harm."""


class _Row(NamedTuple):
    """The hint for errors of one kind: a text, or the name of the function that makes it."""

    hint: str = ""
    says: str = ""

    def of(self, failure: _Failure) -> str:
        """Say what would help; "" if nothing would."""
        return self.hint or _SAID_BY[self.says](failure)


class _Table(NamedTuple):
    """The content of `failure_hints.toml`."""

    patterns: Sequence[tuple[_Row, re.Pattern[str]]]
    packages: Mapping[str, str]
    """Packages of modules that are known, by the module's name."""
    instead: Mapping[str, Sequence[str]]
    """Programs that do the work of another, by its name."""


@cache
def _table() -> _Table:
    """Read the table, when the first command has failed."""
    given = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
    patterns = [
        (_Row(row.get("hint", ""), row.get("says", "")), re.compile(pattern.replace("@path", _PATH)))
        for row in given["error"]
        for pattern in row["patterns"]
    ]
    same = {name: name for name in given["same_name"]["packages"].split()}
    return _Table(patterns, same | given["packages"], given["instead"])


def hint_for(
    tool: str,
    arguments: dict[str, Any],
    message: str,
    workspace: Workspace,
    extra: Sequence[tuple[str, str]] = (),
) -> str:
    """Say what would help with this failure; "" if nothing is known or the error says it already.

    `extra`: (pattern, hint) pairs of the configuration, which come first. Reads the disk: call it in a thread.
    """
    if len(message) > 2 * _LOOKED_AT:
        message = f"{message[:_LOOKED_AT]}\n{message[-_LOOKED_AT:]}"
    lines = [line[:_CONFIGURED_LINE] for line in message.splitlines()]
    half = _CONFIGURED_LINES // 2
    shown = lines if len(lines) <= _CONFIGURED_LINES else lines[:half] + lines[-half:]
    for pattern, hint in extra:
        if any(_compiled(pattern).search(line) for line in shown):
            return hint[:_LONGEST]
    # The other tools say themselves what would help.
    if tool != COMMAND_TOOL:
        return ""
    command = str(arguments.get("command", ""))
    for line in _speaking(message):
        for row, error in _table().patterns:
            match = error.search(line)
            if match is not None and (made := row.of(_Failure(command, message, match, workspace))):
                return made if len(made) <= _LONGEST else f"{made[: _LONGEST - 4]} ..."
    return ""


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


# Which lines speak

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_TIMED_OUT = re.compile(r"did not end within [\d.]+ s\b")
_TRACEBACK = "Traceback (most recent call last):"
_EXCEPTION = re.compile(r"[A-Za-z_][\w.]*(?:: |$)")
_PYTEST = re.compile(
    r"=+ (?:short test summary info|FAILURES|ERRORS|test session starts) =+|no tests ran in "
)
_OF_A_TEST = re.compile(r"(?:E +[\w.]+(?:Error|Exception|NotFound|DoesNotExist): |ERROR: |(?:\S+): error: )")
_SAYS_NOTHING = re.compile(
    r"\W{0,3}\d{4}-\d\d-\d\d[T ]|\W{0,3}\d\d:\d\d:\d\d"  # a log with times
    r"|\W{0,3}(?:INFO|DEBUG|WARN|WARNING|TRACE|NOTICE)\b|.{0,60}\blevel=(?:info|warn|debug)"
    r"|(?:E +)?(?:AssertionError|assert )"  # what a test compares is no error of its own
    r"|\s+at |\s+File \"|\s*\d+ \||\s+(?:code|errno|syscall|address|port|path): "  # frames, source, fields
)


def _speaking(message: str) -> Iterator[str]:
    """Give the lines that say what went wrong, the last one first."""
    lines = [_COLOURS.sub("", line[:_LINE]).rstrip() for line in message.splitlines()]
    if lines and _TIMED_OUT.search(lines[0]):
        yield lines[0]
        return
    if any(_PYTEST.search(line) for line in lines):
        lines = [line.removeprefix("E ").strip() for line in lines if _OF_A_TEST.match(line)]
    elif _TRACEBACK in lines:
        lines = lines[_end_of_traceback(lines) :]
    if len(lines) > _MOST_LINES:
        lines = lines[: _MOST_LINES // 4] + lines[-_MOST_LINES * 3 // 4 :]
    for line in reversed(lines):
        if line and not _SAYS_NOTHING.match(line):
            yield line


def _end_of_traceback(lines: Sequence[str]) -> int:
    """Find the line in which the last traceback names its exception; what stands above it led there."""
    last = max(at for at, line in enumerate(lines) if line == _TRACEBACK)
    following = range(last + 1, len(lines))
    return next((at for at in following if _EXCEPTION.match(lines[at])), last)


# What to say


_STDLIB = frozenset(sys.stdlib_module_names) - {"distutils"} | {"tomllib", "zoneinfo", "graphlib"}


def _missing_module(failure: _Failure) -> str:
    name = failure.name.strip(".")
    top, _, below = name.partition(".")
    place = _place_of_module(failure, name.replace(".", "/"))
    if place is not None and f"PYTHONPATH={place}" not in failure.command:
        return _module_is_here(failure, top, place)
    if place is not None:
        return ""
    near = failure.near(f"{name.replace('.', '/')}.py")
    if near:
        return f"There is no module {quoted(name)}; most like it is {either(near[:2])}."
    if below or top.startswith(("test_", "tests")):
        return ""  # a module of the workspace's own, or a part of a package that is there
    if top in _STDLIB:
        return f"{quoted(top)} is part of Python itself, but not of this one: use another version (python3 --version)."
    return _not_installed(failure, top)


def _place_of_module(failure: _Failure, path: str) -> str | None:
    """Find the folder of the workspace from which a module can be imported; None if there is none."""
    base = path.rpartition("/")[2]
    for found in (*nearest_paths(failure.workspace, f"{path}.py"), *nearest_paths(failure.workspace, path)):
        named = found.removesuffix(".py")
        if (named == path or named.endswith(f"/{path}")) and (
            found.endswith(".py") or failure.has(f"{found}/__init__.py")
        ):
            return named.removesuffix(path).rstrip("/") or "."
        if named.rpartition("/")[2] == base and found.endswith(".py") and "/" not in path:
            return found.rpartition("/")[0] or "."
    return None


def _module_is_here(failure: _Failure, top: str, place: str) -> str:
    if failure.went_elsewhere:
        where = "the workspace's root" if place == "." else quoted(f"{place}/")
        return (
            f"The module {quoted(top)} is in {where}: run the command from there, with PYTHONPATH if need be."
        )
    where = "the workspace's root" if place == "." else quoted(f"{place}/")
    again = failure.again(f"PYTHONPATH={place} {failure.command}")
    return f"The module {quoted(top)} is in {where}: set PYTHONPATH={place}.{again}"


def _not_installed(failure: _Failure, top: str) -> str:
    python = failure.has(".venv/bin/python", "venv/bin/python", "env/bin/python")
    if python and python not in failure.command:
        return f"The workspace has an environment of its own: try it with {quoted(python)}."
    if re.search(r"\bpip3? install\b", failure.command):
        return ""
    needed = failure.has("requirements.txt", "pyproject.toml", "setup.py")
    how = {"requirements.txt": "python -m pip install -r requirements.txt"}.get(
        needed, "python -m pip install -e ."
    )
    if needed:
        return f"The module {quoted(top)} is not installed. The workspace has {quoted(needed)}: try '{how}'."
    used = re.search(r"[\w./-]*python[\d.]*(?= )", failure.command)
    package = _table().packages.get(top, "")
    if not package:
        # No call is made up for a package that nobody knows: whoever has that name could be anybody.
        return (
            f"The module {quoted(top)} is not installed here: check its name, do without it, or install its package, "
            "which may have another name."
        )
    again = failure.again(f"{used[0] if used else 'python3'} -m pip install {package}")
    return f"The module {quoted(top)} is not installed here; its package is {quoted(package)}.{again}"


def _missing_node_module(failure: _Failure) -> str:
    if failure.name.startswith((".", "/")):
        return _missing_file(failure) or _missing_file(failure, f"{failure.name}.js")
    if failure.has("package.json") and not failure.has("node_modules"):
        again = failure.again("npm install")
        return f"The workspace has a 'package.json' and no 'node_modules': run 'npm install' first.{again}"
    return ""


_AS_MODULE = frozenset(
    {"pip", "pip3", "pytest", "ruff", "mypy", "black", "flake8", "tox", "coverage", "isort"}
)
_RUNNERS = {"py": "python3", "js": "node", "mjs": "node", "rb": "ruby", "pl": "perl", "sh": "bash"}


def _runner(failure: _Failure, path: str) -> str:
    """Name the program that runs a script: by its first line, else by the end of its name; "" if neither says it."""
    first = failure.text(path)[:200].partition("\n")[0]
    named = re.match(r"#!\s*\S*?(\w+)(?:\s+(\w+))?\s*$", first)
    by_line = (named[2] if named[1] == "env" and named[2] else named[1]) if named else ""
    return {"python": "python3", "sh": "bash"}.get(by_line, by_line) or _RUNNERS.get(
        path.rpartition(".")[2], ""
    )


def _run_as(failure: _Failure, name: str, path: str) -> str:
    """Say how a script of the workspace is run that was called by `name`, with the call."""
    how = f"./{path}" if failure.runs(path) else f"{_runner(failure, path) or 'bash'} {path}"
    words = failure.command.split()
    at = words.index(name) if words.count(name) == 1 else -1
    simple = at == 0 or (at == 1 and words[0] in {"bash", "sh", "source", "."})
    rest = " ".join(words[at + 1 :])
    again = failure.again(f"{how} {rest}".strip()) if simple else ""
    return f"run it as '{how}'.{again}"


def _command_not_found(failure: _Failure) -> str:
    by, said = failure.match["by"], failure.match["name"].strip("'\"`‘’")
    name = said.rpartition("/")[2]
    if by in {"bash", "sh", "dash", "/bin/sh", "/bin/bash"} and name not in failure.command:
        return ""  # said by what was only shown, such as a log
    if said.rpartition(".")[2] in _RUNNERS and failure.has(said.removeprefix("./")):
        how = _run_as(failure, said, said.removeprefix("./"))
        return f"{quoted(said)} is no command, but a file of the workspace: {how}"
    if "/" in said:
        return _missing_file(failure)
    own = failure.has(
        f".venv/bin/{name}", f"venv/bin/{name}", f"node_modules/.bin/{name}", f"bin/{name}", name
    )
    if own and (failure.runs(own) or _runner(failure, own)) and not failure.workspace.resolve(own).is_dir():
        return f"{quoted(name)} is not installed, but the workspace has {quoted(own)}: {_run_as(failure, said, own)}"
    if name in _AS_MODULE and shutil.which("python3"):
        again = failure.again(
            re.sub(
                rf"(?<![\w./-]){re.escape(name)}(?![\w.-])", f"python3 -m {name}", failure.command, count=1
            )
        )
        return f"{quoted(name)} is not on the PATH: try 'python3 -m {name}'.{again}"
    other = next((program for program in _table().instead.get(name, ()) if shutil.which(program)), "")
    if other:
        return f"{quoted(name)} is not installed, but {quoted(other)} is."
    script = failure.has(*(f"{name}.{ending}" for ending in _RUNNERS))
    if script:
        how = _run_as(failure, said, script)
        return f"{quoted(name)} is no command, but the workspace has {quoted(script)}: {how}"
    return f"{quoted(name)} is not installed here: use another program for it, or check that it can be installed."


def _other_versions(failure: _Failure) -> str:
    found = re.search(r"exists in these Python versions:\n\s+([\w.-]+)", failure.message)
    if found is None:
        return ""
    name, chosen = failure.name, f"PYENV_VERSION={found[1]}"
    plain = re.sub(r"\bPYENV_VERSION=\S+\s+", "", failure.command)
    again = failure.again(f"{chosen} {plain}")
    return f"{quoted(name)} is there in another version of Python: {found[1]}.{again}"


def _wrong_interpreter(failure: _Failure) -> str:
    path = failure.match["path"].removeprefix("./")
    runner = _runner(failure, path) if failure.has(path) else ""
    if runner in {"", "bash", "sh", "dash"}:
        return ""
    return (
        f"{quoted(path)} is no script of the shell: {_run_as(failure, failure.match['path'], path)}".replace(
            f"'./{path}'", f"'{runner} {path}'"
        )
    )


def _missing_file(failure: _Failure, written: str = "") -> str:
    written = written or failure.name.rstrip("/")
    root = failure.workspace.root.as_posix()
    name = written.removeprefix(f"{root}/").removeprefix("./")
    if not name or name == root or "socket" in failure.match.string:
        return ""
    if name.startswith("/"):
        return _outside(failure, name)
    if failure.has(name):
        if not failure.went_elsewhere:
            return ""
        return f"{quoted(name)} is there seen from the workspace's root, but the command had gone elsewhere by cd."
    if _REMOVES.search(failure.command):
        return ""
    own, rest = failure.workspace.root.name, name.partition("/")[2]
    doubled = name.partition("/")[0] == own and not failure.has(own)
    near = [] if doubled and failure.has(rest) else failure.near(name)
    if near:
        # One of the very same name is meant more likely than another that only looks like it.
        alone = len(near) == 1 or _base(near[0]) == _base(name)
        found = f"it is {quoted(near[0])}" if alone else f"it are {either(near[:3])}"
        more = failure.with_instead(written, near[0])
        return f"There is no {quoted(name)}; most like {found} (from the workspace's root).{more}"
    if doubled:
        more = failure.with_instead(written, rest) if failure.has(rest) else ""
        return f"The workspace is itself named {quoted(own)}, and every command starts in it: leave '{own}/' out.{more}"
    return ""


_REMOVES = re.compile(r"\b(?:rm|rmdir|unlink|shred)\b")


def _outside(failure: _Failure, name: str) -> str:
    """Say that a path is outside of the workspace, if its end is inside or the command goes there by cd."""
    parts = [part for part in name.split("/") if part]
    ends = ("/".join(parts[at:]) for at in range(1, min(len(parts), 12)))
    inside = next((end for end in ends if failure.has(end)), "")
    goes_there = re.search(rf"\bcd\s+['\"]?{re.escape(name)}(?![\w/])", failure.command)
    if not inside and not goes_there:
        return ""
    text = f"{quoted(name)} is outside the workspace, which is {quoted(failure.workspace.root.as_posix())}. "
    if inside:
        return f"{text}In it is {quoted(inside)}.{failure.with_instead(name, inside)}"
    return f"{text}Every command starts there: use paths relative to it."


def _not_executable(failure: _Failure) -> str:
    written = failure.name
    path = written.removeprefix("./")
    if not failure.has(path) or failure.runs(path) or written not in failure.command:
        return ""
    return f"{quoted(path)} is not executable: {_run_as(failure, written, path)}"


def _timed_out(failure: _Failure) -> str:
    if _SERVES.search(failure.command):
        return (
            "This command does not end by itself. Start it in the background and use it in the same call, as in "
            "'server & sleep 2; curl …': what is left running ends with the call."
        )
    return (
        "Do less at once (one test, one directory), give a longer 'timeout' where the work needs it, and make "
        "sure that nothing waits for input."
    )


def _unknown_script(failure: _Failure) -> str:
    with suppress(ValueError, RecursionError):
        scripts = json.loads(failure.text("package.json")).get("scripts")
        if isinstance(scripts, dict) and scripts:
            return f"'package.json' has the scripts {either(list(scripts)[:12])}."
    return ""


def _unknown_target(failure: _Failure) -> str:
    makefile = failure.has("Makefile", "makefile", "GNUmakefile")
    if re.search(r"(?:^|\s)(?:-f|--file|-C)", failure.command):
        return ""
    if not makefile:
        return "There is no Makefile in the workspace's root."
    targets = re.findall(r"^([A-Za-z0-9][\w.-]*)\s*:(?!=)", failure.text(makefile), re.MULTILINE)
    return (
        f"{quoted(makefile)} has the targets {either(list(dict.fromkeys(targets))[:12])}." if targets else ""
    )


def _unknown_option(failure: _Failure) -> str:
    if re.search(r"\bpy\.?test\b", failure.command) is None:
        return ""
    options = ""
    with suppress(tomllib.TOMLDecodeError, AttributeError, TypeError):
        table = tomllib.loads(failure.text("pyproject.toml"))
        options = str(table.get("tool", {}).get("pytest", {}).get("ini_options", {}).get("addopts", ""))
    option = failure.name.split()[0].partition("=")[0] if failure.name else ""
    if option and option in options:
        return (
            f"{quoted(option)} comes from 'addopts' in 'pyproject.toml' and needs a plugin that is not installed: "
            "install it, or run with -o addopts=''."
        )
    return (
        f"pytest has no option {quoted(option)} without the plugin that brings it: leave it out."
        if option
        else ""
    )


def _conflict(failure: _Failure) -> str:
    return (
        f"Resolve {quoted(failure.name)}: keep what is right between its '<<<<<<<' and '>>>>>>>' marks, 'git add' "
        "it, then 'git commit' or '--continue'; 'git merge --abort' (or 'git rebase --abort') goes back."
    )


def _port_in_use(failure: _Failure) -> str:
    port = re.search(r"(?:[Pp]ort |:)(\d{2,5})\b", failure.match.string)
    which = f"Port {port[1]}" if port else "The port"
    return (
        f"{which} is taken by another process, which is none that an earlier call started (those have ended): use "
        "another port, or port 0 where the program can choose."
    )


_SERVES = re.compile(
    r"\b(?:runserver|http\.server|serve|npm (?:run )?(?:start|dev)|yarn (?:start|dev)|flask run|uvicorn|gunicorn"
    r"|tail -[fF]|--watch|watch|nodemon|webpack-dev-server|docker compose up)\b"
)


def _not_permitted(failure: _Failure) -> str:
    if re.search(r"dial unix|docker\.sock|publickey", failure.match.string):
        return ""
    return "The permissions do not allow it: write inside the workspace, and look at 'ls -l' before changing a mode."


_PATH = r"""['\"`‘]?([^\s:'\"`‘’]{1,200})['\"`’]?"""

_SAID_BY: Mapping[str, Callable[[_Failure], str]] = {
    said.__name__.removeprefix("_"): said
    for said in (
        _timed_out, _missing_module, _missing_node_module, _other_versions, _wrong_interpreter, _command_not_found,
        _unknown_script, _unknown_target, _missing_file, _unknown_option, _conflict, _port_in_use, _not_executable,
        _not_permitted,
    )
}  # fmt: skip
"""The functions that rows of the table name."""
