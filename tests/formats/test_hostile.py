"""Files that are torn, damaged, hostile or no transcripts at all: a clear error, or a count, never a crash."""

from __future__ import annotations

import json
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.formats import agent_records, samples
from tests.formats.loading import load_transcript
from tui_agent.core.recovery.policy import PRESETS
from tui_agent.formats.importers import reading
from tui_agent.formats.importers.detect import FORMATS
from tui_agent.formats.importers.load import judge, load_transcripts
from tui_agent.formats.importers.transcript import TranscriptError
from tui_agent.store.lines import encode


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "the file is empty"),
        (b"\x00\x01\x02\xff" * 50, "it begins with binary data"),
        (b"hello there", "it begins with text, not with JSON"),
        (b"[1, 2", "it is not valid JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b"[]", "none of the known kinds"),
        (b"{}", "an empty object"),
        (b'{"a": 1}', "an object with the keys a"),
        (b'{"a": 1}\n' * 3, "Its first record has the keys a"),
        (b'{"a": 1}\nnot\nnot\nnot\n', "line 2: 3 of its lines are not JSON objects"),
        (b'{"messages": []}', "none of the known kinds"),
        (b'{"type": "session_started"}\n{"x": 1}\n', "none of the known kinds"),
    ],
)
def test_what_is_no_transcript_is_named_with_its_reason(content: bytes, says: str, tmp_path: Path) -> None:
    path = tmp_path / "file.jsonl"
    path.write_bytes(content)
    with pytest.raises(TranscriptError) as caught:
        load_transcript(path)
    assert says in str(caught.value)
    assert str(path) in str(caught.value)


def test_an_unknown_file_is_told_what_was_tried(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text('{"a": 1}')
    with pytest.raises(TranscriptError, match=", ".join(reader.name for reader in FORMATS)):
        load_transcript(path)


def test_a_missing_file_and_an_empty_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(TranscriptError, match="cannot be read"):
        load_transcript(tmp_path / "nope")
    with pytest.raises(TranscriptError, match="holds no session"):
        load_transcript(tmp_path)


def test_a_torn_last_line_is_tolerated_and_said(tmp_path: Path) -> None:
    path = samples.write(tmp_path, "claude_code")
    path.write_text(path.read_text() + '{"type": "user", "mess')
    imported = load_transcript(path)
    assert imported.report.torn
    assert "The last line was cut off" in imported.report.summary()


def test_damaged_lines_inside_are_counted_by_their_number(tmp_path: Path) -> None:
    path = samples.write(tmp_path, "codex")
    lines = path.read_text().splitlines()
    lines[3:3] = ["{broken", "[1]"]
    path.write_text("\n".join(lines) + "\n")
    imported = load_transcript(path)
    assert imported.report.damaged == [4, 5]
    assert "Damaged and left out: line 4, 5." in imported.report.summary()


def test_a_line_without_an_end_is_refused_before_it_fills_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MAX_LINE", 1_000)
    path = tmp_path / "file"
    path.write_text('{"a": 1}\n{"a": "' + "x" * 5_000)
    with pytest.raises(TranscriptError, match="line 2: the line is longer than 1,000 bytes"):
        load_transcript(path)


def test_a_document_beyond_the_limit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading.Document, "largest", 1_000)
    path = tmp_path / "file"
    path.write_text("[" + "1," * 5_000 + "1]")
    with pytest.raises(TranscriptError, match="one JSON document of"):
        load_transcript(path)


def test_nesting_numbers_and_surrogates_become_what_a_journal_can_hold(tmp_path: Path) -> None:
    deep: Any = "core"
    for _ in range(400):
        deep = {"in": deep}
    records = samples.claude_code()
    use = records[4]["message"]["content"][0]
    use["input"] = {"deep": deep, "nan": float("nan"), "big": 10**40, "\ud800": "\udfff", "inf": float("inf")}
    path = tmp_path / "file"
    path.write_text(samples.lines(records))
    for event in load_transcript(path).events:
        encode(event)


JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=20),
    st.sampled_from(
        ["\x00", "\ud800", "Error: x", "[Request interrupted by user", "2026-13-45T00:00:00Z", "<tool_error>"]
    ),
    st.lists(st.none(), max_size=2),
    st.dictionaries(st.text(max_size=5), st.integers(), max_size=2),
)


def places_in(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON value."""
    found = [path] if path else []
    if isinstance(value, dict):
        items: Any = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    else:
        return found
    for key, item in items:
        found += places_in(item, (*path, key))
    return found


def break_at(value: Any, place: tuple[Any, ...], junk: Any, *, drop: bool) -> None:
    for key in place[:-1]:
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            return
    try:
        if drop:
            del value[place[-1]]
        else:
            value[place[-1]] = junk
    except (KeyError, IndexError, TypeError):
        return


_SEVERAL = "several commands in one script are calls of their own"
_IN_THE_BACKGROUND = "a script that goes on and fails in the background"
DOCUMENTS: dict[str, Any] = {
    "claude_code": samples.claude_code,
    "codex": samples.codex,
    "openhands": samples.openhands,
    "mini_swe_agent": samples.mini_swe_agent,
    "swe_agent": samples.swe_agent,
    "vibe": lambda: {"metadata": samples.vibe_meta(), "messages": samples.vibe_messages()},
    "tau_bench": samples.tau_bench,
    "openai_messages": samples.openai_messages,
    "claude_tree": lambda: deepcopy(agent_records.gone_back_twice()),
    "code_mode": lambda: deepcopy(
        [*agent_records.CODE_MODE[_SEVERAL][0], *agent_records.CODE_MODE[_IN_THE_BACKGROUND][0]]
    ),
    "anthropic_messages": lambda: [*agent_records.blocks(3), *agent_records.written_in_tags()],
    "goose": lambda: agent_records.goose(4),
    "atif": lambda: agent_records.atif(3, "own step, named by the step"),
}
LINES = {"claude_code", "codex", "openhands", "claude_tree", "code_mode", "goose"}
PLACES = {name: places_in(make()) for name, make in DOCUMENTS.items()}


@pytest.mark.parametrize("name", sorted(DOCUMENTS))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_wrong_types_anywhere_give_a_session_or_a_clear_error(
    name: str, data: st.DataObject, tmp_path: Path
) -> None:
    document = DOCUMENTS[name]()
    for place in data.draw(st.lists(st.sampled_from(PLACES[name]), min_size=1, max_size=6)):
        break_at(document, place, data.draw(JUNK), drop=data.draw(st.booleans()))
    path = tmp_path / "recording"
    path.write_text(samples.lines(document) if name in LINES else json.dumps(document))
    policy = data.draw(st.sampled_from(sorted(PRESETS)))
    with suppress(TranscriptError):
        for run in load_transcripts(path):
            for event in judge(run, policy).events:
                encode(event)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_bytes_that_flip_or_end_give_a_session_or_a_clear_error(data: st.DataObject, tmp_path: Path) -> None:
    name = data.draw(st.sampled_from(sorted(DOCUMENTS)))
    document = DOCUMENTS[name]()
    raw = bytearray((samples.lines(document) if name in LINES else json.dumps(document)).encode())
    for place in data.draw(st.lists(st.integers(0, len(raw) - 1), max_size=8)):
        raw[place] = data.draw(st.integers(0, 255))
    path = tmp_path / "recording"
    path.write_bytes(bytes(raw[: data.draw(st.integers(0, len(raw)))]))
    with suppress(TranscriptError):
        for run in load_transcripts(path):
            for event in run.events:
                encode(event)
