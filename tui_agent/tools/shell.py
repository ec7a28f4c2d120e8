"""The tool that runs commands: watched over, streamed, bounded in time and size, and gone when it ends.

The command itself is started and ended by `supervisor`, a process of its own on a leash, so that nothing
outlives the call, and not even this program's death leaves anything behind.
"""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from tui_agent import processes
from tui_agent.core.recovery.no_match import in_words, nothing_found_by
from tui_agent.core.recovery.silent_codes import silent_code
from tui_agent.core.tool_facts import Effect, ToolFacts, Use, Uses
from tui_agent.sandbox.inside import in_words as taken_back_in_words
from tui_agent.tools.background import BackgroundCommands, started_in_words
from tui_agent.tools.encoding import printable
from tui_agent.tools.errors import ToolError
from tui_agent.tools.git_door import changes_git_settings
from tui_agent.tools.output import DEFAULT_LIMIT, Capture
from tui_agent.tools.running import run_command
from tui_agent.tools.tool import ToolContext, ToolOutput, schema, text
from tui_agent.tools.workspace import Workspace

DEFAULT_TIMEOUT = 120.0
LONGEST_TIMEOUT = 3_600.0
"""Seconds."""

_LONGEST_COMMAND = 120_000
"""Bytes: Linux takes no single argument above 128 KiB."""
_GRACE = 2.0
"""Seconds between SIGTERM and SIGKILL."""


