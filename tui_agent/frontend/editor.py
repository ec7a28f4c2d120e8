"""A text in the operator's own editor."""

from __future__ import annotations

import asyncio
import os
import shlex
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tui_agent.processes import uncancelled


class EditorError(Exception):
    """The editor could not be used; the message says why and what to do."""


async def edit(text: str) -> str:
    """The text as the editor left it, which has the terminal while all else goes on. Raises `EditorError`."""
    with _draft(text) as draft:
        process = await asyncio.create_subprocess_exec(*draft.command)
        try:
            return draft.after(await process.wait())
        finally:
            if process.returncode is None:
                process.kill()
                await uncancelled(process.wait())


@dataclass(frozen=True)
class _Draft:
    """The text as a file, and the command that lets the operator edit it."""

    command: list[str]
    file: Path

    def after(self, code: int) -> str:
        """The text, once the editor has ended with this code; below zero: a signal."""
        if code:
            how = f"exit code {code}" if code > 0 else f"signal {-code}"
            raise EditorError(f"{self.command[0]} ended with {how}; the prompt is as it was.")
        return self.file.read_text(encoding="utf-8", errors="replace").rstrip("\n")


@contextmanager
def _draft(text: str) -> Iterator[_Draft]:
    chosen = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        command = shlex.split(chosen)
        with tempfile.TemporaryDirectory(prefix="agent-tui-", ignore_cleanup_errors=True) as folder:
            file = Path(folder) / "prompt.md"
            file.write_text(text, encoding="utf-8")
            yield _Draft([*command, str(file)], file)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise EditorError(f"The editor {chosen} could not be used ({why}): set VISUAL or EDITOR.") from error
