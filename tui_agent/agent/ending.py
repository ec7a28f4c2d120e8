"""How a run ends: a value that travels from wherever the end was decided up to the loop."""

from __future__ import annotations

from dataclasses import dataclass

from tui_agent.events import Outcome


@dataclass(frozen=True)
class Ending:
    """Outcome, reason in words, the detector behind it, and the answer (None: a partial answer is composed)."""

    outcome: Outcome
    reason: str = ""
    answer: str | None = None
    detector: str = ""


class RunEnded(Exception):
    """The run cannot go on from here; raised where an ending is found deep inside an iteration."""

    def __init__(self, ending: Ending) -> None:
        super().__init__(ending.reason)
        self.ending = ending
