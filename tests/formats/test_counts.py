"""Calls and failures of today's shapes: what a reader makes of a file equals a plain count of its records."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.formats import agent_records, samples
from tests.watch import recordings
from tui_agent.core import events
from tui_agent.core.fold import fold
from tui_agent.core.recovery.attempts import AttemptLedger
from tui_agent.core.recovery.streak import ErrorStreak
from tui_agent.formats.exporters import Format as Form
from tui_agent.formats.exporters import export_session
from tui_agent.formats.importers.load import Imported, judge, load_transcripts
from tui_agent.formats.importers.transcript import TranscriptError
from tui_agent.lab.analysis.runs import analyze_file, reports
from tui_agent.watch.watched import Watched


def _load(path: Path, content: Any) -> list[Imported]:
    lines = isinstance(content, list) and path.suffix == ".jsonl"
    path.write_text(samples.lines(content) if lines else json.dumps(content))
    return load_transcripts(path)


def _ends(runs: list[Imported]) -> list[str]:
    told = [event for run in runs for event in run.events if isinstance(event, events.ToolResult)]
    return [f"{event.tool} {event.type.removeprefix('tool_')}" for event in told]


def _counted(runs: list[Imported]) -> tuple[int, int]:
    """Calls and failures."""
    ends = [end.split()[-1] for end in _ends(runs)]
    return len(ends), ends.count("failed")


# --- counters that know nothing of the readers ---------------------------------------------------------------


def _of_codex(records: list[dict[str, Any]]) -> tuple[int, int]:
    items = {
        one["payload"]["item"]["id"]: one["payload"]["item"] for one in records if "item" in one["payload"]
    }
    scripts = [one["payload"] for one in records if one["payload"].get("name") == "exec"]
    failed = [json.dumps(one) for one in records if '"text": "Script failed' in json.dumps(one)]
    return max(len(items), len(scripts)), max(
        sum(bool(one["exit_code"]) for one in items.values()), len(failed)
    )


def _of_blocks(records: list[dict[str, Any]]) -> tuple[int, int]:
    found = [block for one in records if isinstance(one.get("content"), list) for block in one["content"]]
    told = [json.dumps(block) for block in found if block["type"] in {"tool_result", "toolResponse"}]
    marks = ('"is_error": true', '"status": "error"', '"isError": true')
    return len(told), sum(any(mark in one for mark in marks) for one in told)


def _of_atif(document: dict[str, Any]) -> tuple[int, int]:
    steps = [json.dumps(step) for step in document["steps"]]
    marks = ('exit_code": 2', '"is_error": true')
    return sum("function_name" in step for step in steps), sum(
        any(m in step for m in marks) for step in steps
    )


GOLDEN: dict[str, tuple[Any, tuple[int, int]]] = {
    **{
        f"codex, {name}": (records, _of_codex(records))
        for name in (
            "the command's item tells",
            "a script that failed",
            "an item that is written twice counts once",
        )
        for records, _ in [agent_records.CODE_MODE[name]]
    },
    "blocks": (agent_records.blocks(9), _of_blocks(agent_records.blocks(9))),
    "goose": (agent_records.goose(9), _of_blocks(agent_records.goose(9))),
    **{
        f"ATIF, {form}": (agent_records.atif(9, form), _of_atif(agent_records.atif(9, form)))
        for form in agent_records.ATIF_FORMS
    },
}


@pytest.mark.parametrize("name", GOLDEN)
def test_calls_and_failures_equal_a_plain_count_of_the_records(name: str, tmp_path: Path) -> None:
    content, counted = GOLDEN[name]
    suffix = "jsonl" if isinstance(content, list) else "json"
    runs = _load(tmp_path / f"recording.{suffix}", content)
    assert _counted(runs) == counted
    assert not runs[0].report.loss


RAW: dict[str, tuple[str, str]] = {
    "claude_code": (r'"tool_use", "id": "(\w+)', r'"is_error": true'),
    "codex": (
        r'"(?:function|custom_tool|local_shell|web_search)_call", ',
        r"(?:exited with code|Exit code:) [1-9]|failed to parse|rejected by user",
    ),
    "openhands": (r'"ActionEvent"', r'"exit_code": [1-9]|"AgentErrorEvent"|"UserRejectObservation"'),
    "openhands_results": (
        r'"action": "(?:run|edit|run_ipython|finish)"',
        r'"exit_code": [1-9]|"Traceback|"Unknown tool',
    ),
    "mini_swe_agent": (r'"command": "', r'"returncode": [1-9]'),
    "mini_swe_agent_list": (r"```bash", r"<returncode>[1-9]"),
    "swe_agent": (r'"action": "', r'syntax error|"python [^"]*", "observation": "Traceback'),
    "mistral_vibe_one_file": (r'"arguments"', r"<tool_error>|<user_cancellation>|returncode: [1-9]"),
    "tau_bench": (r'"arguments"', r'"content": "Error:'),
    "openai_messages": (r'"arguments"', r'(?i)"content": "(?:error:|\{\\"exit_code\\": [1-9])'),
}
"""By the sample, a call and one that did not succeed in its text."""


@pytest.mark.parametrize("name", RAW)
def test_calls_and_those_that_did_not_succeed_equal_a_plain_count_of_the_text(
    name: str, tmp_path: Path
) -> None:
    path = samples.write(tmp_path, name)
    call, failure = (re.findall(one, path.read_text()) for one in RAW[name])
    ends = [end.split()[-1] for end in _ends(load_transcripts(path))]
    assert (len(ends), ends.count("failed") + ends.count("refused")) == (len(call), len(failure))


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    """Every object in a recording."""
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _objects(inner)


WATCHED: dict[str, tuple[str, str, str, str]] = {
    "gemini_cli": ("id", "args", "id", '"status": "error"|Exit Code: [1-9]'),
    "copilot_cli": ("toolCallId", "arguments", "toolCallId", '"exitCode": [1-9]|"success": false'),
    "codex": ("call_id", "arguments", "call_id", "exited with code [1-9]|was not executed"),
    "mistral_vibe_store": ("id", "arguments_json", "call_id", '"returncode": [1-9]|was not executed'),
    "opencode": ("callID", "state", "callID", '"exit": [1-9]|"status": "error"'),
    "opencode_2": ("id", "state", "id", '"exit": [1-9]|"status": "error"'),
    "atif": (
        "tool_call_id",
        "function_name",
        "source_call_id",
        r'"exit_code": [1-9]|is_error": true|"content": "Error:',
    ),
}
"""By the recording: the field of a call's id and one that stands beside it, the field of an ended call's id, and a
mark of one that did not succeed.
"""


def _recorded(folder: Path, name: str) -> tuple[Path, Any]:
    """A session as its agent keeps it, and what is in it."""
    if name.startswith("opencode"):
        rows = list(recordings.opencode() if name == "opencode" else recordings.opencode_2())
        recordings.make_database(folder / "opencode.db", 2)
        for row in rows:
            recordings.write_row(folder / "opencode.db", row)
        return folder / "opencode.db", [row[-1] for row in rows]
    content = recordings.atif() if name == "atif" else recordings.LINES[name]()
    path = folder / "session"
    if name == "mistral_vibe_store":
        (folder / "journal").mkdir()
        path = folder / "journal" / "0001.jsonl"
    path.write_text(json.dumps(content) if name == "atif" else samples.lines(content))
    return (folder if path.parent != folder else path), content


@pytest.mark.parametrize("name", WATCHED)
def test_each_agents_calls_equal_a_plain_count_of_its_objects(name: str, tmp_path: Path) -> None:
    path, content = _recorded(tmp_path, name)
    key, beside, ended, mark = WATCHED[name]
    calls = {one[key] for one in _objects(content) if key in one and beside in one}
    failed = {
        one[ended] for one in _objects(content) if ended in one and re.search(mark, json.dumps(one))
    } & calls
    ends = [end.split()[-1] for end in _ends(load_transcripts(path))]
    without = name == "mistral_vibe_store"  # it keeps refusals with its hooks, not with the calls
    refused = 0 if without else ends.count("refused")
    assert (len(ends), ends.count("failed") + refused) == (len(calls), len(failed))
    assert failed


@pytest.mark.parametrize("arrangement", ["list", "object", "lines"])
def test_anthropic_messages_are_read_in_each_arrangement(arrangement: str, tmp_path: Path) -> None:
    messages = agent_records.blocks(6)
    content: Any = {"model": "claude-x", "messages": messages} if arrangement == "object" else messages
    runs = _load(tmp_path / ("a.jsonl" if arrangement == "lines" else "a.json"), content)
    assert (runs[0].source, _counted(runs)) == ("Anthropic messages", (6, 3))
    tasks = [event.task for event in runs[0].events if isinstance(event, events.RunStarted)]
    assert tasks == ["build it"], "what Cline adds is no message of the operator"


@pytest.mark.parametrize("form", ["blocks", "tool_calls"])
def test_requests_that_repeat_what_was_said_are_one_conversation(form: str, tmp_path: Path) -> None:
    messages: list[dict[str, Any]] = agent_records.blocks(4)
    if form == "tool_calls":
        messages = [{"role": "user", "content": "build it"}]
        for number in range(4):
            function = {"name": "bash", "arguments": '{"command": "make"}'}
            call = {"id": f"k{number}", "type": "function", "function": function}
            messages += [{"role": "assistant", "content": "", "tool_calls": [call]}]
            messages += [{"role": "tool", "tool_call_id": f"k{number}", "content": "Error: no rule"}]
    requests = [{"model": "m", "messages": messages[:end]} for end in range(1, len(messages) + 1, 2)]
    runs = _load(tmp_path / "requests.jsonl", requests)
    assert _counted(runs) == (4, 2 if form == "blocks" else 4)
    others = [{"messages": [{"role": "user", "content": "test it"}, *messages[1:3]]}, *requests[-1:]]
    assert len(_load(tmp_path / "others.jsonl", others)) == 2


def test_calls_in_tags_are_made_of_their_results(tmp_path: Path) -> None:
    runs = _load(tmp_path / "a.json", agent_records.written_in_tags())
    assert _ends(runs) == ["execute_command failed"]
    failed = next(event for event in runs[0].events if isinstance(event, events.ToolFailed))
    assert failed.input == {"command": "make all"}
    assert failed.failure.message.startswith("exit code 2")
    assert runs[0].report.rebuilt == 1


def test_openai_messages_take_no_part_that_they_do_not_know(tmp_path: Path) -> None:
    part = {"type": "function_invocation", "name": "bash"}
    messages = [{"role": "user", "content": "build it"}, {"role": "assistant", "content": [part]}]
    with pytest.raises(TranscriptError, match="none of the known kinds"):
        _load(tmp_path / "a.json", messages)


# --- Codex ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", agent_records.CODE_MODE)
def test_a_script_of_codex_is_what_it_ran(name: str, tmp_path: Path) -> None:
    records, ends = agent_records.CODE_MODE[name]
    assert _ends(_load(tmp_path / "rollout.jsonl", records)) == ends


def _line_by_line(path: Path, records: Iterable[Mapping[str, Any]]) -> Watched:
    """A file that is watched while it grows."""
    path.touch()
    watched = Watched(path)
    for record in records:
        with path.open("a") as file:
            file.write(samples.lines([record]))
        watched.update(0.0)
    return watched


@pytest.mark.parametrize("name", agent_records.CODE_MODE)
def test_a_script_comes_to_the_same_line_by_line(name: str, tmp_path: Path) -> None:
    records, ends = agent_records.CODE_MODE[name]
    watched = _line_by_line(tmp_path / "rollout.jsonl", records)
    watched.update(10.0)
    told = [event for event in watched.events if isinstance(event, events.ToolResult)]
    assert [f"{event.tool} {event.type.removeprefix('tool_')}" for event in told] == ends


@pytest.mark.parametrize(
    ("name", "output", "end"),
    [
        ("exec_command", "Wall time: 0.1 seconds\nProcess exited with code 2\nOutput:\nno", "failed"),
        ("exec_command", "Wall time: 0.1 seconds\nProcess exited with code 0\nOutput:\nyes", "succeeded"),
        ("exec_command", "Wall time: 9.0 seconds\nProcess running with session ID 4\nOutput:\n", "succeeded"),
        ("exec_command", "Wall time: 0.1 seconds\nProcess is somewhere\nOutput:\nno", "ended"),
        ("shell", "what it wrote, and no frame", "ended"),
        ("update_plan", "Plan updated", "succeeded"),
        ("server__find", "Wall time: 0.1 seconds\nOutput:\nnothing is there", "ended"),
    ],
)
def test_a_frame_that_is_not_known_is_no_success(name: str, output: str, end: str, tmp_path: Path) -> None:
    call = {"type": "function_call", "call_id": "k", "name": name, "arguments": '{"cmd": "make"}'}
    records = agent_records.codex(
        {"type": "response_item", "payload": call}, agent_records.waited("k", output)
    )
    assert _ends(_load(tmp_path / "rollout.jsonl", records)) == [f"{name} {end}"]


@pytest.mark.parametrize(
    ("told", "end"),
    [
        ({"Ok": {"content": [], "isError": True}}, "failed"),
        ({"Ok": {"content": []}}, "succeeded"),
        ({"Err": "no"}, "failed"),
    ],
)
def test_a_tool_of_a_server_ends_as_its_event_says(told: dict[str, Any], end: str, tmp_path: Path) -> None:
    call = {"type": "function_call", "call_id": "k", "name": "server__find", "arguments": "{}"}
    event = {"type": "mcp_tool_call_end", "call_id": "k", "result": told}
    records = agent_records.codex(
        {"type": "response_item", "payload": call},
        {"type": "event_msg", "payload": event},
        agent_records.waited("k", "Wall time: 0.1 seconds\nOutput:\nno"),
    )
    assert _ends(_load(tmp_path / "rollout.jsonl", records)) == [f"server__find {end}"]


def test_a_call_that_its_own_item_tells_of_counts_once(tmp_path: Path) -> None:
    call = {"type": "function_call", "call_id": "k", "name": "exec_command", "arguments": '{"cmd": "make"}'}
    records = agent_records.codex(
        {"type": "response_item", "payload": call},
        agent_records.ran("k", "make", 2),
        agent_records.waited("k", "no frame"),
    )
    assert _ends(_load(tmp_path / "rollout.jsonl", records)) == ["exec_command failed"]


# --- Claude Code ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", agent_records.CLAUDE)
def test_only_the_operator_goes_back(name: str, tmp_path: Path) -> None:
    records, calls, failures = agent_records.CLAUDE[name]
    runs = _load(tmp_path / "s-1.jsonl", records)
    assert _counted(runs) == (calls, failures)
    report = runs[0].report
    assert report.understood + sum(report.skipped.values()) == report.records


@pytest.mark.parametrize("name", agent_records.CLAUDE)
def test_a_tree_comes_to_the_same_line_by_line(name: str, tmp_path: Path) -> None:
    records, calls, _ = agent_records.CLAUDE[name]
    watched = _line_by_line(tmp_path / "s-1.jsonl", records)
    assert sum(isinstance(event, events.ToolResult) for event in watched.events) == calls


def _with_agents(folder: Path) -> Path:
    """A session with a sub-agent of one failure, and two helpers' copies of the whole of it."""
    main = [samples.claude("user", "u1", None, "build it", 0), *agent_records.bash(1, "u1", fails=True)]
    path = folder / "s-1.jsonl"
    path.write_text(samples.lines(main))
    agents = folder / "s-1" / "subagents"
    agents.mkdir(parents=True)
    own = [
        samples.claude("user", "b1", None, "look", 2, isSidechain=True, agentId="b"),
        *agent_records.bash(3, "b1", fails=True, isSidechain=True, agentId="b"),
    ]
    (agents / "agent-b.jsonl").write_text(samples.lines(own))
    for name in ("acompact-1f", "aside_question-2e", "z"):
        copies = [one | {"isSidechain": True, "agentId": name} for one in main]
        (agents / f"agent-{name}.jsonl").write_text(samples.lines(copies))
    return path


