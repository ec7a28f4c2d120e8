"""The playbook beside `deja fix` (vshulcz/deja-vu) on recorded runs: prints the table of docs/lab/PLAYBOOK.md.

    python -m tui_agent.lab.evaluation.beside_deja DEJA NAME=FOLDER…

DEJA is its program. Both learn from the other runs of a failure's project, and are given the failure: deja as sessions
of Claude Code, with the whole output on its standard input. Only failures that recur across runs of their project are
asked about. Of deja's up to three commands the best counts. Runs are left out one at a time; in projects of more than
20 runs, in 20 parts.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tui_agent.core import events
from tui_agent.core.projections.incidents import Incident
from tui_agent.core.projections.metrics import Metrics
from tui_agent.core.recovery.iteration import command_of
from tui_agent.lab.evaluation.next_step.counting import recordings
from tui_agent.lab.evaluation.playbook import project_of
from tui_agent.lab.evaluation.policies import Recordings, markdown_table, recordings_of
from tui_agent.playbook.book import Book
from tui_agent.playbook.lessons import Lesson, calls_of, lessons_of_call
from tui_agent.playbook.missing import missing_in
from tui_agent.playbook.repairs import Form, repair_instead, repairs_before

PARTS = 20
MARK = "  ran next: $ "


@dataclass(frozen=True)
class Recorded:
    """One run: its failures with what they teach, and its lines as Claude Code would have kept them."""

    failures: tuple[tuple[Incident, Lesson], ...]
    session: str


@dataclass(frozen=True)
class Answer:
    """The suggestion for one failure. `same`: the very command that recovered it; `right`: its repair;
    `vain`: a repair that was tried in the recording and did not work.
    """

    said: bool = False
    same: bool = False
    right: bool = False
    vain: bool = False


def recorded(number: int, run: Sequence[events.Event]) -> Recorded:
    """A run of a recording."""
    metrics = Metrics()
    lines: list[dict[str, Any]] = []
    for event in run:
        metrics = metrics.apply(event)
        match event:
            case events.ReplyFinished(text=text) if text:
                lines.append({"role": "assistant", "content": [{"type": "text", "text": text}]})
            case events.ToolSucceeded() | events.ToolFailed():
                used = {"type": "tool_use", "id": event.call_id, "name": "Bash"}
                given = {"command": command_of(event.input) or ""}
                lines.append({"role": "assistant", "content": [{**used, "input": given}]})
                content = event.failure.message if isinstance(event, events.ToolFailed) else event.content
                result = {"type": "tool_result", "tool_use_id": event.call_id, "content": content}
                lines.append({"role": "user", "content": [result]})
    began = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=number)
    session = "".join(
        json.dumps({
            "type": message["role"],
            "sessionId": f"run-{number}",
            "timestamp": f"{began + timedelta(seconds=second):%Y-%m-%dT%H:%M:%SZ}",
            "message": message,
        })
        + "\n"
        for second, message in enumerate(lines)
    )  # fmt: skip
    calls = calls_of(metrics.incidents)
    taught = tuple((one, lesson) for one in calls for lesson in lessons_of_call(one, calls))
    return Recorded(taught, session)


class Deja:
    """Its program over sessions of its own, in a folder of its own."""

    def __init__(self, program: str, folder: Path, sessions: Sequence[tuple[int, str]]) -> None:
        self._program = program
        self._env = {"PATH": os.environ["PATH"], "HOME": str(folder), "DEJA_OFFLINE": "1"}
        kept = folder / ".claude" / "projects" / "project"
        kept.mkdir(parents=True)
        for number, lines in sessions:
            (kept / f"run-{number}.jsonl").write_text(lines, encoding="utf-8")
        self._asked("", "index", "--rebuild")

    def commands(self, error: str) -> list[str]:
        """Commands that were run after this error before, the newest first."""
        said = self._asked(error, "fix").splitlines()
        return [line.removeprefix(MARK) for line in said if line.startswith(MARK)]

    def _asked(self, given: str, *arguments: str) -> str:
        ran = subprocess.run(
            [self._program, *arguments],
            input=given,
            env=self._env,
            check=True,
            capture_output=True,
            text=True,
        )
        return ran.stdout


def by_deja(deja: Deja, failed: Incident, lesson: Lesson) -> Answer:
    """Its best command."""
    commands = deja.commands(failed.course[0].message)
    tries = {one.repair[:2]: one.worked for one in lesson.tries}
    worked = [tries.get(key) for command in commands for key in _named_by(failed, command)]
    recovered = command_of(failed.recovery.input) if failed.recovery is not None else None
    first = recovered.strip().partition("\n")[0] if recovered else None
    return Answer(bool(commands), first in commands, True in worked, True not in worked and False in worked)


def _named_by(failed: Incident, command: str) -> Iterator[tuple[Form, str]]:
    """The repairs that a command is, in the place of the failed call or before it."""
    lacks = missing_in(failed.course[0].message)
    instead = repair_instead(lacks, failed.input, failed.tool, {**failed.input, _key(failed): command})
    before = repairs_before(lacks, [command], same_call=True)
    yield from (one[:2] for one in ([instead] if instead else before))


def _key(failed: Incident) -> str:
    was = command_of(failed.input)
    return next((name for name, value in failed.input.items() if value == was), "command")


def by_playbook(book: Book, lesson: Lesson) -> Answer:
    """The playbook's suggestion."""
    said = book.suggestion(lesson.sign, 0.0, general=False)
    if said is None:
        return Answer()
    worked = [one.worked for one in lesson.tries if one.repair[:2] == (said.form, said.repair)]
    return Answer(said=True, right=True in worked, vain=worked == [False])


