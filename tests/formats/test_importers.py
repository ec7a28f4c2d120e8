"""Every format's sample becomes the events that our loop would have made of it."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.formats import samples
from tests.formats.loading import load_transcript
from tui_agent.core.events import (
    FailureKind,
    ModelCallStarted,
    ModelFaulted,
    Notice,
    ReplyFinished,
    ReplyRejected,
    RunFinished,
    RunStarted,
    SessionStarted,
    ToolCancelled,
    ToolFailed,
    ToolRefused,
    ToolResult,
    ToolSucceeded,
    parse_event,
)
from tui_agent.core.fold import fold
from tui_agent.formats.importers.load import Imported, load_transcripts

KIND = FailureKind


def results(imported: Imported) -> list[tuple[str, str, str]]:
    """Tool, how it ended, and the failure's kind or the refusal."""
    ends = []
    for event in imported.events:
        match event:
            case ToolFailed():
                ends.append((event.tool, "failed", str(event.failure.kind)))
            case ToolRefused():
                ends.append((event.tool, "refused", event.refusal))
            case ToolCancelled():
                ends.append((event.tool, "cancelled", ""))
            case ToolSucceeded():
                ends.append((event.tool, "ok", ",".join(event.changed)))
    return ends


def outcomes(imported: Imported) -> list[str]:
    return [str(event.outcome) for event in imported.events if isinstance(event, RunFinished)]


CHAT = [
    ("read", "failed", "tool_execution"),
    ("run", "failed", "tool_execution"),
    ("read", "failed", "invalid_tool_call"),
]
HANDS = [
    ("terminal", "failed", "tool_execution"),
    ("file_editor", "ok", "/w/a.py"),
    ("nope", "failed", "unknown_tool"),
    ("terminal", "refused", "denied"),
    ("finish", "ok", ""),
]
MINI = [("bash", "failed", "tool_execution"), ("bash", "ok", "")]
VIBE = [
    ("read_file", "failed", "tool_execution"),
    ("bash", "refused", "denied"),
    ("bash", "failed", "tool_execution"),
    ("search_replace", "ok", "a.py"),
]
EXPECTED: dict[str, tuple[str, list[tuple[str, str, str]], list[str]]] = {
    "claude_code": (
        "Claude Code",
        [
            ("Read", "ok", ""),
            ("Bash", "failed", "tool_execution"),
            ("Edit", "failed", "tool_execution"),
            ("Edit", "ok", "a.py"),
            ("Bash", "refused", "denied"),
            ("Nope", "failed", "unknown_tool"),
        ],
        ["interrupted", "answered"],
    ),
    "codex": (
        "Codex CLI",
        [
            ("exec_command", "failed", "tool_execution"),
            ("shell", "ok", ""),
            ("apply_patch", "ok", "src/a.py"),
            ("exec_command", "failed", "invalid_tool_call"),
            ("local_shell", "refused", "denied"),
            ("web_search", "ok", ""),
        ],
        ["answered"],
    ),
    "openhands": ("OpenHands", HANDS, ["answered"]),
    "openhands_folder": ("OpenHands", HANDS, ["answered"]),
    "openhands_results": (
        "OpenHands results",
        [
            ("run", "failed", "tool_execution"),
            ("edit", "ok", "a.py"),
            ("run_ipython", "failed", "tool_execution"),
            ("run", "failed", "unknown_tool"),
            ("finish", "ok", ""),
        ],
        ["answered"],
    ),
    "mini_swe_agent": ("mini-swe-agent", MINI, ["answered"]),
    "mini_swe_agent_list": ("mini-swe-agent", MINI, ["interrupted"]),
    "swe_agent": (
        "SWE-agent",
        [
            ("edit", "failed", "tool_execution"),
            ("edit", "ok", "/w/a.py"),
            ("bash", "failed", "tool_execution"),
            ("bash", "ok", ""),
            ("submit", "ok", ""),
        ],
        ["answered"],
    ),
    "mistral_vibe": ("mistral-vibe", VIBE, ["answered"]),
    "mistral_vibe_one_file": ("mistral-vibe", VIBE, ["answered"]),
    "tau_bench": ("tau-bench", [("book", "failed", "tool_execution"), ("book", "ok", "")], ["answered"]),
    "openai_messages": ("OpenAI messages", CHAT, ["answered"]),
    "openai_messages_list": ("OpenAI messages", CHAT, ["answered"]),
    "openai_messages_lines": ("OpenAI messages", CHAT, ["answered"]),
}


