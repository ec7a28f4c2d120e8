"""The check of a supervised agent: a command of the shell, in the agent's workspace and environment."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from tui_agent.agents.leash import leashed
from tui_agent.session.goal import Checked, Goal

TAIL = 16_000
"""Bytes of a check's output that are kept, from its end."""
_STYLE = re.compile(r"\x1b\[[0-9;]*m")


async def checked(goal: Goal, workspace: Path, environment: Mapping[str, str]) -> Checked:
    """Run the check. Raises `OSError` if no shell can be started."""
    kept, code = b"", None
    command = ["/bin/sh", "-c", f"exec 2>&1\n{goal.check}"]
    async with leashed(command, cwd=workspace, env={**environment, "PWD": str(workspace)}) as running:
        with suppress(TimeoutError):
            async with asyncio.timeout(goal.seconds):
                stream = running.child.process.stdout
                while stream is not None and (piece := await stream.read(1 << 16)):
                    kept = (kept + piece)[-TAIL:]
                await running.child.process.wait()
                code = running.code
    return Checked(code, _STYLE.sub("", kept.decode("utf-8", "replace")))
