"""Our hooks in the settings of another agent: put in, taken out, and how they stand. Nothing else in the file changes.

The file's earlier content is kept in the state folder. Whoever takes the hooks out gets that back, byte by
byte, if nothing was changed since; else only our own entries go. A settings file that is a link stays one:
its target is written. That of a project is written in the project alone.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shlex
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tui_agent import untrusted_files
from tui_agent.agents import door
from tui_agent.agents.dialect import Dialect, Scope
from tui_agent.disk import replace_whole
from tui_agent.tools.errors import ToolError
from tui_agent.tools.workspace import Workspace

_OURS = "agents/door.py"
"""Part of every command of ours."""
_LARGEST = 16 << 20
"""Bytes of a settings file."""
_BOM = "\ufeff"


@dataclass(frozen=True)
class SettingsPlace:
    """A file from which an agent reads its hooks. `within`: the project that no link may lead out of."""

    path: Path
    within: Path | None = None


@dataclass(frozen=True)
class SettingsChange:
    """A settings file before and after; equal if there is nothing to do. A file that is not there is None."""

    place: SettingsPlace
    before: str | None
    after: str | None


def settings_place(
    dialect: Dialect, scope: Scope, workspace: Path, environment: Mapping[str, str]
) -> SettingsPlace:
    """The file from which the agent reads its hooks."""
    settings = dialect.settings
    if scope == "project":
        return SettingsPlace(workspace / settings.project, workspace)
    elsewhere = environment.get(settings.home_variable, "")
    return SettingsPlace((Path(elsewhere) if elsewhere else Path.home() / settings.home) / settings.file)


def command_line(dialect: Dialect, advise: str, policy: str) -> str:
    """The command that the agent runs at each event. It ends well whatever happens, even if our program is
    gone.
    """
    words = [sys.executable, "-I", "-S", str(Path(door.__file__).resolve()), dialect.name, advise, policy]
    return f"{shlex.join(words).removesuffix(' ' + shlex.quote(''))} 2>/dev/null || :"


def installed(place: SettingsPlace) -> bool:
    """True if our hooks are in the file. Raises `OSError`, `UnicodeError`."""
    return _OURS in (_text(place) or "")


def to_install(dialect: Dialect, place: SettingsPlace, command: str) -> SettingsChange:
    """Our command at each of the agent's events, in place of an older one of ours.

    Raises `OSError`, `UnicodeError`, and `ValueError` for a file that cannot be changed.
    """
    before = _text(place)

    def with_ours(text: str) -> str:
        return dialect.settings.registry.add(_without_ours(dialect, text), dialect.events, command)

    after = _as_written(before or "", with_ours)
    return SettingsChange(place, before, before if _same(before or "", after) else after)


def to_uninstall(dialect: Dialect, place: SettingsPlace, state_dir: Path) -> SettingsChange:
    """The file without our hooks; as it was, if nobody has changed it since. Raises as `to_install`."""
    now = _text(place)
    kept = _kept(state_dir, place.path)
    if kept is not None and kept[1] == now:
        return SettingsChange(place, now, kept[0])
    if now is None or _OURS not in now:
        return SettingsChange(place, now, now)
    return SettingsChange(place, now, _as_written(now, lambda text: _without_ours(dialect, text)) or None)


def carry_out(change: SettingsChange, state_dir: Path, *, keep: bool) -> None:
    """Write the file; `keep` what it held before, for `to_uninstall`. Raises `OSError`."""
    path = change.place.path
    keeps = _kept_at(state_dir, path)
    if keep:
        kept = _kept(state_dir, path)
        first = kept[0] if kept is not None and kept[1] == change.before else change.before
        keeps.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_whole(keeps, json.dumps([first, change.after, _FORM]))
    if change.place.within is not None:
        _write_in(Workspace(change.place.within), path, change.after)
    else:
        target = Path(os.path.realpath(path))
        if change.after is None:
            target.unlink(missing_ok=True)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            replace_whole(target, change.after)
    if not keep:
        keeps.unlink(missing_ok=True)


def _write_in(workspace: Workspace, path: Path, text: str | None) -> None:
    """Put the text into the file, or take the file away, by descriptors of its folders: no link is followed on the way.

    Raises `OSError`.
    """
    try:
        real = workspace.resolve(str(path))
        if text is None:
            workspace.remove(real)
        else:
            workspace.replace(real, text.encode())
    except ToolError as error:
        raise OSError(errno.EXDEV, str(error)) from error


def _as_written(text: str, changed: Callable[[str], str]) -> str:
    """The result of `changed` for a text, with the text's own byte order mark and line ends."""
    mark = _BOM if text.startswith(_BOM) else ""
    text = text.removeprefix(_BOM)
    windows = "\r\n" in text and text.count("\r\n") == text.count("\n")
    after = changed(text.replace("\r\n", "\n") if windows else text)
    return mark + (after.replace("\n", "\r\n") if windows else after)


def _without_ours(dialect: Dialect, text: str) -> str:
    return dialect.settings.registry.remove(text, dialect.events, _OURS) if text.strip() else text


def _same(one: str, other: str) -> bool:
    """True if two texts say the same, comments aside."""
    try:
        return bool(json.loads(one) == json.loads(other))
    except ValueError:
        return one == other


def _text(place: SettingsPlace) -> str | None:
    """The text byte by byte; None if there is no file."""
    try:
        return untrusted_files.content(place.path, _LARGEST, place.within).decode("utf-8")
    except FileNotFoundError:
        return None


def _kept_at(state_dir: Path, path: Path) -> Path:
    name = hashlib.sha256(os.fsencode(path.absolute())).hexdigest()[:16]
    return state_dir / "hooks" / f"{name}.json"


_FORM = 2
"""Of what is kept: in the first one, a file that was not there was an empty text."""


def _kept(state_dir: Path, path: Path) -> tuple[str | None, str] | None:
    """The file's content before our hooks, and with them."""
    try:
        before, after, *form = json.loads(untrusted_files.content(_kept_at(state_dir, path), 4 * _LARGEST))
    except (OSError, ValueError, TypeError):
        return None
    if not form:
        before = before or None
    return (before, after) if isinstance(before, str | None) and isinstance(after, str) else None
