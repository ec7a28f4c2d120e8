"""The messages between a fleet and its workers: one JSON object a line. A message about a run carries its name."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter
from pydantic_core import PydanticSerializationError

from tui_agent.fleet.row import RunRow

LINE_LIMIT = 1 << 28
"""Longest line in bytes: the journal of a session that goes on elsewhere."""


class Message(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    def line(self) -> bytes:
        """The message as it is sent. Half characters, as in names of files that are no UTF-8, come through whole."""
        try:
            return self.model_dump_json().encode() + b"\n"
        except PydanticSerializationError:
            return json.dumps(self.model_dump(), allow_nan=False).encode() + b"\n"


# --- to a worker -----------------------------------------------------------------------------------------------


class Begin(Message):
    """Carry a task out, or go on with its session if it has one already."""

    type: Literal["begin"] = "begin"
    run: str
    task: str
    options: dict[str, Any]
    config: str | None = None
    present: bool
    """Somebody answers questions."""
    session: str = ""
    check: str = ""
    goal: str = ""
    worktree: str = ""
    """The place of its worktree of git; empty: it works in the workspace itself."""
    branch: str = ""
    journal: str | None = None
    """Worker and fleet share no disk: the journal so far, and what is written is sent along."""


class Answer(Message):
    type: Literal["answer"] = "answer"
    run: str
    ask: int
    reply: dict[str, Any]
    """The fields of the operator's reply."""


class Stop(Message):
    type: Literal["stop"] = "stop"
    run: str
    reason: str


class StillThere(Message):
    """Somebody waits for what the worker does."""

    type: Literal["still_there"] = "still_there"


class Leave(Message):
    """End at once. Sessions stay as they are, to be gone on with."""

    type: Literal["leave"] = "leave"


# --- from a worker ---------------------------------------------------------------------------------------------


class Opened(Message):
    type: Literal["opened"] = "opened"
    run: str
    session: str


class Wrote(Message):
    """Lines that the journal got, if it is not on the fleet's disk."""

    type: Literal["wrote"] = "wrote"
    run: str
    lines: str


class Stands(Message):
    type: Literal["stands"] = "stands"
    run: str
    row: RunRow


class Asks(Message):
    """A question to the operator; `event` is its line in a journal."""

    type: Literal["asks"] = "asks"
    run: str
    ask: int
    event: str


class Withdrawn(Message):
    """A question that needs no answer any more."""

    type: Literal["withdrawn"] = "withdrawn"
    run: str
    ask: int


class Ended(Message):
    """The run has ended; `result` is the object of `run --output json`."""

    type: Literal["ended"] = "ended"
    run: str
    result: dict[str, Any]


class Failed(Message):
    """The run could not be begun, or its session not be kept."""

    type: Literal["failed"] = "failed"
    run: str
    why: str


ToWorker = Begin | Answer | Stop | StillThere | Leave
FromWorker = Opened | Wrote | Stands | Asks | Withdrawn | Ended | Failed
_to_worker: TypeAdapter[ToWorker] = TypeAdapter(Annotated[ToWorker, Field(discriminator="type")])
_from_worker: TypeAdapter[FromWorker] = TypeAdapter(Annotated[FromWorker, Field(discriminator="type")])


def for_worker(line: bytes) -> ToWorker:
    """The message of a line. Raises `ValueError` for what is none."""
    return _message(_to_worker, line)


def from_worker(line: bytes) -> FromWorker:
    """The message of a line. Raises `ValueError` for what is none."""
    return _message(_from_worker, line)


T = TypeVar("T")


def _message(kind: TypeAdapter[T], line: bytes) -> T:
    try:
        return kind.validate_json(line)
    except ValueError:
        # Half characters: pydantic's own reader of JSON takes none.
        if b"\\ud" not in line:
            raise
    try:
        return kind.validate_python(json.loads(line))
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
