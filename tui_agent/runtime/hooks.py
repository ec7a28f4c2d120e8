"""User-configured commands around tool calls, in the shape that Claude Code's hooks made familiar.

A hook gets the event as JSON on stdin. Exit code 0: its `additionalContext` (or plain text, for failures) may
join the recovery note. Exit code 2: `PreToolUse` blocks the call, with stderr as the reason. Anything else, or
silence beyond its timeout, is reported and never fatal.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Literal

from tui_agent import processes
from tui_agent.config.sections import HookCommand, HookEvent, HookSettings
from tui_agent.core import events

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

    async def run(
        self, event: HookEvent, tool: str, call_id: str, arguments: Mapping[str, Any], **facts: Any
    ) -> list[events.HookReported]:
        """Reports of all hooks for `event` on `tool`; `facts` join the JSON (tool_response, error)."""
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
        return [await self._run_one(hook, event, call_id, subject) for hook in hooks]

    async def _run_one(
        self, hook: HookCommand, event: HookEvent, call_id: str, subject: dict[str, Any]
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

        try:
            child = await processes.start(
                ["/bin/sh", "-c", hook.command],
                cwd=self._workspace,
                env=processes.without_secrets(os.environ, self._passed),
            )
        except (OSError, ValueError) as error:
            return report("failed", error=f"the hook could not be started: {error}")
        try:
            async with asyncio.timeout(hook.timeout):
                out, err = await child.output(json.dumps(subject, default=str).encode(), _OUTPUT_LIMIT)
        except TimeoutError:
            return report("timed_out", error=f"no end after {hook.timeout:g} s; the hook was ended")
        finally:
            await child.end()
        stdout, stderr = out.decode("utf-8", "replace").strip(), err.decode("utf-8", "replace").strip()
        if child.code == 2:
            return report("blocked", error=stderr or stdout or "the hook gave no reason")
        if child.code != 0:
            return report("failed", error=f"exit code {child.code}: {stderr or stdout}")
        return report("ok", context=_context(event, stdout))


def _context(event: HookEvent, stdout: str) -> str:
    """What a hook adds: the JSON's `additionalContext` or `reason`, or a failure hook's plain words."""
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
