"""Folders of Harbor's jobs: a folder for each trial, with its settings, its result, and the agent's own files.

A trial counts once: by the trajectory that Harbor made of it, or, while that is not there, by what the agent wrote.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from tui_agent import untrusted_files
from tui_agent.formats.importers.labels import grade, grade_in
from tui_agent.formats.importers.values import object_at, parsed

_RESULT = "result.json"
_TRAJECTORY = "trajectory.json"
_LARGEST = 16 * 2**20
_DEEPEST = 8
"""Folders between a trial and a session that an agent keeps in it."""


def is_job(folder: Path) -> bool:
    """True for a job's folder: settings, and trials beside them."""
    return _is_set(folder) and not is_trial(folder) and any(map(is_trial, _folders(folder)))


def is_trial(folder: Path) -> bool:
    """True for a trial's folder."""
    return _is_set(folder) and any(
        (part / "agent").is_dir() for part in (folder, *_folders(folder / "steps"))
    )


def trials(folder: Path) -> list[Path]:
    """The trials of a job in their order, or the folder itself if it is a trial."""
    return [folder] if is_trial(folder) else [one for one in _folders(folder) if is_trial(one)]


def result_of(trial: Path) -> dict[str, Any]:
    """What a trial came to; empty until it has ended, or if it cannot be read."""
    try:
        result = parsed(untrusted_files.content(trial / _RESULT, _LARGEST, trial))
    except OSError:
        return {}
    return result if isinstance(result, dict) else {}


def agent_folders(trial: Path) -> Iterator[tuple[Path, Path | None]]:
    """The folder of the agent in each step of a trial, and its trajectory if there is one."""
    for part in (trial, *_folders(trial / "steps")):
        agent = part / "agent"
        if agent.is_dir() and not agent.is_symlink():
            made = agent / _TRAJECTORY
            yield agent, made if untrusted_files.is_file(made, trial) else None


def grade_of_trial(path: Path) -> float | None:
    """The reward of the trial that a session is in; None if it is in none, or has none yet."""
    for folder in list(path.parents)[:_DEEPEST]:
        if folder.name == "agent":
            step = folder.parent
            trial = step.parent.parent if step.parent.name == "steps" else step
            if (trial / _RESULT).is_file():
                return _reward(trial / _RESULT, (trial / _RESULT).stat().st_mtime_ns)
    return None


@lru_cache(maxsize=256)
def _reward(path: Path, _modified: int) -> float | None:
    rewards = object_at(result_of(path.parent), "verifier_result", "rewards")
    one = next(iter(rewards.values())) if len(rewards) == 1 else None
    return grade_in(rewards) if grade_in(rewards) is not None else grade(one)


def _is_set(folder: Path) -> bool:
    return (folder / "config.json").is_file()


def _folders(folder: Path) -> list[Path]:
    if not folder.is_dir() or folder.is_symlink():
        return []
    return sorted(one for one in folder.iterdir() if one.is_dir() and not one.is_symlink())
