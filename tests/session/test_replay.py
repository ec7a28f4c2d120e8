"""Replay: the state anywhere in a saved session is the state that was live there."""

from __future__ import annotations

import random
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.store.session_events import (
    PIECES,
    iteration,
    run_started,
    stamp,
    start,
    write_session,
)
from tui_agent.core.events import (
    EVENT_TYPES,
    EscalationAnswered,
    EscalationRaised,
    Event,
    IterationFinished,
    IterationStarted,
    ModelCallStarted,
    NotePrepared,
    Notice,
    Outcome,
    ReplyDelta,
    ReplyFinished,
    RunFinished,
    RunStarted,
    SessionStarted,
    ToolCall,
    ToolCancelled,
    ToolFailed,
    ToolProgress,
    ToolStarted,
    ToolSucceeded,
    VerdictReached,
)
from tui_agent.core.fold import apply, fold
from tui_agent.core.recovery.cognition import CognitiveState
from tui_agent.core.state import RunState
from tui_agent.session import replay as replay_module
from tui_agent.session.replay import Replay, StopAt
from tui_agent.store.errors import JournalError
from tui_agent.store.journal import JOURNAL_NAME
from tui_agent.store.journal_index import EventList
from tui_agent.store.lines import encode


def whole_session() -> list[Event]:
    events: list[Event] = [start()]
    for run in (1, 2):
        events.append(run_started(run))
        for number in range(1, 9):
            failing = "no such file: a.py" if number in (2, 3, 5) else ""
            events += iteration(number, call=f"c{run}-{number}", fails=failing)
        events += [
            EscalationRaised(id=f"e{run}", question="now?", source="attempts"),
            EscalationAnswered(id=f"e{run}", choice="answer", text="go on", message="go on"),
            RunFinished(outcome=Outcome.ANSWERED, answer="done"),
        ]
    return stamp(events)


@pytest.fixture(autouse=True)
def close_snapshots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay_module, "SPACING", 7)


def _from_disk(events: list[Event]) -> Replay:
    with tempfile.TemporaryDirectory() as folder:
        write_session(Path(folder), events, stamped=True)
        return Replay.open(Path(folder))


def test_without_preparing_any_position_is_right_and_only_what_is_needed_is_read():
    events = whole_session()
    source = EventList(events)
    replay = Replay(source)
    assert replay.state_at(12) == fold(events[:12])
    assert len(replay._snapshots) <= 3
    assert replay.next(0, StopAt.ERROR) == positions(events, ToolFailed)[0]
    assert replay.state_at(90) == fold(events[:90])
    assert replay.state_at(5) == fold(events[:5])
    assert list(replay.marks().errors) == positions(events, ToolFailed)


def test_seeking_while_another_thread_prepares_is_right():
    events = whole_session()
    replay = Replay(EventList(events))
    with ThreadPoolExecutor(2) as pool:
        preparing = pool.submit(replay.prepare)
        for place in (3, 150, 40, len(events), 7):
            assert replay.state_at(place) == fold(events[:place])
        preparing.result()
    assert replay.marks() == Replay.of(events).marks()


def test_a_snapshot_in_the_middle_of_a_reply_holds_what_had_streamed():
    parts = [ReplyDelta(text="par"), ReplyDelta(text="tial")]
    for before in range(replay_module.SPACING):
        story = [start(), *[Notice(text="x")] * before, ModelCallStarted(iteration=1), *parts]
        events = stamp([*story, NotePrepared(text="edited"), ReplyFinished()])
        replay = Replay.of(events)
        assert replay.state_at(len(events) - 1) == fold(events[:-1])


def test_what_an_interrupted_call_had_written_is_there_after_a_jump():
    call = {"call_id": "c", "tool": "bash", "input": {}}
    asked = ReplyFinished(calls=(ToolCall(id="c", name="bash", arguments="{}"),))
    wrote = [asked, ToolStarted(**call), ToolProgress(call_id="c", text="half"), ToolCancelled(**call)]
    for before in range(replay_module.SPACING):
        story = [start(), *[Notice(text="x")] * before, *wrote, IterationFinished(iteration=1)]
        events = stamp([*story, Notice(text="x"), IterationFinished(iteration=2)])
        assert Replay.of(events).state_at(len(events)) == fold(events)


