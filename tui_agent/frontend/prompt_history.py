"""History of the prompt: a bounded list with a cursor, kept in a private file.

The file is the operator's own (mode 0600) and holds the texts with their secrets masked; a damaged or
unreadable one is no reason to fail, the history is then what this session typed.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path

from tui_agent.disk import replace_whole
from tui_agent.store.private import make_private

MAX_ENTRIES = 500
MAX_ENTRY_CHARACTERS = 20_000
"""A longer text was pasted, not typed; it stays in the session's journal and out of this file."""


class PromptHistory:
    """Older texts by `previous`, newer ones by `next`; the draft that was being typed comes back at the end."""

    def __init__(self) -> None:
        self._path: Path | None = None
        self._entries: list[str] = []
        self._position = 0
        self._draft = ""

    @property
    def entries(self) -> tuple[str, ...]:
        return tuple(self._entries)

    def load(self, path: Path) -> None:
        """Take over what the file holds, before what was typed since the start, which goes into it too."""
        typed = list(self._entries)
        self._path = path
        with suppress(OSError):
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
            self._entries = (_parsed(lines) + self._entries)[-MAX_ENTRIES:]
            self._position = len(self._entries)
            if len(lines) > 2 * MAX_ENTRIES:
                self._rewrite()
        for text in typed:
            self._keep(text)

    def add(self, text: str) -> None:
        """Keep a text that was sent; a repetition of the newest one is not kept twice."""
        self._draft = ""
        if text.strip() and (not self._entries or self._entries[-1] != text):
            self._entries.append(text)
            del self._entries[:-MAX_ENTRIES]
            self._keep(text)
        self._position = len(self._entries)

    def previous(self, current: str) -> str | None:
        """The next older text, or None at the oldest. `current` is kept as the draft."""
        if self._position == 0:
            return None
        if self._position == len(self._entries):
            self._draft = current
        self._position -= 1
        return self._entries[self._position]

    def next(self) -> str | None:
        """The next newer text, the draft after the newest, or None if there is nothing newer."""
        if self._position >= len(self._entries):
            return None
        self._position += 1
        return self._draft if self._position == len(self._entries) else self._entries[self._position]

    def _keep(self, text: str) -> None:
        if self._path is None or len(text) > MAX_ENTRY_CHARACTERS:
            return
        from tui_agent.store.redaction import Redactor

        text = Redactor.from_environment(os.environ).text(text)
        with suppress(OSError):
            make_private(self._path.parent)
            handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            with os.fdopen(handle, "a", encoding="utf-8", errors="replace") as file:
                file.write(json.dumps(text) + "\n")

    def _rewrite(self) -> None:
        if self._path is None:
            return
        replace_whole(self._path, "".join(json.dumps(text) + "\n" for text in self._entries))


def _parsed(lines: list[str]) -> list[str]:
    texts: list[str] = []
    for line in lines:
        with suppress(ValueError, RecursionError):
            text = json.loads(line)
            if isinstance(text, str):
                texts.append(text)
    return texts