def test_a_sub_agent_counts_once_and_copies_do_not(tmp_path: Path) -> None:
    path = _with_agents(tmp_path)
    assert _counted(load_transcripts(path)) == (2, 2)
    files = list(reports([tmp_path], ("forge",), 1))
    assert [file.path for file in files] == [str(path)]
    assert sum(row.tool_errors for file in files for row in file.rows) == 2


def test_a_fork_counts_what_is_new_in_it_where_its_session_is_counted_too(tmp_path: Path) -> None:
    first = [samples.claude("user", "u1", None, "build it", 0), *agent_records.bash(1, "u1", fails=True)]
    name = "00000000-0000-4000-8000-000000000001"
    origin = {"forkedFrom": {"sessionId": name, "messageUuid": "u1"}}
    (tmp_path / f"{name}.jsonl").write_text(samples.lines(first))
    fork = tmp_path / "fork.jsonl"
    fork.write_text(
        samples.lines([*(one | origin for one in first), *agent_records.bash(2, "r1", fails=True)])
    )
    rows = [row for file in reports([tmp_path], ("forge",), 1) for row in file.rows]
    assert sorted((row.tool_calls, row.tool_errors, row.failures) for row in rows) == [(1, 1, 1), (1, 1, 1)]
    [alone] = analyze_file(fork, ("forge",)).rows
    assert (alone.tool_calls, alone.tool_errors) == (2, 2)