@settings(max_examples=25)
@given(st.lists(st.sampled_from(PIECES), max_size=14), st.randoms(use_true_random=False), st.booleans())
def test_the_replayed_state_is_the_live_state_at_every_prefix(
    pieces: list[list[Event]], choose: random.Random, saved: bool
):
    events = stamp([start(), *(event for piece in pieces for event in piece)])
    live = [RunState()]
    for event in events:
        live.append(apply(live[-1], event))
    replay = _from_disk(events) if saved else Replay(EventList(events))
    places = list(range(len(events) + 1)) * 2
    choose.shuffle(places)
    for place in places:
        assert replay.state_at(place) == fold(events[:place]), place
        assert live[place] == fold(events[:place])


def test_a_find_session_is_replayed_like_the_live_one_in_any_order_of_seeking(tmp_path: Path):
    events = write_session(tmp_path / "s1", whole_session(), stamped=True)
    replay = Replay.open(tmp_path / "s1")
    assert replay.length == len(events)
    places = list(range(len(events) + 1))
    random.Random(7).shuffle(places)
    for place in places:
        assert replay.state_at(place) == fold(events[:place]), place
    for number in (1, 2, len(events)):
        assert replay.event(number) == events[number - 1]


def test_deltas_of_replies_that_arrived_whole_are_not_parsed_while_opening(tmp_path: Path):
    write_session(tmp_path / "s1", whole_session(), stamped=True)
    path = tmp_path / "s1" / JOURNAL_NAME
    path.write_bytes(
        path.read_bytes().replace(b'"text":"Let me ","reasoning":""', b'"text":"Let me ","reasoning":0 ')
    )
    replay = Replay.open(tmp_path / "s1")
    assert replay.state_at(replay.length).phase == "done"
    with pytest.raises(JournalError, match="damaged in line 5"):
        replay.state_at(5)


