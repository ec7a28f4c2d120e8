"""The time of a run: it moves by what models, tools and waits would take, and never waits itself."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

START = 1_800_000_000.0
"""Seconds since the epoch, the same for every run of a scripted model."""


@dataclass
class Clock:
    """Seconds. `requests` counts the replies of the model that were asked for: what others do meanwhile goes by it,
    whether a call runs or is refused.
    """

    real: bool = False
    """A real model is asked: time passes as it does, and what is skipped comes on top."""
    requests: int = 0
    skipped: float = 0.0
    began: float = field(default_factory=time.time)

    @property
    def passed(self) -> float:
        """Since the start."""
        return self.skipped + (time.time() - self.began if self.real else 0.0)

    def __call__(self) -> float:
        return (self.began if self.real else START) + self.passed

    def pass_(self, seconds: float) -> None:
        """Let so many seconds go by."""
        self.skipped += max(0.0, seconds)
