"""A disk that has room for so many bytes of one journal, for tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tui_agent.store.journal import JOURNAL_NAME


class FullDisk:
    """Takes `room` bytes, then the disk is full until there is more."""

    def __init__(self, patch: pytest.MonkeyPatch, folder: Path, room: int) -> None:
        self.room = room
        self._path = folder / JOURNAL_NAME
        self._write = os.write
        patch.setattr(os, "write", self.write)

    def write(self, descriptor: int, chunk: bytes) -> int:
        if not os.path.samestat(os.fstat(descriptor), self._path.stat()):
            return self._write(descriptor, chunk)
        if not self.room:
            raise OSError(28, "No space left on device")
        taken = self._write(descriptor, chunk[: self.room])
        self.room -= taken
        return taken
