"""Sessions and streams of more agents: what is made of them equals a plain count, whole, in pieces and damaged."""

from __future__ import annotations

import json
import re
import sqlite3
import zipfile
from contextlib import closing, suppress
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.formats import more_agents, samples
from tests.formats.test_hostile import JUNK, break_at, places_in
from tests.watch.growth import LATER, Growth, told
from tui_agent.core import events
from tui_agent.core.fold import fold
from tui_agent.formats.importers import archives
from tui_agent.formats.importers.growing import read_whole
from tui_agent.formats.importers.load import Imported, find_transcripts, judge, load_transcripts
from tui_agent.formats.importers.transcript import TranscriptError
from tui_agent.store.lines import encode
from tui_agent.watch.watched import Watched


def _ends(runs: list[Imported]) -> list[str]:
    found = [event for run in runs for event in run.events if isinstance(event, events.ToolResult)]
    return [event.type.removeprefix("tool_") for event in found]


def _tasks(runs: list[Imported]) -> list[str]:
    return [event.task for run in runs for event in run.events if isinstance(event, events.RunStarted)]


# --- a counter that knows nothing of the readers --------------------------------------------------------------


def _text(path: Path) -> str:
    """All that an agent wrote, as text."""
    if path.suffix == ".db":
        with closing(sqlite3.connect(path)) as database:
            return "\n".join(database.iterdump())
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            return "\n".join(archive.read(name).decode() for name in archive.namelist())
    return path.read_text()


COUNTS = {
    "Claude Code stream": (r'"tool_use", "id": "(\w+)', r'"is_error": true'),
    "Qwen Code stream": (r'"tool_use", "id": "(\w+)', r'"is_error": true'),
    "Codex CLI stream": (r'"id": "(item_\d)", "type": "(?:command|mcp)', r'"status": "failed"'),
    "Gemini CLI stream": (r'"tool_use".*"tool_id": "(\w+)', r'"status": "error"'),
    "Kimi Code stream": (r'"id": "(c\d)", "type": "function"', r"exit code: [1-9]"),
    "OpenCode stream": (r'"callID": "(\w+)', r'"exit": [1-9]|"status": "error"'),
    "Cline stream": (r'"content_start".*"toolCallId": "(\w+)', r'"success": false'),
    "Qwen Code": (r'"functionCall": {"id": "(\w+)', r'Exit Code: [1-9]|"status": "error"'),
    "Kimi Code": (r'"tool.call".*"toolCallId": "(\w+)', r'"isError": true'),
    "pi": (r'"toolCall", "id": "(\w+)', r'"isError": true'),
    "Cursor": (r'"type": "tool_use", "name": "\w+", "input": ({[^}]*})', r"never"),
    "Antigravity": (r'"tool_calls": \[(.*?)\]', r'"status": "ERROR"'),
    "aider": (
        r"> (?:Applied edit to (?:.+)|# \d SEARCH/REPLACE block failed)",
        r"> # \d SEARCH/REPLACE block",
    ),
    "Cline": (r'"tool_use", "id": "(\w+)', r'"success": false'),
    "Inspect": (r'"event": "tool", "id": "(\w+)', r'"error": {'),
    "Crush": (r'"tool_call", "data": {"id": "(\w+)', r'\\nExit code [1-9]|"is_error": true'),
    "goose": (r'"toolRequest", "id": "(\w+)', r'"status": "error"'),
}
"""By format: a call, and a failure, in its text."""
UNMARKED = {
    "Gemini CLI stream": r'"tool_name": "run_shell_command"',
    "Kimi Code stream": r'"name": "read"',
    "Cursor": r'"type": "tool_use"',
    "Antigravity": r'"type": "TOOL", .*"status": "DONE"',
}
"""By format: a call, or its result, if the result does not say how it ended."""
TWICE = {"Inspect": 1}
"""Calls whose id stands in a second run."""


@pytest.mark.parametrize("name", COUNTS)
def test_calls_and_failures_equal_a_plain_count_of_the_text(name: str, tmp_path: Path) -> None:
    path = more_agents.write(tmp_path, name)
    runs, text = load_transcripts(path), _text(path)
    call, failure = COUNTS[name]
    calls = len(set(re.findall(call, text))) + TWICE.get(name, 0)
    ends = _ends(runs)
    assert (len(ends), ends.count("failed")) == (calls, len(re.findall(failure, text)))
    assert ends.count("ended") == len(re.findall(UNMARKED.get(name, "never"), text))
    assert calls >= 2
    assert runs[0].source == ("Anthropic messages" if name == "Cline" else name)
    assert runs[0].report.understood + sum(runs[0].report.skipped.values()) >= runs[0].report.records


