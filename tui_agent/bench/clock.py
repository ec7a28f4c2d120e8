"""The time of a run: it moves by what models, tools and waits would take, and never waits itself."""

from __future__ import annotations

from dataclasses import dataclass

START = 1_800_000_000.0
"""Seconds since the epoch, the same for every run."""


@dataclass
class Clock:
    """Seconds; `passed` since the start. `requests` counts the replies of the model that were asked for: what others do
    meanwhile goes by it, whether a call runs or is refused.
    """

    passed: float = 0.0
    requests: int = 0

    def __call__(self) -> float:
        return START + self.passed

    def pass_(self, seconds: float) -> None:
        """Let so many seconds go by."""
        self.passed += max(0.0, seconds)
