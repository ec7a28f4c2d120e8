"""A session whose process died anywhere in a run is whole again after its repair, and nothing that counted is lost."""

from __future__ import annotations

import pytest

from tests.store.session_events import iteration, run_started, stamp, start
from tui_agent.core.decision.answers import escalation_answered
from tui_agent.core.decision.decide import decide
from tui_agent.core.decision.steps import Ask
from tui_agent.core.events import (
    EscalationRaised,
    Event,
    IterationFinished,
    IterationStarted,
    MessageQueued,
    Mode,
    ModeChanged,
    ModelCallStarted,
    NotePrepared,
    Notice,
    Outcome,
    ReplyDelta,
    ReplyFinished,
    ReplyRejected,
    RunFinished,
    ToolCall,
    ToolCancelled,
    ToolFailed,
    ToolStarted,
    ToolSucceeded,
    VerdictReached,
)
from tui_agent.core.fold import apply, fold
from tui_agent.core.recovery.attempts import AttemptLedger
from tui_agent.core.recovery.ring import ErrorRing
from tui_agent.core.recovery.streak import ErrorStreak
from tui_agent.core.state import RunState
from tui_agent.store.repair import repair_events


def repaired(events: list[Event]) -> tuple[list[Event], RunState]:
    stamped = stamp(events)
    state = fold(stamped)
    added = repair_events(state)
    return added, fold(stamp(added, len(stamped) + 1), state)


def session(*, second_fails: str = "") -> list[Event]:
    return [
        start(),
        run_started(),
        MessageQueued(id="q", text="later"),
        ModeChanged(mode=Mode.STEP),
        *iteration(1, fails="boom"),
        *iteration(2, call="c2", fails=second_fails),
    ]


def coherent(state: RunState) -> None:
    for group in state.history.groups:
        calls = [call["id"] for message in group.messages for call in message.get("tool_calls", ())]
        results = [message["tool_call_id"] for message in group.messages if message["role"] == "tool"]
        assert calls == results
    assert not state.iteration_open
    assert state.history.reply is None
    assert not state.conversation.calls
    assert state.conversation.reply is None
    assert state.escalation is None
    assert not state.approvals


@pytest.mark.parametrize("length", range(1, len(session()) + 1))
def test_cut_anywhere_the_session_is_whole_after_repair_and_keeps_queue_and_mode(length: int):
    events = session()[:length]
    before = fold(stamp(events))
    _, after = repaired(events)
    coherent(after)
    assert after.session.mode is before.session.mode
    assert after.queue == before.queue
    assert after.running == before.running


@pytest.mark.parametrize("length", range(1, len(session()) + 1))
def test_repairing_twice_adds_nothing(length: int):
    _, after = repaired(session()[:length])
    assert repair_events(after) == []


def cut_after(kind: type[Event], nth: int = -1) -> list[Event]:
    events = session()
    places = [place for place, event in enumerate(events) if isinstance(event, kind)]
    return events[: places[nth] + 1]


def test_a_call_that_was_running_has_an_unknown_result():
    added, after = repaired(cut_after(ToolStarted))
    cancelled = [event for event in added if isinstance(event, ToolCancelled)]
    assert [event.call_id for event in cancelled] == ["c2"]
    assert "verify before repeating" in after.history.groups[-1].messages[-1]["content"]
    assert any(isinstance(event, Notice) and "One call" in event.text for event in added)


def test_an_iteration_that_was_cut_short_is_not_judged():
    added, _ = repaired(cut_after(ToolStarted))
    assert not any(isinstance(event, VerdictReached) for event in added)
    cancelled = [*session()[:-3], IterationFinished(iteration=2, cancelled=True)]
    assert repaired(cancelled)[0] == []


def test_a_call_that_had_not_begun_is_said_not_to_have():
    added, after = repaired(cut_after(ReplyFinished))
    assert [event.reason for event in added if isinstance(event, ToolCancelled)] == ["interrupted"]
    assert "not started" in after.history.groups[-1].messages[-1]["content"]


def test_a_cut_short_iteration_is_no_failure_of_the_model():
    before = fold(stamp(session()[: len(session()) - 10]))
    for kind in (IterationStarted, ModelCallStarted, ReplyDelta, ReplyFinished, ToolStarted):
        _, after = repaired(cut_after(kind))
        assert after.recovery.of(ErrorStreak).count == before.recovery.of(ErrorStreak).count
        assert after.recovery.of(ErrorRing).slots == before.recovery.of(ErrorRing).slots
        assert after.recovery.of(AttemptLedger).entries == before.recovery.of(AttemptLedger).entries