def test_every_reader_of_more_agents_is_counted() -> None:
    assert {*more_agents.LINES} < {*COUNTS}


@pytest.mark.parametrize("name", COUNTS)
def test_the_task_and_the_answer_are_those_of_the_session(name: str, tmp_path: Path) -> None:
    runs = load_transcripts(more_agents.write(tmp_path, name))
    without = name.endswith("stream") and name != "Gemini CLI stream"
    assert _tasks(runs)[0] == (
        "(The recording begins without the operator's message.)" if without else "fix it"
    )
    if name != "aider":
        last = runs[0].events[-1]
        assert isinstance(last, events.RunFinished)
        assert last.answer == "I gave up."


@pytest.mark.parametrize("name", more_agents.LINES)
def test_a_session_comes_to_the_same_line_by_line(name: str, tmp_path: Path) -> None:
    path = tmp_path / "recording"
    growth = Growth(path)
    path.write_bytes(b"")
    for record in more_agents.LINES[name]():
        growth.add(samples.lines([record]).encode())
        growth.look(0.0)
    growth.look(LATER)
    whole = judge(load_transcripts(path)[0])
    ended = [event.type for event in growth.watched.events if isinstance(event, events.ToolResult)]
    assert ended == [event.type for event in whole.events if isinstance(event, events.ToolResult)]
    assert len(ended) == 4


# --- what has no mark is not known ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("records", "ends"),
    [
        (more_agents.gemini_stream(), ["ended", "ended", "failed", "succeeded"]),
        (more_agents.older_qwen_stream(), ["ended", "ended", "failed", "succeeded"]),
        (more_agents.qwen_stream(), ["failed", "succeeded", "failed", "succeeded"]),
        (more_agents.kimi_stream(), ["failed", "succeeded", "ended", "ended"]),
        (more_agents.cursor(), ["ended"] * 4),
        (more_agents.antigravity(), ["failed", "ended", "failed", "ended"]),
    ],
)
def test_an_end_without_a_mark_is_not_known(records: list[Any], ends: list[str], tmp_path: Path) -> None:
    path = tmp_path / "recording"
    path.write_text(samples.lines(records))
    runs = load_transcripts(path)
    assert _ends(runs) == ends
    assert bool(runs[0].report.loss) == (ends.count("ended") * 2 > len(ends))


@pytest.mark.parametrize(
    ("name", "mark", "left"),
    [
        ("Claude Code stream", '"is_error"', ["succeeded"] * 4),
        ("Qwen Code stream", '"is_error"', ["ended"] * 4),
        ("Codex CLI stream", '"exit_code"', ["failed", "ended", "failed", "succeeded"]),
        ("Qwen Code", '"status"', ["ended"] * 4),
        ("pi", '"isError"', ["ended"] * 4),
    ],
)
def test_a_mark_under_another_name_is_no_success(
    name: str, mark: str, left: list[str], tmp_path: Path
) -> None:
    """Claude Code leaves out `is_error` if it is false, and Codex calls what it left behind completed."""
    path = tmp_path / "recording"
    path.write_text(samples.lines(more_agents.LINES[name]()).replace(mark, '"something_new"'))
    assert _ends(load_transcripts(path)) == left


# --- one agent's own ways -------------------------------------------------------------------------------------


def test_what_a_sub_agent_said_in_a_stream_is_a_lane_of_its_own(tmp_path: Path) -> None:
    records = more_agents.claude_stream()
    task = {"type": "tool_use", "id": "t1", "name": "Task", "input": {"prompt": "look"}}
    started = {**records[1], "uuid": "task", "message": {"id": "t", "role": "assistant", "content": [task]}}
    inner = [{**one, "parent_tool_use_id": "t1", "uuid": f"in {one['uuid']}"} for one in records[1:3]]
    call = inner[0]["message"]["content"][0] | {"id": "in-1"}
    told = inner[1]["message"]["content"][0] | {"tool_use_id": "in-1"}
    inner[0]["message"] = inner[0]["message"] | {"id": "in", "content": [call]}
    inner[1]["message"] = inner[1]["message"] | {"content": [told]}
    path = tmp_path / "recording"
    path.write_text(samples.lines([records[0], started, *inner, *records[1:]]))
    watched = Watched(path)
    watched.update(4e9)
    lanes = [event for event in watched.events if isinstance(event, events.LaneEvent)]
    assert {event.lane for event in lanes} == {"t1"}
    assert [event.event.type for event in lanes if isinstance(event.event, events.ToolResult)] == [
        "tool_failed"
    ]


