"""What a replay shows, for both of its doors: whose verdicts, which run of a file, and what has to be said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.formats import samples
from tests.store.session_events import iteration, run_started, start, write_session
from tui_agent.config.settings import Settings, load_settings
from tui_agent.core.events import ToolFailed, VerdictReached
from tui_agent.formats.importers.judgement import judged
from tui_agent.formats.importers.load import load_transcripts
from tui_agent.formats.importers.transcript import TranscriptError
from tui_agent.session.recordings import OpenedRecording, open_recording
from tui_agent.store.errors import JournalError, SessionError
from tui_agent.store.journal import JOURNAL_NAME


def settings(tmp_path: Path, *, config: str = "", **options: Any) -> Settings:
    file = tmp_path / "config.toml"
    file.write_text(config)
    return load_settings({"state_dir": tmp_path, **options}, file, {}, tmp_path)


@pytest.fixture
def session(tmp_path: Path) -> Path:
    """Three equal failures, judged as `combined` would not."""
    events = [start(), run_started()]
    for number in (1, 2, 3):
        events += iteration(number, call=f"c{number}", fails="boom")
    write_session(tmp_path / "s1", events)
    return tmp_path / "s1"


def levels(recording: OpenedRecording) -> list[str]:
    return [str(event.level) for event in recording.readable()[0] if isinstance(event, VerdictReached)]


def test_our_own_session_keeps_the_verdicts_it_had(session: Path, tmp_path: Path):
    for config in ("", 'policy = "hpd"'):
        recording = open_recording(session, settings(tmp_path, config=config))
        assert levels(recording) == ["guide", "guide", "guide"]
        assert (recording.foreign, recording.judged_by, recording.notices) == (False, "", ())
        assert recording.as_recorded


def test_our_own_session_is_judged_anew_by_a_policy_of_this_start(session: Path, tmp_path: Path):
    recording = open_recording(session, settings(tmp_path, policy="hpd"))
    recorded = open_recording(session, settings(tmp_path)).readable()[0]
    assert recording.readable()[0] == judged(recorded, "hpd")
    assert levels(recording) != ["guide", "guide", "guide"]
    assert (recording.judged_by, recording.as_recorded) == ("hpd", False)
    assert "Judged anew by hpd" in recording.notices[0]


@pytest.mark.parametrize(
    ("config", "options", "policy"),
    [("", {}, "combined"), ('policy = "gigi"', {}, "gigi"), ('policy = "gigi"', {"policy": "hpd"}, "hpd")],
)
def test_another_programs_run_is_judged_by_the_policy_that_holds(
    tmp_path: Path, config: str, options: dict[str, str], policy: str
):
    path = samples.write(tmp_path, "claude_code")
    recording = open_recording(path, settings(tmp_path, config=config, **options))
    assert recording.readable()[0] == judged(load_transcripts(path)[0].events, policy)
    assert (recording.foreign, recording.judged_by, recording.as_recorded) == (True, policy, False)


def test_thresholds_of_ones_own_hold_for_what_is_judged(session: Path, tmp_path: Path):
    chosen = settings(tmp_path, config="[recovery]\nattempts_limit = 2\n", policy="combined")
    assert levels(open_recording(session, chosen)) == ["guide", "escalate", "escalate"]


def many_runs(tmp_path: Path) -> Path:
    path = tmp_path / "runs.json"
    runs = [samples.tau_bench()[0] | {"task_id": number} for number in range(3)]
    for number, run in enumerate(runs):
        run["traj"] = json.loads(json.dumps(run["traj"]).replace("seat", f"seat-{number}"))
    path.write_text(json.dumps(runs))
    return path


def test_a_run_of_a_file_that_holds_many_is_chosen_by_its_number(tmp_path: Path):
    path = many_runs(tmp_path)
    facts = load_transcripts(path)
    for number in (1, 2, 3):
        recording = open_recording(path, settings(tmp_path, run=number))
        assert recording.readable()[0] == judged(facts[number - 1].events)
        assert recording.notices == ()


def test_without_a_number_the_first_is_shown_and_it_is_said_that_there_are_more(tmp_path: Path):
    path = many_runs(tmp_path)
    recording = open_recording(path, settings(tmp_path))
    assert recording.readable()[0] == judged(load_transcripts(path)[0].events)
    (notice,) = recording.notices
    assert "3 runs" in notice
    assert "--run" in notice


def test_a_run_that_is_not_there_is_reported_with_how_many_there_are(session: Path, tmp_path: Path):
    with pytest.raises(
        TranscriptError, match=r"holds 3 runs, and run 4 was asked for\. Name one from 1 to 3"
    ):
        open_recording(many_runs(tmp_path), settings(tmp_path, run=4))
    for one in (session, samples.write(tmp_path, "codex")):
        with pytest.raises(
            TranscriptError, match=r"holds one run, and run 2 was asked for\. Leave out --run"
        ):
            open_recording(one, settings(tmp_path, run=2))
        assert open_recording(one, settings(tmp_path, run=1)).notices == ()


@pytest.mark.parametrize("policy", [None, "hpd"])
def test_a_damaged_session_is_shown_up_to_its_damage(session: Path, tmp_path: Path, policy: str | None):
    journal = session / JOURNAL_NAME
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join([*lines[:20], b"nonsense\n", *lines[21:]]))
    recording = open_recording(session, settings(tmp_path, policy=policy))
    events, damage = recording.readable()
    assert damage is None
    assert "damaged in line 21" in recording.notices[0]
    assert not [event for event in events if isinstance(event, ToolFailed) and event.call_id == "c3"]
    assert [event for event in events if isinstance(event, ToolFailed) and event.call_id == "c1"]


def test_a_line_that_only_looks_whole_is_named_when_it_is_reached(session: Path, tmp_path: Path):
    journal = session / JOURNAL_NAME
    journal.write_bytes(
        journal.read_bytes().replace(b'"text":"look.","reasoning":""', b'"text":"look.","reasoning":0 ')
    )
    events, damage = open_recording(session, settings(tmp_path)).readable()
    assert damage is not None
    assert (len(events), damage.line) == (5, 6)
    judged_anew = open_recording(session, settings(tmp_path, policy="hpd"))
    assert "damaged in line 6" in judged_anew.notices[0]


def test_a_torn_end_is_reported(session: Path, tmp_path: Path):
    with (session / JOURNAL_NAME).open("ab") as file:
        file.write(b'{"seq": 99, "ty')
    assert "15 bytes" in open_recording(session, settings(tmp_path)).notices[0]


def test_the_lines_that_a_run_prints_are_a_recording_of_ours(session: Path, tmp_path: Path):
    path = tmp_path / "printed.jsonl"
    path.write_bytes((session / JOURNAL_NAME).read_bytes() + b'{"type":"result","outcome":"answered"}\n')
    recording = open_recording(path, settings(tmp_path))
    assert recording.readable()[0] == open_recording(session, settings(tmp_path)).readable()[0]
    assert not recording.foreign
    assert not recording.as_recorded


@pytest.mark.parametrize(("name", "error"), [(JOURNAL_NAME, JournalError), ("x.json", TranscriptError)])
def test_what_is_neither_is_reported_by_what_it_should_have_been(
    tmp_path: Path, name: str, error: type[SessionError]
):
    (tmp_path / name).write_text("nothing of the kind\n")
    with pytest.raises(error, match=name):
        open_recording(tmp_path / name, settings(tmp_path))
