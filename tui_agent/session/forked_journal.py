"""Fork: a new session that shares its parent's events up to one of them, and may go on differently from there.

The parent is only read. The new journal's first event names the parent and the point; what is changed (the policy,
the model, the operator's answer, the note) is in the new journal as events of its own, so that it replays like any
other. The fork is opened to go on like any saved session.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from tui_agent import __version__
from tui_agent.core.decision.answers import escalation_answered
from tui_agent.core.events import (
    Event,
    IterationStarted,
    NotePrepared,
    OperatorSpoke,
    ParentPoint,
    Rewound,
    RunStarted,
    SessionResumed,
    SessionStarted,
    SettingChanged,
)
from tui_agent.core.fold import fold
from tui_agent.core.recovery.policy import PRESETS, preset
from tui_agent.core.state import RunState
from tui_agent.session.fork_outputs import OUTPUT_FOLDER, Outputs, outputs_of
from tui_agent.session.fork_point import open_parent
from tui_agent.store.errors import SessionError, disk_error
from tui_agent.store.images import share_images
from tui_agent.store.journal import JOURNAL_NAME, sync_folder
from tui_agent.store.journal_index import JournalIndex
from tui_agent.store.lines import encode
from tui_agent.store.private import private
from tui_agent.store.provenance import is_foreign, mark_foreign
from tui_agent.store.redaction import Redactor


@dataclass(frozen=True)
class WhatIf:
    """The change that the fork makes; None: as it was."""

    policy: str | None = None
    """Judges the run under way anew from its start, and the runs after it. A preset's name."""
    model: str | None = None
    answer: str | None = None
    """To the question that is open at the point; without one, a message of the operator."""
    note: str | None = None
    """Instead of the one that goes with the next model call; empty: none."""
    rewound: Rewound | None = None
    """How the workspace was brought back to how it was there."""


def fork(
    parent: Path,
    sessions_dir: Path,
    session_id: str,
    *,
    at: float,
    seq: int | None = None,
    what_if: WhatIf | None = None,
    redactor: Redactor | None = None,
) -> Path:
    """Fork the session in the folder (or file) `parent` after event `seq` (None: the last), as `session_id`.

    Returns the new session's folder. A damaged parent can be forked before its damage. Raises `SessionError`.
    """
    what_if = what_if or WhatIf()
    source, seq = open_parent(parent, seq)
    first = cast("SessionStarted", source.event(1))
    point = ParentPoint(session_id=first.session_id, seq=seq)
    started = first.model_copy(update={"session_id": session_id, "parent": point})
    lines = [encode(started), *(source.raw(number) for number in range(2, seq + 1))]
    _change_run(source, lines, seq, what_if.policy)
    added = _changes(source, seq, what_if)
    if redactor is not None:
        added = [redactor.redact(event) for event in added]
    lines += [encode(event.stamped(number, at)) for number, event in enumerate(added, seq + 1)]
    folder = sessions_dir / session_id
    outputs = outputs_of(source, seq, source.path.parent)
    lines = outputs.named_in((folder / OUTPUT_FOLDER).absolute(), lines)
    _write(folder, lines, outputs, source.path.parent, foreign=is_foreign(source.path.parent, sessions_dir))
    return folder


def _change_run(source: JournalIndex, lines: list[bytes], seq: int, policy: str | None) -> None:
    """Let the run under way be judged by another policy from its start, so that its detectors fold anew.

    One of a recording that is past our limit of steps gets as many again: its own harness had another limit.
    """
    if policy is not None and policy not in PRESETS:
        raise SessionError(
            "The fork cannot be made",
            f"there is no policy {policy!r}",
            f"Choose one of {', '.join(PRESETS)}.",
        )
    steps = 0
    for number in range(seq, 1, -1):
        kind = source.kinds[number - 1]
        if kind == "run_finished":
            return
        if kind == "iteration_started" and not steps:
            steps = cast("IterationStarted", source.event(number)).iteration
        if kind == "run_started":
            run = cast("RunStarted", source.event(number))
            changes: dict[str, object] = {}
            if policy is not None:
                changes |= {"policy": policy, "policy_settings": preset(policy).model_dump(mode="json")}
            if steps >= run.max_iterations and cast("SessionStarted", source.event(1)).source:
                changes["max_iterations"] = steps + run.max_iterations
            if changes:
                lines[number - 1] = encode(run.model_copy(update=changes))
            return


def _changes(source: JournalIndex, seq: int, what_if: WhatIf) -> list[Event]:
    events: list[Event] = [] if what_if.rewound is None else [what_if.rewound]
    if what_if.policy is not None:
        events.append(SettingChanged(setting="policy", value=what_if.policy))
    if what_if.model is not None:
        events.append(SettingChanged(setting="model", value=what_if.model))
    if what_if.answer is not None:
        events += _answered(fold(source.event(number) for number in range(1, seq + 1)), what_if.answer)
    if what_if.note is not None:
        events.append(NotePrepared(text=what_if.note or None, edited=True))
    # Between the point and the fork nobody was at work.
    return [SessionResumed(app_version=__version__), *events] if events else []


def _answered(state: RunState, answer: str) -> list[Event]:
    asked = state.escalation
    if asked is None:
        return [OperatorSpoke(text=answer)]
    return [escalation_answered(asked, "answer", answer)]


def _write(folder: Path, lines: list[bytes], outputs: Outputs, parent: Path, *, foreign: bool) -> None:
    """The whole journal or none: it gets its name when it is on the disk."""
    unfinished = folder / f"{JOURNAL_NAME}.part"
    try:
        folder.mkdir(mode=0o700, parents=True)
        if foreign:
            mark_foreign(folder)
        with open(unfinished, "xb", opener=private) as file:
            file.writelines(lines)
            file.flush()
            os.fsync(file.fileno())
        outputs.put_into(folder / OUTPUT_FOLDER)
        share_images(parent, folder)
        unfinished.rename(folder / JOURNAL_NAME)
        sync_folder(folder)
    except FileExistsError as fault:
        raise SessionError(
            f"Session {folder.name} exists already", f"{folder} is there", "Fork under another name."
        ) from fault
    except OSError as fault:
        shutil.rmtree(folder, ignore_errors=True)
        raise disk_error("The fork cannot be written", folder, fault) from fault