@pytest.mark.parametrize("name", samples.NAMES)
def test_a_recording_is_known_by_its_content_and_its_calls_end_as_recorded(name: str, tmp_path: Path) -> None:
    imported = load_transcript(samples.write(tmp_path, name))
    assert (imported.source, results(imported), outcomes(imported)) == EXPECTED[name]


@pytest.mark.parametrize("name", samples.NAMES)
def test_imported_events_are_a_whole_session_that_folds(name: str, tmp_path: Path) -> None:
    events = load_transcript(samples.write(tmp_path, name)).events
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert all(later.at >= earlier.at for earlier, later in pairwise(events))
    assert isinstance(events[0], SessionStarted)
    assert isinstance(events[1], Notice)
    assert events[1].origin == "import"
    state = fold(events)
    assert state.run.outcome is not None
    asked = [call.id for event in events if isinstance(event, ReplyFinished) for call in event.calls]
    answered = [event.call_id for event in events if isinstance(event, ToolResult)]
    assert sorted(asked) == sorted(answered)
    assert all(parse_event(event.model_dump_json()) == event for event in events)


def test_what_is_left_out_is_counted_by_its_type_and_said_at_the_head(tmp_path: Path) -> None:
    imported = load_transcript(samples.write(tmp_path, "claude_code"))
    assert dict(imported.report.skipped) == {
        "file-history-snapshot": 1,
        "message of an abandoned branch": 2,
        "progress": 1,
    }
    notice = imported.events[1]
    assert isinstance(notice, Notice)
    for word in ("progress ×1", "abandoned branch ×2", "Subagents kept apart: 1"):
        assert word in notice.text
    report = imported.report
    assert report.understood + sum(report.skipped.values()) == report.records


def test_one_reply_over_several_records_is_one_reply_and_its_usage_counts_once(tmp_path: Path) -> None:
    imported = load_transcript(samples.write(tmp_path, "claude_code"))
    first = next(event for event in imported.events if isinstance(event, ReplyFinished))
    assert [call.name for call in first.calls] == ["Read", "Bash"]
    assert (first.reasoning, first.prompt_tokens, first.completion_tokens) == ("Where is it?", 105, 40)
    assert fold(imported.events).metrics.session_usage.prompt_tokens == 105


def test_a_rewound_answer_is_not_part_of_the_conversation(tmp_path: Path) -> None:
    imported = load_transcript(samples.write(tmp_path, "claude_code"))
    texts = [event.text for event in imported.events if isinstance(event, ReplyFinished)]
    assert "an answer that was rewound" not in texts


def test_a_subagent_is_a_run_of_its_own(tmp_path: Path) -> None:
    main, subagent = load_transcripts(samples.write(tmp_path, "claude_code"))
    assert (main.subagent, subagent.subagent) == (False, True)
    assert subagent.title == "subagent: Count the files"
    assert "Three." not in [event.text for event in main.events if isinstance(event, ReplyFinished)]


def test_an_edit_brings_its_diff(tmp_path: Path) -> None:
    imported = load_transcript(samples.write(tmp_path, "claude_code"))
    edit = next(event for event in imported.events if isinstance(event, ToolSucceeded) and event.changed)
    assert edit.diff == "@@ -1,1 +1,1 @@\n-1\n+2"


