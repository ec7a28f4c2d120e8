"""`agent-tui hooks`: recovery for another agent, through its own hooks: put in, taken out, and how they stand."""

from __future__ import annotations

import difflib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tui_agent.agents.daemon import last_event, log_counts
from tui_agent.agents.dialect import Dialect
from tui_agent.agents.dialects import DIALECTS
from tui_agent.agents.installing import (
    SCOPES,
    SettingsChange,
    carry_out,
    command_line,
    installed,
    settings_path,
    to_install,
    to_uninstall,
)
from tui_agent.cli.hook import add_advice_options
from tui_agent.cli.options import Parser, UsageError, add_place_options, one_of, overrides
from tui_agent.config.settings import Settings, load_settings
from tui_agent.quantities import age
from tui_agent.terminal_text import one_line

_EXAMPLE = """
agent-tui hooks install claude-code
agent-tui hooks status
agent-tui hooks uninstall claude-code"""

_VERSION_SECONDS = 10.0


def parser() -> Parser:
    """Options of `hooks`."""
    made = Parser(
        "hooks",
        "Recovery for the agent that you already use, through its hooks (docs/AGENTS.md).\n\n"
        "install AGENT: shows what changes in its settings, and asks\n"
        "uninstall AGENT: gives the settings back as they were\n"
        "status [AGENT] (the default): where hooks are installed, what was heard and answered",
        _EXAMPLE,
        usage="agent-tui hooks [install AGENT | uninstall AGENT | status [AGENT]] [options]",
    )
    made.add_argument("verb", nargs="?", type=one_of(("install", "uninstall", "status")), default="status")
    made.add_argument("agent", nargs="?", type=one_of(DIALECTS))
    where = made.add_mutually_exclusive_group()
    where.add_argument("--user", action="store_true", help="for all your projects (default)")
    where.add_argument("--project", action="store_true", help="for this workspace, and for you alone")
    made.add_argument("--yes", action="store_true", help="change the file without asking")
    add_advice_options(made)
    add_place_options(made)
    return made


def main(arguments: Sequence[str]) -> int:
    """Install, take out or show. Raises `UsageError`, `ConfigError`."""
    options = parser().parse(arguments)
    settings = load_settings(overrides(options, "state_dir"), options.config)
    if options.verb == "status":
        wanted = [DIALECTS[options.agent]] if options.agent else DIALECTS.values()
        for one in wanted:
            sys.stdout.writelines(f"{line}\n" for line in _status(one, settings))
        return 0
    if options.agent is None:
        raise UsageError(f"Whose hooks? Name one of {', '.join(DIALECTS)}.")
    dialect: Dialect = DIALECTS[options.agent]
    path = settings_path(dialect, "project" if options.project else "user", settings.workspace, os.environ)
    install = options.verb == "install"
    try:
        if install:
            change = to_install(dialect, path, command_line(dialect, options.advise, options.policy))
        else:
            change = to_uninstall(dialect, path, settings.state_dir)
        return _changed(dialect, change, settings, install=install, sure=options.yes)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise UsageError(
            f"{path} cannot be changed: {why}. Nothing was written. Correct the file, and try again."
        ) from error


def _changed(
    dialect: Dialect, change: SettingsChange, settings: Settings, *, install: bool, sure: bool
) -> int:
    if change.before == change.after:
        state = "are in" if install else "are not in"
        sys.stdout.write(f"The hooks for {dialect.title} {state} {change.path}: nothing to do.\n")
        return 0
    lines = difflib.unified_diff(
        change.before.splitlines(), change.after.splitlines(), str(change.path), str(change.path), lineterm=""
    )
    sys.stdout.writelines(f"{one_line(line)}\n" for line in lines)
    if not sure:
        if not sys.stdin.isatty():
            raise UsageError("Without a terminal nobody can be asked whether to write this: add --yes.")
        sys.stdout.write("Write this? [y/N] ")
        sys.stdout.flush()
        if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
            sys.stdout.write("Nothing was changed.\n")
            return 0
    carry_out(change, settings.state_dir, keep=install)
    done = (
        "Written. Sessions that begin from now on have our hooks"
        if install
        else "Written. The hooks are removed"
    )
    sys.stdout.write(f"{done}: {change.path}\n")
    if install and dialect.settings.then:
        sys.stdout.write(f"{dialect.settings.then}\n")
    return 0


def _status(dialect: Dialect, settings: Settings) -> list[str]:
    places = []
    for scope in SCOPES:
        path = settings_path(dialect, scope, settings.workspace, os.environ)
        try:
            if installed(dialect, path):
                places.append(str(path))
        except (OSError, ValueError) as error:
            places.append(f"{path} cannot be read ({getattr(error, 'strerror', None) or error})")
    heard = last_event(settings.state_dir, dialect.name)
    answers, errors = log_counts(settings.state_dir, dialect.name)
    return [
        f"{dialect.title} ({dialect.name})",
        f"  installed   {', '.join(places) or 'no'}",
        f"  program     {_program(dialect)}",
        f"  last event  {'none' if heard is None else age(time.time() - heard)}",
        f"  answers     {answers}; errors {errors}"
        + (f" ({settings.state_dir / 'hooks.log'})" if errors else ""),
    ]


def _program(dialect: Dialect) -> str:
    path = shutil.which(dialect.program)
    if path is None:
        return f"{dialect.program} is not on the PATH"
    try:
        done = subprocess.run(
            [path, "--version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_VERSION_SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
            cwd=Path.home(),
        )
    except (OSError, subprocess.TimeoutExpired):
        return f"{path}, which does not say its version"
    return f"{path}, {one_line(done.stdout.strip())[:80] or 'which does not say its version'}"
