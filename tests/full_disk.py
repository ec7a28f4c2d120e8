"""A disk that has room for so many bytes of one journal, for tests."""

from __future__ import annotations

import os

import pytest

from tui_agent.store.journal import Journal


class FullDisk:
    """Takes `room` bytes, then the disk is full until there is more."""

    def __init__(self, patch: pytest.MonkeyPatch, journal: Journal, room: int) -> None:
        self.room = room
        self._journal = journal
        self._write = os.write
        patch.setattr(os, "write", self.write)

    def write(self, descriptor: int, chunk: bytes) -> int:
        if descriptor != self._journal._file.fileno():
            return self._write(descriptor, chunk)
        if not self.room:
            raise OSError(28, "No space left on device")
        taken = self._write(descriptor, chunk[: self.room])
        self.room -= taken
        return taken
