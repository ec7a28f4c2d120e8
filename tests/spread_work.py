"""Work for processes of `test_cluster`: what each of them imports to do it."""

from __future__ import annotations

import os
import signal
from pathlib import Path


def square(number: int) -> int:
    return number * number


def killed_once(place: tuple[Path, int]) -> int:
    """The square; the first process that is to find the one of 3 is killed."""
    marker, number = place
    if number == 3 and not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number * number


def kills(number: int) -> int:
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def straggles_once(place: tuple[Path, int]) -> int:
    """The square; the first process that is to find the one of 3 never comes back."""
    marker, number = place
    if number == 3 and not marker.exists():
        marker.touch()
        signal.pause()
    return number * number
