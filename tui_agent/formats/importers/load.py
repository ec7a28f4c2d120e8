"""A file of any known format becomes our events, judged by a policy, or a saved session.

Reading, detecting, normalising and judging are elsewhere; this file calls them in order and saves the result.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tui_agent import untrusted_files
from tui_agent.core.events import Event, SessionStarted
from tui_agent.core.recovery.policy import RecoveryPolicy
from tui_agent.formats.importers.claude_code import SUB_AGENTS
from tui_agent.formats.importers.codex_threads import is_started
from tui_agent.formats.importers.growing import read_whole
from tui_agent.formats.importers.harbor import agent_folders, grade_of_trial, is_job, is_trial
from tui_agent.formats.importers.judgement import judged
from tui_agent.formats.importers.kimi_code import MAIN, WIRE
from tui_agent.formats.importers.labels import LABEL_FILE, grade_beside
from tui_agent.formats.importers.normalise import facts
from tui_agent.formats.importers.own import OwnSession
from tui_agent.formats.importers.reading import DOCUMENT_FILE, LINE_FILES
from tui_agent.formats.importers.transcript import ImportReport, Transcript, TranscriptError, no_such_run
from tui_agent.store.journal import JOURNAL_NAME
from tui_agent.store.lines import encode
from tui_agent.store.provenance import mark_foreign
from tui_agent.store.redaction import Redactor

DEFAULT_POLICY = "combined"


@dataclass(frozen=True)
class Imported:
    """One run of a file. `events` are judged if a policy was named; `reward` is the run's grade, if it has
    one.
    """

    events: list[Event]
    report: ImportReport
    source: str
    """The format's name; `agent-tui` for our own."""
    title: str = ""
    reward: float | None = None
    subagent: bool = False
    index: int = 0
    """Its place in the file, from 0."""
    copied: dict[str, str] = field(default_factory=dict)
    """Calls that are copies of another session's, by their ids, and that session."""


def load_transcripts(path: Path) -> list[Imported]:
    """All runs of a file or of a session's folder, as facts that no policy has judged yet.

    Our own sessions come with the verdicts that they had. Raises `TranscriptError`.
    """
    reader = read_whole(path)
    report = reader.report
    if isinstance(reader, OwnSession):
        if not reader.events:
            why = "its first event is not the start of a session."
            raise TranscriptError(path, why, "Export the session again.", 1)
        report.runs = 1
        return [Imported(reader.events, report, report.format, reader.transcript.title)]
    transcripts = reader.lanes
    modified = max(path.stat().st_mtime, 0.0)
    report.runs = len(transcripts)
    report.empty = sum(transcript.empty() for transcript in transcripts)
    if report.empty == report.runs:
        why = f"it looks like {report.format}, and nothing was said or done in it."
        raise TranscriptError(path, why, report.summary())
    if report.useless:
        why = f"it looks like {report.format}, and most of it cannot be read."
        raise TranscriptError(path, why, report.summary())
    return [
        _imported(path, report, transcript, index, modified)
        for index, transcript in enumerate(transcripts)
        if not transcript.empty()
    ]


def _imported(
    path: Path, report: ImportReport, transcript: Transcript, index: int, modified: float
) -> Imported:
    """A run of the file; its session has a sortable name that is the same each time it is imported."""
    seed = f"{report.format} {report.records} {path.name} {path.stat().st_size} {transcript.id} {index}"
    part = f" Run {index + 1} of {report.runs} in the file." if report.runs > 1 else ""
    grades = (transcript.reward, grade_beside(path, transcript.id), grade_of_trial(path))
    reward = next((grade for grade in grades if grade is not None), None)
    first = next((step.at for step in transcript.steps if step.at is not None), modified)
    told = facts(
        transcript,
        session_id=_session_id(first, seed),
        source=report.format,
        summary=report.summary() + part,
        base_at=modified,
        loud=bool(report.loss),
    )
    title, copied = transcript.title, transcript.copied
    return Imported(told, report, report.format, title, reward, transcript.subagent, index, copied)


def _session_id(at: float, seed: str) -> str:
    digest = hashlib.sha256(seed.encode()).hexdigest()[:8]
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime(at))}-{digest}"


def choose_run(runs: Sequence[Imported], run: int | None) -> Imported:
    """The run with the number `run` in its file, from 1; None: the first that is not empty.

    Raises `TranscriptError` if the file has no such run, or an empty one.
    """
    if run is None:
        return runs[0]
    report = runs[0].report
    if not 1 <= run <= report.runs:
        raise no_such_run(report.path, run, report.runs)
    for one in runs:
        if one.index == run - 1:
            return one
    why = f"run {run} is empty: nothing was said or done in it."
    raise TranscriptError(report.path, why, f"Run {runs[0].index + 1} is the first that is not.")


def judge(
    imported: Imported, policy: str | RecoveryPolicy | None = None, *, operator_present: bool | None = None
) -> Imported:
    """The same run under `policy`; without one, foreign runs are judged by `combined`, and our own keep the verdicts
    that they had. Raises `ValueError` for an unknown policy.
    """
    if policy is None and imported.source == OwnSession.name:
        return imported
    events = judged(imported.events, policy or DEFAULT_POLICY, operator_present=operator_present)
    return replace(imported, events=events)


# --- into the store --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Saved:
    """The result for one file: the sessions made of it, or why there are none."""

    path: Path
    sessions: tuple[str, ...] = ()
    present: int = 0
    """Sessions that had been imported before and were left as they are."""
    report: ImportReport | None = None
    error: TranscriptError | None = None


