"""Sessions followed as they are written: the same events as of the whole file, whatever happens to the file."""

from __future__ import annotations

import json
import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.formats import samples
from tests.watch import recordings
from tests.watch.growth import LATER, Growth, told
from tui_agent.core import events
from tui_agent.core.fold import fold
from tui_agent.formats.importers.load import find_transcripts, judge, load_transcripts
from tui_agent.formats.importers.transcript import TranscriptError
from tui_agent.store.lines import encode
from tui_agent.watch.watched import Watched

LINES = ("claude_code", "codex", "openhands", "openai_messages_lines")


def pieces(folder: Path, name: str) -> list[bytes]:
    folder.mkdir()
    return samples.write(folder, name).read_bytes().splitlines(keepends=True)


def whole(growth: Growth) -> list[dict[str, Any]]:
    return told(judge(load_transcripts(growth.path)[0], growth.watched.policy).events)


@pytest.mark.parametrize("policy", ["combined", "hpd"])
@pytest.mark.parametrize("name", LINES)
def test_line_by_line_it_comes_to_what_the_whole_file_says(name: str, policy: str, tmp_path: Path) -> None:
    growth = Growth(tmp_path / "session", policy)
    for line in pieces(tmp_path / "sample", name):
        growth.add(line)
    growth.look(LATER)
    assert told(growth.watched.events) == whole(growth)


@pytest.mark.parametrize("name", ["openhands_folder", "mistral_vibe"])
def test_a_session_kept_as_a_folder_is_followed(name: str, tmp_path: Path) -> None:
    source = samples.write(tmp_path, name)
    growing = tmp_path / "growing"
    watched = Watched(growing)
    files = sorted(file for file in source.rglob("*") if file.is_file())
    for file in sorted(files, key=lambda file: file.name != "meta.json"):
        target = growing / file.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        for line in file.read_bytes().splitlines(keepends=True):
            with target.open("ab") as end:
                end.write(line)
            watched.update(4e9)
    watched.update(5e9)
    assert told(watched.events) == told(judge(load_transcripts(growing)[0]).events)


@pytest.mark.parametrize("name", ["mini_swe_agent", "swe_agent", "mistral_vibe_one_file"])
def test_a_document_that_is_written_anew_with_each_step_is_followed(name: str, tmp_path: Path) -> None:
    path = samples.write(tmp_path, name)
    document = json.loads(path.read_text())
    key = "trajectory" if "trajectory" in document else "messages"
    growth = Growth(tmp_path / "session")
    for number in range(1, len(document[key]) + 1):
        growth.path.write_text(json.dumps({**document, key: document[key][:number]}))
        growth.look(0.01)
    growth.look(LATER)
    assert told(growth.watched.events) == whole(growth)


def test_what_stands_is_told_truly(tmp_path: Path) -> None:
    growth = Growth(tmp_path / "session")
    known: list[events.Event] = []
    for line in pieces(tmp_path / "sample", "claude_code"):
        stand = growth.add(line)
        if stand is not None:
            assert growth.watched.events[:stand] == known[:stand]
            known = list(growth.watched.events)
        assert growth.watched.events == known
    assert [event.seq for event in known] == list(range(1, len(known) + 1))
    assert all(one.at <= other.at for one, other in pairwise(known))


def test_each_line_shows_at_once_and_a_call_runs_until_its_result_comes(tmp_path: Path) -> None:
    growth = Growth(tmp_path / "session")
    call = [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "sleep 9"}}]
    for record in (
        samples.claude("user", "u1", None, "Go", 0),
        samples.claude("assistant", "a1", "u1", call, 1, message={"id": "m1"}),
    ):
        growth.add(samples.lines([record]).encode())
    assert isinstance(growth.watched.events[-1], events.ToolStarted)
    growth.look(LATER)
    assert isinstance(growth.watched.events[-1], events.ToolStarted), "it is not taken for cancelled"
    result = samples.claude("user", "r1", "a1", samples.tool_result("t1", "done"), 9)
    growth.add(samples.lines([result]).encode())
    assert any(isinstance(event, events.ToolSucceeded) for event in growth.watched.events)