def test_a_failed_model_call_that_was_tried_again_is_a_fault_within_its_iteration(tmp_path: Path) -> None:
    for name, kind in (("claude_code", "overloaded"), ("codex", "stream_cut")):
        folder = tmp_path / name
        folder.mkdir()
        events = load_transcript(samples.write(folder, name)).events
        fault = next(event for event in events if isinstance(event, ModelFaulted))
        assert (fault.fault.kind, fault.action) == (kind, "retry")
        after = events[fault.seq]
        assert isinstance(after, ModelCallStarted)
        assert (after.iteration, after.attempt) == (fault.iteration, 2)


def test_texts_that_stand_twice_in_a_rollout_are_taken_once(tmp_path: Path) -> None:
    events = load_transcript(samples.write(tmp_path, "codex")).events
    assert [event.task for event in events if isinstance(event, RunStarted)] == ["Fix the test"]
    replies = [event for event in events if isinstance(event, ReplyFinished)]
    assert [reply.text for reply in replies if reply.text] == ["Done."]
    assert replies[0].reasoning == "Look."
    assert (replies[0].prompt_tokens, replies[0].completion_tokens) == (70, 7)


def test_a_rollout_without_items_of_text_takes_the_events_instead(tmp_path: Path) -> None:
    path = tmp_path / "rollout"
    kept = [one for one in samples.codex() if one["payload"].get("type") != "message"]
    path.write_text(samples.lines(kept))
    events = load_transcript(path).events
    assert [event.task for event in events if isinstance(event, RunStarted)] == ["Fix the test"]
    assert [event.text for event in events if isinstance(event, ReplyFinished) if event.text] == ["Done."]


def test_bare_items_of_the_first_rollouts_are_understood(tmp_path: Path) -> None:
    path = tmp_path / "rollout"
    items = [one["payload"] for one in samples.codex() if one["type"] == "response_item"]
    head = {"id": "c-1", "timestamp": "2025-05-01T00:00:00Z", "instructions": "Be brief."}
    path.write_text(samples.lines([head, *items, {"record_type": "state"}]))
    imported = load_transcript(path)
    assert imported.source == "Codex CLI"
    assert results(imported) == EXPECTED["codex"][1]


def test_a_harness_that_did_not_take_a_reply_is_a_rejected_reply(tmp_path: Path) -> None:
    events = load_transcript(samples.write(tmp_path, "mini_swe_agent"), "gigi").events
    rejected = [event.failure for event in events if isinstance(event, ReplyRejected)]
    assert [(failure.kind, failure.message) for failure in rejected] == [
        (KIND.NO_TOOL_CALL, "Please always provide EXACTLY ONE action")
    ]


@pytest.mark.parametrize(
    ("state", "named"),
    [
        ({"open_file": "/w/a.py"}, {"path": "/w/a.py"}),
        ('{"open_file": "/x/w/a.py", "working_dir": "/x"}\n', {"path": "w/a.py"}),
        ({"open_file": "n/a"}, {}),
    ],
)
def test_an_edit_of_the_open_file_names_it_and_its_text_stands_once(
    tmp_path: Path, state: Any, named: dict[str, str]
) -> None:
    action = "edit 2:3\nx = 1\ny = 2\nend_of_edit"
    step = {
        "action": f"{action}\n",
        "thought": "\n",
        "response": f"\n```\n{action}\n```",
        "state": state,
        "observation": "[File: /w/a.py (9 lines total)]\n1:x",
    }
    path = tmp_path / "run.traj"
    path.write_text(json.dumps({"environment": "e", "trajectory": [step], "info": {}}))
    events = load_transcript(path).events
    (reply,) = (event for event in events if isinstance(event, ReplyFinished))
    (edit,) = (event for event in events if isinstance(event, ToolSucceeded))
    assert reply.text == ""
    assert edit.input == {**named, "lines": "2:3", "text": "x = 1\ny = 2"}
    assert edit.changed == (named.get("path", "/w/a.py"),)


def test_a_command_that_became_a_call_is_not_said_once_more_in_the_reply(tmp_path: Path) -> None:
    messages = [
        {"role": "system", "content": "You code."},
        {"role": "user", "content": "Fix it"},
        {"role": "assistant", "content": "THOUGHT: look\n\n```bash\nls\n```"},
        {"role": "user", "content": "<returncode>0</returncode>\n<output>\na.py\n</output>"},
    ]
    path = tmp_path / "run.json"
    path.write_text(json.dumps(messages))
    events = load_transcript(path).events
    (reply,) = (event for event in events if isinstance(event, ReplyFinished))
    assert (reply.text, [call.name for call in reply.calls]) == ("THOUGHT: look", ["bash"])


