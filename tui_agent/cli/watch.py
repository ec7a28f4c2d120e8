"""`agent-tui watch`: another agent's session while it runs, in the console's panes or in lines."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tui_agent.cli.errors import UsageError
from tui_agent.cli.opening import config_path, open_console
from tui_agent.cli.options import Parser, add_console_options, add_place_options, add_policy_option, overrides
from tui_agent.config.settings import Settings, load_settings
from tui_agent.core.recovery.policy import preset
from tui_agent.formats.importers.load import is_session
from tui_agent.formats.importers.reading import is_database
from tui_agent.frontend.arguments import ConsoleArguments
from tui_agent.store.redaction import Redactor
from tui_agent.terminal_text import one_line
from tui_agent.watch import places
from tui_agent.watch.following import STUCK, Lines, ended, follow, stuck_in, stuck_now
from tui_agent.watch.piped import Piped, keyboard_instead
from tui_agent.watch.places import Found
from tui_agent.watch.watched import QUIET, Watched

_EXAMPLE = """
agent-tui watch                         the running sessions of this folder, else of this machine
agent-tui watch claude-code             the newest session of an agent
agent-tui watch rollout.jsonl --print >> watch.log
claude -p "fix it" --output-format stream-json --verbose | agent-tui watch -
agent-tui watch codex --until-stuck || echo "it is stuck: $?" """

_PIPE = "-"
_STAYS = 5.0
"""Seconds that a run must have been over before `--until-stuck` takes it for ended."""


def parser() -> Parser:
    """Options of `watch`."""
    made = Parser(
        "watch",
        "Look at another agent's session while it runs: what each detector makes of it, and what our policy would do.\n"
        "The agent is not disturbed: its files are only read.",
        _EXAMPLE,
    )
    made.add_argument(
        "session",
        nargs="?",
        metavar="FILE|DIR|AGENT|-",
        help="a session's file or folder, a folder of sessions (the newest), an agent's name, or - for what an agent "
        "prints into a pipe",
    )
    made.add_argument(
        "--print", dest="lines", action="store_true", help="no screen: print lines, as for a log"
    )
    made.add_argument("--once", action="store_true", help="print what is there now, then end")
    made.add_argument(
        "--until-stuck",
        action="store_true",
        help="print lines until the policy would stop (exit code 4) or ask (5); 0 when the run is over",
    )
    made.add_argument(
        "--strict",
        action="store_true",
        help="with --once: exit code 1 when too much of it is not read or known",
    )
    add_policy_option(
        made, "judge it by this policy (default: combined; a session of ours keeps its verdicts)"
    )
    add_place_options(made)
    add_console_options(made)
    return made


def main(arguments: Sequence[str]) -> int:
    """Watch; the exit code."""
    namespace = parser().parse(arguments)
    alone = {"lines", "once", "until_stuck", "strict"}
    given = {key: value for key, value in overrides(namespace).items() if key not in alone}
    settings = load_settings(given, namespace.config)
    in_lines = namespace.lines or namespace.once or namespace.until_stuck or settings.plain
    piped = None
    if namespace.session == _PIPE:
        keyboard = None if in_lines else keyboard_instead()
        in_lines |= keyboard is None
        piped = Piped(os.dup(0) if keyboard is None else keyboard)
    found = [Found("", piped.path, 0.0)] if piped else _chosen(namespace.session, settings)
    if in_lines:
        _name_others(found)
        return _in_lines(
            found[0],
            settings,
            once=namespace.once,
            until_stuck=namespace.until_stuck,
            strict=namespace.strict,
            piped=piped,
        )
    paths = tuple(str(one.path) for one in found)
    return open_console(ConsoleArguments(overrides=given, config=config_path(namespace.config), watch=paths))


def _chosen(wanted: str | None, settings: Settings) -> list[Found]:
    """The sessions that are meant, the first of them first. Raises `UsageError` if there is none."""
    if wanted is None:
        return _running(settings)
    if wanted in places.NAMES:
        found = places.sessions_of(wanted, settings.state_dir)
        here = [one for one in found if one.works_in(settings.workspace)]
        if not found:
            raise UsageError(
                f"agent-tui watch: {wanted} has no session on this machine.\n"
                "Start it, or name a session's file. Where sessions are looked for: docs/AGENTS.md"
            )
        return (here or found)[:1]
    path = Path(wanted).expanduser()
    if path.is_dir() and not is_session(path):
        below = places.sessions_below(path)
        if not below:
            raise UsageError(f"agent-tui watch: {wanted} holds no session that can be read.")
        return below[:1]
    if path.exists() or is_database(path) or (path.suffix and path.parent.is_dir()):
        return [places.Found("", path, 0.0)]
    raise UsageError(
        f"agent-tui watch: {wanted!r} is no file, no folder and no agent.\nAgents: {', '.join(places.NAMES)}."
    )


def _running(settings: Settings) -> list[Found]:
    found = places.running(settings.state_dir, time.time())
    here = [one for one in found if one.works_in(settings.workspace)]
    if not found:
        minutes = round(places.RUNNING / 60)
        raise UsageError(
            f"agent-tui watch: no agent has written a session on this machine in the last {minutes} minutes.\n"
            f"Start one, or name it: {', '.join(places.NAMES)}, or a session's file."
        )
    return here or found


def _name_others(found: list[Found]) -> None:
    for one in found[1:]:
        sys.stderr.write(f"agent-tui: also running: {one.agent} in {one_line(one.workspace)} ({one.path})\n")


def _in_lines(
    found: Found, settings: Settings, *, once: bool, until_stuck: bool, strict: bool, piped: Piped | None
) -> int:
    watched = Watched(
        found.path,
        preset(settings.policy, **settings.recovery.overrides()),
        rejudge=settings.asked_policy,
        within=found.within,
    )
    lines = Lines(_write, Redactor.from_environment(os.environ).redact)
    begun, over_since = False, 0.0
    for stand in follow(watched, lambda: time.time() + (QUIET if _is_over(once, piped) else 0.0)):
        now = time.monotonic()
        if stand is not None:
            if not begun:
                _introduce(watched)
            lines.show(watched.events, stand)
            stuck = stuck_in(watched.events[stand:]) if begun else stuck_now(watched.events)
            begun, over_since = True, now
            if until_stuck and stuck is not None:
                return STUCK[stuck.level]
        elif piped is not None and not piped.over:
            continue
        elif not begun and (once or piped is not None):
            missing = f"{found.path} is not there" if piped is None else "nothing came through the pipe"
            raise watched.fault or UsageError(f"agent-tui watch: {missing}.")
        if begun and (once if piped is None else piped.over and stand is None):
            if watched.loss:
                sys.stderr.write(f"agent-tui: {watched.loss}\n")
            return int(strict and bool(watched.loss))
        if until_stuck and begun and ended(watched.events) and now - over_since > _STAYS:
            return 0
    return 0


def _is_over(once: bool, piped: Piped | None) -> bool:
    """True if nothing more is waited for."""
    return once if piped is None else piped.over


def _introduce(watched: Watched) -> None:
    title = f", {one_line(watched.title, 80)}" if watched.title else ""
    sys.stderr.write(f"agent-tui: watching {watched.agent}{title} ({watched.path})\n")


def _write(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
