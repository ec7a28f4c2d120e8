"""A session whose process died anywhere in a run is whole again after its repair, and nothing that counted is lost."""

from __future__ import annotations

import pytest

from tests.sessions.session_events import iteration, run_started, stamp, start
from tui_agent import events as e
from tui_agent.sessions.repair import repair_events
from tui_agent.state import RunState, fold


def repaired(events: list[e.Event]) -> tuple[list[e.Event], RunState]:
    stamped = stamp(events)
    state = fold(stamped)
    added = repair_events(state)
    return added, fold(stamp(added, len(stamped) + 1), state)


def session(*, second_fails: str = "") -> list[e.Event]:
    return [
        start(),
        run_started(),
        e.MessageQueued(id="q", text="later"),
        e.ModeChanged(mode=e.Mode.STEP),
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


def cut_after(kind: type[e.Event], nth: int = -1) -> list[e.Event]:
    events = session()
    places = [place for place, event in enumerate(events) if isinstance(event, kind)]
    return events[: places[nth] + 1]


def test_a_call_that_was_running_has_an_unknown_result():
    added, after = repaired(cut_after(e.ToolStarted))
    cancelled = [event for event in added if isinstance(event, e.ToolCancelled)]
    assert [event.call_id for event in cancelled] == ["c2"]
    assert "result unknown" in cancelled[0].reason
    assert "verify before repeating" in after.history.groups[-1].messages[-1]["content"]
    assert any(isinstance(event, e.Notice) and "One call" in event.text for event in added)


def test_an_iteration_that_was_cut_short_is_not_judged():
    added, _ = repaired(cut_after(e.ToolStarted))
    assert not any(isinstance(event, e.VerdictReached) for event in added)
    cancelled = [*session()[:-3], e.IterationFinished(iteration=2, cancelled=True)]
    assert repaired(cancelled)[0] == []


def test_a_call_that_had_not_begun_is_said_not_to_have():
    added, after = repaired(cut_after(e.ReplyFinished))
    assert [event.reason for event in added if isinstance(event, e.ToolCancelled)] == ["interrupted"]
    assert "not started" in after.history.groups[-1].messages[-1]["content"]


def test_a_cut_short_iteration_is_no_failure_of_the_model():
    before = fold(stamp(session()[: len(session()) - 10]))
    for kind in (e.IterationStarted, e.ModelCallStarted, e.ReplyDelta, e.ReplyFinished, e.ToolStarted):
        _, after = repaired(cut_after(kind))
        assert after.recovery.streak.count == before.recovery.streak.count
        assert after.recovery.ring.slots == before.recovery.ring.slots
        assert after.recovery.attempts.entries == before.recovery.attempts.entries


def test_the_note_that_the_model_never_saw_the_answer_to_goes_with_the_next_call():
    for kind in (e.ModelCallStarted, e.ReplyDelta):
        events = cut_after(kind)
        events = [
            event.model_copy(update={"note": "Try another way."})
            if isinstance(event, e.ModelCallStarted) and event.iteration == 2
            else event
            for event in events
        ]
        _, after = repaired(events)
        assert after.note == "Try another way."


def test_an_iteration_that_lacked_only_its_end_is_judged_like_any_other():
    whole = fold(stamp(session(second_fails="boom")))
    events = session(second_fails="boom")
    last_result = max(place for place, event in enumerate(events) if isinstance(event, e.ToolFailed))
    added, after = repaired(events[: last_result + 1])
    kinds = [type(event) for event in added]
    assert kinds[:2] == [e.IterationFinished, e.VerdictReached]
    assert after.recovery.streak == whole.recovery.streak
    assert after.recovery.ring.tripped == whole.recovery.ring.tripped
    assert after.note is not None


@pytest.mark.parametrize("kind", [e.IterationFinished, e.VerdictReached])
def test_a_verdict_or_note_that_was_not_recorded_any_more_is_made(kind: type[e.Event]):
    events = session(second_fails="boom")
    place = max(place for place, event in enumerate(events) if isinstance(event, kind))
    _, after = repaired(events[: place + 1])
    assert after.verdict is not None
    assert after.verdict.iteration == 2
    assert after.note


def test_a_note_that_the_operator_dropped_stays_dropped():
    events = [*session(second_fails="boom"), e.NotePrepared(text=None, edited=True)]
    added, after = repaired(events)
    assert added == []
    assert after.note is None


def test_an_answer_that_was_not_recorded_as_one_ends_the_run():
    events = [
        start(),
        run_started(),
        e.IterationStarted(iteration=1),
        e.ModelCallStarted(iteration=1),
        e.ReplyFinished(text="All is well."),
    ]
    added, after = repaired(events)
    assert isinstance(added[1], e.RunFinished)
    assert (after.run.outcome, after.run.answer) == (e.Outcome.ANSWERED, "All is well.")


def test_a_reply_that_gives_up_after_a_failure_is_rejected_as_it_would_have_been():
    events = [
        start(),
        run_started(),
        *iteration(1, fails="boom"),
        e.IterationStarted(iteration=2),
        e.ModelCallStarted(iteration=2),
        e.ReplyFinished(text="I give up."),
    ]
    added, after = repaired(events)
    assert isinstance(added[0], e.ReplyRejected)
    assert after.running
    assert after.recovery.ring.slots[1] is not None
    assert after.note


def test_a_run_that_a_verdict_had_stopped_ends_with_its_partial_answer():
    events: list[e.Event] = [start(), run_started(policy="hpd")]
    for number in range(1, 5):
        events += iteration(number, call=f"c{number}", fails=f"boom {number}", path=f"{number}.py")
    last = max(place for place, event in enumerate(events) if isinstance(event, e.IterationFinished))
    _, after = repaired(events[: last + 1])
    assert after.run.outcome is e.Outcome.STOPPED
    assert "Maximum consecutive errors (3) exceeded" in after.run.answer


def test_an_open_question_is_closed_without_an_answer():
    events = [*session(second_fails="boom"), e.EscalationRaised(id="e1", question="?", source="attempts")]
    added, after = repaired(events)
    assert isinstance(added[0], e.EscalationAnswered)
    assert (added[0].choice, added[0].message, added[0].by) == ("skip", "", "policy")
    coherent(after)


def test_a_question_of_the_model_is_closed_and_its_call_cancelled():
    events = [
        *cut_after(e.ToolStarted),
        e.EscalationRaised(id="e1", question="?", source="ask_operator"),
    ]
    added, after = repaired(events)
    assert [type(event) for event in added[:3]] == [
        e.EscalationAnswered,
        e.ToolCancelled,
        e.IterationFinished,
    ]
    coherent(after)


@pytest.mark.parametrize("ending", [[], [e.RunFinished(outcome=e.Outcome.ANSWERED, answer="done")]])
def test_a_session_without_a_run_under_way_needs_nothing(ending: list[e.Event]):
    events = [*session(), *ending] if ending else [start()]
    assert repair_events(fold(stamp(events))) == []
