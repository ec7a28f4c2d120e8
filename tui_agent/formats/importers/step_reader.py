"""What the readers of all formats share: steps in the order of the recording, and which call waits for a result.

A reader counts every record as understood before it looks at it, and leaves it out again where it has no use for it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from tui_agent.formats.importers.transcript import Call, ImportReport, Transcript, Turn

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tui_agent.formats.importers.reading import Record
    from tui_agent.formats.importers.transcript import Step


class StepReader(ABC):
    """The transcript of one conversation while its records are read."""

    def __init__(self, report: ImportReport, transcript: Transcript | None = None) -> None:
        self.report = report
        self.transcript = transcript or Transcript()
        self.calls: dict[str, tuple[Turn, Call]] = {}
        """Every call by its id, the newest where ids repeat."""

    @abstractmethod
    def take(self, record: Record) -> None:
        """Read one record."""

    def read(self, records: Iterable[Any]) -> Transcript:
        """The transcript of all records."""
        for record in records:
            if isinstance(record, dict):
                self.take(record)
            else:
                self.report.skip("message that is not an object")
        return self.transcript

    def add(self, step: Step) -> None:
        """One step more."""
        self.transcript.steps.append(step)

    def call(self, turn: Turn, call: Call) -> None:
        """`turn` asks for `call`."""
        turn.calls.append(call)
        self.calls[call.id] = (turn, call)

    def waiting(self, key: str) -> tuple[Turn, Call] | None:
        """The call `key` and its reply; None, with the record left out, where no such call waits for a result."""
        owner = self.calls.get(key)
        if owner is None:
            self.leave_out("result without its call")
        elif owner[1].id in owner[0].results:
            self.leave_out("second result of one call")
            return None
        return owner

    def leave_out(self, kind: str) -> None:
        """The record that was counted as understood is of no use."""
        self.report.understood -= 1
        self.report.skip(kind)
