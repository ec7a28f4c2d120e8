"""Rewind: conversation, files or both go back to an earlier point; it is shown before, and can be undone.

Points are between runs and after finished iterations: nothing is half done there. A rewind is an event like
any other: the journal keeps all that came before it. No run may be under way.
"""

from __future__ import annotations

from bisect import bisect_right
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, cast

from tui_agent.core import events
from tui_agent.core.projections.entries import OperatorEntry, SummaryEntry
from tui_agent.core.state import RunState
from tui_agent.quantities import counted
from tui_agent.store.checkpoints import Checkpoints
from tui_agent.store.errors import SessionError
from tui_agent.store.file_changes import FileChange
from tui_agent.terminal_text import one_line

if TYPE_CHECKING:
    from tui_agent.store.journal_index import EventSource
    from tui_agent.store.recorder import SessionRecorder

Scope = Literal["conversation", "files", "both"]


@dataclass(frozen=True)
class RewindPoint:
    """A place to go back to: after event `seq`. `ref` is the checkpoint of the workspace then; empty for none."""

    seq: int
    at: float
    label: str
    ref: str = ""
    text: str = ""
    """The operator's message that it precedes, if it does."""


@dataclass(frozen=True)
class RewindPlan:
    """The changes of a rewind, for the operator to see before they are made."""

    scope: Scope
    point: RewindPoint
    entries: int = 0
    """Blocks of the conversation that go."""
    groups: int = 0
    """Groups of the model's history that go."""
    files: tuple[FileChange, ...] = ()
    changed_since: frozenset[str] = frozenset()
    """Those of `files` that were changed after the session's newest checkpoint: by the operator, or by a program."""
    undoes: int = 0
    """`seq` of the rewind that is taken back: its entries and groups come back instead of going."""


def points(state: RunState) -> list[RewindPoint]:
    """Points that this session can go back to, the newest first: before each message of the operator that
    began a run, before each summary, and after each iteration that changed files.
    """
    found: dict[tuple[int, str], RewindPoint] = {}
    entries = state.conversation.entries
    starts = [entry for entry in entries if isinstance(entry, OperatorEntry) and entry.iteration == 0]
    for entry in starts:
        seq = entry.seq - 1
        ref = _ref_at(state, seq)
        found[seq, ref] = RewindPoint(seq, entry.at, f"before: {one_line(entry.text, 60)}", ref, entry.text)
    for summary in entries:
        if isinstance(summary, SummaryEntry) and not summary.failed:
            seq = summary.seq - 1
            label = f"before: {counted(summary.groups, 'step')} summarised"
            found[seq, ""] = RewindPoint(seq, summary.at, label, _ref_at(state, seq))
    for saved in state.checkpoints:
        if not saved.before and saved.files:
            seq = _end_of_iteration(state, saved, [entry.seq for entry in starts])
            names = ", ".join(saved.files[:3]) + (" …" if len(saved.files) > 3 else "")
            point = RewindPoint(seq, saved.at, f"after step {saved.iteration}: {names}", saved.ref)
            found.setdefault((seq, saved.ref), point)
    return sorted(found.values(), key=lambda point: -point.seq)


def kept_before_run(state: RunState) -> str:
    """The checkpoint of the workspace as the newest run found it; empty if none was kept since."""
    starts = (entry for entry in reversed(state.conversation.entries) if isinstance(entry, OperatorEntry))
    start = next((entry.seq for entry in starts if entry.iteration == 0), 0)
    kept_since = bool(state.checkpoints) and state.checkpoints[-1].seq > start
    return _ref_at(state, start) if start and kept_since else ""


def _end_of_iteration(state: RunState, saved: events.CheckpointSaved, starts: list[int]) -> int:
    """The last event before anything of the next iteration: a checkpoint may be kept while that goes on already."""
    run = bisect_right(starts, saved.seq)
    first, last = starts[run - 1] if run else 0, starts[run] - 1 if run < len(starts) else state.seq
    later = (
        entry.seq - 1
        for entry in state.conversation.entries
        if first <= entry.seq <= last and entry.iteration > saved.iteration
    )
    return min(later, default=last)


def _ref_at(state: RunState, seq: int) -> str:
    """The workspace as it was after event `seq`: the next checkpoint was taken before anything changed it, unless
    it was taken after a change; then the one before is it."""
    earlier = ""
    for saved in state.checkpoints:
        if saved.seq > seq:
            return saved.ref if saved.before else earlier
        earlier = saved.ref
    return earlier


_WORKED = {"tool_progress", "tool_succeeded", "tool_failed", "tool_cancelled", "tool_ended"}
"""Events that show that a call has begun its work: `tool_started` may be waiting until the checkpoint before
it is kept.
"""


class KeptCheckpoint(NamedTuple):
    """A checkpoint. `exact`: nothing of the session changed the workspace between it and what is asked about."""

    ref: str
    exact: bool


def kept_then(source: EventSource, seq: int) -> KeptCheckpoint | None:
    """The checkpoint that shows the workspace as it was after event `seq`; None if none was kept."""
    kinds = source.kinds
    worked = False
    for number in range(seq + 1, len(source) + 1):
        if kinds[number - 1] == "checkpoint_saved":
            saved = cast("events.CheckpointSaved", source.event(number))
            if saved.before or not worked:
                return KeptCheckpoint(saved.ref, exact=True)
            break
        if kinds[number - 1] == "rewound":
            break
        worked = worked or kinds[number - 1] in _WORKED
    worked = False
    for number in range(seq, 0, -1):
        match source.event(number) if kinds[number - 1] in {"checkpoint_saved", "rewound"} else None:
            case events.CheckpointSaved(ref=ref) | events.Rewound(ref=ref) if ref:
                return KeptCheckpoint(ref, not worked)
            case _:
                worked = worked or kinds[number - 1] in _WORKED
    return None


