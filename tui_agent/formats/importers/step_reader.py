"""The base of every reader: records of a conversation are taken one by one, as they come, and make its steps.

Results find their calls by id, replies may grow until the next one comes, and what is left out is counted. What changes
an earlier step says so, so that whoever made events of the steps makes them anew from there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from tui_agent.formats.importers.transcript import (
    Call,
    ImportReport,
    Interrupted,
    Remarked,
    Said,
    Transcript,
    Turn,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from tui_agent.formats.importers.reading import Record, Recording
    from tui_agent.formats.importers.transcript import Result, Step


class StepReader(ABC):
    """The transcript of one conversation while its records are read."""

    def __init__(self, report: ImportReport, transcript: Transcript | None = None) -> None:
        self.report = report
        self.transcript = transcript or Transcript()
        self.calls: dict[str, tuple[Turn, Call]] = {}
        """Every call by its id, the newest where ids repeat."""

    @abstractmethod
    def take(self, record: Record) -> None:
        """Read one record, which is counted as understood already."""

    def read(self, records: Sequence[Any], lines: Sequence[int] = ()) -> None:
        """Read records that are new. `lines`: where in the file each of them is."""
        for place, record in enumerate(records):
            self.report.records += 1
            self.report.line = lines[place] if lines else self.report.records
            if isinstance(record, dict):
                self.report.understood += 1
                self.take(record)
            else:
                self.report.skip("message that is not an object")

    @property
    def last(self) -> Step | None:
        """The newest step."""
        return self.transcript.steps[-1] if self.transcript.steps else None

    def add(self, step: Step) -> None:
        """One step more."""
        self.transcript.steps.append(step)

    def said(self, text: str, at: float | None) -> None:
        """A message of the operator."""
        self.add(Said(text, at))

    def interrupted(self, at: float | None, reason: str = "interrupted by the operator") -> None:
        """The operator stopped what was going on."""
        self.add(Interrupted(reason, at))

    def compacted(self, at: float | None, what: str = "compacted", size: str = "") -> None:
        """The agent made its history shorter."""
        self.add(Remarked(f"The conversation was {what} here{size}.", at))

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

    def ended(self, turn: Turn, call: Call, result: Result) -> None:
        """The result of a call, which may belong to an earlier reply."""
        turn.results[call.id] = result
        self.touch(turn)

    def touch(self, step: Step) -> None:
        """A step was changed."""
        steps = self.transcript.steps
        place = next((place for place in range(len(steps) - 1, -1, -1) if steps[place] is step), len(steps))
        self.transcript.touched = min(self.transcript.touched, place)

    def forget(self, place: int) -> None:
        """The steps from `place` on were taken back."""
        del self.transcript.steps[place:]
        self.transcript.touched = min(self.transcript.touched, place)

    def leave_out(self, kind: str) -> None:
        """The record that was counted as understood is of no use."""
        self.report.understood -= 1
        self.report.skip(kind)


class Format(StepReader):
    """A reader of files of one format: it knows its files by what is in them."""

    name: ClassVar[str]
    revises: ClassVar[bool] = False
    """A record that is given again, changed, takes the place of the one before."""

    @classmethod
    @abstractmethod
    def matches(cls, recording: Recording) -> bool:
        """Whether a file is of this format, by what can be read of it so far."""

    @classmethod
    def records(cls, recording: Recording) -> Sequence[Any]:
        """Where the records are."""
        return recording.objects

    @classmethod
    def beside(cls, path: Path) -> Iterable[Path]:
        """Other files of the same session, whose lines are read as well."""
        return ()

    def around(self, recording: Recording) -> None:
        """What stands around the records; called after they were read."""

    @property
    def lanes(self) -> list[Transcript]:
        """The conversations: the main one first, then its sub-agents; or the runs of a file that holds many."""
        return [self.transcript]


class Runs(Format):
    """A format whose records are whole runs."""

    def __init__(self, report: ImportReport) -> None:
        super().__init__(report)
        self.runs: list[Transcript] = []

    def read(self, records: Sequence[Any], lines: Sequence[int] = ()) -> None:
        """Read runs; their messages are what is counted."""
        for record in records:
            if isinstance(record, dict):
                self.take(record)

    @property
    def lanes(self) -> list[Transcript]:
        return self.runs