def test_a_reply_without_calls_is_an_answer_once_nothing_follows(tmp_path: Path) -> None:
    growth = Growth(tmp_path / "session")
    text = [{"type": "text", "text": "I look at it."}]
    growth.add(samples.lines([samples.claude("user", "u1", None, "Go", 0)]).encode())
    growth.add(samples.lines([samples.claude("assistant", "a1", "u1", text, 1)]).encode())
    assert not any(isinstance(event, events.RunFinished) for event in growth.watched.events)
    growth.look(LATER)
    assert isinstance(growth.watched.events[-1], events.RunFinished)
    call = [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}]
    growth.add(samples.lines([samples.claude("assistant", "a2", "a1", call, 2)]).encode())
    assert not any(isinstance(event, events.RunFinished) for event in growth.watched.events)


def test_sub_agents_are_lanes_under_the_call_that_started_them(tmp_path: Path) -> None:
    task = {
        "type": "tool_use",
        "id": "t1",
        "name": "Task",
        "input": {"prompt": "Look there", "description": "look"},
    }
    path = tmp_path / "s-1.jsonl"
    growth = Growth(path)
    growth.add(samples.lines([samples.claude("user", "u1", None, "Go", 0)]).encode())
    growth.add(samples.lines([samples.claude("assistant", "a1", "u1", [task], 1)]).encode())
    beside = tmp_path / "s-1" / "subagents" / "agent-x.jsonl"
    beside.parent.mkdir(parents=True)
    side = {"isSidechain": True, "agentId": "x"}
    with beside.open("a") as file:
        file.write(samples.lines([samples.claude("user", "b1", None, "Look there", 2, **side)]))
    growth.look(0.1)
    fails = [{"type": "tool_use", "id": "t2", "name": "Bash", "input": {"command": "make"}}]
    with beside.open("a") as file:
        file.write(samples.lines([samples.claude("assistant", "b2", "b1", fails, 3, **side)]))
        result = samples.tool_result("t2", "Exit code 2\nno rule", is_error=True)
        file.write(samples.lines([samples.claude("user", "b3", "b2", result, 4, **side)]))
    growth.look(0.1)
    state = fold(growth.watched.events)
    assert list(state.lanes) == ["t1"]
    assert state.lanes["t1"].metrics.tool_errors == 1
    growth.add(
        samples.lines([samples.claude("user", "r1", "a1", samples.tool_result("t1", "There."), 5)]).encode()
    )
    assert fold(growth.watched.events).lanes == {}


# --- what happens to files ------------------------------------------------------------------------------


def test_a_torn_line_waits_for_its_rest(tmp_path: Path) -> None:
    growth = Growth(tmp_path / "session")
    data = b"".join(pieces(tmp_path / "sample", "codex"))
    for start in range(0, len(data), 97):
        growth.add(data[start : start + 97])
    growth.look(LATER)
    assert told(growth.watched.events) == whole(growth)


@pytest.mark.parametrize("how", ["truncated", "replaced", "rewritten in place", "rotated"])
def test_a_file_that_begins_anew_is_followed_from_there(how: str, tmp_path: Path) -> None:
    growth = Growth(tmp_path / "session")
    for line in pieces(tmp_path / "sample", "claude_code"):
        growth.add(line)
    other = samples.claude("user", "z1", None, f"Another task {'x' * 20_000}", 0)
    new = samples.lines([other, samples.claude("assistant", "z2", "z1", "Done.", 1)]).encode()
    match how:
        case "truncated":
            os.truncate(growth.path, 0)
            growth.look(0.1)
        case "replaced":
            fresh = tmp_path / "fresh"
            fresh.write_bytes(new)
            fresh.replace(growth.path)
        case "rotated":
            growth.path.rename(tmp_path / "session.1")
            assert growth.look(0.1) is None, "what is known stays while the file is gone"
            assert growth.watched.events
    if how != "replaced":
        with growth.path.open("r+b" if growth.path.exists() else "xb") as file:
            file.write(new)
            file.truncate()
    growth.look(0.1)
    growth.look(LATER)
    assert told(growth.watched.events) == whole(growth)
    assert "Another task" in growth.watched.title


def test_two_watchers_of_one_session_see_the_same_and_write_nothing(tmp_path: Path) -> None:
    path = tmp_path / "session"
    one, other = Growth(path), Growth(path)
    for line in pieces(tmp_path / "sample", "codex"):
        one.add(line)
        other.look(0.01)
    assert one.watched.events == other.watched.events
    assert sorted(file.name for file in tmp_path.iterdir()) == ["sample", "session"]


