"""Compaction through the production loop: a summary replaces exchanges, keeps what must stay, and is an event."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.runtime.scripted import ScriptedOperator
from tests.runtime.session_harness import LiveSession, assert_coherent, replayed, start_session
from tests.scripted_model import scripted_model
from tui_agent.config.settings import Settings
from tui_agent.core import events
from tui_agent.core.evolve import evolve
from tui_agent.core.projections.entries import SummaryEntry
from tui_agent.core.projections.history import Group, History, estimate_tokens
from tui_agent.core.request import compaction, window
from tui_agent.core.request.coherence import validate
from tui_agent.core.state import RunFacts, RunState
from tui_agent.models.protocol import Delta, ModelFault, ModelRequest, Reply
from tui_agent.session.fork import ForkChoice, fork_session
from tui_agent.session.opening import open_session
from tui_agent.store.repair import repair_events

FILES = {f"f{number}.txt": f"file {number}\n" + "word word word word\n" * 240 for number in range(10)}
SUMMARY = "Goal: read the files. Results: each is full of words."


def asked(**turn: Any) -> dict[str, Any]:
    """The turn of a model that is asked for a summary."""
    return {"anywhere": True, "when": {"user": compaction.OPENING}, **turn}


def reads(*numbers: int) -> list[Mapping[str, Any]]:
    return [{"calls": [{"tool": "read_file", "args": {"path": f"f{number}.txt"}}]} for number in numbers]


async def start(folder: Path, turns: list[Any], **options: Any) -> LiveSession:
    return await start_session(folder, turns, files=FILES, **{"context_tokens": 12_000, **options})


def contents(messages: list[dict[str, Any]]) -> list[str]:
    return [str(message["content"]) for message in messages]


async def test_near_the_end_of_the_window_a_summary_replaces_whole_exchanges(tmp_path: Path) -> None:
    turns = [
        asked(text=SUMMARY, usage={"prompt": 900, "completion": 20, "cost": 0.25}),
        *reads(*range(8)),
        "done",
    ]
    live = await start(tmp_path, turns)
    finished = await live.run("Read them all, and mind the umlauts: äöü.")
    await live.session.close()
    assert finished.answer == "done"
    assert replayed(live.session) == live.state
    (first, *_) = made = live.of(events.Compacted)
    assert (first.rule, first.summary) == ("window.summary", SUMMARY)
    assert first.tokens_after < first.tokens_before / 2
    assert not live.of(events.WindowCut)
    requests = [request.messages for request in live.model.requests]
    for messages in requests:
        assert_coherent(messages)
        assert messages[1]["content"] == "Read them all, and mind the umlauts: äöü."
    last = contents(requests[-1])
    assert [SUMMARY in text for text in last].count(True) == 1, "the newer summary replaces the older"
    summaries = [messages for messages in requests if compaction.OPENING in str(messages[-1]["content"])]
    assert len(summaries) == len(made)
    # It begins like the request before it, so a provider's cache serves it.
    before = requests[requests.index(summaries[0]) - 1]
    assert summaries[0][:-1] == before[: len(summaries[0]) - 1]
    usage = live.state.metrics.usage
    assert usage.priced == pytest.approx(0.25 * len(made))
    assert usage.prompt_tokens == 900 * len(made)
    entries = [entry for entry in live.state.conversation.entries if isinstance(entry, SummaryEntry)]
    assert [entry.summary for entry in entries] == [SUMMARY] * len(made)
    assert [line.kind for line in live.state.timeline.lines].count("window") == len(made)


NO_SUMMARY = [
    ("the model fails", {"fault": {"kind": "server"}}, "server error"),
    ("it says nothing", {"text": "  "}, "wrote no summary"),
    ("it writes without end", {"text": " ".join(map(str, range(3_000)))}, "too long"),
    ("it says the same over and over", {"text": "The model read a file. " * 2_000}, "again and again"),
    ("it is cut", {"text": "Goal: re", "finish_reason": "length"}, "cut by the reply's length limit"),
    ("it calls a tool instead", {"calls": [{"tool": "list_dir", "args": {}}]}, "wrote no summary"),
]


@pytest.mark.parametrize(("turn", "why"), [row[1:] for row in NO_SUMMARY], ids=[row[0] for row in NO_SUMMARY])
async def test_without_a_usable_summary_the_window_is_cut(
    tmp_path: Path, turn: dict[str, Any], why: str
) -> None:
    live = await start(tmp_path, [asked(**turn), *reads(*range(8)), "done"])
    finished = await live.run()
    await live.session.close()
    assert finished.answer == "done"
    (cut, *_), (failed, *_) = live.of(events.WindowCut), live.of(events.CompactionFailed)
    assert why in failed.reason
    most = len(live.of(events.WindowCut)) + 1 + failed.transient
    assert len(live.of(events.CompactionFailed)) <= most, "not in every iteration"
    assert failed.seq < cut.seq
    assert live.state.metrics.failures == 0
    assert replayed(live.session) == live.state


async def test_a_summary_whose_server_is_busy_is_tried_again_with_the_next_iteration(tmp_path: Path) -> None:
    live = await start(tmp_path, [asked(text=SUMMARY), *reads(*range(8)), "done"])
    stream, busy = live.model.stream, [True]

    async def once_busy(request: ModelRequest) -> AsyncGenerator[Delta | Reply, None]:
        if compaction.OPENING in str(request.messages[-1]["content"]) and busy:
            busy.pop()
            raise ModelFault(events.Fault(kind=events.FaultKind.OVERLOADED, message="busy"))
        async for piece in stream(request):
            yield piece

    live.model.stream = once_busy
    await live.run()
    await live.session.close()
    (failed,), (made, *_) = live.of(events.CompactionFailed), live.of(events.Compacted)
    assert (failed.transient, failed.reason) == (True, "busy")
    calls = [event.seq for event in live.of(events.ModelCallStarted)]
    assert sum(failed.seq < seq < made.seq for seq in calls) == 1, "with the next iteration, not at once"
    assert not live.of(events.WindowCut)


async def test_where_the_model_for_summaries_fails_the_runs_own_writes_them_at_once(tmp_path: Path) -> None:
    turns = [asked(text=SUMMARY), *reads(*range(8)), "done"]
    live = await start(tmp_path, turns, summary_model="scripted:cheap")
    stream = live.model.stream

    async def cheap_is_away(request: ModelRequest) -> AsyncGenerator[Delta | Reply, None]:
        if request.model == "scripted:cheap":
            raise ModelFault(events.Fault(kind=events.FaultKind.AUTH, message="no key"))
        async for piece in stream(request):
            yield piece

    live.model.stream = cheap_is_away
    await live.run()
    live.session.compact("mind the names")
    await live.session.wait()
    await live.session.close()
    failed, made = live.of(events.CompactionFailed), live.of(events.Compacted)
    assert len(failed) == len(made) > 1, "each time the cheap one is asked first"
    assert failed[0].in_words == "no key. scripted is asked instead."
    assert all(one.seq < other.seq for one, other in zip(failed, made, strict=True))
    assert not live.of(events.WindowCut)
    assert "mind the names" in str(live.sent()[-1]), "what the operator asked for goes along"
    assert live.state.compaction_asked is None
    assert replayed(live.session) == live.state


async def test_the_operator_asks_between_runs_and_the_words_stay(tmp_path: Path) -> None:
    live = await start(
        tmp_path,
        [asked(text=SUMMARY), *reads(0, 1), "first", *reads(2), "second", "third"],
        context_tokens=None,
    )
    await live.run("First, read f0 and f1.")
    await live.run("Then f2, please.")
    whole = contents(live.sent())
    live.session.compact("the file names")
    assert await live.session.wait() is None
    assert "in particular: the file names" in contents(live.sent())[-1]
    (made,) = live.of(events.Compacted)
    assert made.rule == "operator.compact"
    assert not live.state.running
    await live.run("And now?")
    sent = contents(live.sent())
    assert sent[1:3] == ["First, read f0 and f1.", "Then f2, please."]
    assert SUMMARY in sent[3]
    assert sent[4:] == ["second", "And now?"]
    # A rewind to before the summary brings everything back.
    point = next(one for one in live.session.rewinding.points() if "summarised" in one.label)
    await live.session.rewinding.carry_out(await live.session.rewinding.plan(point, "conversation"))
    shown = window.messages_in_window(live.state.history, live.state.run.number)
    assert [text for group in shown for text in contents(list(group.messages))][: len(whole) - 1] == whole[1:]
    await live.session.close()
    assert replayed(live.session) == live.state
    # And so does a fork from there.
    folder = await fork_session(live.session.folder, live.session.folder.parent, ForkChoice(made.seq - 1))
    model = scripted_model(["forked"])
    configured = Settings(model="scripted", workspace=tmp_path / "workspace", state_dir=tmp_path / "state")
    fork = await open_session(configured, ScriptedOperator(), model, resume=folder)
    await fork.submit("Go on.")
    await fork.wait()
    await fork.close()
    assert not any(SUMMARY in text for text in contents(model.requests[-1].messages))
    assert contents(model.requests[-1].messages)[1 : len(whole)] == whole[1:]


async def test_asked_for_in_a_paused_run_it_is_answered_and_comes_when_the_run_goes_on(
    tmp_path: Path,
) -> None:
    sleep = {"calls": [{"tool": "bash", "args": {"command": "sleep 1000"}}]}
    live = await start(
        tmp_path, [asked(text=SUMMARY), *reads(0, 1), sleep, "done"], context_tokens=None, sandbox="off"
    )
    await live.session.submit("go")
    await live.until(
        lambda state: any((c.tool, c.state) == ("bash", "running") for c in state.conversation.calls)
    )
    await live.session.interrupt()
    assert live.session.compact().startswith(
        "The run is paused: the older part is summarised when it goes on"
    )
    assert (await live.ended()).answer == "done"
    assert len(live.of(events.Compacted)) == 1
    await live.session.close()


async def test_of_words_that_are_too_many_the_newest_stay_whole_and_the_older_by_their_beginning(
    tmp_path: Path,
) -> None:
    answers = [f"answer {number}" for number in range(5)]
    live = await start(tmp_path, [asked(text=SUMMARY), *answers, "last"], context_tokens=14_000)
    for number in range(5):
        await live.run(f"Wish {number}. " + "and more of it " * 150)
    live.session.compact()
    await live.session.wait()
    await live.run("now")
    sent = contents(live.sent())[1:]
    whole = [text for text in sent if text.startswith("Wish ")]
    (summary,) = [text for text in sent if SUMMARY in text]
    assert 1 <= len(whole) < 5
    assert whole[-1].startswith("Wish 4.")
    assert all(f"- Wish {number}. and more" in summary for number in range(5 - len(whole)))
    await live.session.close()


async def test_with_nothing_to_summarise_the_operator_is_told_so_and_no_call_is_made(tmp_path: Path) -> None:
    live = await start(tmp_path, ["hello"])
    for task in ("", "hi"):
        if task:
            await live.run(task)
        live.session.compact()
        await live.session.wait()
        assert live.of(events.CompactionFailed)[-1].reason == compaction.NOTHING
    assert len(live.model.requests) == 1
    await live.session.close()


SLOW = asked(text="Goal: " + "x" * 200, pace={"chars": [1, 1], "interval": 20})


async def test_a_summary_under_way_in_a_run_can_be_interrupted(tmp_path: Path) -> None:
    live = await start(tmp_path, [SLOW, *reads(*range(6)), "done"], pace=1.0)
    await live.session.submit("go")
    await live.until(lambda state: state.compacting is not None)
    assert str(live.state.phase) == "compacting"
    # A process that is killed now leaves this; what completes it ends the summary and the iteration.
    added = [type(event) for event in repair_events(live.state)]
    assert added == [
        events.Interrupted,
        events.CompactionFailed,
        events.IterationFinished,
        events.Notice,
    ]
    await live.session.interrupt()
    assert live.state.session.mode is events.Mode.PAUSED
    assert (await live.ended()).answer == "done"
    (failed,) = live.of(events.CompactionFailed)
    assert failed.reason == compaction.CUT_SHORT
    await live.session.close()
    assert replayed(live.session) == live.state


async def test_a_summary_that_is_asked_for_during_the_last_call_comes_after_the_run(tmp_path: Path) -> None:
    live = await start(tmp_path, [asked(text=SUMMARY), *reads(0, 1), "done"], context_tokens=None)

    def ask(event: events.Event, state: RunState) -> None:
        if isinstance(event, events.ModelCallStarted) and state.run.iteration == 3:
            live.session.compact()

    live.session.subscribe(ask)
    assert (await live.run()).answer == "done"
    (made,) = live.of(events.Compacted)
    assert made.seq > live.of(events.RunFinished)[0].seq
    await live.session.close()


async def test_a_summary_between_runs_can_be_interrupted_by_anything(tmp_path: Path) -> None:
    live = await start(tmp_path, [SLOW, *reads(0, 1), "done", "again"], context_tokens=None, pace=1.0)
    await live.run()
    live.session.compact()
    await live.until(lambda state: state.compacting is not None)
    await live.session.submit("one more")
    await live.session.interrupt()
    assert (await live.ended()).answer == "again", "what was queued meanwhile is the next run"
    assert live.state.session.mode is events.Mode.AUTO, "between runs there is nothing to pause"
    live.session.compact()
    await live.until(lambda state: state.compacting is not None)
    # What a killed process would leave behind is closed when the session is opened again.
    (closing,) = repair_events(live.state)
    assert isinstance(closing, events.CompactionFailed)
    await live.session.close()
    assert live.state.compacting is None
    assert [failed.reason for failed in live.of(events.CompactionFailed)] == [compaction.CUT_SHORT] * 2
    assert replayed(live.session) == live.state


async def test_estimates_are_corrected_by_what_the_provider_counts_and_a_resume_knows_it(
    tmp_path: Path,
) -> None:
    turns = [*reads(0), {**reads(1)[0], "usage": {"prompt": 100_000}}, "done"]
    live = await start(tmp_path, turns, context_tokens=None)
    await live.run()
    assert live.state.calibration == {}, "neither no count nor an impossible one says anything"
    await live.session.close()

    (tmp_path / "two").mkdir()
    probe = live.of(events.ModelCallStarted)[0].tokens
    counted = [{**turn, "usage": {"prompt": 2 * probe}} for turn in reads(0)]
    live = await start(tmp_path / "two", [*counted, "done", asked(text=SUMMARY)], context_tokens=None)
    await live.run()
    second = live.of(events.ModelCallStarted)[1]
    assert second.calibration == pytest.approx(2, rel=0.01)
    assert second.tokens > 2 * (probe + estimate_tokens(FILES["f0.txt"]))
    await live.session.close()
    assert replayed(live.session).calibration == live.state.calibration


async def test_what_no_window_holds_is_not_sent_to_be_summarised(tmp_path: Path) -> None:
    live = await start(tmp_path, [asked(text=SUMMARY), *reads(0, 1, 2), "done", "again"], context_tokens=None)
    await live.run()
    live.session.recorder.record(events.ModelWindowLearned(model="scripted", tokens=5_000))
    live.session.compact()
    await live.session.wait()
    assert live.of(events.CompactionFailed)[-1].reason == compaction.TOO_LONG
    assert (await live.run("on")).answer == "again"
    assert live.of(events.WindowCut)
    await live.session.close()


replies_to_compaction = st.sampled_from([{"text": SUMMARY}, *(row[1] for row in NO_SUMMARY)])


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    replies_to_compaction, st.lists(st.integers(5, 60), max_size=3), st.lists(st.integers(5, 60), max_size=2)
)
def test_whenever_it_is_interrupted_or_asked_for_replay_equals_live_and_requests_are_coherent(
    turn: dict[str, Any], cuts: list[int], asks: list[int]
) -> None:
    async def play(folder: Path) -> None:
        live = await start(folder, [asked(**turn), *reads(*range(7)), "done"], max_iterations=12)
        cutting: set[asyncio.Task[None]] = set()

        def cut_in(event: events.Event, _: object) -> None:
            if event.seq in cuts:
                cutting.add(asyncio.create_task(live.session.interrupt()))
            if event.seq in asks:
                live.session.compact()

        live.session.subscribe(cut_in)
        await live.run()
        await live.session.close()
        assert replayed(live.session) == live.state
        assert live.state.compacting is None
        assert live.state.compaction_asked is None
        for request in live.model.requests:
            assert_coherent(request.messages)
            assert request.messages[1]["content"] == "go"

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(play(Path(folder)))


groups = st.lists(
    st.tuples(st.sampled_from(["task", "operator", "exchange", "exchange"]), st.integers(1, 800)),
    min_size=1,
    max_size=30,
)


def group(kind: Any, size: int, seq: int) -> Group:
    text = f"{kind} {seq} " + "x" * size
    if kind != "exchange":
        return Group(kind, ({"role": "user", "content": text},), estimate_tokens(text), 1, seq)
    call = {"id": f"c{seq}", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
    messages = (
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{seq}", "content": text},
    )
    return Group("exchange", messages, estimate_tokens(text), 1, seq)


@given(groups, st.integers(200, 8_000), st.booleans(), st.integers(0, 6))
def test_whatever_is_summarised_calls_keep_their_results_and_the_operator_is_heard(
    shapes: list[tuple[str, int]], room: int, asked: bool, more: int
) -> None:
    history = History(run=1)
    for seq, (kind, size) in enumerate([("task", 20), *shapes], 1):
        history = history.plus(group(kind, size, seq))
    state = RunState(history=history, run=RunFacts(number=1))
    for turn in range(3):
        wanted = compaction.plan(state.history, 1, room, asked=asked)
        if wanted is None:
            break
        sent = [message for one in compaction.request(state, wanted.to_seq) for message in one.messages]
        assert validate(sent)[1] == {}
        started = events.CompactionStarted(model="m", to_seq=wanted.to_seq, groups=wanted.groups, tokens=1)
        made = compaction.compacted(state, started, wanted, f"summary {turn}")
        if isinstance(made, str):
            break
        newest = state.history.groups[-1]
        state = evolve(state, history=state.history.apply(made.stamped(1_000 + turn, 0.0)))
        shown = window.messages_in_window(state.history, 1)
        assert validate([message for one in shown for message in one.messages])[1] == {}
        assert window.tokens_of(shown) == made.tokens_after < made.tokens_before
        assert window.tokens_in_window(state.history, 1) == made.tokens_after
        assert shown[-1] is newest
        assert [one.kind for one in shown].count("summary") == 1
        kept = {one.seq for one in shown if one.kind in {"task", "operator"}}
        words = [one for one in state.history.groups if one.kind in {"task", "operator"}]
        assert [one for one in words if one.kind == "task"][-1].seq in kept
        assert words[-1].seq in kept
        assert kept >= {one.seq for one in words if one.seq >= wanted.words_from}
        for seq in range(more):
            before = window.messages_in_window(state.history, 1)
            grown = state.history.plus(group("exchange", 300, 100 + 10 * turn + seq))
            state = evolve(state, history=grown)
            assert window.messages_in_window(state.history, 1)[: len(before)] == before
