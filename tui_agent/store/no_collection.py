"""Making many objects at once, as opening a long session does, without looking for garbage among them."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_collection() -> Iterator[None]:
    """No garbage collection inside: nothing that is made there is garbage, and looking for it triples the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        # What is new counts as old at once, or the first collection would look at all of it.
        gc.freeze()
        gc.unfreeze()
        if enabled:
            gc.enable()