def answers(program: str, runs: Sequence[Recorded]) -> Iterator[tuple[Answer, Answer]]:
    """The playbook's and deja's to each failure of a project that recurs across its runs."""
    shapes: dict[str, set[int]] = defaultdict(set)
    for number, run in enumerate(runs):
        for _, lesson in run.failures:
            shapes[lesson.sign.shape].add(number)
    parts = min(len(runs), PARTS)
    for part in range(parts):
        asked = [
            (number, failed, lesson)
            for number, run in enumerate(runs)
            if number % parts == part
            for failed, lesson in run.failures
            if len(shapes[lesson.sign.shape]) > 1
        ]
        if not asked:
            continue
        others = [(number, run) for number, run in enumerate(runs) if number % parts != part]
        with tempfile.TemporaryDirectory(prefix="deja-") as made:
            deja = Deja(program, Path(made), [(number, run.session) for number, run in others])
            for number, failed, lesson in asked:
                alike = [
                    one
                    for other, run in enumerate(runs)
                    if other != number
                    for _, one in run.failures
                    if one.sign.shape == lesson.sign.shape
                ]
                book = Book().learned("the others", alike, 0.0, general=False)
                yield by_playbook(book, lesson), by_deja(deja, failed, lesson)


def table(program: str, sets: Sequence[Recordings]) -> str:
    """A row for each set and program."""
    body = []
    for one in sets:
        projects: dict[str, list[Recorded]] = defaultdict(list)
        for number, (path, imported) in enumerate(recordings(one.paths)):
            projects[project_of(path)].append(recorded(number, imported.events))
        both = [pair for runs in projects.values() for pair in answers(program, runs)]
        for name, said in (
            ("the playbook", [pair[0] for pair in both]),
            ("`deja fix`", [pair[1] for pair in both]),
        ):
            counts = [sum(getattr(one, field) for one in said) for field in ("said", "right", "vain", "same")]
            body.append((one.name, f"{len(both):,}", name, *(f"{count:,}" for count in counts)))
    head = (
        "recordings",
        "recurring failures",
        "asked",
        "said something",
        "what worked",
        "tried without success",
    )
    return markdown_table((*head, "the very command"), body, 3)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit("Name deja's program and the recordings: DEJA NAME=FOLDER…")
    sys.stdout.write(table(sys.argv[1], [recordings_of(one) for one in sys.argv[2:]]))
