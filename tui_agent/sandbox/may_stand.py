"""The content that may stand under a name after a command: the new one, its harmless part, or the earlier
one.
"""

from __future__ import annotations

import os
import re
import stat
from collections import Counter
from collections.abc import Collection
from pathlib import Path

from tui_agent.sandbox.found_files import FoundFiles, digest
from tui_agent.sandbox.git_settings import read_settings, without_harm
from tui_agent.sandbox.links_refused import FileState
from tui_agent.sandbox.taken_back import Kind

_RUNS = re.compile(rb"^\s*(?:x|exec)\s.*\n?", re.MULTILINE)


def may_stand(
    path: Path,
    kind: Kind,
    before: FileState,
    form: FileState,
    known: Collection[tuple[str, bytes]],
    found: FoundFiles,
) -> FileState:
    """Say what may stand there: `form` if it is harmless. `known`: names and digests of what was found harmless."""
    if form.kind == "nothing":
        return before if kind == "rules" else form
    if form.kind == "other" and stat.S_ISDIR(form.mode):
        return form
    if kind == "shadow" and before.kind != "nothing":
        return form
    if form == before or (form.kind == "file" and (path.name, digest(form)) in known):
        return form
    match kind:
        case "hook" if path.suffix == ".sample":
            return form
        case "settings" if form.kind == "file" and form.whole:
            settings = read_settings(before.content) or () if before.kind == "file" else ()
            clean = without_harm(form.content, settings, lambda value: _leads_inside(path, value, found))
            return form if clean is None else FileState("file", clean, form.mode)
        case "todo" if form.kind == "file" and form.whole:
            left = Counter(_RUNS.findall(before.content))
            runs = Counter(_RUNS.findall(form.content)) - left
            return FileState("file", _RUNS.sub(b"", form.content), form.mode) if runs else form
        case "pointer":
            return form if _points_inside(path, before, form, found) else before
        case "commondir":
            git = path.parent
            inside = _resolved(git, form.content) == os.path.realpath(git.parent.parent)
            return form if form.kind == "file" and git.parent.name == "worktrees" and inside else before
        case "alternates" if form.kind == "file" and form.whole:
            lines = [line for line in form.content.splitlines() if line and not line.startswith(b"#")]
            inside = all(found.root(Path(_resolved(path.parents[1], line))) is not None for line in lines)
            return form if inside else before
    return before


def _leads_inside(settings: Path, value: str, found: FoundFiles) -> bool:
    return found.root(Path(_resolved(settings.parent, os.fsencode(value)))) is not None


def _points_inside(path: Path, before: FileState, form: FileState, found: FoundFiles) -> bool:
    """Tell if a `.git` that is a file or a link leads to a folder of git's that is compared from now on."""
    said = form.content.strip()
    if form.kind == "file":
        if not said.startswith(b"gitdir:"):
            return True  # git refuses it
        said = said.removeprefix(b"gitdir:").strip()
    git = Path(_resolved(path.parent, said))
    if found.root(git) is None:
        return False
    if before.kind != "nothing":
        was = Path(_resolved(path.parent, before.content.strip().removeprefix(b"gitdir:")))
        return any(git.is_relative_to(one) and was.is_relative_to(one) for one in found.gits)
    if not any(git.is_relative_to(one) for one in found.gits):
        found.note_git(git)
    return True


def _resolved(folder: Path, said: bytes) -> str:
    return os.path.realpath(folder / os.fsdecode(said.strip().replace(b"\0", b"")))
