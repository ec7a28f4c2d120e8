"""User-configured commands around tool calls, in the shape that Claude Code's hooks made familiar.

A hook gets the event as JSON on stdin. Exit code 0: its `additionalContext` (or plain text, for failures) may
join the recovery note. Exit code 2: `PreToolUse` blocks the call, with stderr as the reason. Anything else, or
silence beyond its timeout, is reported and never fatal.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import time
from collections.abc import Collection, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO, Literal

from tui_agent import processes
from tui_agent.config.sections import HookCommand, HookEvent, HookSettings
from tui_agent.core import events
from tui_agent.sandbox.mechanisms import Sandbox

CONTEXT_LIMIT = 4_000
"""Characters of one hook's words that reach the note or the journal."""
_OUTPUT_LIMIT = 1_000_000
"""Bytes of a hook's output that are read for them."""


class HookRunner:
    """Runs the hooks that match, one after another, each in its own process group."""

    def __init__(
        self, hooks: HookSettings, session_id: str, workspace: Path, passed: Collection[str] = ()
    ) -> None:
        """`passed`: variables that are named like secrets and that hooks get all the same."""
        self._passed = passed
        self._hooks = hooks
        self._common = {"session_id": session_id, "cwd": str(workspace)}
        self._workspace = workspace

    def are_there(self, event: HookEvent, tool: str) -> bool:
        """True if anything runs for `event` on `tool`."""
        return bool(self._hooks.commands(event, tool))

    async def run(
        self,
        event: HookEvent,
        tool: str,
        call_id: str,
        arguments: Mapping[str, Any],
        confined: Sandbox | None = None,
        **facts: Any,
    ) -> list[events.HookReported]:
        """Reports of all hooks for `event` on `tool`; `facts` join the JSON (tool_response, error). `confined`: what
        they run in while nothing may change.
        """
        hooks = self._hooks.commands(event, tool)
        if not hooks:
            return []
        subject = {
            **self._common,
            "hook_event_name": event,
            "tool_name": tool,
            "tool_input": dict(arguments),
            "tool_use_id": call_id,
            **facts,
        }
        return [await self._run_one(hook, event, call_id, subject, confined) for hook in hooks]

    async def _run_one(
        self,
        hook: HookCommand,
        event: HookEvent,
        call_id: str,
        subject: dict[str, Any],
        confined: Sandbox | None,
    ) -> events.HookReported:
        started = time.monotonic()

        def report(
            status: Literal["ok", "blocked", "failed", "timed_out"], context: str = "", error: str = ""
        ) -> events.HookReported:
            return events.HookReported(
                hook=event,
                command=hook.command,
                status=status,
                call_id=call_id,
                context=context[:CONTEXT_LIMIT],
                error=error[:CONTEXT_LIMIT],
                duration=time.monotonic() - started,
            )

        if confined is not None and confined.mechanism is None:
            # It may forbid the call, and it may change something.
            return report("blocked" if event == "PreToolUse" else "failed", error=_NO_SANDBOX)
        try:
            code, out, err = await self._output(hook, json.dumps(subject, default=str).encode(), confined)
        except TimeoutError:
            return report("timed_out", error=f"no end after {hook.timeout:g} s; the hook was ended")
        except (OSError, ValueError) as error:
            return report("failed", error=f"the hook could not be started: {error}")
        stdout, stderr = out.decode("utf-8", "replace").strip(), err.decode("utf-8", "replace").strip()
        if code == 2:
            return report("blocked", error=stderr or stdout or "the hook gave no reason")
        if code != 0:
            return report("failed", error=f"exit code {code}: {stderr or stdout}")
        return report("ok", context=_context(event, stdout))

    async def _output(
        self, hook: HookCommand, subject: bytes, confined: Sandbox | None
    ) -> tuple[int | None, bytes, bytes]:
        """Exit code and outputs of a hook. Raises `OSError`, `ValueError` and `TimeoutError`."""
        argv = ["/bin/sh", "-c", hook.command]
        environment = processes.without_secrets(os.environ, self._passed)
        with ExitStack() as stack:
            given: tuple[BinaryIO, ...] = ()
            status: BinaryIO | None = None
            if confined is not None:
                (leash_end, _), (status, status_end) = (processes.pipe(stack) for _ in range(2))
                given = (leash_end, status_end)
                before = processes.supervised(0.0, status_end.fileno(), confined.gate, leash_end.fileno())
                argv, environment = [*before, *confined.wrap(argv)], environment | confined.environment()
            child = await processes.start(
                argv, cwd=self._workspace, env=environment, pass_fds=[one.fileno() for one in given]
            )
            for one in given:
                one.close()
            try:
                async with asyncio.timeout(hook.timeout):
                    out, err = await child.output(subject, _OUTPUT_LIMIT)
            finally:
                await child.end()
            return child.code if status is None else _reported(status), out, err


_NO_SANDBOX = "in plan mode hooks run in a sandbox, and there is none here: agent-tui doctor says why"


def _reported(status: BinaryIO) -> int | None:
    """The exit code that the supervisor of a command has said."""
    os.set_blocking(status.fileno(), False)
    found = re.search(rb"^exit (\d{1,3})$", status.read(1_000) or b"", re.MULTILINE)
    return int(found[1]) if found else None


def _context(event: HookEvent, stdout: str) -> str:
    """Text that a hook adds: the JSON's `additionalContext` or `reason`, or a failure hook's plain words."""
    if stdout.startswith("{"):
        try:
            said = json.loads(stdout)
        except (ValueError, RecursionError):
            said = None
        if isinstance(said, dict):
            specific = said.get("hookSpecificOutput")
            source = specific if isinstance(specific, dict) else said
            return str(source.get("additionalContext") or said.get("reason") or "")
    return stdout if event == "PostToolUseFailure" else ""