def save(
    path: Path, sessions: Path, policy: str | RecoveryPolicy | None = None, redactor: Redactor | None = None
) -> Saved:
    """Save every run of one file as a session of its own. A `TranscriptError` is in the result, not raised."""
    try:
        runs = load_transcripts(path)
        ids: list[str] = []
        present = 0
        for run in runs:
            session, new = _write(judge(run, policy), sessions, redactor)
            ids.append(session)
            present += not new
    except TranscriptError as error:
        return Saved(path, error=error)
    return Saved(path, tuple(ids), present, runs[0].report)


def keep(told: Sequence[Event], path: Path, sessions: Path, redactor: Redactor) -> Path:
    """Save what is known of a session that is watched at `path`; the folder, the same each time for the same events.

    Raises `TranscriptError`.
    """
    first, last = told[0], told[-1]
    name = _session_id(first.at, f"{path} {len(told)} {last.at}")
    events = [first.model_copy(update={"session_id": name}), *told[1:]]
    _write(Imported(events, ImportReport("watch", str(path)), "watch"), sessions, redactor)
    return sessions / name


_LONGEST_NAME = 60
"""Characters of a session's id: a folder's name, with room for what is put before it."""


def _write(imported: Imported, sessions: Path, redactor: Redactor | None) -> tuple[str, bool]:
    """The session's id, and whether it is new. Written aside and renamed: a half-written session is never seen."""
    redactor = redactor or Redactor.from_environment(os.environ)
    started = imported.events[0]
    name = started.session_id if isinstance(started, SessionStarted) else ""
    path = imported.report.path
    if (
        name != Path(name).name
        or not name.isprintable()
        or name[:1] in ("", ".")
        or len(name) > _LONGEST_NAME
    ):
        raise TranscriptError(
            path, f"its session id {name[:60]!r} cannot name a folder.", "Export it again.", 1
        )
    lines = b"".join(encode(redactor.redact(event)) for event in imported.events)
    folder = sessions / name
    if folder.exists():
        if imported.source != OwnSession.name or _same(folder / JOURNAL_NAME, lines):
            return name, False
        why = f"a session {name} exists already, and it is another one."
        raise TranscriptError(path, why, "Delete or rename that one first.")
    aside = sessions / f".importing-{name}-{os.getpid()}"
    try:
        aside.mkdir(parents=True, mode=0o700)
        (aside / JOURNAL_NAME).write_bytes(lines)
        mark_foreign(aside)
        aside.rename(folder)
    except OSError as error:
        shutil.rmtree(aside, ignore_errors=True)
        why = f"its session cannot be written to {sessions} ({error.strerror or error})."
        raise TranscriptError(path, why, "Check the folder's permissions and the free space.") from error
    return name, True


def _same(journal: Path, lines: bytes) -> bool:
    try:
        return untrusted_files.content(journal, len(lines)) == lines
    except OSError:
        return False


# --- files and folders -----------------------------------------------------------------------------

_SUFFIXES = (".jsonl", ".json", ".traj", ".jsonl.zst", ".eval")


def find_transcripts(paths: Iterable[Path]) -> list[Path]:
    """Files as named, folders of one session as they are, and the files in other folders, in order of their names.

    In a folder only the suffix of a file counts; whether it is a transcript shows when it is read. A link that leads
    out of the folder is left out.
    """
    found: list[Path] = []
    for path in paths:
        if not path.is_dir() or is_session(path):
            found.append(path)
        else:
            found.extend(_within(path, path))
    return list(dict.fromkeys(found))


def is_session(folder: Path) -> bool:
    """True if a folder is that of one session."""
    if any((folder / name).is_file() for name in (*LINE_FILES, DOCUMENT_FILE, "CURRENT")):
        return True
    events = folder if folder.name == "events" else folder / "events"
    return events.is_dir() and next(events.glob("*.json"), None) is not None


def _within(folder: Path, top: Path) -> list[Path]:
    found: list[Path] = []
    if is_trial(folder):
        for agent, trajectory in agent_folders(folder):
            found.extend(_within(agent, top) if trajectory is None else [trajectory])
        return found
    if is_job(folder):
        return [path for child in sorted(folder.iterdir()) if is_trial(child) for path in _within(child, top)]
    for child in sorted(folder.iterdir()):
        if child.name.startswith("."):
            continue
        if child.is_dir() and not child.is_symlink():
            if child.name == SUB_AGENTS and untrusted_files.is_file(folder.with_suffix(".jsonl"), top):
                continue  # the session beside the folder has them
            found.extend([child] if is_session(child) else _within(child, top))
        elif (
            child.name.endswith(_SUFFIXES)
            and child.name != LABEL_FILE
            and not _is_part(child)
            and untrusted_files.is_file(child, top if child.is_symlink() else None)
        ):
            found.append(child)
    return found


_CHECKPOINT = re.compile(r"\.checkpoint\.[0-9a-f-]+\.jsonl\Z")
"""OpenClaw's copies of a session, from before its history was made shorter."""


def _is_part(path: Path) -> bool:
    """True if another file stands for the session that this one is of, or that it copies."""
    agents = path.parent.parent
    if path.name == WIRE and path.parent.name != MAIN:
        return (agents / MAIN / WIRE).is_file()
    described = path.suffix == ".json" and path.with_suffix(".messages.json").is_file()  # Cline
    return described or bool(_CHECKPOINT.search(path.name)) or is_started(path)
