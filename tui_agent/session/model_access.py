"""A session's models: their names, their sight of images, and the keys of their providers."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

from tui_agent import keychain
from tui_agent.config.settings import Settings
from tui_agent.models.choose import ModelByName, NameCheck
from tui_agent.models.protocol import Model
from tui_agent.models.provider_keys import key_variable
from tui_agent.store.images import may_name_images, names_images
from tui_agent.store.recorder import SessionRecorder


class ModelAccess:
    """Asks the model host; a model that is scripted has any name, sees all and needs no key."""

    def __init__(
        self, model: Model, recorder: SessionRecorder, settings: Callable[[], Settings], workspace: Path
    ) -> None:
        self._model = model if isinstance(model, ModelByName) else None
        self._recorder = recorder
        self._settings = settings
        self._workspace = workspace

    @property
    def _next(self) -> str:
        """The model of the next call."""
        return self._recorder.state.model or self._settings().model or ""

    async def check(self, name: str) -> NameCheck:
        """Tell if a name is one that can be called; may take as long as the model host's start."""
        return NameCheck() if self._model is None else await self._model.check(name)

    async def blind(self, text: str) -> str:
        """Name the model that would get the names alone of the images that a text names; "" if none is known to."""
        name = self._next
        if (
            self._model is None
            or not may_name_images(text)
            or not await asyncio.to_thread(names_images, text, self._workspace)
        ):
            return ""
        return "" if await self._model.sees(name) else name

    def key_variable(self, wanted: str = "") -> str:
        """Name the variable of the key that `log_in` takes: of the next call's model, or as `wanted` names it. Raises
        `ValueError`.
        """
        return key_variable(self._settings().called(self._next), wanted)

    async def log_in(self, variable: str, key: str) -> str:
        """Call models with this key from now on, and keep it in the platform's keyring; say what became of it."""
        self._recorder.learn_secrets({variable: key})
        if self._model is not None:
            await self._model.use_key(variable, key)
        try:
            await asyncio.to_thread(keychain.keep, variable, key)
        except keychain.NoKeyringError as error:
            return (
                f"The key is used until this console ends. It is not kept: {error}. For the next start set {variable} "
                "in your environment."
            )
        said = "The key is in the keyring of this system, and is used from the next call on."
        if variable in os.environ:
            said += f" {variable} in your environment outweighs it at the next start: take it out there."
        return said

    async def log_out(self, variable: str) -> str:
        """Remove a key from the platform's keyring and use it no longer; say what became of it."""
        if self._model is not None:
            await self._model.use_key(variable, os.environ.get(variable, ""))
        try:
            kept = await asyncio.to_thread(keychain.forget, variable)
        except keychain.NoKeyringError as error:
            return f"Nothing is kept: {error}."
        return f"{variable} was removed from the keyring." if kept else f"The keyring holds no {variable}."
