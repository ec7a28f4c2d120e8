"""A file of tasks, run in turn or side by side, each by a process of its own in a worktree of its own.

What is known of them stands on the disk (`night`): a shift that was killed goes on with what is open, and does nothing
twice.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError, field_validator

from tui_agent import untrusted_files
from tui_agent.agents import worktrees
from tui_agent.agents.leash import leashed
from tui_agent.agents.night import OUTPUT, Night, Task, TaskFolder, keep_source
from tui_agent.agents.units import machine_goes_down
from tui_agent.agents.waiting import Clock
from tui_agent.quantities import clock_time

_LARGEST = 1_000_000
_STOPPED = 130
_ENDS = {
    129: "somebody stopped it",
    130: "somebody stopped it",
    137: "it was killed",
    143: "somebody stopped it",
}
"""By exit code, for a supervisor that could not say it itself."""
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,39}$")]


class TaskGiven(BaseModel, frozen=True, extra="forbid"):
    """A task as its file gives it (`[[tasks]]`)."""

    name: Name
    command: tuple[str, ...]
    """The agent's command: a list of words, or a line that is split as a shell would."""
    check: str = ""
    goal: str = ""

    @field_validator("command", mode="before")
    @classmethod
    def _may_be_a_line(cls, value: Any) -> Any:
        return shlex.split(value) if isinstance(value, str) else value


class TasksFile(BaseModel, frozen=True, extra="forbid"):
    """A file of tasks."""

    tasks: Annotated[tuple[TaskGiven, ...], Field(min_length=1)]
    at_once: Annotated[int, Field(ge=1, le=64)] = 1
    """Tasks side by side."""
    workspace: str = "."
    """The folder that they work in, or the repository of their worktrees; from the file's own folder on."""
    worktrees: bool = True
    """Each task has a worktree of its own."""
    remove: bool = False
    """A worktree is removed after success, if everything in it is committed; its branch stays."""

    max_cost: Annotated[float, Field(gt=0)] | None = None
    """USD for all tasks of the night together."""
    max_tokens: Annotated[float, Field(gt=0)] | None = None
    max_resumes: Annotated[int, Field(ge=0)] | None = None

    @field_validator("tasks")
    @classmethod
    def _have_names_of_their_own(cls, value: tuple[TaskGiven, ...]) -> tuple[TaskGiven, ...]:
        if len({task.name for task in value}) < len(value):
            raise ValueError("each task has to have a name of its own")
        return value


class TasksError(Exception):
    """The file of tasks cannot be used; the message says why."""


def read_tasks(path: Path) -> TasksFile:
    """Read a file of tasks. Raises `TasksError`."""
    try:
        return TasksFile.model_validate(tomllib.loads(untrusted_files.content(path, _LARGEST).decode()))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise TasksError(f"{path}: {where}: {first['msg']}") from error
    except (OSError, ValueError) as error:
        raise TasksError(f"{path}: {getattr(error, 'strerror', None) or error}") from error


def laid_out(night: Night, given: TasksFile, source: Path, agents: Sequence[str]) -> None:
    """Keep the tasks of a night that begins. `agents`: that of each task."""
    workspace = (source.parent / given.workspace).resolve()
    for number, (task, agent) in enumerate(zip(given.tasks, agents, strict=True), 1):
        folder = night.folder(number, task.name)
        own = {
            "workspace": str(folder.path / "worktree"),
            "repository": str(workspace),
            "branch": f"agent-tui/{night.path.name}/{task.name}",
        }
        folder.keep(
            Task(
                name=task.name,
                agent=agent,
                command=task.command,
                check=task.check,
                **(own if given.worktrees else {"workspace": str(workspace)}),
            )
        )
    keep_source(night, source)


_CEILINGS = ("max_cost", "max_tokens", "max_resumes")
"""Keys of the file that bound all tasks together, and options that bound each."""


def _option(key: str) -> str:
    return f"--{key.replace('_', '-')}="


def _used(folder: TaskFolder, key: str, granted: float) -> float:
    """What an ended task has used of a ceiling: all that it was granted, if nobody knows."""
    end = folder.ended
    if end is None:
        return 0.0
    if key == "max_resumes":
        return folder.resumes
    known = end.spent if key == "max_cost" else end.tokens
    return granted if known is None else known


