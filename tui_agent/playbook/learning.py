"""Learning from files: our own sessions, journals of hooks, and other agents' recordings."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tui_agent.core import events
from tui_agent.core.projections.metrics import Metrics
from tui_agent.formats.importers.load import Imported, load_transcripts
from tui_agent.formats.importers.own import OwnSession
from tui_agent.playbook.lessons import Lesson, lessons_of
from tui_agent.playbook.store import Playbook
from tui_agent.store.redaction import Redactor


class Learned(NamedTuple):
    """The yield of a file: runs in it, those that were new, and the failures they taught by."""

    runs: int = 0
    new: int = 0
    lessons: int = 0


class RunLessons(NamedTuple):
    """The lessons of one run; `source` names the run, as the session that made it does."""

    source: str
    workspace: str
    at: float
    lessons: tuple[Lesson, ...]


def learn_file(path: Path, state_dir: Path, workspace: Path) -> Learned:
    """Count the runs of a file, each once. Our own sessions teach about the workspace they were in,
    recordings of others about `workspace`. Raises `TranscriptError`, and `OSError` if the playbook cannot be
    written.
    """
    redactor = Redactor.from_environment(os.environ)
    runs = new = lessons = 0
    for imported in load_transcripts(path):
        ours = imported.source == OwnSession.name
        for run in runs_of(imported, redactor):
            where = Path(run.workspace) if ours and run.workspace else workspace
            runs += 1
            # Nothing is learned twice, nor from a run without a failure.
            if Playbook(state_dir, where).learn(run.source, run.lessons, run.at or time.time()):
                new += 1
                lessons += len(run.lessons)
    return Learned(runs, new, lessons)


def runs_of(imported: Imported, redactor: Redactor) -> Iterator[RunLessons]:
    """The runs of a recording, and those of its sub-agents, with secrets masked."""
    session, workspace, seq, at = "", "", 0, 0.0
    lanes: dict[str, Metrics] = {"": Metrics()}

    def taught(lane: str) -> RunLessons:
        incidents = lanes.pop(lane).incidents
        return RunLessons(f"{session} {seq}", workspace, at, lessons_of(incidents))

    for raw in imported.events:
        event = redactor.redact(raw)
        seq, at = event.seq, event.at
        if isinstance(event, events.SessionStarted):
            session, workspace = event.session_id, event.workspace
        lane, placed = (event.lane, event.placed) if isinstance(event, events.LaneEvent) else ("", event)
        lanes[lane] = lanes.get(lane, Metrics()).apply(placed)
        if isinstance(placed, events.RunFinished):
            yield taught(lane)
    for lane in tuple(lanes):
        yield taught(lane)  # it never ended
