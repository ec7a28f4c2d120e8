"""Which model sees none of the images that a text names: said of a draft once, at the latest when it is sent."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING

from tui_agent.runtime.model_call import without_images
from tui_agent.store.images import may_name_images

if TYPE_CHECKING:
    from tui_agent.console.tabs.live_session import LiveSession


class ImageWarning:
    """`background` carries out what takes its time; what is looked at next ends it."""

    def __init__(
        self,
        live: LiveSession,
        background: Callable[[Coroutine[object, object, None]], object],
        warn: Callable[[str], None],
    ) -> None:
        self._live = live
        self._background = background
        self._warn = warn
        self._said_of = ""
        """The model."""

    def look_at(self, text: str, *, sent: bool = False) -> None:
        """Look at a draft, or at a text that is sent."""
        if self._live.session is not None and may_name_images(text):
            self._background(self._warn_of(text, sent))
        else:
            self._said_of = ""

    async def _warn_of(self, text: str, sent: bool) -> None:
        session = self._live.session
        blind = "" if session is None else await session.models.blind(text)
        if blind and blind != self._said_of:
            self._warn(without_images(blind, "gets"))
        self._said_of = "" if sent else blind