def test_a_failed_call_of_the_model_in_a_stream_is_a_fault(tmp_path: Path) -> None:
    records = more_agents.claude_stream()
    said = {
        "id": "e",
        "role": "assistant",
        "content": [{"type": "text", "text": "API Error: 529 overloaded"}],
    }
    retry = {"type": "system", "subtype": "api_retry", "session_id": "s", "error_status": 529}
    fault = {**records[1], "uuid": "e", "message": said, "error": "overloaded"}
    path = tmp_path / "recording"
    path.write_text(
        samples.lines([*records[:3], {**retry, "error": "overloaded", "retry_delay_ms": 500}, fault])
    )
    (run,) = load_transcripts(path)
    faults = [event.fault.kind for event in run.events if isinstance(event, events.ModelFaulted)]
    assert faults == ["overloaded", "overloaded"]


def test_what_broke_in_a_stream_of_opencode_is_a_fault(tmp_path: Path) -> None:
    error = {"name": "APIError", "data": {"message": "overloaded", "statusCode": 529}}
    fault = {"type": "error", "timestamp": more_agents.milliseconds(50), "sessionID": "o", "error": error}
    path = tmp_path / "recording"
    path.write_text(samples.lines([*more_agents.opencode_stream(), fault, fault]))
    (run,) = load_transcripts(path)
    faults = [event.fault.kind for event in run.events if isinstance(event, events.ModelFaulted)]
    assert faults == ["overloaded", "overloaded"]
    path.write_text(samples.lines([fault]))
    with pytest.raises(TranscriptError, match="looks like OpenCode stream, and nothing was said"):
        load_transcripts(path)


@pytest.mark.parametrize(
    ("event", "kinds", "end"),
    [
        ({"type": "error", "error": {"message": "429 rate limit"}}, ["model_faulted"], "model_failed"),
        ({"type": "error", "error": {"message": "1 tool call(s) failed: [bash] no rule"}}, [], "interrupted"),
        ({"type": "done", "reason": "aborted", "text": ""}, [], "interrupted"),
        ({"type": "done", "reason": "mistake_limit", "text": ""}, [], "partial"),
        ({"type": "notice", "reason": "auto_compaction", "message": "x"}, ["notice"], "interrupted"),
    ],
)
def test_an_event_of_clines_loop_is_what_it_says(
    event: Any, kinds: list[str], end: str, tmp_path: Path
) -> None:
    records = more_agents.cline_stream()[:-6]
    path = tmp_path / "recording"
    path.write_text(
        samples.lines([*records, {"ts": more_agents.at(40), "type": "agent_event", "event": event}])
    )
    (run,) = load_transcripts(path)
    last = next(place for place, one in enumerate(run.events) if isinstance(one, events.IterationFinished))
    told = [one.type for one in run.events[last:] if one.type in {"model_faulted", "notice"}]
    ends = [one.outcome for one in run.events if isinstance(one, events.RunFinished)]
    assert (told, ends) == (kinds, [end])


def test_agents_that_cline_started_are_lanes(tmp_path: Path) -> None:
    inner = more_agents.cline_stream()[1:7]
    for record in inner:
        record["event"] |= {"agentId": "a-1", "parentAgentId": "a-0"}
        if "toolCallId" in record["event"]:
            record["event"]["toolCallId"] = "in-1"
    path = tmp_path / "recording"
    path.write_text(samples.lines([*more_agents.cline_stream(), *inner]))
    assert [(run.subagent, len(_ends([run]))) for run in load_transcripts(path)] == [(False, 4), (True, 1)]


def test_a_run_that_did_not_end_well_is_no_answer(tmp_path: Path) -> None:
    records = more_agents.claude_stream()
    ended = {**records[-1], "subtype": "error_max_turns", "is_error": True}
    path = tmp_path / "recording"
    path.write_text(samples.lines([*records[:-2], ended]))
    last = load_transcripts(path)[0].events[-1]
    assert isinstance(last, events.RunFinished)
    assert (last.outcome, last.reason) == ("partial", "Ended elsewhere: error max turns.")


def test_a_command_that_codex_left_behind_is_not_known(tmp_path: Path) -> None:
    """Codex calls it completed, without an exit code."""
    records = more_agents.codex_exec()
    records[3]["item"] |= {"status": "completed", "exit_code": None}
    path = tmp_path / "recording"
    path.write_text(samples.lines(records))
    assert _ends(load_transcripts(path))[0] == "ended"


