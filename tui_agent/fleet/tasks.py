"""The file of tasks: one JSON object a line. What is wrong with a line is said with its number; the others count."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tui_agent.config.errors import ConfigError, nearest
from tui_agent.config.settings import load_settings, require_model, require_workspace
from tui_agent.disk import user_path

KEYS: Mapping[str, type | tuple[type, ...]] = {
    "task": str,
    "workspace": str,
    "model": str,
    "options": dict,
    "id": (str, int),
    "check": str,
    "goal": str,
    "worktree": bool,
}
EXAMPLE = '{"task": "fix the tests", "workspace": "shop", "options": {"max_iterations": 20}, "id": "shop-1"}'


@dataclass(frozen=True)
class FleetTask:
    """One line. `options` are settings by their keys, workspace and model among them, over those of the command."""

    id: str
    line: int
    task: str
    options: Mapping[str, object] = field(default_factory=dict)
    check: str = ""
    """The command that proves the task; empty: its answer is not checked."""
    goal: str = ""
    worktree: bool = False
    """It works in a git worktree of its own, not in the workspace itself."""

    @property
    def digest(self) -> str:
        """Tells whether a task that was begun earlier is still the same."""
        more = [[self.check, self.goal, self.worktree]] if self.check or self.worktree else []
        said = json.dumps([self.task, self.options, *more], sort_keys=True, default=str)
        return hashlib.sha256(said.encode("utf-8", "replace")).hexdigest()[:16]


class BadLine(NamedTuple):
    """A line that is no task, and why."""

    line: int
    why: str


class _WrongLineError(Exception):
    pass


def read_tasks(
    path: Path, overrides: Mapping[str, object], config: str | None = None
) -> tuple[list[FleetTask], list[BadLine]]:
    """The tasks of a file, and the lines that are none. `overrides`: options of the command, for every task.

    A relative workspace is one beside the file. Raises `OSError`.
    """
    tasks: list[FleetTask] = []
    bad: list[BadLine] = []
    seen: dict[str, int] = {}
    for number, line in _lines(path):
        try:
            task = _task(number, line, path.parent)
            _check(task, overrides, config)
        except _WrongLineError as wrong:
            bad.append(BadLine(number, str(wrong)))
            continue
        if (first := seen.setdefault(task.id, number)) != number:
            bad.append(BadLine(number, f"line {first} has the id {task.id!r} already"))
        else:
            tasks.append(task)
    return tasks, bad


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    text = path.read_bytes().decode("utf-8-sig", "replace")
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield number, line


def _task(number: int, line: str, folder: Path) -> FleetTask:
    try:
        given = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _WrongLineError(f"it is no JSON: {error}") from error
    if not isinstance(given, dict):
        raise _WrongLineError('it is no object such as {"task": "fix the tests"}')
    for key, value in given.items():
        if key not in KEYS:
            near = nearest(key, KEYS)
            hint = f"; the nearest is {near!r}" if near else f"; there are {', '.join(KEYS)}"
            raise _WrongLineError(f"there is no key {key!r}{hint}")
        if not isinstance(value, KEYS[key]):
            raise _WrongLineError(f"`{key}` is of another kind than in {EXAMPLE}")
    if not given.get("task", "").strip():
        raise _WrongLineError("`task` is missing or empty")
    options = {key.replace("-", "_"): value for key, value in given.get("options", {}).items()}
    options |= {key: given[key] for key in ("workspace", "model") if key in given}
    if isinstance(workspace := options.get("workspace"), str):
        options["workspace"] = str(folder.resolve() / user_path(workspace))
    proof = {key: given[key] for key in ("check", "goal", "worktree") if key in given}
    if "goal" in proof and not proof.get("check", "").strip():
        raise _WrongLineError("only a `check` can say if its `goal` is reached")
    return FleetTask(str(given.get("id", number)), number, given["task"], options, **proof)


def _check(task: FleetTask, overrides: Mapping[str, object], config: str | None) -> None:
    try:
        settings = load_settings({**overrides, **task.options}, config)
        require_workspace(settings)
        require_model(settings)
    except ConfigError as error:
        raise _WrongLineError(" ".join(error.message.split())) from error
