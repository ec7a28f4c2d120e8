"""Fields in which every key acts in the order in which the keys came, however fast they come."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from textual import events
    from textual.widget import Widget
else:
    Widget = object  # Textual takes styles and bindings from the first base that is a widget

PATIENCE = 0.5
"""Seconds that a key waits at most for those before it."""


def is_text(event: events.Key) -> bool:
    """Tell if a key is a character of a text, be it one that is not seen, as input methods send them."""
    character = event.character or ""
    if event.is_printable or character.isascii():
        return event.is_printable
    from tui_agent.terminal_text import invisible  # the first paint does not wait for it

    return invisible(character) > 0


class KeysInOrder(Widget):
    """Mixed into a field, which then runs its own bindings itself.

    The app would run them once the key has bubbled up to it: behind characters that came later and wait in the
    field's queue, so that a fast backspace would delete what was typed after it.
    """

    async def on_key(self, event: events.Key) -> None:
        """Run the binding of a key that is no character; priority bindings were run before."""
        if event.is_printable:
            return
        for binding in self._bindings.key_to_bindings.get(event.key, ()):
            if not binding.priority and await self.app.run_action(binding.action, self):
                event.stop()
                return

    async def settled(self) -> None:
        """Until what was typed stands here, and those around know it."""
        for widget in (self, *self.ancestors_with_self):  # itself twice: the key, then what it tells of it
            if not widget.is_attached:
                return
            done = asyncio.Event()
            widget.call_later(done.set)
            with suppress(TimeoutError):
                await asyncio.wait_for(done.wait(), PATIENCE)
            if widget is self.screen:
                return
