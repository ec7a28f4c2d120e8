"""Forks: a session of its own from any event on, and a parent that does not notice."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tests.store.session_events import iteration, run_started, start, write_session
from tui_agent.core.events import (
    EscalationRaised,
    Event,
    IterationStarted,
    ModelCallStarted,
    Outcome,
    ParentPoint,
    ReplyFinished,
    RunFinished,
    SessionResumed,
    SessionStarted,
    ToolCall,
    ToolStarted,
)
from tui_agent.core.fold import fold
from tui_agent.core.recovery.streak import ErrorStreak
from tui_agent.session.forked_journal import WhatIf, fork
from tui_agent.store.errors import SessionError
from tui_agent.store.journal import JOURNAL_NAME, Journal, read_journal
from tui_agent.store.redaction import Redactor
from tui_agent.store.repair import repair_events


def three_failures() -> list[Event]:
    events: list[Event] = [start("parent"), run_started()]
    for number in (1, 2, 3):
        events += iteration(number, call=f"c{number}", fails="boom")
    return [*events, EscalationRaised(id="e1", question="What now?", source="attempts", tool="read_file")]


@pytest.fixture
def parent(tmp_path: Path) -> Path:
    write_session(tmp_path / "parent", three_failures())
    return tmp_path / "parent"


def forked(parent: Path, seq: int | None = None, what_if: WhatIf | None = None) -> list[Event]:
    folder = fork(parent, parent.parent, "child", at=9.0, seq=seq, what_if=what_if)
    return read_journal(folder).events


@pytest.mark.parametrize("seq", range(1, len(three_failures()) + 1))
def test_a_fork_from_any_event_is_a_whole_session_and_leaves_its_parent_alone(parent: Path, seq: int):
    before = hashlib.sha256((parent / JOURNAL_NAME).read_bytes()).hexdigest()
    events = forked(parent, seq)
    assert isinstance(events[0], SessionStarted)
    assert (events[0].session_id, events[0].parent) == ("child", ParentPoint(session_id="parent", seq=seq))
    assert events[1:] == read_journal(parent).events[1:seq]
    state = fold(events)
    assert state.session.parent == ParentPoint(session_id="parent", seq=seq)
    for event in repair_events(state):
        state = fold([event.stamped(state.seq + 1, 9.0)], state)
    assert not state.iteration_open
    assert hashlib.sha256((parent / JOURNAL_NAME).read_bytes()).hexdigest() == before
    assert [path.name for path in parent.iterdir()] == [JOURNAL_NAME]


async def test_a_session_can_be_forked_while_it_is_open(parent: Path):
    journal = await Journal.open_to_append(parent)
    events = forked(parent)
    assert len(events) == len(journal.contents.events)
    child = await Journal.open_to_append(parent.parent / "child")
    await child.close()
    await journal.close()


def test_another_answer_is_given_to_the_open_question(parent: Path):
    state = fold(forked(parent, what_if=WhatIf(answer="Use b.py")))
    assert state.escalation is None
    assert state.history.groups[-1].messages[0]["content"] == "Use b.py"


def test_the_time_of_a_fork_is_that_of_its_recording_and_its_own(parent: Path):
    recorded = forked(parent)[-1].at
    folder = fork(parent, parent.parent, "later", at=recorded + 90_000.0, what_if=WhatIf(answer="Use b.py"))
    state = fold(read_journal(folder).events)
    opened = [SessionResumed(), RunFinished(outcome=Outcome.ANSWERED)]
    for event, at in zip(opened, (recorded + 90_050.0, recorded + 90_060.0), strict=True):
        state = fold([event.stamped(state.seq + 1, at)], state)
    started = state.metrics.started_at
    assert state.metrics.ended_at is not None
    assert state.metrics.ended_at - started == 10.0 + recorded - read_journal(parent).events[1].at


def test_another_answer_to_a_question_of_the_model_is_the_result_of_its_call(tmp_path: Path):
    asking = ToolCall(id="ask", name="ask_operator", arguments='{"question":"which?"}')
    events = [
        start("parent"),
        run_started(),
        IterationStarted(iteration=1),
        ModelCallStarted(iteration=1),
        ReplyFinished(calls=(asking,)),
        ToolStarted(call_id="ask", tool="ask_operator", input={"question": "which?"}),
        EscalationRaised(id="ask-ask", question="which?", source="ask_operator"),
    ]
    write_session(tmp_path / "parent", events)
    state = fold(forked(tmp_path / "parent", what_if=WhatIf(answer="the second")))
    answered, finished, *_ = repair_events(state)
    assert (answered.type, answered.content) == ("tool_succeeded", "the second")
    assert finished.type == "iteration_finished"
    assert len(state.history.groups) == 1


def test_without_an_open_question_the_answer_is_a_message(parent: Path):
    state = fold(forked(parent, 12, WhatIf(answer="Look at b.py")))
    assert state.history.groups[-1].kind == "operator"


def test_another_policy_judges_the_run_anew_from_its_start(parent: Path):
    state = fold(forked(parent, what_if=WhatIf(policy="hpd")))
    assert (state.run.policy, state.session.policy) == ("hpd", "hpd")
    assert state.recovery.policy.name == "hpd"
    assert state.recovery.of(ErrorStreak).count == 3
    assert fold(read_journal(parent).events).recovery.policy.name == "combined"


def test_another_policy_leaves_finished_runs_as_they_were(tmp_path: Path):
    events = [*three_failures(), RunFinished(outcome=Outcome.STOPPED)]
    write_session(tmp_path / "parent", events)
    state = fold(forked(tmp_path / "parent", what_if=WhatIf(policy="forge")))
    assert (state.run.policy, state.session.policy) == ("combined", "forge")


@pytest.mark.parametrize(
    ("source", "at", "limit"), [("Claude Code", 55, 105), ("Claude Code", 20, 50), ("", 55, 50)]
)
def test_a_recording_that_went_past_our_limit_of_steps_can_go_on_in_a_fork(
    tmp_path: Path, source: str, at: int, limit: int
):
    begun = start("parent").model_copy(update={"source": source})
    steps = [event for number in range(1, at + 1) for event in iteration(number, call=f"c{number}")]
    write_session(tmp_path / "parent", [begun, run_started(), *steps])
    state = fold(forked(tmp_path / "parent"))
    assert (state.run.iteration, state.run.max_iterations) == (at, limit)
    parent = fold(read_journal(tmp_path / "parent").events)
    assert (parent.run.max_iterations, parent.run.last_step) == (50, None if at > 50 else 50)


def test_an_unknown_policy_is_refused_and_nothing_is_made(parent: Path):
    with pytest.raises(SessionError, match="cannot be made"):
        forked(parent, what_if=WhatIf(policy="nonsense"))
    assert not (parent.parent / "child").exists()


def test_another_model_and_note_hold_for_the_next_call(parent: Path):
    state = fold(forked(parent, what_if=WhatIf(model="m2", note="Think first.")))
    assert (state.run.model, state.note, state.note_edited) == ("m2", "Think first.", True)
    (parent.parent / "child" / JOURNAL_NAME).unlink()
    (parent.parent / "child").rmdir()
    assert fold(forked(parent, what_if=WhatIf(note=""))).note is None


def test_secrets_in_what_is_changed_are_masked(parent: Path):
    redactor = Redactor({"KEY": "hunter2x"})
    folder = fork(
        parent, parent.parent, "child", at=1.0, what_if=WhatIf(answer="use hunter2x"), redactor=redactor
    )
    assert b"hunter2x" not in (folder / JOURNAL_NAME).read_bytes()


@pytest.mark.parametrize("seq", [0, -1, 99])
def test_a_point_outside_the_session_is_refused(parent: Path, seq: int):
    with pytest.raises(SessionError, match="holds events 1 to 33"):
        forked(parent, seq)


def test_a_fork_never_overwrites_a_session(parent: Path):
    first = forked(parent, 5)
    with pytest.raises(SessionError, match="exists already"):
        forked(parent, 6)
    assert read_journal(parent.parent / "child").events == first


def test_a_damaged_parent_can_be_forked_before_its_damage(parent: Path):
    path = parent / JOURNAL_NAME
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:9], b"{damage}\n", *lines[10:]]))
    assert len(forked(parent)) == 9
    with pytest.raises(SessionError, match="holds events 1 to 9"):
        fork(parent, parent.parent, "other", at=1.0, seq=10)


def test_a_parent_with_a_torn_end_is_forked_without_it(parent: Path):
    path = parent / JOURNAL_NAME
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    assert len(forked(parent)) == 33
    path.write_bytes(whole[:-20])
    assert len(read_journal(fork(parent, parent.parent, "other", at=1.0)).events) == 32
