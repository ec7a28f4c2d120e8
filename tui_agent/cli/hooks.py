"""`agent-tui hooks`: recovery for another agent, through its own hooks: put in, taken out, and how they stand."""

from __future__ import annotations

import asyncio
import difflib
import os
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tui_agent import processes
from tui_agent.agents.daemon import last_event, log_counts
from tui_agent.agents.dialect import Dialect
from tui_agent.agents.dialects import DIALECTS
from tui_agent.agents.installing import (
    SettingsChange,
    carry_out,
    command_line,
    installed,
    settings_place,
    to_install,
    to_uninstall,
)
from tui_agent.cli.errors import UsageError
from tui_agent.cli.hook import add_advice_options
from tui_agent.cli.options import Parser, add_place_options, one_of, overrides
from tui_agent.config.settings import Settings, load_settings
from tui_agent.quantities import age
from tui_agent.terminal_text import one_line

_EXAMPLE = """
agent-tui hooks install claude-code
agent-tui hooks status
agent-tui hooks uninstall claude-code"""

_VERSION_SECONDS = 10.0
_VERSION_BYTES = 4_096


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
    if options.project and "project" not in dialect.scopes:
        raise UsageError(f"{dialect.title} reads no hooks from a workspace. Leave out --project.")
    place = settings_place(dialect, "project" if options.project else "user", settings.workspace, os.environ)
    install = options.verb == "install"
    try:
        if install:
            change = to_install(dialect, place, command_line(dialect, options.advise, options.policy))
        else:
            change = to_uninstall(dialect, place, settings.state_dir)
        return _changed(dialect, change, settings, install=install, sure=options.yes)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise UsageError(
            f"{place.path} cannot be changed: {why}. Nothing was written. Correct the file, and try again."
        ) from error


def _changed(
    dialect: Dialect, change: SettingsChange, settings: Settings, *, install: bool, sure: bool
) -> int:
    path = change.place.path
    if change.before == change.after:
        state = "are in" if install else "are not in"
        sys.stdout.write(f"The hooks for {dialect.title} {state} {path}: nothing to do.\n")
        return 0
    before, after = (change.before or "").splitlines(), (change.after or "").splitlines()
    lines = difflib.unified_diff(before, after, str(path), str(path), lineterm="")
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
    sys.stdout.write(f"{done}: {path}\n")
    if install and dialect.settings.then:
        sys.stdout.write(f"{dialect.settings.then}\n")
    return 0


def _status(dialect: Dialect, settings: Settings) -> list[str]:
    places = []
    for scope in dialect.scopes:
        place = settings_place(dialect, scope, settings.workspace, os.environ)
        try:
            if installed(place):
                places.append(str(place.path))
        except (OSError, ValueError) as error:
            places.append(f"{place.path} cannot be read ({getattr(error, 'strerror', None) or error})")
    heard = last_event(settings.state_dir, dialect.name)
    answers, errors = log_counts(settings.state_dir, dialect.name)
    return [
        f"{dialect.title} ({dialect.name})",
        f"  installed   {', '.join(places) or 'no'}",
        f"  program     {_program(dialect, settings.workspace)}",
        f"  last event  {'none' if heard is None else age(time.time() - heard)}",
        f"  answers     {answers}; errors {errors}"
        + (f" ({settings.state_dir / 'hooks.log'})" if errors else ""),
    ]


def _program(dialect: Dialect, workspace: Path) -> str:
    """The agent's program and its version, for which it is run: unless a checkout brought it along."""
    path = shutil.which(dialect.program)
    if path is None:
        return f"{dialect.program} is not on the PATH"
    if _comes_with_a_checkout(Path(path), workspace):
        return f"{path}, not asked for its version: it comes with a checkout"
    return f"{path}, {asyncio.run(_version(path)) or 'which does not say its version'}"


def _comes_with_a_checkout(path: Path, workspace: Path) -> bool:
    """True if it is in the workspace, or among the programs that one project installs for itself."""
    root = Path(os.path.realpath(workspace))
    prefix = path.parent.parent
    real = (Path(os.path.realpath(path)), Path(os.path.realpath(path.parent)) / path.name)
    return (
        not path.is_absolute()
        or ((prefix / "pyvenv.cfg").exists() and prefix != Path(sys.prefix))
        or any(one.parent.parts[-2:] == ("node_modules", ".bin") for one in (path, *real))
        or (root != Path.home() and any(one.is_relative_to(root) for one in real))
    )


async def _version(path: str) -> str:
    """Its own words about its version; "" if none come within its time. Processes that it starts end with it."""
    try:
        child = await processes.start(
            [path, "--version"],
            cwd=Path.home(),
            env=processes.without_secrets(os.environ),
            stdin=processes.DEVNULL,
        )
    except OSError:
        return ""
    try:
        async with asyncio.timeout(_VERSION_SECONDS):
            said, _ = await child.output(limit=_VERSION_BYTES)
    except TimeoutError:
        return ""
    finally:
        await child.end()
    return one_line(said.decode("utf-8", "replace").strip())[:80]