@dataclass(frozen=True)
class Shift:
    """The tasks of a night, while they run."""

    night: Night
    given: TasksFile
    options: Sequence[str]
    """Options of `supervise` that hold for each task."""
    say: Callable[[str], None]
    until: float | None = None
    """The moment from which on none is begun, in seconds since 1970."""

    clock: Clock = field(default_factory=Clock)
    granted: dict[TaskFolder, dict[str, float]] = field(default_factory=dict)
    """What of the night's ceilings each task may use."""

    def _share(self, folder: TaskFolder) -> dict[str, float] | None:
        """What a task may use of the night's ceilings, so that all together pass none; None: nothing is left.

        Tasks that run keep what they were granted, and one that ended counts with what it used, if that is known.
        """
        begun = [(one, grant) for one, grant in self.granted.items() if one != folder and one.ended is None]
        places = max(1, self.given.at_once - len(begun))
        shares: dict[str, float] = {}
        for key in _CEILINGS:
            if (ceiling := getattr(self.given, key)) is None:
                continue
            used = sum(_used(one, key, self.granted.get(one, {}).get(key, 0.0)) for one in self.night.tasks)
            free = ceiling - used - sum(grant[key] for _, grant in begun)
            own = [float(word.partition("=")[2]) for word in self.options if word.startswith(_option(key))]
            shares[key] = max(0.0, min([free / places, *own[-1:]]))
            if free <= 0 and key != "max_resumes":
                return None
        return shares

    async def run(self) -> bool:
        """Run what is open; True if all tasks of the night ended well. Cancellation ends all: a person stopped them."""
        turn = asyncio.Semaphore(self.given.at_once)
        goals = {task.name: task.goal for task in self.given.tasks}
        folders = self.night.tasks
        running = [
            asyncio.create_task(self._one(folder, task, goals.get(task.name, ""), turn))
            for folder in folders
            if folder.ended is None and (task := folder.task) is not None
        ]
        try:
            await asyncio.gather(*running)
        except BaseException:
            for one in running:
                one.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            raise
        return all((end := folder.ended) is not None and end.code == 0 for folder in folders)

    async def _one(self, folder: TaskFolder, task: Task, goal: str, turn: asyncio.Semaphore) -> None:
        while True:
            async with turn:
                if (limit := self._limit(task)) is None:
                    await self._begun(folder, task, goal)
                    return
            if self._ends_with_a_limit(folder, limit):
                self.say(f"{task.name}: it stays open, {task.agent} has reached its limit")
                return
            # Its turn goes to the tasks of other agents.
            hour = clock_time(limit, self.clock.now())
            self.say(f"{task.name}: {task.agent} has reached its limit, it begins at {hour}")
            folder.add("waits", text="the limit that another task has reached", until=limit)
            await self.clock.wait_until(limit)

    def _limit(self, task: Task) -> float | None:
        """The moment until which no task of an agent is begun: one has met its limit, as all would."""
        until = self.night.limited_until(task.agent)
        return until if until > self.clock.now() else None

    def _ends_with_a_limit(self, folder: TaskFolder, at: float) -> bool:
        """Tell if nothing more is begun until then: a limit is not to be waited for, or not for so long."""
        unwanted = "--on-limit=stop" in self.options or (
            "--on-limit=ask" in self.options and not folder.agreed
        )
        return unwanted or (self.until is not None and at >= self.until)

    async def _begun(self, folder: TaskFolder, task: Task, goal: str) -> None:
        if self.until is not None and self.clock.now() >= self.until:
            self.say(f"{task.name}: it stays open, its time is over (--until)")
            return
        if (share := self._share(folder)) is None:
            self.say(f"{task.name}: it stays open, what the night may cost is used up")
            return
        self.granted[folder] = share
        place = Path(task.workspace)
        if task.repository:
            try:
                base = await asyncio.to_thread(worktrees.made, Path(task.repository), place, task.branch)
            except worktrees.WorktreeError as error:
                folder.add("ended", code=2, text=f"its worktree could not be made: {error}")
                self.say(f"{task.name}: its worktree could not be made: {error}")
                return
            if not task.base:
                folder.keep(task.model_copy(update={"base": base}))
        self.say(f"{task.name}: {'goes on' if folder.begun else 'begins'} in {place}")
        try:
            code = await self._supervised(folder, task, goal)
        except asyncio.CancelledError:
            if folder.ended is None and not machine_goes_down():
                folder.add("ended", code=_STOPPED, text="it was interrupted")
            raise
        if folder.ended is None:
            if code in _ENDS and await asyncio.to_thread(machine_goes_down):
                self.say(f"{task.name}: it stays open, the machine goes down")
                return
            folder.add("ended", code=code, text=_ENDS.get(code, ""))
        end = folder.ended
        self.say(f"{task.name}: exit code {code}" + (f", {end.text}" if end and end.text else ""))
        if code == 0 and task.repository and self.given.remove:
            why = await asyncio.to_thread(worktrees.removed, Path(task.repository), place)
            if why:
                self.say(f"{task.name}: its worktree stays: {why}")

    async def _supervised(self, folder: TaskFolder, task: Task, goal: str) -> int:
        """Run the task by a process of its own: its exit code."""
        check = ["--check", task.check, *(["--goal", goal] if goal else [])] if task.check else []
        ours = [
            sys.executable,
            "-P",
            "-m",
            "tui_agent",
            "supervise",
            f"--record={folder.path}",
            f"--workspace={task.workspace}",
        ]
        shares = self.granted.get(folder, {})
        bounds = [
            f"{_option(key)}{int(most) if key == 'max_resumes' else most}" for key, most in shares.items()
        ]
        command = [*ours, *self.options, *bounds, *check, "--", *task.command]
        async with leashed(command, cwd=Path(task.workspace), env=os.environ) as running:
            # Opened here: what an agent writes is never read again by us.
            with (folder.path / OUTPUT).open("ab") as output:
                stream, errors = running.child.process.stdout, running.child.process.stderr

                async def passed_on(source: asyncio.StreamReader | None) -> None:
                    while source is not None and (piece := await source.read(1 << 16)):
                        output.write(piece)
                        output.flush()

                await asyncio.gather(passed_on(stream), passed_on(errors))
            await running.child.process.wait()
            return _STOPPED if running.code is None else running.code
