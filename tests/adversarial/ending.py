"""What an attack that would hang is carried out by: in a thread that nobody waits for without end."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")
PATIENCE = 60.0
"""Seconds; what holds takes a small part of it, and what hangs takes all of them."""


def ends(work: Callable[[], Result]) -> Result:
    """What `work` gives, or raises; it fails where it does not end."""
    given: list[Result] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            given.append(work())
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert not thread.is_alive(), "it does not end"
    if raised:
        raise raised[0]
    return given[0]


def ends_here(work: Callable[[], Result]) -> Result:
    """The same in the main thread, for what handles signals: a call of the system that waits is interrupted."""

    def give_up(*_: object) -> None:
        raise AssertionError("it does not end")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(int(PATIENCE))
    try:
        return work()
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
