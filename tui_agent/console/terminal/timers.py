"""Timers that fire once, and always.

One of Textual (`set_timer`) is dropped without a word where the process stood still for the length of its delay just
as it began: it skips what is overdue, and there is nothing after it. On a busy machine a screen that waits for it
would never be drawn again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from textual.message_pump import MessagePump


def once(owner: MessagePump, delay: float, callback: Callable[[], object]) -> asyncio.TimerHandle:
    """Call `callback` in the context of `owner` after `delay` seconds, unless it is cancelled or `owner` is gone."""
    return asyncio.get_running_loop().call_later(delay, owner.call_next, callback)
