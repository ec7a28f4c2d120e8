"""Secrets in the platform's keyring, through the package `keyring` (extra `keyring`), imported when used.

A secret goes nowhere else: into no file, journal or log of ours. A provider's key goes by the name of its environment
variable, the tokens of an MCP server by its address.
"""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from typing import Any

from tui_agent import installed

SERVICE = "agent-tui"
"""Under which name the keyring holds them."""


class NoKeyringError(Exception):
    """Nothing can be kept; the message says why."""


def stored(name: str) -> str | None:
    """The secret that was kept under a name; None if there is none, or no keyring. May wait for the platform."""
    with suppress(Exception):  # whatever a keyring raises: who needs it then says that it is missing
        found = import_module("keyring").get_password(SERVICE, name)
        return found if isinstance(found, str) and found else None
    return None


def keep(name: str, secret: str) -> None:
    """Keep a secret. Raises `NoKeyringError`."""
    keyring = _keyring()
    try:
        keyring.set_password(SERVICE, name, secret)
    except Exception as error:  # a backend raises whatever its own library does
        raise NoKeyringError(f"no keyring of this system could be used ({type(error).__name__})") from error


def forget(name: str) -> bool:
    """Remove what was kept; False if there was none. Raises `NoKeyringError`."""
    keyring = _keyring()
    try:
        keyring.delete_password(SERVICE, name)
    except keyring.errors.PasswordDeleteError:
        return False
    except Exception as error:
        raise NoKeyringError(f"no keyring of this system could be used ({type(error).__name__})") from error
    return True


def check() -> None:
    """Raise `NoKeyringError` if nothing could be kept."""
    try:
        _keyring().get_password(SERVICE, "is there a keyring")
    except NoKeyringError:
        raise
    except Exception as error:  # a backend raises whatever its own library does
        raise NoKeyringError(f"no keyring of this system could be used ({type(error).__name__})") from error


def _keyring() -> Any:
    try:
        return import_module("keyring")
    except ImportError as error:
        raise NoKeyringError(
            f"the package keyring is not installed ({installed.adding('keyring')})"
        ) from error
