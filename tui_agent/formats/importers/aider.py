"""aider's history (`.aider.chat.history.md`): one Markdown file of many chats, with the times of their beginnings.

Lines with `####` are the operator's, quoted lines are aider's own, all others the model's. It has no calls: an edit
that was applied, and blocks of a reply that did not match, stand as calls that are made of what aider says of them.
"""

from __future__ import annotations

import re
from datetime import datetime

from tui_agent.formats.importers.faults import classified
from tui_agent.formats.importers.reading import Record
from tui_agent.formats.importers.results import failed, judged
from tui_agent.formats.importers.step_reader import Format
from tui_agent.formats.importers.transcript import Faulted, ImportReport, Said, Transcript, Turn
from tui_agent.formats.importers.values import text_at

HEADING = b"# aider chat started at "
_BEGINS = re.compile(r"# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\s*\Z")
_FENCE = re.compile(r"\s{0,3}(?:`{3,}|~{3,})")
_APPLIED = re.compile(r"Applied edit to (.+?)\s*\Z")
_UNMATCHED = re.compile(r"#? ?(\d+) SEARCH/REPLACE blocks? failed to match")
_ADVICE = re.compile(
    r"The SEARCH section must exactly match|# The other \d+ SEARCH|Don't re-send them|Just reply with fixed"
)
"""The last lines of what aider says of blocks that did not match. Only its first line is quoted."""
_FAULT = re.compile(r"litellm\.(?:\w+\.)?\w*(?:Error|Exception)\b|The API provider")
_TOKENS = re.compile(r"Tokens: ([\d.,]+k?) sent,.*?([\d.,]+k?) received")
_EDIT = "edit_file"


class Aider(Format):
    """The chats of one file, a run each."""

    name = "aider"

    def __init__(self, report: ImportReport) -> None:
        super().__init__(report)
        self.chats: list[Transcript] = []
        self._fenced = False
        self._advised = False
        """The lines are of aider's own advice."""
        self._at: float | None = None

    @classmethod
    def knows(cls, record: Record) -> bool:
        """The beginning of a chat."""
        return record.keys() == {"text"} and _BEGINS.match(text_at(record, "text")) is not None

    @property
    def lanes(self) -> list[Transcript]:
        return self.chats or [self.transcript]

    def take(self, record: Record) -> None:
        line = text_at(record, "text")
        if begins := _BEGINS.match(line):
            self._begin(begins[1])
        elif self._advised or _ADVICE.match(line):
            self._advised = _ADVICE.match(line) is None
        elif self._fenced or not line.startswith(("#### ", "> ")):
            self._model(line)
        elif line.startswith("#### "):
            self._operator(line[5:].rstrip())
        else:
            self._own(line[2:].strip())

    def _begin(self, moment: str) -> None:
        self._at = datetime.fromisoformat(moment).astimezone().timestamp()
        self._fenced = self._advised = False
        self.transcript = Transcript(title=f"chat of {moment}")
        self.chats.append(self.transcript)

    def _operator(self, text: str) -> None:
        text = "" if text == "<blank>" else text
        if isinstance(last := self.last, Said):
            self.forget(len(self.transcript.steps) - 1)
            text = f"{last.text}\n{text}"
        self.said(text, self._at)

    def _model(self, line: str) -> None:
        if _FENCE.match(line):
            self._fenced = not self._fenced
        last = self.last
        if isinstance(last, Turn) and not last.results:
            last.text = (
                f"{last.text}\n{line}".strip("\n") if line.strip() or self._fenced else f"{last.text}\n"
            )
            self.touch(last)
        elif line.strip():
            self.turn(self._at, line)

    def _own(self, line: str) -> None:
        if found := _APPLIED.match(line):
            self._edited(found[1], "")
        elif _UNMATCHED.match(line):
            self._edited("", line)
            self._advised = True
        elif _FAULT.match(line):
            self.add(Faulted(classified(line), self._at))
        elif (tokens := _TOKENS.match(line)) and isinstance(turn := self.last, Turn):
            turn.prompt_tokens, turn.completion_tokens = map(_thousands, tokens.groups())
            self.touch(turn)

    def _edited(self, path: str, failure: str) -> None:
        turn = next((step for step in reversed(self.transcript.steps) if isinstance(step, Turn)), None)
        turn = turn or self.turn(self._at)
        key = f"edit-{len(self.calls)}"
        call = self.call(turn, key, _EDIT, {"path": path} if path else {})
        self.ended_as(
            turn, call, failed(failure, self._at, failure) if failure else judged(call, "", self._at, None)
        )
        self.report.rebuilt += 1


def _thousands(text: str) -> int:
    number = float(text.replace(",", "").removesuffix("k"))
    return round(number * 1_000) if text.endswith("k") else round(number)
