"""The scope of a search: a directory or file, the top whose ignore rules count, the form of its paths."""

from __future__ import annotations

import os
import re
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tui_agent.tools.walk import chain_at
from tui_agent.tools.workspace import is_directory


@dataclass(frozen=True)
class SearchScope:
    """The place of the search: `start` below `top`, whose `.gitignore` rules count; `label` leads the paths
    that are shown. `root` is the workspace's.
    """

    root: Path
    top: Path
    start: str
    label: str
    is_file: bool = False

    @classmethod
    def at(cls, root: Path, path: Path) -> SearchScope:
        """The scope for a real path. An ignored directory is its own top: whoever names it wants it
        searched.
        """
        inside = path.is_relative_to(root)
        name = path.relative_to(root).as_posix() if inside else path.as_posix()
        if not is_directory(path):
            parent = name.rpartition("/")[0]
            return cls(root, path.parent, path.name, f"{parent}/" if parent else "", is_file=True)
        if path == root:
            return cls(root, root, "", "")
        if not inside or chain_at(root, name) is None:
            return cls(root, path, "", f"{name}/")
        return cls(root, root, name, "")

    def holds(self, path: str) -> bool:
        """True if a path from the top is in this scope."""
        if ".git" in path.split("/"):
            return False
        return not self.start or path == self.start or path.startswith(f"{self.start}/")


class IgnoreFile:
    """A file of ignore rules, weaker than any `.gitignore`, that keeps ripgrep within the scope and out of
    `.git`.
    """

    def __init__(self, scope: SearchScope) -> None:
        rules, path = list[str](), ""
        for part in (
            scope.start.split("/") if scope.start and not scope.is_file and "\n" not in scope.start else ()
        ):
            rules.append(f"{path}/*")
            path += "/" + re.sub(r"([\\*?\[\]{}! ])", r"\\\1", part)
            rules.append(f"!{path}")
        self._rules = os.fsencode("\n".join([*rules, ".git", ""]))
        self._name = ""

    def __enter__(self) -> str:
        descriptor, self._name = tempfile.mkstemp(prefix="agent-tui-", suffix=".ignore")
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(self._rules)
        return self._name

    def __exit__(self, *exception: object) -> None:
        with suppress(OSError):
            Path(self._name).unlink()
