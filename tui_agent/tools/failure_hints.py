"""What would help with a failure, where the error itself does not say it: patterns of errors and their hints.

A hint knows the workspace: it names the file, script or interpreter that is there. It is one or two sentences
of bounded length, made in bounded time; the rules are data, and a configuration adds its own in front.
"""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tui_agent.tools.hints import nearest_paths
from tui_agent.tools.workspace import WallError, Workspace, either, quoted

_LOOKED_AT = 4_000
"""Characters of an error that are looked at, at each end."""
_LINE = 200
_LINES = 40
"""What the patterns of a configuration see: lines of an error, at most so many and so long. With the bounds on
the patterns themselves (`config.sections.HintRule`) none can take noticeable time."""
_LONGEST = 500
_SMALL_FILE = 200_000


@dataclass(frozen=True)
class _Failure:
    """A failed call, as the makers of hints see it."""

    command: str
    match: re.Match[str]
    workspace: Workspace

    @property
    def name(self) -> str:
        """What the pattern caught in its group."""
        return str(self.match[self.match.lastindex or 0]).strip("'\"`‘’")

    def has(self, *paths: str) -> str:
        """The first of these paths that is in the workspace; "" for none."""
        return next((path for path in paths if self._exists(path)), "")

    def _exists(self, path: str) -> bool:
        try:
            return self.workspace.resolve(path).exists()
        except (WallError, OSError):
            return False

    def text(self, path: str) -> str:
        """A small file of the workspace; "" where it cannot be read."""
        try:
            with self.workspace.open(self.workspace.resolve(path)) as stream:
                return stream.read(_SMALL_FILE).decode("utf-8", "replace")
        except (WallError, OSError):
            return ""


@dataclass(frozen=True)
class _Rule:
    """`pattern` and what to say where a command's error holds it."""

    pattern: re.Pattern[str]
    hint: str | Callable[[_Failure], str]


