"""The variable that holds the key of a model's provider."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_agent.config.errors import PROVIDER_KEYS

if TYPE_CHECKING:
    from tui_agent.config.profiles import Called


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