def test_the_tokens_of_a_thread_are_counted_once(tmp_path: Path) -> None:
    usage = {"input_tokens": 30, "output_tokens": 9}
    more = [
        {"type": "turn.started"},
        *more_agents.codex_exec()[-2:-1],
        {"type": "turn.completed", "usage": usage},
    ]
    path = tmp_path / "recording"
    path.write_text(samples.lines([*more_agents.codex_exec(), *more]))
    spent = fold(load_transcripts(path)[0].events).metrics.session_usage
    assert (spent.prompt_tokens, spent.completion_tokens) == (30, 9)


def test_a_thread_of_codex_that_is_resumed_counts_its_items_anew(tmp_path: Path) -> None:
    path = tmp_path / "recording"
    path.write_text(samples.lines([*more_agents.codex_exec(), *more_agents.codex_exec()]))
    ends = _ends(load_transcripts(path))
    assert (len(ends), ends.count("failed")) == (8, 4)


@pytest.mark.parametrize("name", ["pi", "Qwen Code"])
def test_what_the_operator_left_by_going_back_is_left_out(name: str, tmp_path: Path) -> None:
    records = more_agents.LINES[name]()
    if name == "pi":
        back = {**records[1], "id": "again", "parentId": None}
        rest = [back, {**records[-1], "id": "end", "parentId": "again"}]
    else:
        rest = [
            {**records[0], "uuid": "back", "type": "system", "subtype": "rewind", "systemPayload": {"n": 1}}
        ]
        rest += [records[0], records[-1]]
    path = tmp_path / "recording"
    path.write_text(samples.lines([*records, *rest]))
    runs = load_transcripts(path)
    assert (_ends(runs), _tasks(runs)) == ([], ["fix it"])
    assert runs[0].report.skipped["step of an abandoned branch"] == 6


def test_calls_that_a_forked_session_copied_are_known_as_copies(tmp_path: Path) -> None:
    path = tmp_path / "recording"
    head = {"id": "q", "timestamp": more_agents.at(5), "parentSession": "/s/2026_p.jsonl"}
    path.write_text(samples.lines(more_agents.pi(**head)))
    assert load_transcripts(path)[0].copied == {"c1": "p", "c2": "p"}


@pytest.mark.parametrize("named", [True, False])
def test_agents_of_kimi_code_are_lanes_of_the_main_one_and_count_once(named: bool, tmp_path: Path) -> None:
    agents = tmp_path / "session" / "agents"
    for name in ("main", "agent-1"):
        (agents / name).mkdir(parents=True)
        records = more_agents.kimi_code(name)
        for record in records if not named else ():
            record.pop("agentId", None)
        (agents / name / "wire.jsonl").write_text(samples.lines(records))
    (found,) = find_transcripts([tmp_path])
    runs = load_transcripts(found)
    assert [(run.subagent, len(_ends([run]))) for run in runs] == [(False, 4), (True, 4)]
    assert read_whole(found).transcript.id == "session"


def test_words_that_kimi_code_took_back_are_gone(tmp_path: Path) -> None:
    path = tmp_path / "recording"
    path.write_text(samples.lines([*more_agents.kimi_code(), {"type": "context.undo", "count": 1}]))
    with pytest.raises(TranscriptError, match="nothing was said"):
        load_transcripts(path)


def test_files_that_are_parts_or_copies_of_a_session_are_no_sessions(tmp_path: Path) -> None:
    task = tmp_path / "tasks" / "1"
    task.mkdir(parents=True)
    for name in ("api_conversation_history.json", "ui_messages.json", "history_item.json"):
        (task / name).write_text(json.dumps(more_agents.cline()["messages"]))
    for name in ("k.json", "k.messages.json", "a.jsonl", "a.checkpoint.11-22.jsonl"):
        (tmp_path / name).write_text("{}")
    found = [path.relative_to(tmp_path).as_posix() for path in find_transcripts([tmp_path])]
    assert found == ["a.jsonl", "k.messages.json", "tasks/1"]
    assert len(_ends(load_transcripts(task))) == 4


def test_a_row_of_crush_that_is_written_again_counts_once(tmp_path: Path) -> None:
    path = tmp_path / "crush.db"
    more_agents.make_crush(path)
    growth = Growth(path / "s")
    for row in more_agents.crush():
        key, role, parts = row
        more_agents.write_crush(path, (key, role, parts[:1]))
        growth.look(0.01)
        more_agents.write_crush(path, row)
        growth.look(0.01)
    growth.look(LATER)
    assert told(growth.watched.events) == told(judge(load_transcripts(path)[0]).events)


