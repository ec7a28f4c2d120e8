"""Each agent's own way of writing a session, read whole and as it grows."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.formats import samples
from tests.watch import recordings
from tests.watch.growth import LATER, Growth, told
from tui_agent import installed
from tui_agent.core import events
from tui_agent.core.fold import fold
from tui_agent.formats.importers.databases import sessions_in
from tui_agent.formats.importers.load import Imported, judge, load_transcripts
from tui_agent.formats.importers.transcript import TranscriptError
from tui_agent.watch.watched import Watched


def outcomes(recorded: list[events.Event]) -> list[str]:
    kinds = (events.RunStarted, events.ToolResult, events.RunFinished)
    return [event.__dict__["type"] for event in recorded if isinstance(event, kinds)]


def expected(one: Imported) -> None:
    """What each of the sessions says."""
    assert outcomes(one.events) == [
        "run_started",
        "tool_failed",
        "tool_failed",
        "tool_refused",
        "run_finished",
    ]
    started = next(event for event in one.events if isinstance(event, events.RunStarted))
    failed = [event for event in one.events if isinstance(event, events.ToolFailed)]
    assert started.task == "fix it"
    assert recordings.SAID in failed[0].failure.message
    assert failed[0].failure.message == failed[1].failure.message
    assert isinstance(one.events[-1], events.RunFinished)
    assert one.events[-1].answer == "I gave up."


def written(folder: Path, name: str) -> Path:
    if name != "mistral_vibe_store":
        return folder / "session"
    (folder / "journal").mkdir(parents=True)
    return folder / "journal" / "0001.jsonl"


@pytest.mark.parametrize("name", sorted(recordings.LINES))
def test_a_session_is_read_whole_and_line_by_line(name: str, tmp_path: Path) -> None:
    file = written(tmp_path, name)
    session = tmp_path if file.parent.name == "journal" else file
    watched = Watched(session)
    for number, record in enumerate(recordings.LINES[name]()):
        with file.open("a") as end:
            end.write(samples.lines([record]))
        watched.update(4e9 + number / 100)
    watched.update(5e9)
    whole = judge(load_transcripts(session)[0])
    expected(whole)
    assert told(watched.events) == told(whole.events)


def test_a_gemini_document_of_older_versions_is_read(tmp_path: Path) -> None:
    records = recordings.gemini_cli()
    messages = {one["id"]: one for one in records if "id" in one and not one["id"].endswith("x")}
    path = tmp_path / "session-1.json"
    path.write_text(json.dumps({**records[0], "messages": list(messages.values())}))
    expected(load_transcripts(path)[0])


def test_a_vibe_journal_that_was_folded_away_is_kept_in_mind(tmp_path: Path) -> None:
    file = written(tmp_path, "mistral_vibe_store")
    lines = samples.lines(recordings.mistral_vibe_store()).splitlines(keepends=True)
    watched = Watched(tmp_path)
    file.write_text("".join(lines[:9]))
    watched.update(4e9)
    file.unlink()
    file.with_name("0010.jsonl").write_text("".join(lines[9:]))
    watched.update(4e9)
    watched.update(5e9)
    assert outcomes(watched.events)[-1] == "run_finished"
    assert len(outcomes(watched.events)) == 5


def test_a_call_that_vibe_never_ran_has_failed(tmp_path: Path) -> None:
    """Its end stands in the next request alone."""
    records = recordings.mistral_vibe_store()
    ended = next(one for one in records if "tool_succeeded" in str(one))
    key = ended["payload"]["result"]["call_id"]
    told = {"result": {"type": "error", "error": {"message": 'unsupported top-level tool "bash"'}}}
    message = {"role": "tool", "tool_call_id": key, "outcome": "failure", "content": json.dumps(told)}
    request = {"model_input": {"messages": {"messages": [message]}}}
    intent = {"kind": "completion", "request": request}
    records[records.index(ended)] = {**ended, "type": "action_intent", "payload": intent}
    written(tmp_path, "mistral_vibe_store").write_text(samples.lines(records))
    failed = [event for event in load_transcripts(tmp_path)[0].events if isinstance(event, events.ToolFailed)]
    assert failed[0].failure.kind is events.FailureKind.UNKNOWN_TOOL


@pytest.mark.parametrize(
    ("made", "rows"),
    [
        ({"version": 1}, recordings.opencode),
        ({"version": 2}, recordings.opencode_2),
        ({"version": 2}, recordings.opencode),  # the newest of version 1 has the tables of version 2, empty
        ({"version": 2}, lambda: [*recordings.opencode(), *recordings.opencode_2()]),  # taken over, and kept twice
        # 2.0.3 and 2.0.12, as deja-vu 3924, memex 195 and cross_agent_session_resumer 30 found them
        ({"version": 2, "own_sessions": True, "alone": True}, recordings.opencode_2),
        ({"version": 2, "own_sessions": True}, recordings.opencode_2),
        ({"version": 2, "own_sessions": True}, lambda: [*list(recordings.opencode())[:9], *recordings.opencode_2()]),
    ],
)  # fmt: skip
def test_opencode_s_database_is_followed_row_by_row_and_only_read(
    made: dict[str, Any], rows: Callable[[], Iterable[Any]], tmp_path: Path
) -> None:
    database = tmp_path / "opencode.db"
    recordings.make_database(database, **made)
    growth = Growth(database / "ses_1")
    for row in rows():
        recordings.write_row(database, row)
        growth.look(0.01)
    growth.look(LATER)
    whole = judge(load_transcripts(database)[0])
    expected(whole)
    assert told(growth.watched.events) == told(whole.events)
    assert growth.watched.title == "A title"


def test_a_session_of_version_1_stands_beside_those_of_opencode_2(tmp_path: Path) -> None:
    database = tmp_path / "opencode.db"
    recordings.make_database(database, 2, own_sessions=True)
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("UPDATE session_v2 SET id = 'ses_2', time_updated = time_updated - 1")
        connection.commit()
    for row in recordings.opencode():
        recordings.write_row(database, row)
    assert [path.name for path, *_ in sessions_in(database)] == ["ses_1", "ses_2"]
    expected(judge(load_transcripts(database)[0]))


@pytest.mark.parametrize(
    ("kind", "outcome"),
    [("provider", events.Outcome.MODEL_FAILED), ("aborted", events.Outcome.INTERRUPTED)],
)
def test_a_reply_of_opencode_2_that_broke_ends_the_run(
    kind: str, outcome: events.Outcome, tmp_path: Path
) -> None:
    database = tmp_path / "opencode.db"
    recordings.make_database(database, 2)
    error = {"type": kind, "message": "Overloaded", "status": 529}
    for row in [
        *list(recordings.opencode_2())[:5],
        ("session_message", "m9", "assistant", 9, {"error": error}),
    ]:
        recordings.write_row(database, row)
    ends = [one for one in load_transcripts(database)[0].events if isinstance(one, events.RunFinished)]
    assert [one.outcome for one in ends] == [outcome]


def test_a_database_that_is_not_there_is_never_made(tmp_path: Path) -> None:
    watched = Watched(tmp_path / "opencode.db" / "ses_1")
    assert watched.update(4e9) is None
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "other.db").write_bytes(b"no database at all")
    with pytest.raises(TranscriptError, match="it cannot be read"):
        load_transcripts(tmp_path / "other.db")


def test_a_database_that_is_locked_is_read_when_it_is_free(tmp_path: Path) -> None:
    database = tmp_path / "opencode.db"
    recordings.make_database(database)
    for row in recordings.opencode():
        recordings.write_row(database, row)
    writer = sqlite3.connect(database)
    writer.execute("BEGIN IMMEDIATE")
    watched = Watched(database)
    watched.update(4e9)
    writer.close()
    watched.update(5e9)
    assert outcomes(watched.events)[-1] == "run_finished"


def test_opencode_s_export_is_read(tmp_path: Path) -> None:
    newest = {(table, key): (table, key, owner, data) for table, key, owner, _, data in recordings.opencode()}
    parts = [(key, owner, data) for table, key, owner, data in newest.values() if table == "part"]
    messages = [
        {
            "info": {"id": key, **data},
            "parts": [{"id": one, **part} for one, owner, part in parts if owner == key],
        }
        for table, key, _, data in newest.values()
        if table == "message"
    ]
    path = tmp_path / "export.json"
    path.write_text(
        json.dumps({"info": {"id": "ses_1", "title": "A title", "directory": "/w"}, "messages": messages})
    )
    expected(load_transcripts(path)[0])


def test_an_atif_trajectory_is_read_with_every_mark_of_failure(tmp_path: Path) -> None:
    document = recordings.atif()
    path = tmp_path / "trajectory.json"
    growth = Growth(path)
    for number in range(1, len(document["steps"]) + 1):
        path.write_text(json.dumps({**document, "steps": document["steps"][:number]}))
        growth.look(0.01)
    growth.look(LATER)
    whole = judge(load_transcripts(path)[0])
    assert outcomes(whole.events)[:4] == ["run_started", "tool_failed", "tool_failed", "tool_refused"]
    assert told(growth.watched.events) == told(whole.events)


def test_atif_sub_agents_are_runs_of_their_own(tmp_path: Path) -> None:
    inner = {**recordings.atif(), "trajectory_id": "inner"}
    path = tmp_path / "trajectory.json"
    path.write_text(json.dumps({**recordings.atif(), "subagent_trajectories": [inner]}))
    assert [run.subagent for run in load_transcripts(path)] == [False, True]
    growth = Growth(path)
    growth.look()
    assert "inner" in fold(growth.watched.events).lanes


def test_a_compressed_rollout_is_read(tmp_path: Path) -> None:
    from tui_agent.formats.importers.reading import zstd_reader

    try:
        zstd_reader(tmp_path)
    except TranscriptError:
        pytest.skip("nothing is installed that reads zstd")
    path = tmp_path / "rollout-1.jsonl.zst"
    path.write_bytes(zstd_reader(path).compress(samples.lines(recordings.codex()).encode()))
    expected(load_transcripts(path)[0])


def test_without_a_reader_of_zstd_it_is_said_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("compression.zstd", "backports.zstd"):
        monkeypatch.setitem(__import__("sys").modules, name, None)
    path = tmp_path / "rollout-1.jsonl.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd")
    with pytest.raises(TranscriptError, match=re.escape(installed.adding("zstd"))):
        load_transcripts(path)


def test_a_message_of_gemini_cli_that_changes_its_kind_is_a_reply(tmp_path: Path) -> None:
    head = {"sessionId": "g", "projectHash": "1"}
    message = {"id": "m1", "timestamp": recordings.at(1), "type": "user", "content": "fix it"}
    path = tmp_path / "session.jsonl"
    records = [head, message, {**message, "type": "gemini", "content": "done"}]
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    (run,) = load_transcripts(path)
    assert [event.text for event in run.events if isinstance(event, events.ReplyFinished)] == ["done"]