def test_graded_runs_are_sessions_of_their_own_with_their_reward(tmp_path: Path) -> None:
    runs = load_transcripts(samples.write(tmp_path, "tau_bench"))
    assert [(run.title, run.reward) for run in runs] == [("task 0, trial 0", 1.0), ("task 1, trial 0", 0.0)]
    assert len({run.events[0].session_id for run in runs if isinstance(run.events[0], SessionStarted)}) == 2
    assert not [event for event in runs[0].events if isinstance(event, RunStarted) and "STOP" in event.task]


def test_a_run_is_named_by_its_place_in_the_file(tmp_path: Path) -> None:
    from tui_agent.formats.importers.transcript import TranscriptError

    path = samples.write(tmp_path, "tau_bench")
    assert load_transcript(path, run=2).title == "task 1, trial 0"
    with pytest.raises(TranscriptError, match="it holds 2 runs, and run 3 was asked for"):
        load_transcript(path, run=3)


def test_a_recording_without_times_says_so_and_invents_no_durations(tmp_path: Path) -> None:
    events = load_transcript(samples.write(tmp_path, "openai_messages")).events
    assert isinstance(events[1], Notice)
    assert "keeps no times" in events[1].text
    assert {event.duration for event in events if isinstance(event, ToolResult | ReplyFinished)} == {0.0}


def test_a_call_without_a_result_is_cancelled(tmp_path: Path) -> None:
    path = tmp_path / "recording"
    messages = samples.openai_messages()["messages"][:3]
    path.write_text(json.dumps(messages))
    imported = load_transcript(path)
    assert [end for _, end, _ in results(imported)] == ["cancelled", "cancelled"]
    assert outcomes(imported) == ["interrupted"]


@pytest.mark.parametrize(
    ("tool", "given", "changed"),
    [
        ("Write", {"file_path": "a"}, ("a",)),
        ("str_replace_editor", {"command": "view", "path": "a"}, ()),
        ("str_replace_editor", {"command": "create", "path": "a"}, ("a",)),
        ("apply_patch", {"input": "*** Add File: a\n*** Delete File: b\n"}, ("a", "b")),
        ("mcp__fs__write_file", {"path": "a"}, ("a",)),
        ("file_system.write_file", {"path": "a"}, ("a",)),
        ("developer__text_editor", {"command": "view", "path": "a"}, ()),
        ("developer__text_editor", {"command": "str_replace", "path": "a"}, ("a",)),
        ("replace_file_content", {"TargetFile": "a"}, ("a",)),
        ("Bash", {"command": "echo x > a"}, ()),
        ("Read", {"file_path": "a"}, ()),
        ("Edit", {}, ("Edit",)),
        ("Edit", None, ("Edit",)),
    ],
)
def test_edit_tools_change_files_and_commands_never_do(
    tool: str, given: dict[str, Any] | None, changed: tuple[str, ...]
) -> None:
    from tui_agent.formats.importers.results import changed_files

    assert changed_files(tool, given) == changed


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("API Error: 529 overloaded_error", "overloaded"),
        ("API Error: 429 rate_limit_error", "rate_limit"),
        ("Credit balance is too low", "quota"),
        ("prompt is too long: 210000 tokens", "context_overflow"),
        ("Invalid API key · Please run /login", "auth"),
        ("Request timed out.", "timeout"),
        ("API Error: Connection error.", "connection"),
        ("stream disconnected before completion", "stream_cut"),
        ("API Error: 500 internal", "server"),
        ("", "server"),
    ],
)
def test_recorded_words_of_a_fault_are_classified(message: str, kind: str) -> None:
    from tui_agent.formats.importers.faults import classified

    assert classified(message).kind == kind