@dataclass(frozen=True)
class Bash:
    """`bash(command, timeout?, background?)`. `timeout` is the default in seconds, `output_limit` in characters."""

    timeout: float = DEFAULT_TIMEOUT
    output_limit: int = DEFAULT_LIMIT
    grace: float = _GRACE
    background: BackgroundCommands = field(default_factory=BackgroundCommands)
    name: ClassVar[str] = "bash"
    effect: ClassVar[Effect] = Effect.COMMAND
    uses: ClassVar[Uses] = {"command": Use.RUNS, "timeout": Use.SAYS, "background": Use.SAYS}
    facts: ClassVar[ToolFacts] = ToolFacts(
        subject="command", beside=(("background", "  ⚙"),), folded=6, at_end=True
    )
    when_cut: ClassVar[str] = (
        "Use a shorter command; write a long text or script with write_file, in parts, and run that."
    )

    @property
    def longest(self) -> float:
        """The longest time a call may ask for, in seconds."""
        return max(LONGEST_TIMEOUT, self.timeout)

    @property
    def description(self) -> str:
        """The text for the model."""
        return (
            "Run a command with bash and return its output. Each call is a new shell in the workspace's root: cd and "
            "variables do not last. There is no input and no terminal: use options that ask nothing. What still runs "
            f"when the command ends is ended; it is stopped after `timeout` seconds (default {self.timeout:g}). With "
            "`background` it returns at once, with an id for bash_output and bash_stop: for servers, watchers and "
            "what takes long. Prefer the other tools for reading, searching and editing files."
        )

    @property
    def parameters(self) -> dict[str, Any]:
        """JSON Schema of the arguments."""
        return schema(
            "command",
            command=text("The command, as for bash -c."),
            timeout={
                "type": "number",
                "minimum": 1,
                "maximum": self.longest,
                "description": f"Seconds until it is stopped (default {self.timeout:g}; none in the background).",
            },
            background={"type": "boolean", "description": "Let it run in the background (default false)."},
        )

    def preview(self, arguments: dict[str, Any], workspace: Workspace) -> str:
        """The whole command, and its time limit."""
        if arguments.get("background"):
            limit = (
                f"for at most {arguments['timeout']:g} s"
                if "timeout" in arguments
                else "as long as the session"
            )
            return f"{arguments['command']}\n\n(in the background, {limit})"
        timeout = float(arguments.get("timeout", self.timeout))
        return f"{arguments['command']}\n\n(for at most {timeout:g} s)"

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolOutput:
        """The output of a command that ended with exit code 0, or that searched and found nothing.

        In the background: its id and what it wrote at once.
        Raises `ToolError`: any other exit code (`exit code N` and the end of the output stand in the
        message), a time-out (`unknown_effect`). Cancellation ends the command and all it started before it
        goes on.
        """
        timeout = float(arguments.get("timeout", self.timeout))
        argv = _shell_argv(str(arguments["command"]), context.workspace.root)
        if arguments.get("background"):
            limit = float(arguments["timeout"]) if "timeout" in arguments else None
            command = str(arguments["command"])
            name = await self.background.start(argv, command, context, limit, self.output_limit)
            return ToolOutput(started_in_words(name, await self.background.read(name, 0), limit))
        mask = context.new_mask()
        capture = Capture(context.output_dir, self.name, self.output_limit, mask=mask)
        try:
            ended = await run_command(
                argv,
                context.workspace.root,
                timeout,
                self.grace,
                capture,
                context.progress,
                sandbox=context.sandbox,
                git_settings=not changes_git_settings(str(arguments["command"])),
                reports=context.hold is None,
            )
            said = taken_back_in_words(ended.taken)
            if context.hold is not None and ended.taken:
                said = await context.hold(ended.taken)
        except BaseException:
            await asyncio.to_thread(capture.discard)
            raise
        text, whole = await asyncio.to_thread(capture.finish)
        text = printable(text).replace("\0", "\ufffd").rstrip("\n")
        text = "\n".join(filter(None, (text, said)))
        if ended.persisted:
            raise ToolError(
                f"The command was ended with all it had started, because it wrote again what the "
                f"sandbox had undone. {text}",
                unknown_effect=True,
                output_file=whole,
            )
        if ended.timed_out:
            until = f" Its output until then:\n{text}" if text else " It had written nothing."
            raise ToolError(
                f"The command did not end within {timeout:g} s and was stopped, with everything it had "
                f"started. It may have done a part of its work: check that before you run it again.{until}",
                unknown_effect=True,
                output_file=whole,
            )
        if ended.code is None:
            raise ToolError(
                f"The command was killed from outside; what it did until then is not known.\n{text}".rstrip(),
                unknown_effect=True,
                output_file=whole,
            )
        if ended.code != 0:
            message = (
                f"The command failed with exit code {ended.code}"
                f"{_meaning(ended.code, str(arguments['command']), silent=not text)}.\n"
                f"{text or '(no output)'}"
            )
            hint = context.sandbox.hint(text)
            found = nothing_found_by(str(arguments["command"]), message)
            if not found:
                raise ToolError(f"{message}\n{hint}".rstrip(), output_file=whole, exit_code=ended.code)
            text = f"exit code {ended.code}: {in_words(found)}\n{text}".rstrip()
        return ToolOutput(text or "(no output)", output_file=whole, exit_code=ended.code)


def _shell_argv(command: str, workspace: Path) -> list[str]:
    """The command line. Raises `ToolError` for a command that the system could not take."""
    if "\0" in command:
        raise ToolError(
            "The command holds a NUL character, which no command line can. Use $'\\0' or printf '\\0'."
        )
    try:
        size = len(os.fsencode(command))
    except UnicodeEncodeError:
        raise ToolError("The command holds half of a surrogate pair, which is no character.") from None
    if size > _LONGEST_COMMAND:
        raise ToolError(
            f"The command has {size:,} bytes; {_LONGEST_COMMAND:,} are possible. Write it to a script with "
            "write_file and run that."
        )
    bash = processes.own_program("bash", workspace)
    return [bash, "--noprofile", "--norc", "-c", command] if bash else ["/bin/sh", "-c", command]


def _meaning(code: int, command: str, *, silent: bool) -> str:
    """Say what an exit code means: above 128 by the shell's convention, and what the program means if it is silent."""
    said = [silent_code(command, code)] if silent else []
    with suppress(ValueError):
        said.insert(0, signal.Signals(code - 128).name if code > 128 else "")
    words = ": ".join(filter(None, said))
    return f" ({words})" if words else ""
