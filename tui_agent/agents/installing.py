"""Our hooks in the settings of another agent: put in, taken out, and how they stand. Nothing else in the file changes.

What the file held before is kept in the state folder. Whoever takes the hooks out gets that back, byte by byte, where
nothing was changed since; else only our own entries go.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from tui_agent.agents import door
from tui_agent.agents.dialect import Dialect
from tui_agent.disk import replace_whole

Scope = Literal["user", "project"]
SCOPES: tuple[Scope, ...] = get_args(Scope)

_OURS = "agents/door.py"
"""Part of every command of ours."""


@dataclass(frozen=True)
class SettingsChange:
    """A settings file before and after; equal where there is nothing to do. A file that is not there is ""."""

    path: Path
    before: str
    after: str


def settings_path(dialect: Dialect, scope: Scope, workspace: Path, environment: Mapping[str, str]) -> Path:
    """Where the agent reads its hooks."""
    settings = dialect.settings
    if scope == "project":
        return workspace / settings.project
    elsewhere = environment.get(settings.home_variable, "")
    return (Path(elsewhere) if elsewhere else Path.home() / settings.home) / settings.file


def command_line(dialect: Dialect, advise: str, policy: str) -> str:
    """What the agent runs at each event. It ends well whatever happens, also where we are no longer there."""
    words = [sys.executable, "-I", "-S", str(Path(door.__file__).resolve()), dialect.name, advise, policy]
    return f"{shlex.join(words).removesuffix(' ' + shlex.quote(''))} 2>/dev/null || :"


def installed(dialect: Dialect, path: Path) -> bool:
    """Whether our hooks are in the file. Raises `OSError`, `UnicodeError`."""
    return _OURS in _text(path)


def to_install(dialect: Dialect, path: Path, command: str) -> SettingsChange:
    """Our command at each of the agent's events, in place of an older one of ours.

    Raises `OSError`, `UnicodeError`, and `ValueError` for a file that cannot be changed.
    """
    before = _text(path)
    after = dialect.settings.registry.add(_without_ours(dialect, before), dialect.events, command)
    return SettingsChange(path, before, before if _same(before, after) else after)


def to_uninstall(dialect: Dialect, path: Path, state_dir: Path) -> SettingsChange:
    """The file without our hooks; as it was, where nobody has changed it since. Raises as `to_install`."""
    now = _text(path)
    kept = _kept(state_dir, path)
    if kept is not None and kept[1] == now:
        return SettingsChange(path, now, kept[0])
    return SettingsChange(path, now, _without_ours(dialect, now))


def carry_out(change: SettingsChange, state_dir: Path, *, keep: bool) -> None:
    """Write the file; `keep` what it held before, for `to_uninstall`. Raises `OSError`."""
    place = _kept_at(state_dir, change.path)
    if keep:
        kept = _kept(state_dir, change.path)
        first = kept[0] if kept is not None and kept[1] == change.before else change.before
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_whole(place, json.dumps([first, change.after]))
    if change.after:
        change.path.parent.mkdir(parents=True, exist_ok=True)
        replace_whole(change.path, change.after)
    else:
        change.path.unlink(missing_ok=True)
    if not keep:
        place.unlink(missing_ok=True)


def _without_ours(dialect: Dialect, text: str) -> str:
    return dialect.settings.registry.remove(text, dialect.events, _OURS) if text.strip() else text


def _same(one: str, other: str) -> bool:
    """Whether two texts say the same, comments aside."""
    try:
        return bool(json.loads(one) == json.loads(other))
    except ValueError:
        return one == other


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        return ""


def _kept_at(state_dir: Path, path: Path) -> Path:
    name = hashlib.sha256(os.fsencode(path.absolute())).hexdigest()[:16]
    return state_dir / "hooks" / f"{name}.json"


def _kept(state_dir: Path, path: Path) -> tuple[str, str] | None:
    """What the file held before our hooks, and with them."""
    try:
        before, after = json.loads(_kept_at(state_dir, path).read_text("utf-8"))
    except (OSError, ValueError, TypeError):
        return None
    return (before, after) if isinstance(before, str) and isinstance(after, str) else None
