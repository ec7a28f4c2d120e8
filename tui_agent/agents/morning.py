"""The morning after: what became of each task of a night, as text, Markdown or HTML, with the commands that go on."""

from __future__ import annotations

import html
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tui_agent.agents import worktrees
from tui_agent.agents.night import OUTPUT, Entry, Night, Task, TaskFolder
from tui_agent.quantities import counted, dollars, time_of_day, whole_seconds
from tui_agent.terminal_text import one_line

Command = Callable[[Task, str, Entry | None], str]
"""The command line that goes on with a task's session; empty if there is none."""


@dataclass(frozen=True)
class Report:
    """A task: its headline, facts, events with their times, and commands by what they do."""

    name: str
    headline: str
    facts: tuple[str, ...]
    events: tuple[str, ...]
    commands: tuple[tuple[str, str], ...]


def reports(night: Night, goes_on: Command) -> list[Report]:
    """The tasks of a night in their order. Blocking: git is asked for changes."""
    return [_report(folder, task, goes_on) for folder in night.tasks if (task := folder.task) is not None]


def _report(folder: TaskFolder, task: Task, goes_on: Command) -> Report:
    entries = folder.entries
    end = next((one for one in reversed(entries) if one.what == "ended"), None)
    return Report(
        name=task.name,
        headline=_headline(entries, end),
        facts=(
            *_facts(task, entries, end),
            *([f"it said: {one_line(folder.said, 300)}"] if folder.said else []),
        ),
        events=tuple(f"{time_of_day(one.at)}  {_said(one)}" for one in entries if one.what != "session"),
        commands=tuple(_commands(folder, task, end, goes_on)),
    )


def _headline(entries: Sequence[Entry], end: Entry | None) -> str:
    if end is None:
        begun = any(one.what == "begun" for one in entries)
        return "open: it was cut off, or still runs" if begun else "open: it has not begun"
    if end.code == 0:
        return f"ended, perhaps not done: {one_line(end.text, 300)}" if end.text else "done"
    done = f"not done, exit code {end.code}"
    return f"{done}: {one_line(end.text, 300)}" if end.text else done


def _facts(task: Task, entries: Sequence[Entry], end: Entry | None) -> Iterator[str]:
    if entries:
        yield f"{time_of_day(entries[0].at)} to {time_of_day(entries[-1].at)}"
    if end is not None and end.calls:
        yield counted(end.calls, "call") + (f", {end.failed} failed" if end.failed else "")
    if end is not None and end.spent is not None:
        yield f"cost {dollars(end.spent)}"
    checks = [one for one in entries if one.what == "checked"]
    if checks:
        red = sum(one.code != 0 for one in checks)
        yield f"{counted(len(checks), 'check')}, {red} red, the last {'red' if checks[-1].code else 'green'}"
        came_to = f"{time_of_day(checks[-1].at)}: {one_line(checks[-1].text, 200)}"
        yield f"receipt: `{one_line(task.check, 200)}` at {came_to}"
    elif task.check and end is not None:
        yield "its check never ran"
    waited = sum(max(0.0, (one.until or one.at) - one.at) for one in entries if one.what == "waits")
    resumes = sum(one.what == "resumed" for one in entries)
    if resumes:
        yield f"resumed {counted(resumes, 'time')}" + (
            f", after waits of {whole_seconds(waited)}" if waited else ""
        )
    if (
        task.base
        and Path(task.workspace).is_dir()
        and (said := worktrees.changes(Path(task.workspace), task.base))
    ):
        yield said


def _said(entry: Entry) -> str:
    text = one_line(entry.text, 300)
    match entry.what:
        case "begun":
            return "begun"
        case "resumed":
            return f"resumed: {text}"
        case "waits":
            return f"waits until {time_of_day(entry.until or entry.at)}: {text}"
        case "held" | "stalled" | "lost" | "doubted":
            return text
        case "checked":
            return f"check: {text}"
        case _:
            return f"ended with exit code {entry.code}" + (f": {text}" if text else "")


def _commands(
    folder: TaskFolder, task: Task, end: Entry | None, goes_on: Command
) -> Iterator[tuple[str, str]]:
    place = shlex.quote(task.workspace)
    there = Path(task.workspace).is_dir()
    if (folder.path / OUTPUT).is_file():
        yield "output", f"less {shlex.quote(str(folder.path / OUTPUT))}"
    if folder.session:
        yield "open", f"agent-tui watch {shlex.quote(folder.session_file or task.agent)}"
    if there and folder.session and (words := goes_on(task, folder.session, end)):
        yield "resume", f"cd {place} && {words}"
    if task.base and there:
        yield "diff", f"git -C {place} diff {task.base}"
    if task.repository and end is not None:
        repository = shlex.quote(task.repository)
        gone = f"git -C {repository} branch -D {shlex.quote(task.branch)}"
        remove = f"git -C {repository} worktree remove --force {place} && " if there else ""
        yield "discard", remove + gone


# --- forms ------------------------------------------------------------------------------------------------------------


def as_text(title: str, tasks: Sequence[Report]) -> str:
    """Lines for a terminal."""
    lines = [title]
    for task in tasks:
        lines += ["", f"{task.name}  {task.headline}", *(f"  {fact}" for fact in task.facts)]
        lines += [f"    {event}" for event in task.events]
        lines += [f"  {what:<8}{command}" for what, command in task.commands]
    return "\n".join(lines) + "\n"


def as_markdown(title: str, tasks: Sequence[Report]) -> str:
    """A Markdown page. Texts of others stand in blocks of code, which nothing in them ends."""
    lines = [f"# {title}"]
    for task in tasks:
        lines += ["", f"## {task.name}", "", "```text", task.headline.replace("```", "'''")]
        lines += [each.replace("```", "'''") for each in (*task.facts, "", *task.events)]
        lines += [
            "```",
            "",
            "```sh",
            *(f"{command.replace('```', '')}  # {what}" for what, command in task.commands),
            "```",
        ]
    return "\n".join(lines) + "\n"


def as_html(title: str, tasks: Sequence[Report]) -> str:
    """An HTML page that needs nothing else, and runs nothing."""
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    head = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        "<style>body{font:15px/1.5 system-ui;max-width:60em;margin:2em auto;color-scheme:light dark}"
        "pre{overflow-x:auto}</style>"
    )
    parts = [head, f"<h1>{html.escape(title)}</h1>"]
    for task in tasks:
        said = "\n".join((task.headline, *task.facts, "", *task.events))
        commands = "\n".join(f"{command}  # {what}" for what, command in task.commands)
        parts.append(
            f"<h2>{html.escape(task.name)}</h2><pre>{html.escape(said)}</pre><pre>{html.escape(commands)}</pre>"
        )
    return "\n".join(parts) + "\n"
