"""Rewinding: conversation, files or both go back, it is shown before, and it can be undone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.store.session_events import iteration, run_started, stamp, start
from tui_agent.core import events
from tui_agent.core.fold import apply
from tui_agent.core.state import RunState
from tui_agent.frontend.lines.rewind import preview
from tui_agent.session.checkpointer import SessionCheckpointer
from tui_agent.session.rewind import (
    KeptCheckpoint,
    RewindPoint,
    carry_out,
    kept_then,
    plan,
    plan_undo,
    points,
)
from tui_agent.store.checkpoints import CheckpointLimits, Checkpoints
from tui_agent.store.errors import SessionError
from tui_agent.store.file_changes import FileChange
from tui_agent.store.journal_index import EventList
from tui_agent.store.shadow_git import ShadowGit

needs_git = pytest.mark.skipif(not ShadowGit.installed(), reason="git is not installed")


class Recorded:
    """A session that records into a list and a state, as the recorder does."""

    def __init__(self, tmp_path: Path, limits: CheckpointLimits | None = None) -> None:
        self.workspace = tmp_path / "work"
        self.workspace.mkdir()
        (self.workspace / "a.py").write_text("zero\n")
        self.state = RunState()
        self.events: list[events.Event] = []
        self.checkpoints = Checkpoints(tmp_path / "state", self.workspace, "s1", limits)
        self.keeper = SessionCheckpointer(self, self.checkpoints)
        self.record(start(workspace=str(self.workspace)))

    async def barrier(self) -> None:
        """Nothing is on a disk."""

    def sync_soon(self) -> None:
        """Nothing is on a disk."""

    def record(self, event: events.Event) -> events.Event:
        stamped = stamp([event], self.state.seq + 1)[0]
        self.events.append(stamped)
        self.state = apply(self.state, stamped)
        return stamped

    async def run(self, number: int, *texts: str, late: bool = False) -> None:
        """A run that writes each text into a.py, one an iteration."""
        self.record(run_started(number, f"Task {number}"))
        for place, text in enumerate(texts, 1):
            for event in iteration(place, call=f"c{number}-{place}"):
                self.record(event)
                if isinstance(event, events.ToolStarted):
                    await self.keeper.before_effect()
                    (self.workspace / "a.py").write_text(text)
            self.keeper.after_iteration()
            if not late:
                await self.keeper.settle()
        await self.keeper.settle()
        self.record(events.RunFinished(outcome=events.Outcome.ANSWERED, answer="done"))

    @property
    def text(self) -> str:
        return (self.workspace / "a.py").read_text()


@pytest.fixture
async def session(tmp_path: Path) -> Recorded:
    session = Recorded(tmp_path)
    await session.run(1, "one\n", "two\n")
    await session.run(2, "three\n")
    return session


def point(session: Recorded, label: str) -> RewindPoint:
    return next(point for point in points(session.state) if point.label.startswith(label))


@needs_git
async def test_points_are_the_messages_and_the_iterations_that_changed_files(session: Recorded):
    assert [point.label for point in points(session.state)] == [
        "after step 1: a.py",
        "before: Task 2",
        "after step 1: a.py",
        "before: Task 1",
    ]
    assert all(point.ref for point in points(session.state))


@needs_git
async def test_what_was_changed_after_the_last_step_is_named(session: Recorded):
    (session.workspace / "mine.txt").write_text("by hand\n")
    wanted = point(session, "before: Task 2")
    shown = await plan(session.state, wanted, "both", session.checkpoints)
    assert [change.path for change in shown.files] == ["a.py", "mine.txt"]
    assert shown.changed_since == {"mine.txt"}
    assert "- delete  mine.txt  (changed after the last step)" in {one.text for one in preview(shown, "/w")}
    session.record(await carry_out(shown, session.checkpoints))
    (session.workspace / "a.py").write_text("by hand\n")
    again = await plan(session.state, point(session, "before: Task 1"), "files", session.checkpoints)
    assert again.changed_since == {"a.py"}


@needs_git
async def test_the_workspace_at_an_event_is_the_checkpoint_that_nothing_was_done_after(tmp_path: Path):
    session = Recorded(tmp_path)
    await session.run(1, "one\n", "two\n", late=True)
    source = EventList(session.events)
    before, first, second = (saved.ref for saved in session.state.checkpoints)

    def at(kind: type[events.Event], place: int) -> KeptCheckpoint | None:
        return kept_then(source, [event.seq for event in session.events if isinstance(event, kind)][place])

    assert at(events.RunStarted, 0) == KeptCheckpoint(before, exact=True)
    assert at(events.IterationFinished, 0) == KeptCheckpoint(first, exact=True)
    assert at(events.IterationStarted, 1) == KeptCheckpoint(first, exact=True), (
        "it is kept while the next one begins"
    )
    assert at(events.ToolSucceeded, 1) == KeptCheckpoint(second, exact=True)
    assert at(events.RunFinished, 0) == KeptCheckpoint(second, exact=True)
    under_way = EventList(session.events[: session.state.checkpoints[-1].seq - 1])
    assert kept_then(under_way, len(under_way)) == KeptCheckpoint(first, exact=False)


@needs_git
async def test_a_checkpoint_that_is_kept_late_still_marks_the_end_of_its_iteration(tmp_path: Path):
    session = Recorded(tmp_path)
    await session.run(1, "one\n", "two\n", "three\n", late=True)
    wanted = point(session, "after step 2")
    started = [event.seq for event in session.events if isinstance(event, events.IterationStarted)]
    saved = [
        event.seq for event in session.events if isinstance(event, events.CheckpointSaved) and event.files
    ]
    assert saved[1] > wanted.seq >= started[2]
    session.record(
        await carry_out(await plan(session.state, wanted, "both", session.checkpoints), session.checkpoints)
    )
    assert session.text == "two\n"
    assert len(session.state.history.groups) == 3


@needs_git
async def test_both_go_back_to_before_a_message_and_forward_again(session: Recorded):
    before = session.state
    wanted = point(session, "before: Task 2")
    shown = await plan(session.state, wanted, "both", session.checkpoints)
    assert shown.files == (FileChange("change", "a.py"),)
    assert shown.groups == 2
    assert shown.entries == sum(entry.seq > wanted.seq for entry in session.state.conversation.entries) > 3
    rewound = session.record(await carry_out(shown, session.checkpoints))
    assert isinstance(rewound, events.Rewound)
    assert session.text == "two\n"
    assert [group.messages[0]["content"] for group in session.state.history.groups] == [
        "Task 1",
        "Let me look.",
        "Let me look.",
    ]
    assert session.state.conversation.entries[-1].__dict__["text"] == "The conversation was rewound to here."
    undo = await plan_undo(session.state, rewound, session.checkpoints)
    assert undo.files == (FileChange("change", "a.py"),)
    session.record(await carry_out(undo, session.checkpoints))
    assert session.text == "three\n"
    assert session.state.history.groups == before.history.groups
    assert list(session.state.conversation.entries)[:-1] == list(before.conversation.entries)


@needs_git
async def test_files_alone_go_back_and_the_model_learns_of_it(session: Recorded):
    groups = len(session.state.history.groups)
    shown = await plan(session.state, point(session, "before: Task 1"), "files", session.checkpoints)
    assert (shown.entries, shown.groups) == (0, 0)
    session.record(await carry_out(shown, session.checkpoints))
    assert session.text == "zero\n"
    assert len(session.state.history.groups) == groups + 1
    assert "a.py" in session.state.history.groups[-1].messages[0]["content"]


async def test_the_conversation_alone_goes_back_without_any_checkpoint(tmp_path: Path):
    session = Recorded(tmp_path, CheckpointLimits(files=0))
    await session.run(1, "one\n")
    await session.run(2, "two\n")
    wanted = point(session, "before: Task 2")
    assert wanted.ref == ""
    session.record(
        await carry_out(
            await plan(session.state, wanted, "conversation", session.checkpoints), session.checkpoints
        )
    )
    assert len(session.state.history.groups) == 2
    assert session.text == "two\n"


@needs_git
async def test_own_edits_between_runs_belong_to_the_point_before_the_next_message(tmp_path: Path):
    session = Recorded(tmp_path)
    await session.run(1, "one\n")
    (session.workspace / "a.py").write_text("mine\n")
    await session.run(2, "two\n")
    for label, text in (("before: Task 2", "mine\n"), ("after step 1: a.py", "one\n")):
        wanted = [found for found in points(session.state) if found.label == label][-1]
        await carry_out(await plan(session.state, wanted, "both", session.checkpoints), session.checkpoints)
        assert session.text == text


@needs_git
async def test_a_rewind_cannot_be_undone_after_the_next_run_began(session: Recorded):
    shown = await plan(session.state, point(session, "before: Task 2"), "conversation", session.checkpoints)
    rewound = session.record(await carry_out(shown, session.checkpoints))
    assert isinstance(rewound, events.Rewound)
    await session.run(3, "four\n")
    with pytest.raises(SessionError, match="cannot be undone"):
        await plan_undo(session.state, rewound, session.checkpoints)


async def test_nothing_is_rewound_while_a_run_goes_on(tmp_path: Path):
    session = Recorded(tmp_path)
    session.record(run_started())
    with pytest.raises(SessionError, match="a run goes on"):
        await plan(session.state, RewindPoint(1, 0.0, ""), "conversation", session.checkpoints)


async def test_files_without_a_checkpoint_cannot_be_rewound_and_the_reason_is_given(tmp_path: Path):
    session = Recorded(tmp_path)
    with pytest.raises(SessionError, match="no checkpoint was kept"):
        await plan(session.state, RewindPoint(1, 0.0, ""), "files", session.checkpoints)


async def test_a_workspace_that_cannot_be_checkpointed_is_reported_once_and_the_run_goes_on(tmp_path: Path):
    session = Recorded(tmp_path, CheckpointLimits(files=0))
    await session.run(1, "one\n", "two\n")
    await session.run(2, "three\n")
    notices = [event for event in session.events if isinstance(event, events.Notice)]
    assert len({notice.text for notice in notices}) == len(notices) <= 2
    assert "Rewinding will not bring files back" in notices[0].text


@needs_git
async def test_a_run_that_changes_nothing_keeps_no_checkpoint_after_its_iterations(tmp_path: Path):
    session = Recorded(tmp_path)
    await session.run(1, "zero\n", "zero\n")
    saved = [event for event in session.events if isinstance(event, events.CheckpointSaved)]
    assert [event.before for event in saved] == ["run 1"]


@needs_git
async def test_after_a_rewind_the_session_goes_on_from_there(session: Recorded):
    shown = await plan(session.state, point(session, "before: Task 2"), "both", session.checkpoints)
    session.record(await carry_out(shown, session.checkpoints))
    await session.run(3, "four\n")
    assert [
        group.messages[0]["content"] for group in session.state.history.groups if group.kind == "task"
    ] == [
        "Task 1",
        "Task 3",
    ]
    labels = [point.label for point in points(session.state)]
    assert "before: Task 2" not in labels
    assert "before: Task 3" in labels


def test_a_checkpoint_taken_after_a_change_is_not_the_state_before_it(tmp_path: Path):
    session = Recorded(tmp_path)
    for number, refs in ((1, ("a", "b")), (2, ("", "c"))):
        session.record(run_started(number, f"Task {number}"))
        if refs[0]:
            session.record(events.CheckpointSaved(ref=refs[0], iteration=1, before=f"run {number}"))
        for event in iteration(1):
            session.record(event)
        session.record(events.CheckpointSaved(ref=refs[1], iteration=1, files=("a.py",)))
        session.record(events.RunFinished(outcome=events.Outcome.ANSWERED))
    assert point(session, "before: Task 1").ref == "a"
    assert point(session, "before: Task 2").ref == "b"
