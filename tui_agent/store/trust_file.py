"""The operator's answers about trust, by workspace, in a file of the state folder.

An answer is about exactly one thing as it was shown, named by a digest of it; what changes is asked about anew.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tui_agent.disk import replace_whole
from tui_agent.store.private import make_private


class TrustFile:
    """The answers for one workspace. The file is read at every question and written at every answer."""

    def __init__(self, file: Path, workspace: Path) -> None:
        self._file = file
        self._workspace = str(workspace.resolve())

    def answer(self, digest: str) -> bool | None:
        """The operator's answer; None: never asked. A file that cannot be read has no answers."""
        answer = self._read().get(self._workspace, {}).get(digest)
        trusted = answer.get("trusted") if isinstance(answer, dict) else None
        return trusted if isinstance(trusted, bool) else None

    def keep(self, digest: str, about: dict[str, str], answer: bool | None) -> None:
        """Keep the answer with what it was `about`; None: forget it. Raises `OSError`."""
        document = self._read()
        answers = document.setdefault(self._workspace, {})
        answers.pop(digest, None)
        if answer is not None:
            answers[digest] = {**about, "trusted": answer}
        if not answers:
            del document[self._workspace]
        make_private(self._file.parent)
        replace_whole(self._file, json.dumps(document, indent=1) + "\n")

    def _read(self) -> dict[str, dict[str, Any]]:
        try:
            document = json.loads(self._file.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return {}
        if not isinstance(document, dict):
            return {}
        return {key: value for key, value in document.items() if isinstance(value, dict)}
