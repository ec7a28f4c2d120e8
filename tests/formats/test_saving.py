"""Imported runs in the store: one session a run, whole or not at all, with secrets masked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.formats import samples
from tests.formats.loading import load_transcript
from tui_agent.core.events import SCHEMA_VERSION, TitleChanged
from tui_agent.core.fold import fold
from tui_agent.formats.exporters import export_session
from tui_agent.formats.importers.load import find_transcripts, save
from tui_agent.formats.importers.transcript import TranscriptError
from tui_agent.store.journal import read_journal
from tui_agent.store.redaction import Redactor


@pytest.mark.parametrize("name", samples.NAMES)
def test_every_run_of_a_file_is_a_session_that_the_journal_reads(name: str, tmp_path: Path) -> None:
    path = samples.write(tmp_path, name)
    ids = save(path, tmp_path / "sessions").sessions
    assert len(ids) == len(set(ids)) == (2 if name in {"tau_bench", "claude_code"} else 1)
    first = read_journal(tmp_path / "sessions" / ids[0])
    assert first.events == load_transcript(path, "combined").events
    assert first.dropped_bytes == 0


def test_importing_again_makes_no_second_session(tmp_path: Path) -> None:
    path = samples.write(tmp_path, "tau_bench")
    first = save(path, tmp_path / "sessions")
    again = save(path, tmp_path / "sessions")
    assert again.sessions == first.sessions
    assert (first.present, again.present) == (0, 2)
    assert len(list((tmp_path / "sessions").iterdir())) == 2


def test_our_own_export_restores_the_session_exactly(tmp_path: Path) -> None:
    events = load_transcript(samples.write(tmp_path, "codex"), "combined").events
    exported = tmp_path / "export.json"
    exported.write_text(export_session(events, "json"))
    (session,) = save(exported, tmp_path / "sessions").sessions
    restored = read_journal(tmp_path / "sessions" / session).events
    assert restored == events
    assert fold(restored) == fold(events)


def test_another_session_of_the_same_name_is_not_overwritten(tmp_path: Path) -> None:
    events = load_transcript(samples.write(tmp_path, "codex"), "combined").events
    exported = tmp_path / "export.json"
    exported.write_text(export_session(events, "json"))
    (session,) = save(exported, tmp_path / "sessions").sessions
    exported.write_text(
        export_session([*events, TitleChanged(title="other").stamped(len(events) + 1, 9e9)], "json")
    )
    assert "exists already, and it is another one" in str(save(exported, tmp_path / "sessions").error)
    assert read_journal(tmp_path / "sessions" / session).events == events


def test_secrets_of_a_recording_do_not_reach_the_store(tmp_path: Path) -> None:
    path = tmp_path / "recording"
    text = json.dumps(samples.openai_messages()).replace(
        "no such file", "sk-live-51Hx0123456789abcdef in env"
    )
    path.write_text(text)
    redactor = Redactor({"MY_TOKEN": "sk-live-51Hx0123456789abcdef"})
    saved = save(path, tmp_path / "sessions", redactor=redactor)
    journal = (tmp_path / "sessions" / saved.sessions[0] / "events.jsonl").read_text()
    assert "51Hx0123456789abcdef" not in journal
    assert "[masked:" in journal


@pytest.mark.parametrize("name", ["../../x", "a/b", "", ".hidden"])
def test_a_session_id_that_leads_out_of_the_store_is_refused(name: str, tmp_path: Path) -> None:
    events = load_transcript(samples.write(tmp_path, "codex")).events
    document = json.loads(export_session(events, "json"))
    document["events"][0]["session_id"] = name
    exported = tmp_path / "export.json"
    exported.write_text(json.dumps(document))
    assert "cannot name a folder" in str(save(exported, tmp_path / "sessions").error)
    assert not (tmp_path / "sessions").exists()


def test_a_store_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "sessions").write_text("a file")
    saved = save(samples.write(tmp_path, "codex"), tmp_path / "sessions")
    assert saved.error is not None
    assert "cannot be written" in str(saved.error)


def test_folders_are_searched_and_sessions_in_folders_are_one_each(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    samples.write(tmp_path / "a", "mistral_vibe")
    (tmp_path / "b").mkdir()
    samples.write(tmp_path / "b", "openhands_folder")
    (tmp_path / "c.jsonl").write_text("{}")
    (tmp_path / "notes.md").write_text("no")
    (tmp_path / ".hidden.json").write_text("{}")
    found = find_transcripts([tmp_path])
    assert [str(path.relative_to(tmp_path)) for path in found] == ["a/recording", "b/recording", "c.jsonl"]


def test_the_journal_and_the_output_of_run_are_read_as_our_own(tmp_path: Path) -> None:
    events = load_transcript(samples.write(tmp_path, "codex"), "combined").events
    path = tmp_path / "out.jsonl"
    path.write_text(
        "".join(event.model_dump_json() + "\n" for event in events)
        + '{"type": "result", "outcome": "answered"}\n'
    )
    imported = load_transcript(path)
    assert imported.source == "agent-tui"
    assert imported.events == events
    assert dict(imported.report.skipped) == {"result of a run": 1}


def test_a_newer_version_of_our_own_is_named(tmp_path: Path) -> None:
    events = load_transcript(samples.write(tmp_path, "codex"), "combined").events
    path = tmp_path / "out.jsonl"
    path.write_text(
        "".join(event.model_dump_json().replace(f'"v":{SCHEMA_VERSION}', '"v":99') + "\n" for event in events)
    )
    with pytest.raises(TranscriptError, match="newer version"):
        load_transcript(path)