def test_what_is_no_session_yet_is_waited_for_with_the_reason(tmp_path: Path) -> None:
    growth = Growth(tmp_path / "session")
    assert growth.look() is None
    growth.add(b'{"type": "file-history-snapshot", "snapshot": {}}\n')
    assert growth.watched.fault is not None
    assert "none of the known kinds" in str(growth.watched.fault)
    growth.add(samples.lines([samples.claude("user", "u1", None, "Go", 0)]).encode())
    assert growth.watched.fault is None
    assert growth.watched.agent == "Claude Code"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_fuzzed_lines_never_break_it(data: st.DataObject, tmp_path: Path) -> None:
    name = data.draw(st.sampled_from(LINES))
    path = tmp_path / "session"
    path.unlink(missing_ok=True)
    (tmp_path / "source").mkdir(exist_ok=True)
    growth = Growth(path)
    for line in samples.write(tmp_path / "source", name).read_bytes().splitlines(keepends=True):
        broken = bytearray(line)
        for place in data.draw(st.lists(st.integers(0, len(line) - 1), max_size=2)):
            broken[place] = data.draw(st.integers(0, 255))
        try:
            growth.add(bytes(broken))
        except TranscriptError:
            return
    for event in growth.watched.events:
        encode(event)
    fold(growth.watched.events)


def test_threads_of_codex_are_lanes_under_the_call_that_started_them(tmp_path: Path) -> None:
    """The second one was started by the first, and the third began with a copy of the history: a session of its own."""
    main, first, second, forked = (f"00000000-0000-0000-0000-00000000000{number}" for number in range(4))
    files = [
        tmp_path / f"rollout-2026-11-27T20-07-4{number}-{main[:-1]}{number}.jsonl" for number in range(4)
    ]

    def line(kind: str, **payload: Any) -> dict[str, Any]:
        return {"timestamp": recordings.at(1), "type": kind, "payload": payload}

    def meta(key: str, starter: str, **more: Any) -> dict[str, Any]:
        spawned = {"subagent": {"thread_spawn": {"parent_thread_id": starter, "depth": 1}}}
        return line("session_meta", id=key, cwd="/w", source=spawned, agent_nickname="Ada", **more)

    def newer_starts(call: str, thread: str) -> list[dict[str, Any]]:
        """As version 0.171 writes it: an item names the thread, before the output that does not."""
        activity = {"type": "SubAgentActivity", "id": call, "agent_thread_id": thread, "kind": "started"}
        asked, ended = starts(call, "/root/helper")
        return [asked, line("event_msg", type="item_completed", item=activity), ended]

    def starts(call: str, thread: str) -> list[dict[str, Any]]:
        asked = {"type": "function_call", "name": "spawn_agent", "call_id": call, "arguments": "{}"}
        output = json.dumps({"agent_id": thread})
        ended = {"type": "function_call_output", "call_id": call, "output": output}
        return [line("response_item", **asked), line("response_item", **ended)]

    died = [
        line("event_msg", type="error", message="Overloaded"),
        line("event_msg", type="task_complete", error={"message": "Overloaded"}),
    ]
    told = line("event_msg", type="user_message", message="look")
    own = line("session_meta", id=main, cwd="/w")
    files[0].write_text(samples.lines([own, told, *newer_starts("c1", first)]))
    files[1].write_text(samples.lines([meta(first, main), told, *starts("c2", second)]))
    files[2].write_text(samples.lines([meta(second, first), told, *died]))
    files[3].write_text(samples.lines([meta(forked, main, forked_from_id=main), told]))
    watched = Watched(files[0])
    watched.update(4e9)
    watched.update(5e9)
    lanes = [event for event in watched.events if isinstance(event, events.LaneEvent)]
    assert {event.lane for event in lanes} == {"c1", "c2"}
    faults = [event for event in lanes if isinstance(event.event, events.ModelFaulted)]
    assert [(one.lane, one.name) for one in faults] == [("c2", "Ada")]

    files[2].write_text(samples.lines([meta(second, first), told, died[1]]))
    watched = Watched(files[0])
    watched.update(4e9)
    newer = [one for one in watched.events if isinstance(one, events.LaneEvent)]
    assert [one.lane for one in newer if isinstance(one.event, events.ModelFaulted)] == ["c2"]
    assert sorted(find_transcripts([tmp_path])) == [files[0], files[3]]