class Rewinding:
    """The interface of an open session that a rewind needs."""

    def __init__(self, recorder: SessionRecorder, checkpoints: Checkpoints) -> None:
        self._recorder, self._checkpoints = recorder, checkpoints

    def points(self) -> list[RewindPoint]:
        """Points that the session can go back to, the newest first."""
        return points(self._recorder.state)

    async def changes(self, since: str = "") -> str | None:
        """Give what the newest run has changed in the workspace, by tools or commands, as a patch; None: nothing was
        kept that would tell. `since`: only what is newer than this checkpoint.
        """
        ref = since or kept_before_run(self._recorder.state)
        if not ref:
            return None
        try:
            return await self._checkpoints.patch(ref)
        except SessionError:
            return None

    async def plan(self, point: RewindPoint, scope: Scope) -> RewindPlan:
        """Changes that a rewind would make; asking changes nothing. Raises `SessionError` during a run."""
        return await plan(self._recorder.state, point, scope, self._checkpoints)

    async def plan_undo(self) -> RewindPlan:
        """Changes that taking the newest rewind back would make. Raises `SessionError` if none can be taken
        back.
        """
        newest = self._recorder.state.rewound
        if newest is None:
            raise SessionError(
                "There is no rewind to take back", "none was made since the last run", "Go back first."
            )
        return await plan_undo(self._recorder.state, newest, self._checkpoints)

    async def carry_out(self, planned: RewindPlan) -> events.Rewound:
        """Do what was planned: bring files back, and leave what came after the point out of the history."""
        return self._recorder.record(await carry_out(planned, self._checkpoints))


async def plan(state: RunState, point: RewindPoint, scope: Scope, checkpoints: Checkpoints) -> RewindPlan:
    """Changes that a rewind to `point` would make. Raises `SessionError` if it is not possible."""
    _idle(state)
    entries = groups = 0
    if scope != "files":
        entries = sum(entry.seq > point.seq for entry in state.conversation.entries)
        groups = sum(group.seq > point.seq for group in state.history.groups)
    files: tuple[FileChange, ...] = ()
    since: frozenset[str] = frozenset()
    if scope != "conversation":
        files = tuple(await _store(checkpoints, point.ref).diff(point.ref))
        with suppress(SessionError):
            newest = await checkpoints.diff(_newest_ref(state))
            since = frozenset(change.path for change in newest) & {change.path for change in files}
    return RewindPlan(scope, point, entries, groups, files, since)


def _newest_ref(state: RunState) -> str:
    """The state of the workspace that the session itself left."""
    saved, rewound = state.checkpoints[-1] if state.checkpoints else None, state.rewound
    if rewound is not None and rewound.ref and (saved is None or saved.seq < rewound.seq):
        return rewound.ref
    return "" if saved is None else saved.ref


async def plan_undo(state: RunState, last: events.Rewound, checkpoints: Checkpoints) -> RewindPlan:
    """Changes that taking back the rewind `last` would make; possible until the next run begins."""
    _idle(state)
    saved = state.conversation.rewound_from
    if last.scope != "files" and (saved is None or saved[0] != last.seq):
        raise SessionError(
            "The rewind cannot be undone",
            "the session has gone on since",
            "Fork it at the event before the rewind to see it as it was.",
        )
    entries = groups = 0
    if last.scope != "files" and saved is not None:
        entries = sum(entry.seq > last.to_seq for entry in saved[1].entries)
        before = state.history.rewound_from
        groups = 0 if before is None else sum(group.seq > last.to_seq for group in before[1].groups)
    files: tuple[FileChange, ...] = ()
    if last.scope != "conversation":
        files = tuple(await _store(checkpoints, last.undo_ref).diff(last.undo_ref))
    back_to = RewindPoint(last.to_seq, state.at, "undo the rewind", last.undo_ref)
    return RewindPlan(last.scope, back_to, entries, groups, files, undoes=last.seq)


async def carry_out(rewind: RewindPlan, checkpoints: Checkpoints) -> events.Rewound:
    """Bring the files back, if the plan says so, and return the event to record."""
    undo_ref = ""
    names: tuple[str, ...] = ()
    if rewind.scope != "conversation":
        restored = await _store(checkpoints, rewind.point.ref).restore(rewind.point.ref)
        undo_ref = restored.undo_ref
        names = tuple(change.path for change in restored.changes)
    return events.Rewound(
        scope=rewind.scope,
        to_seq=rewind.point.seq,
        ref=rewind.point.ref if rewind.scope != "conversation" else "",
        undo_ref=undo_ref,
        files=names,
        undoes=rewind.undoes,
    )


def _idle(state: RunState) -> None:
    if state.running:
        raise SessionError("Nothing can be rewound now", "a run goes on", "Stop it first with /stop.")
    if state.compacting is not None:
        raise SessionError("Nothing can be rewound now", "a summary is being written", "Esc interrupts it.")


def _store(checkpoints: Checkpoints, ref: str) -> Checkpoints:
    reason = checkpoints.unavailable
    if reason is None and ref:
        return checkpoints
    raise SessionError(
        "The files cannot be rewound",
        reason or "no checkpoint was kept at this point",
        "The conversation alone can be.",
    )