def test_output_of_a_call_without_a_result_is_not_left_out_for_a_later_call_of_the_same_id(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(replay_module, "SPACING", 1)
    call = [
        IterationStarted(iteration=1),
        ReplyFinished(calls=(ToolCall(id="c", name="bash"),)),
        ToolStarted(call_id="c", tool="bash", input={}),
        ToolProgress(call_id="c", text="half an output"),
    ]
    events: list[Event] = [start(), run_started(), *call, IterationFinished(iteration=1, cancelled=True)]
    events += [NotePrepared(text=None), *call, ToolSucceeded(call_id="c", tool="bash")]
    events = stamp([*events, IterationFinished(iteration=1)])
    replay = Replay.of(events)
    assert replay.state_at(8).conversation.entries[-1].__dict__["progress"] == "half an output"
    assert [replay.state_at(place) for place in range(len(events) + 1)] == [
        fold(events[:place]) for place in range(len(events) + 1)
    ]


def test_positions_outside_the_session_are_brought_inside():
    events = whole_session()
    replay = Replay.of(events)
    assert replay.state_at(-5) == RunState()
    assert replay.state_at(10_000) == fold(events)
    for position in (0, len(events) + 1):
        with pytest.raises(IndexError):
            replay.event(position)


def test_an_empty_replay_has_nothing_but_the_beginning():
    replay = Replay.of([])
    assert (replay.length, replay.state_at(3), replay.delay(0), replay.next(0, StopAt.ERROR)) == (
        0,
        RunState(),
        0.0,
        None,
    )


def positions(events: list[Event], *kinds: type[Event]) -> list[int]:
    return [event.seq for event in events if isinstance(event, kinds)]


@pytest.mark.parametrize(
    ("stop", "kinds"),
    [
        (StopAt.ERROR, (ToolFailed,)),
        (StopAt.ESCALATION, (EscalationRaised,)),
        (StopAt.ITERATION, (IterationStarted,)),
        (StopAt.RUN, (RunStarted,)),
    ],
)
def test_jumps_go_to_the_next_and_the_previous_place_of_a_kind(stop: StopAt, kinds: tuple[type[Event], ...]):
    events = whole_session()
    replay = Replay.of(events)
    expected = positions(events, *kinds)
    found, position = [], 0
    while (position := replay.next(position, stop) or 0) > 0:
        found.append(position)
    assert found == expected
    found, position = [], replay.length + 1
    while (position := replay.next(position, stop, back=True) or 0) > 0:
        found.append(position)
    assert found == expected[::-1]


def test_jumping_to_verdicts_passes_over_those_that_say_go_on():
    events = whole_session()
    expected = [
        event.seq for event in events if isinstance(event, VerdictReached) and event.level != "continue"
    ]
    replay = Replay.of(events)
    assert replay.next(0, StopAt.VERDICT) == expected[0]
    assert [mark.position for mark in replay.marks().verdicts] == expected


def test_the_scrubber_shows_errors_escalations_and_the_confidence_along_the_session():
    events = whole_session()
    marks = Replay.of(events).marks()
    assert list(marks.errors) == positions(events, ToolFailed)
    assert list(marks.escalations) == positions(events, EscalationRaised)
    curve = {point.position: point.confidence for point in marks.confidence}
    expected: dict[int, float] = {}
    state = RunState()
    for event in events:
        state = apply(state, event)
        confidence = state.recovery.of(CognitiveState).confidence
        if not expected or list(expected.values())[-1] != confidence:
            expected[event.seq] = confidence
    assert curve == expected


def test_waiting_is_as_recorded_but_never_longer_than_the_limit_and_never_negative():
    times = [100.0, 100.5, 400.0, 399.0, 399.25]
    events = [
        event.stamped(number, at)
        for number, (event, at) in enumerate(zip(whole_session(), times, strict=False), 1)
    ]
    replay = Replay.of(events)
    assert [replay.delay(position, 2.0) for position in range(6)] == [0.0, 0.5, 2.0, 0.0, 0.25, 0.0]


def test_opening_tells_how_far_it_is():
    reported: list[float] = []
    Replay(EventList(whole_session())).prepare(reported.append)
    assert reported == sorted(reported)
    assert 0 < reported[0] < reported[-1] <= 1


def test_a_torn_end_is_counted_and_a_damaged_line_is_named(tmp_path: Path):
    events = write_session(tmp_path / "s1", whole_session(), stamped=True)
    path = tmp_path / "s1" / JOURNAL_NAME
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"seq":')
    assert Replay.open(path).dropped_bytes == 7
    path.write_bytes(whole[:-1])
    assert Replay.open(path).length == len(events)
    third = encode(events[2])
    for damage in (third[:-10] + b"\n", b"\n", b"{}\n", third.replace(b'"seq":3', b'"seq":4')):
        path.write_bytes(whole.replace(third, damage))
        with pytest.raises(JournalError, match="damaged in line 3"):
            Replay.open(path)


@pytest.mark.parametrize("content", [b"", b"text\n", b'{"seq":1', b"\n"])
def test_what_is_no_session_is_refused(tmp_path: Path, content: bytes):
    (tmp_path / "x.jsonl").write_bytes(content)
    with pytest.raises(JournalError):
        Replay.open(tmp_path / "x.jsonl")


def test_lines_in_another_order_are_read_as_well(tmp_path: Path):
    events = whole_session()
    (tmp_path / "x.jsonl").write_bytes(b"".join(event.model_dump_json().encode() + b"\n" for event in events))
    replay = Replay.open(tmp_path / "x.jsonl")
    assert replay.state_at(replay.length) == fold(events)


def test_snapshots_share_the_memory_of_their_logs():
    replay = Replay.of(whole_session())
    lists = {id(state.conversation.entries._items) for state in replay._snapshots[1:]}
    assert len(replay._snapshots) > 5
    assert len(lists) == 1


def test_pieces_cover_every_type():
    drawn = {type(event) for piece in PIECES for event in piece} | {SessionStarted}
    assert drawn == set(EVENT_TYPES.values())


def test_reading_through_can_be_ended_and_taken_up_again():
    events = whole_session()
    replay = Replay(EventList(events))

    class Enough(Exception):
        pass

    def enough(_: float) -> None:
        raise Enough

    with pytest.raises(Enough):
        replay.prepare(enough)
    replay.prepare()
    assert replay.ready
    assert replay.marks() == Replay.of(events).marks()


def test_what_is_in_the_part_that_is_read_can_be_said_before_the_rest_is():
    events = whole_session()
    whole = Replay.of(events)
    first = whole.next(0, StopAt.ITERATION)
    assert first is not None
    replay = Replay(EventList(events))
    assert not replay.can_tell(0, StopAt.ITERATION)
    replay.state_at(first)
    assert replay.can_tell(0, StopAt.ITERATION)
    assert replay.next(0, StopAt.ITERATION) == first
    assert not replay.ready
    assert replay.can_tell(first, StopAt.ITERATION, back=True)
    assert not replay.can_tell(replay.length, StopAt.ITERATION, back=True)
    assert replay.next(replay.length, StopAt.ITERATION, back=True) == whole.next(
        replay.length, StopAt.ITERATION, back=True
    )
    assert replay.ready


def test_seeks_in_the_part_that_is_read_do_not_wait_for_the_reading():
    events = whole_session()
    replay = Replay(EventList(events))
    looked: list[bool] = []

    def look(_: float) -> None:
        seeking = threading.Thread(target=lambda: looked.append(replay.state_at(5) == fold(events[:5])))
        with replay._lock:
            seeking.start()
            seeking.join(10)

    replay.prepare(look)
    assert looked
    assert all(looked)


def test_a_session_can_end_before_an_event_that_turned_out_to_be_damaged(tmp_path: Path):
    events = write_session(tmp_path / "s1", whole_session(), stamped=True)
    path = tmp_path / "s1" / JOURNAL_NAME
    lines = path.read_bytes().splitlines(keepends=True)
    place = next(number for number, event in enumerate(events, 1) if isinstance(event, VerdictReached))
    lines[place - 1] = lines[place - 1].replace(b'"iteration":', b'"iteration":"x","b":')
    path.write_bytes(b"".join(lines))
    replay = Replay.open(path, prepare=False)
    with pytest.raises(JournalError) as raised:
        replay.prepare()
    assert (replay.reached, raised.value.line) == (place - 1, place)
    replay.end_before(raised.value)
    replay.prepare()
    assert replay.ready
    assert replay.damage is raised.value
    assert replay.marks() == Replay.of(events[: place - 1]).marks()
    assert replay.state_at(10_000) == fold(events[: place - 1])


def test_a_session_that_grows_is_the_same_as_one_that_was_read_at_once(tmp_path: Path):
    events = whole_session()
    write_session(tmp_path, events, stamped=True)
    journal = tmp_path / JOURNAL_NAME
    lines = journal.read_bytes().splitlines(keepends=True)
    whole = Replay.open(tmp_path)
    journal.write_bytes(b"".join(lines[:20]))
    growing = Replay.open(tmp_path)
    for place in range(20, len(lines), 13):
        with journal.open("ab") as file:
            file.write(b"".join(lines[place : place + 13]))
            file.flush()
            assert growing.read_on()
            assert growing.length == min(place + 13, len(lines))
            assert growing.state_at(growing.length) == fold(events[: growing.length])
        assert not growing.read_on()
    assert growing.marks() == whole.marks()
    assert all(growing.state_at(place) == whole.state_at(place) for place in (3, 40, 100, whole.length))


def test_new_events_of_a_session_that_grows_cost_no_more_behind_many(monkeypatch: pytest.MonkeyPatch):
    events = whole_session()
    monkeypatch.setattr(replay_module, "SPACING", len(events))  # no snapshot is near
    folded = 0

    def counting(state: RunState, event: Event) -> RunState:
        nonlocal folded
        folded += 1
        return apply(state, event)

    source = EventList(events[:20])
    growing = Replay(source)
    growing.prepare()
    monkeypatch.setattr(replay_module, "apply", counting)
    cost = []
    for place in range(21, len(events) + 1):
        folded = 0
        growing.follow(source, place - 3, events[place - 3 : place])  # the last two may have changed
        growing.prepare()
        assert growing.state_at(place) == fold(events[:place])
        cost.append(folded)
    assert growing.marks() == Replay.of(events).marks()
    assert max(cost) < 30 < len(events)


def test_a_line_that_is_being_written_waits_for_its_end(tmp_path: Path):
    write_session(tmp_path, whole_session(), stamped=True)
    journal = tmp_path / JOURNAL_NAME
    lines = journal.read_bytes().splitlines(keepends=True)
    for seen in (lines[20][:9], lines[20][:-1]):
        journal.write_bytes(b"".join(lines[:20]) + seen)
        growing = Replay.open(tmp_path)
        known = growing.length
        journal.write_bytes(b"".join(lines[:21]) + lines[21][:30])
        assert growing.read_on() is (known == 20)
        assert growing.length == 21
        journal.write_bytes(b"".join(lines[:23]))
        assert growing.read_on()
        assert growing.state_at(23).seq == 23
