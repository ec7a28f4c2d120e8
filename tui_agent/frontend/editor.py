"""A text in the operator's own editor."""

from __future__ import annotations

import asyncio
import os
import shlex
import tempfile
from pathlib import Path

from tui_agent.processes import uncancelled


class EditorError(ValueError):
    """The editor could not be used; the message says why and what to do."""


async def edit(text: str) -> str:
    """The text as the editor left it, which has the terminal while all else goes on. Raises `EditorError`."""
    chosen = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        with tempfile.TemporaryDirectory(prefix="agent-tui-", ignore_cleanup_errors=True) as folder:
            file = Path(folder) / "prompt.md"
            file.write_text(text, encoding="utf-8")
            command = [*shlex.split(chosen), str(file)]
            code = await _run(command)
            left = "" if code else file.read_text(encoding="utf-8", errors="replace").rstrip("\n")
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise EditorError(f"The editor {chosen} could not be used ({why}): set VISUAL or EDITOR.") from error
    if code:
        how = f"exit code {code}" if code > 0 else f"signal {-code}"
        raise EditorError(f"{command[0]} ended with {how}; the prompt is as it was.")
    return left


async def _run(command: list[str]) -> int:
    """Its exit code; below zero: a signal. Cancellation ends it."""
    process = await asyncio.create_subprocess_exec(*command)
    try:
        return await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await uncancelled(process.wait())