def test_sub_agents_without_their_session_are_read(tmp_path: Path) -> None:
    _with_agents(tmp_path).unlink()
    (tmp_path / "s-1" / "subagents" / "agent-acompact-1f.jsonl").unlink()
    assert len(list(reports([tmp_path], ("forge",), 1))) == 3


@pytest.mark.parametrize(
    ("mode", "said"), [("prompt", ["build it", "use port 8080"]), ("task-notification", ["build it"])]
)
def test_what_was_typed_while_a_call_ran_is_the_operators(mode: str, said: list[str], tmp_path: Path) -> None:
    queued = {"type": "queued_command", "prompt": "use port 8080", "commandMode": mode}
    records = [
        samples.claude("user", "u1", None, "build it", 0),
        *agent_records.bash(1, "u1", fails=False),
        agent_records.beside("attachment", "q1", "r1", attachment=queued),
        *agent_records.bash(2, "q1", fails=False),
    ]
    runs = _load(tmp_path / "s-1.jsonl", records)
    told = [
        event.task if isinstance(event, events.RunStarted) else event.text
        for event in runs[0].events
        if isinstance(event, events.RunStarted | events.OperatorSpoke)
    ]
    assert told == said
    assert _counted(runs) == (2, 0)


@pytest.mark.parametrize(
    ("words", "marks", "kind"),
    [
        ("You've hit your session limit · resets 1:20am", {"error": "rate_limit"}, "usage_limit"),
        ("5-hour limit reached ∙ resets 3pm", {"apiErrorStatus": 429}, "usage_limit"),
        ("API Error: Repeated 529 Overloaded errors", {"error": "server_error"}, "overloaded"),
        ("Something went wrong", {"error": "overloaded"}, "overloaded"),
        ("Something went wrong", {"apiErrorStatus": 401}, "auth"),
    ],
)
def test_a_failed_call_of_the_model_has_the_kind_that_its_record_says(
    words: str, marks: dict[str, Any], kind: str, tmp_path: Path
) -> None:
    text = [{"type": "text", "text": words}]
    records = [
        samples.claude("user", "u1", None, "build it", 0),
        samples.claude("assistant", "a1", "u1", text, 1, isApiErrorMessage=True, **marks),
    ]
    told = _load(tmp_path / "s-1.jsonl", records)[0].events
    fault = next(event.fault for event in told if isinstance(event, events.ModelFaulted))
    assert fault.kind == kind
    if kind == "usage_limit":
        assert fault.resets_at is not None, "it is waited for"


