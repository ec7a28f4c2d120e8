"""Formatters and checkers that the operator's configuration runs on a file after the agent wrote it.

What they say joins the result of the edit. They never fail it: one that is missing, hangs or breaks is a notice.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import PurePath
from typing import TYPE_CHECKING

from tui_agent.globs import GlobError, path_pattern
from tui_agent.quantities import counted
from tui_agent.terminal_text import one_line
from tui_agent.tools.encoding import printable
from tui_agent.tools.errors import ToolError
from tui_agent.tools.output import Capture
from tui_agent.tools.running import run_command

if TYPE_CHECKING:
    from tui_agent.config.sections import FileCommand
    from tui_agent.tools.tool import ToolContext

_SHOWN = 4_000
"""Characters of one command's output that join the result."""
_GRACE = 1.0
"""Seconds between SIGTERM and SIGKILL for one that takes too long."""
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class FileChecks:
    """All commands of a configuration, and what the checkers said last of each file."""

    formatters: Mapping[str, FileCommand] = field(default_factory=dict)
    """By glob, as the checkers."""
    checkers: Mapping[str, FileCommand] = field(default_factory=dict)
    _said: dict[tuple[FileCommand, str], Counter[str]] = field(default_factory=dict)

    def formats(self, path: str) -> bool:
        """True if a formatter would run on this file."""
        return any(_meant(self.formatters, path))

    async def formatted(self, path: str, context: ToolContext) -> list[str]:
        """Run the formatters on a file. Remarks on those that did not work."""
        notices = []
        for command in _meant(self.formatters, path):
            trouble, said = await _run(command, path, context)
            if trouble:
                notices.append(f"`{_label(command)}` did not format the file: {trouble}.{_quoted(said)}")
        return notices

    async def checked(self, path: str, context: ToolContext) -> list[str]:
        """Run the checkers on a file. What they found, and what was not known of it before."""
        notices = []
        for command in _meant(self.checkers, path):
            trouble, said = await _run(command, path, context)
            if trouble and not trouble.startswith("exit code"):
                notices.append(f"`{_label(command)}` did not check the file: {trouble}.{_quoted(said)}")
                continue
            key = (command, path)
            before = self._said.get(key, Counter())
            found = said.splitlines() if trouble else []
            # A problem that only moved to another line is no new one.
            self._said[key] = Counter(_NUMBER.sub("#", line) for line in found)
            if not found:
                if trouble:
                    notices.append(
                        f"`{_label(command)}` found something wrong ({trouble}) and did not say what."
                    )
                elif before:
                    notices.append(f"`{_label(command)}` finds nothing any more.")
                continue
            fresh, known = _new(found, before)
            older = f" {counted(known, 'more line')} as before." if known and fresh else ""
            if fresh:
                notices.append(
                    f"`{_label(command)}` reports ({trouble}):{_quoted(fresh)}{older and chr(10) + older.strip()}"
                )
            else:
                notices.append(
                    f"`{_label(command)}` reports nothing new; {counted(known, 'line')} as before."
                )
        return notices


def _new(found: list[str], before: Counter[str]) -> tuple[str, int]:
    """The lines that were not said before, and how many were."""
    left, fresh = before.copy(), []
    for line in found:
        shape = _NUMBER.sub("#", line)
        if left[shape] > 0:
            left[shape] -= 1
        else:
            fresh.append(line)
    return "\n".join(fresh), len(found) - len(fresh)


def _meant(commands: Mapping[str, FileCommand], path: str) -> Iterator[FileCommand]:
    for glob, command in commands.items():
        with suppress(GlobError):
            if path_pattern(glob).fullmatch(path):
                yield command


def _label(command: FileCommand) -> str:
    """How the command is named in results."""
    if command.shell:
        return one_line(command.shell, 60)
    program, *arguments = command.command
    words = takewhile(lambda word: not word.startswith("-") and "{path}" not in word, arguments)
    return " ".join((PurePath(program).name, *words))


def _argv(command: FileCommand, path: str) -> list[str]:
    """The command line for a file; `path` is relative to the workspace."""
    # A name that begins with a dash would be an option.
    name = f"./{path}" if path.startswith("-") else path
    if command.shell:
        return ["sh", "-c", command.shell, "sh", name]
    return [word.replace("{path}", name) for word in command.command]


async def _run(command: FileCommand, path: str, context: ToolContext) -> tuple[str, str]:
    """The fault ("": none), and the command's output."""
    capture = Capture(context.output_dir, "check", _SHOWN, mask=context.new_mask())
    try:
        ended = await run_command(
            _argv(command, path),
            context.workspace.root,
            command.timeout,
            _GRACE,
            capture,
            lambda _: None,
            sandbox=context.sandbox,
        )
    except ToolError as error:
        await asyncio.to_thread(capture.discard)
        return error.message.rstrip("."), ""
    except BaseException:
        await asyncio.to_thread(capture.discard)
        raise
    text, _ = await asyncio.to_thread(capture.finish)
    said = printable(text).replace("\0", "\ufffd").strip("\n")
    if ended.timed_out:
        return f"it did not end within {command.timeout:g} s and was stopped", said
    if ended.code == 127 or said.startswith("bwrap: execvp"):
        return "there is no such program where commands run", said
    return (f"exit code {ended.code}" if ended.code != 0 else ""), said


def _quoted(text: str) -> str:
    return f"\n{text}" if text else ""
