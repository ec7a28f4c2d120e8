"""Old journals stay readable: one file of every version, and the way from each to today's events."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.store.session_events import one_of_every_type, stamp
from tui_agent.core.events import EVENT_TYPES, SCHEMA_VERSION, Notice
from tui_agent.core.fold import fold
from tui_agent.session.replay import Replay
from tui_agent.store import journal_index, lines, upgrade
from tui_agent.store.errors import JournalError
from tui_agent.store.journal import read_journal

JOURNALS = Path(__file__).parent / "journals"


def test_there_is_a_file_of_every_version():
    assert sorted(path.name for path in JOURNALS.glob("v*.jsonl")) == [
        f"v{version}.jsonl" for version in range(1, SCHEMA_VERSION + 1)
    ]


@pytest.mark.parametrize("path", sorted(JOURNALS.glob("v*.jsonl")), ids=lambda path: path.stem)
def test_a_file_of_every_version_is_read_whole(path: Path):
    events = read_journal(path).events
    assert {type(event) for event in events} <= set(EVENT_TYPES.values())
    assert len(events) == len(path.read_bytes().splitlines())
    replay = Replay.open(path)
    assert replay.state_at(replay.length) == fold(events)


def test_the_newest_file_holds_todays_events_of_every_type():
    events = read_journal(JOURNALS / f"v{SCHEMA_VERSION}.jsonl").events
    assert {type(event) for event in events} == set(EVENT_TYPES.values())
    # A failure here means that an event's form has changed: raise SCHEMA_VERSION, write the step in
    # `sessions.upgrade`, keep the old file and add a new one.
    assert events == stamp(one_of_every_type())


@pytest.fixture
def next_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tomorrow's program: version 3 calls a notice's text `text`; version 2 called it `message`."""

    def step(raw: dict[str, Any]) -> dict[str, Any]:
        if raw["type"] != "remark":
            return raw
        return {
            **{key: raw[key] for key in raw if key != "message"},
            "type": "notice",
            "text": raw["message"],
        }

    for module in (upgrade, lines, journal_index):
        monkeypatch.setattr(module, "SCHEMA_VERSION", 3)
    monkeypatch.setattr(upgrade, "STEPS", {1: dict, 2: step})


def _write(path: Path, raws: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(raw) + "\n" for raw in raws))


OLD: list[dict[str, Any]] = [
    {"seq": 1, "at": 1.0, "v": 1, "type": "session_started", "session_id": "s", "workspace": "/w"},
    {"seq": 2, "at": 2.0, "v": 2, "type": "remark", "severity": "info", "message": "old words"},
    {"seq": 3, "at": 3.0, "v": 3, "type": "notice", "severity": "info", "text": "new words"},
]


@pytest.mark.usefixtures("next_version")
def test_an_older_line_is_brought_up_to_date_as_it_is_read_and_the_file_is_left_alone(tmp_path: Path):
    _write(tmp_path / "x.jsonl", OLD)
    before = (tmp_path / "x.jsonl").read_bytes()
    events = read_journal(tmp_path / "x.jsonl").events
    assert [event.text for event in events if isinstance(event, Notice)] == ["old words", "new words"]
    assert {event.v for event in events} == {3}
    assert [Replay.open(tmp_path / "x.jsonl").event(number) for number in (1, 2, 3)] == events
    assert (tmp_path / "x.jsonl").read_bytes() == before


def test_a_line_of_a_newer_version_says_to_update(tmp_path: Path):
    _write(tmp_path / "x.jsonl", [OLD[0], {**OLD[2], "seq": 2, "v": SCHEMA_VERSION + 1}])
    for read in (read_journal, Replay.open):
        with pytest.raises(JournalError, match=r"written by a newer agent-tui.*Update agent-tui") as caught:
            read(tmp_path / "x.jsonl")
        assert caught.value.line == 2


@pytest.mark.parametrize("version", [0, -1, "1", None, True, 1.5, 10**30])
def test_a_version_that_never_was_is_refused(version: object):
    with pytest.raises(upgrade.UnknownVersionError):
        upgrade.upgrade({"v": version})


def test_steps_are_taken_one_after_the_other():
    steps = {1: lambda raw: {**raw, "a": 1}, 2: lambda raw: {**raw, "b": raw["a"] + 1}}
    assert upgrade.upgrade({"v": 1}, steps, newest=3) == {"v": 3, "a": 1, "b": 2}
    assert upgrade.upgrade({"v": 2, "a": 5}, steps, newest=3) == {"v": 3, "a": 5, "b": 6}
    with pytest.raises(upgrade.UnknownVersionError):
        upgrade.upgrade({"v": 1}, {2: steps[2]}, newest=3)
