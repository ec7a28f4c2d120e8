"""A text in the operator's own editor."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from pathlib import Path


class EditorError(Exception):
    """The editor could not be used; the message says why and what to do."""


def edit(text: str) -> str:
    """The text as the editor left it. Waits for the editor, which has the terminal. Raises `EditorError`."""
    command = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")
    with tempfile.TemporaryDirectory(prefix="agent-tui-") as folder:
        file = Path(folder) / "prompt.md"
        file.write_text(text, encoding="utf-8")
        try:
            done = subprocess.run([*command, str(file)], check=False)
        except OSError as error:
            raise EditorError(
                f"The editor {command[0]} could not be started ({error.strerror}): set VISUAL or EDITOR."
            ) from error
        if done.returncode:
            raise EditorError(
                f"{command[0]} ended with exit code {done.returncode}; the prompt is as it was."
            )
        return file.read_text(encoding="utf-8", errors="replace").rstrip("\n")
