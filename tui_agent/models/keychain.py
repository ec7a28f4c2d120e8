"""Keys of providers in the platform's keyring, through the package `keyring` (extra `keyring`), imported when used.

A key goes nowhere else: into no file, journal or log of ours. What is looked for is named by its environment variable.
"""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

from tui_agent import installed
from tui_agent.config.errors import PROVIDER_KEYS

if TYPE_CHECKING:
    from tui_agent.config.profiles import Called

SERVICE = "agent-tui"
"""Under which name the keyring holds them."""


class NoKeyringError(Exception):
    """Nothing can be kept; the message says why."""


def stored(variable: str) -> str | None:
    """The key that was kept for a variable; None if there is none, or no keyring. May wait for the platform."""
    with suppress(Exception):  # whatever a keyring raises: the provider then says that a key is missing
        found = import_module("keyring").get_password(SERVICE, variable)
        return found if isinstance(found, str) and found else None
    return None


def keep(variable: str, key: str) -> None:
    """Keep a key. Raises `NoKeyringError`."""
    keyring = _keyring()
    try:
        keyring.set_password(SERVICE, variable, key)
    except Exception as error:  # a backend raises whatever its own library does
        raise NoKeyringError(f"no keyring of this system could be used ({type(error).__name__})") from error


def forget(variable: str) -> bool:
    """Remove the kept key; False if there was none. Raises `NoKeyringError`."""
    keyring = _keyring()
    try:
        keyring.delete_password(SERVICE, variable)
    except keyring.errors.PasswordDeleteError:
        return False
    except Exception as error:
        raise NoKeyringError(f"no keyring of this system could be used ({type(error).__name__})") from error
    return True


def _keyring() -> Any:
    try:
        return import_module("keyring")
    except ImportError as error:
        raise NoKeyringError(
            f"the package keyring is not installed ({installed.adding('keyring')})"
        ) from error


def key_variable(called: Called, wanted: str = "") -> str:
    """The variable that holds a key: of the provider or variable `wanted`, else of the model that is called. Raises
    `ValueError` for a provider that is not known.
    """
    if wanted:
        if wanted in PROVIDER_KEYS:
            return PROVIDER_KEYS[wanted]
        if wanted.isidentifier() and wanted.isupper():
            return wanted
        known = ", ".join(sorted(PROVIDER_KEYS))
        raise ValueError(
            f"No provider {wanted!r} is known. Name its variable (NAME_API_KEY), or one of {known}."
        )
    if called.profile is not None and called.profile.api_key_variable:
        return called.profile.api_key_variable
    provider, slash, _ = called.model.partition("/")
    if not slash or (provider not in PROVIDER_KEYS and called.api_base is not None):
        provider = "openai"
    return PROVIDER_KEYS.get(provider, f"{provider.upper()}_API_KEY")