# --- what is not known, and what is lost --------------------------------------------------------------------------


def test_what_is_not_known_is_neither_a_success_nor_a_failure(tmp_path: Path) -> None:
    lines = [
        one
        for number in range(6)
        for one in (
            agent_records.script(f"k{number}", agent_records.running("make")),
            agent_records.printed(f"k{number}", agent_records.DONE, "make: no rule"),
        )
    ]
    run = judge(_load(tmp_path / "rollout.jsonl", agent_records.codex(*lines))[0], "combined")
    state = fold(run.events)
    recovery = state.recovery
    assert Counter(end.split()[-1] for end in _ends([run])) == {"ended": 6}
    assert (state.metrics.tool_successes, state.metrics.tool_errors) == (0, 0)
    assert (recovery.of(ErrorStreak).count, recovery.of(AttemptLedger).highest) == (0, 0)
    report = analyze_file(tmp_path / "rollout.jsonl", ("combined",))
    assert (report.rows[0].tool_calls, report.rows[0].not_known, report.rows[0].tool_errors) == (6, 6, 0)
    assert "not known for 6 of 6" in report.loss


def test_a_loss_is_said_at_the_head_and_when_most_is_lost_nothing_is_read(tmp_path: Path) -> None:
    document = agent_records.atif(9, "inside")
    for step in document["steps"][1:2]:
        step["observation"]["results"][0]["source_call_id"] = "elsewhere"
    runs = _load(tmp_path / "a.json", document)
    assert "find no call" in runs[0].report.loss
    head = next(event for event in runs[0].events if isinstance(event, events.Notice))
    assert head.severity == "warning"
    assert head.text.startswith("Not to be relied on:")
    for step in document["steps"][1:]:
        step["observation"]["results"][0]["source_call_id"] = "elsewhere"
    with pytest.raises(TranscriptError, match="most of it cannot be read"):
        _load(tmp_path / "a.json", document)


def test_a_watched_session_says_what_is_lost_of_it(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    document = agent_records.atif(9, "inside")
    document["steps"][1]["observation"]["results"][0]["source_call_id"] = "elsewhere"
    path.write_text(json.dumps(document))
    watched = Watched(path)
    watched.update(0.0)
    watched.update(1e12)
    notices = [event for event in watched.events if isinstance(event, events.Notice)]
    assert [notice.severity for notice in notices if "find no call" in notice.text] == ["warning"]


@pytest.mark.parametrize(
    ("form", "said"), [("text", "TOOL exec NOT KNOWN"), ("html", "not known"), ("markdown", "not known")]
)
def test_an_export_says_that_it_is_not_known_how_a_call_ended(form: Form, said: str, tmp_path: Path) -> None:
    records, _ = agent_records.CODE_MODE["without an item a command's end is not known"]
    [run] = _load(tmp_path / "rollout.jsonl", records)
    told = export_session([event for event in run.events if not isinstance(event, events.Notice)], form)
    assert said in told
