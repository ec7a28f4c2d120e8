"""A keyring for tests, as its package has them: one file, named by an environment variable, that processes share."""

from __future__ import annotations

import json
import os
from pathlib import Path

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.errors import PasswordDeleteError

FILE_VARIABLE = "TEST_KEYRING_FILE"


ROOT = Path(__file__).resolve().parents[1]


def use_file(monkeypatch: pytest.MonkeyPatch, file: Path) -> Path:
    """Let the keyring keep what it is given in this file, also in processes that are started."""
    chosen = {"PYTHON_KEYRING_BACKEND": "tests.file_keyring.FileKeyring", FILE_VARIABLE: str(file)}
    for name, value in {**chosen, "PYTHONPATH": str(ROOT)}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(keyring.core, "_keyring_backend", None)
    return file


class FileKeyring(KeyringBackend):
    """Keeps what it is given; chosen by `PYTHON_KEYRING_BACKEND`."""

    priority = 1

    def get_password(self, service: str, username: str) -> str | None:
        return self._kept().get(f"{service} {username}")

    def set_password(self, service: str, username: str, password: str) -> None:
        self._write({**self._kept(), f"{service} {username}": password})

    def delete_password(self, service: str, username: str) -> None:
        kept = self._kept()
        if kept.pop(f"{service} {username}", None) is None:
            raise PasswordDeleteError(username)
        self._write(kept)

    def _kept(self) -> dict[str, str]:
        file = Path(os.environ[FILE_VARIABLE])
        return json.loads(file.read_text()) if file.exists() else {}

    def _write(self, kept: dict[str, str]) -> None:
        Path(os.environ[FILE_VARIABLE]).write_text(json.dumps(kept))
