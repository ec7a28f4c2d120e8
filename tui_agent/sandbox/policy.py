"""The inside of a sandbox and its outside, apart from how an operating system enforces it."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from tui_agent.disk import user_path
from tui_agent.sandbox.homes import HOMES, SECRET_PLACES, tools_at_home
from tui_agent.sandbox.kernel_files import mounted_elsewhere
from tui_agent.sandbox.run_later import Places

TEMPORARY = ("/tmp", "/var/tmp")  # noqa: S108 - commands have their own in their place
PRIVATE_HOME = ".home"
"""Within the temporary folder: what commands have in place of the home folder. With links in it its name is another."""


@dataclass(frozen=True)
class SandboxPolicy:
    """The paths are absolute and real (without links)."""

    workspace: Path
    scratch: Path
    """The temporary folder of commands; it lasts as long as the session."""
    network: bool = False
    loopback: tuple[int, ...] = ()
    """Ports of this machine that commands with a network connect to."""
    hidden: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    """Beside the workspace and the temporary folder."""
    homes: tuple[Path, ...] = ()
    """Home folders that are out of sight, but for what is `shown` in them."""
    shown: tuple[Path, ...] = ()
    home: Path | None = None
    """The user's own of them: commands have a private one in its place."""
    links: tuple[tuple[Path, Path], ...] = ()
    """Names in it that lead to shown paths, with these paths."""
    places: Places = field(default_factory=Places)
    """Files that programs outside run or obey later."""
    read_only: bool = False
    """Nothing may be written but the temporary folder and the private home."""

    @classmethod
    def around(
        cls,
        workspace: Path,
        scratch: Path,
        *,
        network: bool = False,
        loopback: tuple[int, ...] = (),
        hide: tuple[str, ...] = (),
        show: tuple[str, ...] = (),
        writable: tuple[str, ...] = (),
        state_dir: Path | None = None,
        config_dir: Path | None = None,
        run_outside: tuple[str, ...] = (),
    ) -> SandboxPolicy:
        """The policy for a workspace; `hide`, `show` and `writable` come from the configuration (`~` stands for the
        home). Of the folder of one's own configuration commands read skills and instructions alone. `run_outside`: what
        hooks run, relative to the workspace.
        """
        inside = _real(os.fspath(workspace))
        named = tuple(dict.fromkeys(path for path in map(_real, writable) if os.access(path, os.F_OK)))
        asked = tuple(map(_real, show))
        texts, own = ((), ()) if config_dir is None else _of_configuration(config_dir)
        ours = (*hide, *([os.fspath(state_dir)] if state_dir else ()), *map(os.fspath, own))
        hidden = dict.fromkeys(map(_real, (*filter(_is_there, SECRET_PLACES), *ours)))
        home = _real("~")
        open_places = (inside, *named)
        out_of_sight = tuple(
            folder
            for folder in dict.fromkeys((*map(_real, HOMES), home))
            # One that holds what is worked on as a whole cannot be out of sight.
            if folder.is_dir()
            and folder.parent != folder
            and not any(folder.is_relative_to(place) for place in open_places)
        )
        wanted = dict.fromkeys((*tools_at_home(home, inside), *texts, *asked))
        shown = {
            path: real
            for path in wanted
            if _is_there(path)
            and os.access(real := _real(os.fspath(path)), os.F_OK)  # which raises nothing
            and any(real.is_relative_to(folder) for folder in (*out_of_sight, *map(Path, TEMPORARY)))
            and not any(folder.is_relative_to(real) for folder in (*out_of_sight, *open_places))
        }
        return cls(
            inside,
            _real(os.fspath(scratch)),
            network,
            loopback,
            tuple(path for path in hidden if os.path.lexists(path) and path not in {*open_places, *asked}),
            named,
            out_of_sight,
            tuple(dict.fromkeys(shown.values())),
            home if home in out_of_sight else None,
            tuple(
                (path.relative_to(home), real) for path, real in shown.items() if path.is_relative_to(home)
            ),
            Places.of(
                inside, named, home, tuple(Path(os.path.normpath(inside / one)) for one in run_outside)
            ),
        )

    def private_home(self, *, linked: bool = False) -> Path:
        """The home folder of commands, made if it is missing. `linked`: links lead to the shown paths; else
        mounts are made there.
        """
        folder = self.scratch / (f"{PRIVATE_HOME}-linked" if linked else PRIVATE_HOME)
        if self.home is not None and not folder.is_dir():
            folder.mkdir(0o700, parents=True, exist_ok=True)
            for name, real in self.links:
                if linked or self.home / name != real:
                    with suppress(OSError):  # what is below a link is there by it
                        (folder / name).parent.mkdir(parents=True, exist_ok=True)
                        (folder / name).symlink_to(real)
        return folder

    @cached_property
    def hidden_outside(self) -> tuple[Path, ...]:
        """Paths to hide in places that may not be written, without those that are out of sight already."""
        return tuple(path for path in self.hidden if not self.within(path) and not self.is_out_of_sight(path))

    def is_out_of_sight(self, path: Path) -> bool:
        """True if it lies in a home folder and is not shown."""
        return (
            not self.within(path)
            and any(path.is_relative_to(folder) for folder in self.homes)
            and not any(path.is_relative_to(place) for place in self.shown)
        )

    def kernel_mounts(self) -> tuple[Path, ...]:
        """File systems of the kernel that are mounted in unusual places, and in sight there."""
        return tuple(
            path
            for path in mounted_elsewhere()
            if self.within(path)
            or not (self.is_out_of_sight(path) or any(path.is_relative_to(place) for place in TEMPORARY))
        )

    @property
    def hidden_within(self) -> tuple[Path, ...]:
        """Paths to hide in a place that may be written."""
        return tuple(filter(self.within, self.hidden))

    def holding(self, kept: tuple[Path, ...]) -> tuple[Path, ...]:
        """Folders that may be written and hold what may not: renamed, they would take it out of its place."""
        above = {folder for path in kept for folder in path.parents if self.within(folder)}
        return tuple(sorted(folder for folder in above if not folder.is_symlink()))

    def within(self, path: Path) -> bool:
        """True if a path is in the workspace, or in a further place that may be written."""
        return any(path.is_relative_to(place) for place in (self.workspace, *self.writable))


_TEXTS = frozenset({"AGENTS.md", "skills", "commands"})
"""In the folder of the configuration: what commands may read."""


def _of_configuration(folder: Path) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """Entries of the folder of one's own configuration: texts, and all others, which may hold a token."""
    try:
        found = [_real(os.fspath(path)) for path in folder.iterdir()]
    except OSError:
        return (), ()
    texts = tuple(path for path in found if path.name in _TEXTS)
    return texts, tuple(path for path in found if path not in texts)


def _is_there(path: str | Path) -> bool:
    """True if it exists, even as a link alone: asked first, since finding the real path takes ten times as
    long.
    """
    return os.path.lexists(user_path(path))


def _real(path: str) -> Path:
    return Path(os.path.realpath(user_path(path)))