def hint_for(
    tool: str,
    arguments: dict[str, Any],
    message: str,
    workspace: Workspace,
    extra: Sequence[tuple[str, str]] = (),
) -> str:
    """What would help with this failure; "" where nothing is known or the error says it already.

    `extra`: (pattern, hint) pairs of the configuration, which come first. Reads the disk: call it in a thread.
    """
    if len(message) > 2 * _LOOKED_AT:
        message = f"{message[:_LOOKED_AT]}\n{message[-_LOOKED_AT:]}"
    lines = [line[:_LINE] for line in message.splitlines()]
    shown = lines if len(lines) <= _LINES else lines[: _LINES // 2] + lines[-_LINES // 2 :]
    for pattern, hint in extra:
        if any(_compiled(pattern).search(line) for line in shown):
            return hint[:_LONGEST]
    command = str(arguments.get("command", ""))
    # The other tools say themselves what would help.
    for rule in _RULES if tool == "bash" else ():
        if (match := rule.pattern.search(message)) is not None:
            found = rule.hint
            made = found if isinstance(found, str) else found(_Failure(command, match, workspace))
            if made:
                return made if len(made) <= _LONGEST else f"{made[: _LONGEST - 4]} ..."
    return ""


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


# What to say


def _missing_module(failure: _Failure) -> str:
    top = failure.name.split(".")[0]
    for folder in ("src", "lib"):
        if failure.has(f"{folder}/{top}", f"{folder}/{top}.py"):
            return (
                f"The module {quoted(top)} is in '{folder}/': run the command with PYTHONPATH={folder}, or install "
                "the project first (python -m pip install -e .)."
            )
    if failure.has(top, f"{top}.py"):
        return (
            f"The module {quoted(top)} is in the workspace's root: run from there with PYTHONPATH=. or as "
            "'python -m …'."
        )
    python = failure.has(".venv/bin/python", "venv/bin/python", "env/bin/python")
    if python and python not in failure.command:
        return f"The workspace has an environment of its own: try it with {quoted(python)}."
    needed = failure.has("requirements.txt", "pyproject.toml", "setup.py")
    how = {"requirements.txt": "python -m pip install -r requirements.txt"}.get(
        needed, "python -m pip install -e ."
    )
    if needed:
        return f"The module {quoted(top)} is not installed. The workspace has {quoted(needed)}: try '{how}'."
    return (
        f"The module {quoted(top)} is not installed: install it (python -m pip install …) or do without it. "
        "The package may have another name than the module."
    )


def _missing_node_module(failure: _Failure) -> str:
    if failure.name.startswith((".", "/")):
        return _missing_file(failure)
    if failure.has("package.json") and not failure.has("node_modules"):
        return "The workspace has a 'package.json' and no 'node_modules': run 'npm install' first."
    return ""


_INSTEAD = {
    "python": ("python3",), "pip": ("pip3", "python3"), "python3": ("python",), "vim": ("vi",), "nodejs": ("node",),
    "docker-compose": ("docker",), "wget": ("curl",), "curl": ("wget",), "ripgrep": ("rg",), "fdfind": ("fd",),
}  # fmt: skip
_AS_MODULE = frozenset(
    {"pip", "pip3", "pytest", "ruff", "mypy", "black", "flake8", "tox", "coverage", "isort"}
)


def _command_not_found(failure: _Failure) -> str:
    name = failure.name.rpartition("/")[2]
    own = failure.has(
        f".venv/bin/{name}", f"venv/bin/{name}", f"node_modules/.bin/{name}", f"bin/{name}", name
    )
    if own and "/" not in failure.name:
        return f"{quoted(name)} is not installed, but the workspace has {quoted(own)}: run './{own}'."
    if name in _AS_MODULE and shutil.which("python3"):
        return f"{quoted(name)} is not on the PATH: try 'python3 -m {name}'."
    other = next((program for program in _INSTEAD.get(name, ()) if shutil.which(program)), "")
    if other:
        return f"{quoted(name)} is not installed, but {quoted(other)} is."
    return f"{quoted(name)} is not installed here: use another program for it, or check that it can be installed."


def _missing_file(failure: _Failure) -> str:
    name = failure.name.rstrip("/")
    if not name:
        return ""
    own = failure.workspace.root.name
    if name.startswith("/") and not name.startswith(f"{failure.workspace.root}/"):
        return (
            f"{quoted(name)} is outside the workspace, which is {quoted(failure.workspace.root.as_posix())}. "
            "Every command starts there: use paths relative to it."
        )
    if name.partition("/")[0] == own and not failure.has(own):
        return f"The workspace is itself named {quoted(own)}, and every command starts in it: leave '{own}/' out."
    if re.search(r"(?:^|[;&\n(]\s*)cd\s", failure.command) and failure.has(name):
        return f"{quoted(name)} is there seen from the workspace's root, but the command had gone elsewhere by cd."
    near = nearest_paths(failure.workspace, name)
    if near:
        return f"There is no {quoted(name)}; most like it are {either(near[:3])} (from the workspace's root)."
    return ""


def _not_executable(failure: _Failure) -> str:
    path = failure.name.removeprefix("./")
    if not failure.has(path) or f"./{path}" not in failure.command:
        return ""
    runner = {"py": "python3", "js": "node", "rb": "ruby", "pl": "perl"}.get(path.rpartition(".")[2], "bash")
    return f"{quoted(path)} is not executable: run it as '{runner} {path}'."


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
    if not makefile:
        return "There is no Makefile in the workspace's root."
    targets = re.findall(r"^([A-Za-z0-9][\w.-]*)\s*:(?!=)", failure.text(makefile), re.MULTILINE)
    return (
        f"{quoted(makefile)} has the targets {either(list(dict.fromkeys(targets))[:12])}." if targets else ""
    )


def _unknown_option(failure: _Failure) -> str:
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
    port = re.search(r"(?:port|:)\s?(\d{2,5})\b", failure.match.string[failure.match.start() :][:200])
    which = f"Port {port[1]}" if port else "The port"
    return (
        f"{which} is taken by another process, which is none that an earlier call started (those have ended): use "
        "another port, or port 0 where the program can choose."
    )


_SERVES = re.compile(
    r"\b(?:runserver|http\.server|serve|npm (?:run )?(?:start|dev)|yarn (?:start|dev)|flask run|uvicorn|gunicorn"
    r"|tail -[fF]|--watch|watch|nodemon|webpack-dev-server|docker compose up)\b"
)


def _rule(pattern: str, hint: str | Callable[[_Failure], str]) -> _Rule:
    return _Rule(re.compile(pattern, re.IGNORECASE | re.MULTILINE), hint)


_RULES: tuple[_Rule, ...] = (
    _rule(r"did not end within [\d.]+ s\b", _timed_out),
    _rule(r"No module named '?([\w.]{1,100})", _missing_module),
    _rule(r"Cannot find module '([^'\n]{1,200})'", _missing_node_module),
    _rule(r"externally-managed-environment", (
        "The system's Python takes no packages: make an environment (python3 -m venv .venv) and use "
        "'.venv/bin/python -m pip install …'."
    )),
    _rule(r"^(?:[^\n:]{0,80}: (?:(?:line )?\d+: )?)?([\w./+-]{1,100}): (?:command )?not found$", _command_not_found),
    _rule(r"Missing script: \"?([\w:.-]{1,100})", _unknown_script),
    _rule(r"No rule to make target [`'\"]([^`'\"\n]{1,200})", _unknown_target),
    _rule(r"error: unrecognized arguments: ([^\n]{1,200})", _unknown_option),
    _rule(r"Merge conflict in ([^\n]{1,200})$", _conflict),
    _rule(r"unmerged files|needs merge|you have unmerged paths", (
        "A merge is not finished: 'git status' names the files. Resolve their '<<<<<<<' marks and 'git add' them, or "
        "go back with 'git merge --abort'."
    )),
    _rule(r"not a git repository", "The workspace is no git repository: do without git, or run 'git init' first."),
    _rule(r"dubious ownership", (
        "The repository belongs to another user: use 'git -c safe.directory=\"$PWD\" …' for this command."
    )),
    _rule(r"address already in use|EADDRINUSE|port \d+ is (?:already )?in use", _port_in_use),
    _rule(r"connection refused|ECONNREFUSED|failed to connect to \S{1,200} port", (
        "Nothing listens there. What a call leaves running in the background ends with it: start the server in the "
        "same command as what needs it, and wait until it listens."
    )),
    _rule(r"could not resolve host|temporary failure in name resolution|ENOTFOUND|name or service not known", (
        "The name cannot be resolved: there may be no network here. Do without it, or use what is installed."
    )),
    _rule(r"^(?:[^\n:]{0,80}: (?:(?:line )?\d+: )?)?([\w./+-]{1,200}): Permission denied$", _not_executable),
    _rule(r"permission denied|EACCES|operation not permitted", (
        "The permissions do not allow it: write inside the workspace, and look at 'ls -l' before changing a mode."
    )),
    _rule(r"no space left on device|ENOSPC", "The disk is full: make room first ('df -h .' shows how much there is)."),
    _rule(r"unexpected EOF while looking for matching|syntax error near unexpected token", (
        "The shell could not read the command: check its quotation marks, or write the text to a file with "
        "write_file and run that."
    )),
    _rule(r"No such file or directory: ['\"]([^'\"\n]{1,200})['\"]", _missing_file),
    _rule(r"file or directory not found: ([^\n]{1,200})$", _missing_file),
    _rule(r"can't open file ['\"]([^'\"\n]{1,200})['\"]", _missing_file),
    _rule(r"([^\s:'\"‘’]{1,200})['\"’]?: No such file or directory", _missing_file),
)  # fmt: skip
