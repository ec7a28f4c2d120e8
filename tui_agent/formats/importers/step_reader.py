"""The base of every reader: records of a conversation are taken one by one, as they come, and make its steps.

Results find their calls by id, replies may grow until the next one comes, and what is left out is counted. What changes
an earlier step says so, so that whoever made events of the steps makes them anew from there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Concatenate, ParamSpec, Self

from tui_agent.formats.importers.reading import Record, Recording
from tui_agent.formats.importers.transcript import (
    Call,
    Ending,
    ImportReport,
    Remarked,
    Result,
    Said,
    Step,
    Transcript,
    Turn,
)
from tui_agent.formats.importers.values import count_at, list_at, text_at

P = ParamSpec("P")


_CARRIES = frozenset(
    {
        *("message", "messages", "content", "text", "parts", "output", "stdout", "result", "arguments"),
        *(
            "tool",
            "toolName",
            "tool_name",
            "tool_use_id",
            "tool_call_id",
            "toolCallId",
            "call_id",
            "tool_calls",
        ),
    }
)
"""Fields in which agents keep what was said and called."""


class StepReader(ABC):
    """The transcript of one conversation while its records are read."""

    in_parts: ClassVar[bool] = False
    """Records hold several results, and are counted as a whole."""

    def __init__(self, report: ImportReport, transcript: Transcript | None = None) -> None:
        self.report = report
        self.transcript = transcript or Transcript()
        self.calls: dict[str, tuple[Turn, Call]] = {}
        """Every call by its id, the newest if ids repeat."""
        self._twins: dict[str, list[str]] = {}
        """By the id of a call, the ids given to others of its reply that had the same one."""
        self.begins = False
        """What comes is of no earlier reply."""

    @abstractmethod
    def take(self, record: Record) -> None:
        """Read one record, which is counted as understood already."""

    def read(self, records: Sequence[Any], lines: Sequence[int] = ()) -> None:
        """Read records that are new. `lines`: the line of each in the file."""
        for place, record in enumerate(records):
            self.report.records += 1
            self.report.line = lines[place] if lines else self.report.records
            if isinstance(record, dict):
                self.report.understood += 1
                self.take(record)
            else:
                self.report.skip("message that is not an object")

    def leave_out(self, kind: Any, unnamed: str = "") -> None:
        """The record that was counted as understood is of no use. `unnamed`: its name if `kind` is no text."""
        self.report.understood -= 1
        self.report.skip(kind if isinstance(kind, str) and kind else unnamed)

    def not_known(self, kind: Any, record: Any) -> None:
        """Leave out a record of a kind that is not known. One with text or a call may be a part that is lost."""
        self.leave_out(kind)
        inner = [value for value in record.values() if isinstance(value, dict)]
        self.report.lost += any(_CARRIES & one.keys() for one in (record, *inner))

    def about(self, record: Any, **paths: str) -> None:
        """Facts of a record about the conversation: fields of the transcript by the path of each in the
        record, with dots.
        """
        for name, path in paths.items():
            if text := text_at(record, *path.split(".")):
                setattr(self.transcript, name, text)

    # --- steps --------------------------------------------------------------------------------------------

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
        self.add(Ending(reason, at))

    def compacted(self, at: float | None, what: str = "compacted", size: str = "") -> None:
        """The agent made its history shorter."""
        self.add(Remarked(f"The conversation was {what} here{size}.", at))

    def turn(self, at: float | None, text: str = "", reasoning: str = "", model: str = "") -> Turn:
        """A reply of the model."""
        turn = Turn(at, text, reasoning, model=model)
        self.transcript.model = model or self.transcript.model
        self.add(turn)
        return turn

    def open_turn(self, at: float | None) -> Turn:
        """The newest reply, to which more is added, or a new one if a call of it has ended, or if one begins."""
        begins, self.begins = self.begins, False
        if begins or not isinstance(last := self.last, Turn) or last.results:
            return self.turn(at, model=self.transcript.model)
        self.touch(last)
        return last

    def call(self, turn: Turn, key: str, name: str, given: Any) -> Call:
        """`turn` asks for a call; `given` as for `Call.of`. One that it asks for already counts once; another one with
        the same id gets an id of its own.
        """
        call = Call.of(key, name, given)
        owner, known = self.calls.get(key, (None, None))
        if owner is not turn or known is None:
            self._twins.pop(key, None)
        elif (known.name, known.arguments) == (call.name, call.arguments):
            return known
        else:
            twins = self._twins.setdefault(key, [])
            twins.append(f"{key} {len(twins) + 2}")
            call = replace(call, id=twins[-1])
        turn.calls.append(call)
        self.calls[call.id] = turn, call
        return call

    def end(
        self, key: str, judge: Callable[Concatenate[Call, P], Result], *said: P.args, **more: P.kwargs
    ) -> None:
        """End the call `key`, as `judge` reads it and its text. The record is left out if no such call waits
        for a result.
        """
        waiting = (self.calls[twin] for twin in self._twins.get(key, ()) if twin in self.calls)
        turn, call = self.calls.get(key, (None, None))
        if turn is not None and call is not None and call.id in turn.results:
            turn, call = next((one for one in waiting if one[1].id not in one[0].results), (turn, call))
        if turn is not None and call is not None and call.id not in turn.results:
            self.ended_as(turn, call, judge(call, *said, **more))
            return
        if call is None:
            self.lose_result()
        kind = "result without its call" if call is None else "second result of one call"
        (self.report.skip if self.in_parts else self.leave_out)(kind)

    def lose_result(self) -> None:
        """Count a result that finds no call."""
        self.report.results += 1
        self.report.lost_results += 1

    def ended_as(self, turn: Turn, call: Call, result: Result) -> None:
        """The call of the turn has this result, for the first time or anew."""
        before = turn.results.get(call.id)
        self.report.results += before is None
        self.report.unclear += (result.status == "unknown") - (
            before is not None and before.status == "unknown"
        )
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


def used(
    turn: Turn, usage: Any, prompt: str = "prompt_tokens", completion: str = "completion_tokens"
) -> None:
    """The tokens of a reply, in the fields of these names."""
    turn.prompt_tokens, turn.completion_tokens = count_at(usage, prompt), count_at(usage, completion)


class Format(StepReader):
    """A reader of files of one format: it knows its files by what is in them."""

    name: ClassVar[str]
    inside: ClassVar[str] = ""
    """The list of a document that has the records."""
    revises: ClassVar[bool] = False
    """A record that is given again, changed, takes the place of the one before."""

    def __init__(self, report: ImportReport, transcript: Transcript | None = None) -> None:
        super().__init__(report, transcript)
        self.agents: dict[str, Self] = {}
        """Sub-agents whose records stand among those of the main conversation."""

    @classmethod
    def matches(cls, recording: Recording) -> bool:
        """True if a file is of this format, by the part that can be read so far."""
        return any(cls.knows(record) for record in recording.objects[:2_000])

    @classmethod
    def knows(cls, record: Record) -> bool:
        """True if a record is of this format alone."""
        return False

    @classmethod
    def records(cls, recording: Recording) -> Sequence[Any]:
        """The records of the file."""
        document = recording.document
        if isinstance(document, list):
            return document
        return (list_at(document, cls.inside) if cls.inside else []) or recording.objects

    @classmethod
    def beside(cls, path: Path) -> Iterable[Path]:
        """Other files of the same session, whose lines are read as well."""
        return ()

    def read_beside(self, path: Path, records: Sequence[Any], lines: Sequence[int]) -> None:
        """Read records of another file of the session."""
        self.read(records, lines)

    def around(self, recording: Recording) -> None:
        """Take the fields around the records; called after the records were read."""

    def agent(self, key: str, title: str = "", lane: str = "") -> Self:
        """The reader of a sub-agent's records. `lane`: the call that started it, if that is known."""
        if key not in self.agents:
            made = self.agents[key] = type(self)(self.report)
            made.transcript = Transcript(title=title, lane=lane or key, subagent=True, operator_present=False)
        return self.agents[key]

    @property
    def lanes(self) -> list[Transcript]:
        """The conversations: the main one first, then its sub-agents; or the runs of a file that holds many."""
        return [self.transcript, *(agent.transcript for agent in self.agents.values())]


class Branching(Format):
    """A format whose records name the record before them: the operator goes back by a record behind an earlier one."""

    def __init__(self, report: ImportReport) -> None:
        super().__init__(report)
        self._stands: dict[str, int] = {"": 0}
        """By a record's id, how many steps stand with it."""

    def follow(self, before: str) -> None:
        """The next record stands behind the record `before`: what came after that was left."""
        stand = self._stands.get(before, len(self.transcript.steps))
        if left := len(self.transcript.steps) - stand:
            self.report.skip("step of an abandoned branch", left)
            self.forget(stand)

    def stand(self, key: str) -> None:
        """The record `key` was read."""
        self._stands[key] = len(self.transcript.steps)


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