def test_the_note_that_the_model_never_saw_the_answer_to_goes_with_the_next_call():
    for kind in (ModelCallStarted, ReplyDelta):
        events = cut_after(kind)
        events = [
            event.model_copy(update={"note": "Try another way."})
            if isinstance(event, ModelCallStarted) and event.iteration == 2
            else event
            for event in events
        ]
        _, after = repaired(events)
        assert after.note == "Try another way."


def test_an_iteration_that_lacked_only_its_end_is_judged_like_any_other():
    whole = fold(stamp(session(second_fails="boom")))
    events = session(second_fails="boom")
    last_result = max(place for place, event in enumerate(events) if isinstance(event, ToolFailed))
    added, after = repaired(events[: last_result + 1])
    kinds = [type(event) for event in added]
    assert kinds[:2] == [IterationFinished, VerdictReached]
    assert after.recovery.of(ErrorStreak) == whole.recovery.of(ErrorStreak)
    assert after.recovery.of(ErrorRing).tripped == whole.recovery.of(ErrorRing).tripped
    assert after.note is not None


@pytest.mark.parametrize("kind", [IterationFinished, VerdictReached])
def test_a_verdict_or_note_that_was_not_recorded_any_more_is_made(kind: type[Event]):
    events = session(second_fails="boom")
    place = max(place for place, event in enumerate(events) if isinstance(event, kind))
    _, after = repaired(events[: place + 1])
    assert after.verdict is not None
    assert after.verdict.iteration == 2
    assert after.note


def test_a_note_that_the_operator_dropped_stays_dropped():
    events = [*session(second_fails="boom"), NotePrepared(text=None, edited=True)]
    added, after = repaired(events)
    assert added == []
    assert after.note is None


def test_an_answer_that_was_not_recorded_as_one_ends_the_run():
    events = [
        start(),
        run_started(),
        IterationStarted(iteration=1),
        ModelCallStarted(iteration=1),
        ReplyFinished(text="All is well."),
    ]
    added, after = repaired(events)
    assert isinstance(added[1], RunFinished)
    assert (after.run.outcome, after.run.answer) == (Outcome.ANSWERED, "All is well.")


def test_a_reply_that_gives_up_after_a_failure_is_rejected_as_it_would_have_been():
    events = [
        start(),
        run_started(operator_present=False),
        *iteration(1, fails="boom"),
        IterationStarted(iteration=2),
        ModelCallStarted(iteration=2),
        ReplyFinished(text="I give up."),
    ]
    added, after = repaired(events)
    assert isinstance(added[0], ReplyRejected)
    assert after.running
    assert after.note


def test_a_run_that_a_verdict_had_stopped_ends_with_its_partial_answer():
    events: list[Event] = [start(), run_started(policy="hpd")]
    for number in range(1, 5):
        events += iteration(number, call=f"c{number}", fails=f"boom {number}", path=f"{number}.py")
    last = max(place for place, event in enumerate(events) if isinstance(event, IterationFinished))
    added, after = repaired(events[: last + 1])
    assert after.run.outcome is Outcome.STOPPED
    assert not any(isinstance(event, Notice) for event in added)  # nothing goes on
    assert "Maximum consecutive errors (3) exceeded" in after.run.answer


def test_an_open_question_stays_open_and_is_asked_again():
    events = [*session(second_fails="boom"), EscalationRaised(id="e1", question="?", source="attempts")]
    added, after = repaired(events)
    assert added == []
    assert decide(after) == Ask(after.escalation)


def test_a_question_of_the_model_stays_open_with_its_call():
    asking = ToolCall(id="c9", name="ask_operator", arguments='{"question":"?"}', key="k", effect="dialogue")
    events = [
        start(),
        run_started(),
        IterationStarted(iteration=1),
        ModelCallStarted(iteration=1),
        ReplyFinished(calls=(asking,)),
        ToolStarted(call_id="c9", tool="ask_operator", input={"question": "?"}, key="k"),
        EscalationRaised(id="ask-c9", question="?", source="ask_operator"),
    ]
    added, after = repaired(events)
    assert [type(event) for event in added] == [Notice]
    assert decide(after) == Ask(after.escalation)
    answered = escalation_answered(after.escalation, "answer", "Yes.")
    step = decide(apply(after, answered.stamped(after.seq + 1, after.at)))
    assert [type(event) for event in step.events] == [ToolSucceeded]