def test_a_conversation_of_goose_that_is_written_anew_counts_once(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    more_agents.make_goose(path)
    rows = more_agents.goose()
    more_agents.write_goose(path, *rows[:5])
    watched = Watched(path / "s")
    watched.update(4e9)
    with closing(sqlite3.connect(path)) as database:
        database.execute("DELETE FROM messages")
        database.commit()
    more_agents.write_goose(path, *rows)
    watched.update(5e9)
    ends = [event.type for event in watched.events if isinstance(event, events.ToolResult)]
    assert ends == ["tool_failed", "tool_succeeded", "tool_failed", "tool_succeeded"]


def test_a_database_of_nobody_that_is_known_is_refused(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "x.db")) as database:
        database.execute("CREATE TABLE sessions (id TEXT)")
    with pytest.raises(TranscriptError, match="none of the tables of OpenCode, goose, Crush"):
        load_transcripts(tmp_path / "x.db")


def test_samples_of_a_log_are_runs_with_their_grade_and_the_times_of_their_events(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    path.write_text(json.dumps(more_agents.inspect_log()))
    runs = load_transcripts(path)
    assert [(run.title, run.reward) for run in runs] == [
        ("sample 1, epoch 1", 0.0),
        ("sample 2, epoch 1", 1.0),
    ]
    failed = next(event for event in runs[0].events if isinstance(event, events.ToolFailed))
    assert (failed.failure.message, failed.duration) == ("a long error", 0.5)


def test_calls_that_stand_in_the_events_of_a_log_alone_are_lost(tmp_path: Path) -> None:
    document = more_agents.inspect_log()
    document["samples"][1]["events"].append({"event": "tool", "id": "inner", "function": "read"})
    path = tmp_path / "log.json"
    path.write_text(json.dumps(document))
    assert "1 of 6 results find no call" in load_transcripts(path)[0].report.loss


def test_an_archive_is_read_to_its_bound_and_a_damaged_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log.eval"
    whole = more_agents.archive(more_agents.inspect_log())
    for place in range(0, len(whole), max(1, len(whole) // 40)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        with suppress(TranscriptError):
            load_transcripts(path)
    path.write_bytes(whole[:-30])
    with pytest.raises(TranscriptError, match="cannot be unpacked"):
        load_transcripts(path)
    path.write_bytes(whole)
    monkeypatch.setattr(archives, "MAX_DOCUMENT", 1_000)
    with pytest.raises(TranscriptError, match="more than 1,000 bytes unpacked"):
        load_transcripts(path)


def test_a_log_that_is_packed_with_zstd_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    zstd = pytest.importorskip("backports.zstd")
    stored = more_agents.archive(more_agents.inspect_log(), method=zipfile.ZIP_STORED)
    path = tmp_path / "log.eval"
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive,
        zipfile.ZipFile(_on_disk(tmp_path, stored)) as old,
    ):
        for name in old.namelist():
            archive.writestr(name, zstd.compress(old.read(name)))
    path.write_bytes(_with_method(path.read_bytes(), 93))
    assert len(_ends(load_transcripts(path))) == 5


def _on_disk(folder: Path, data: bytes) -> Path:
    path = folder / "stored.zip"
    path.write_bytes(data)
    return path


def _with_method(data: bytes, method: int) -> bytes:
    """The archive with this method of compression in the heads of all of its files."""
    changed = bytearray(data)
    for head, place in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        for found in re.finditer(re.escape(head), data):
            changed[found.start() + place : found.start() + place + 2] = method.to_bytes(2, "little")
    return bytes(changed)


# --- damaged --------------------------------------------------------------------------------------------------


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_wrong_types_anywhere_give_a_session_or_a_clear_error(data: st.DataObject, tmp_path: Path) -> None:
    documents: dict[str, Any] = {
        **more_agents.LINES,
        "Cline": more_agents.cline,
        "Inspect": more_agents.inspect_log,
    }
    name = data.draw(st.sampled_from(sorted(documents)))
    document = deepcopy(documents[name]())
    for place in data.draw(st.lists(st.sampled_from(places_in(document)), min_size=1, max_size=6)):
        break_at(document, place, data.draw(JUNK), drop=data.draw(st.booleans()))
    path = tmp_path / "recording"
    path.write_text(samples.lines(document) if isinstance(document, list) else json.dumps(document))
    with suppress(TranscriptError):
        for run in load_transcripts(path):
            for event in judge(run).events:
                encode(event)


@pytest.mark.parametrize("name", COUNTS)
def test_a_session_that_is_cut_anywhere_gives_a_session_or_a_clear_error(name: str, tmp_path: Path) -> None:
    whole = more_agents.write(tmp_path, name)
    data, path = whole.read_bytes(), tmp_path / f"cut{whole.suffix}"
    for end in range(0, len(data), max(1, len(data) // 20)):
        path.write_bytes(data[:end])
        with suppress(TranscriptError):
            load_transcripts(path)
