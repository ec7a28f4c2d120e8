"""Shapes of files that people have reported of each agent: none of them loses or doubles a call in silence.

The numbers are those of the reports in the agents' own trackers; the inputs are made here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.formats import agent_records, more_agents, samples
from tests.watch import recordings
from tui_agent.cli import watch
from tui_agent.core import events
from tui_agent.core.tool_facts import UNRECORDED, facts_of
from tui_agent.formats.importers.load import load_transcripts
from tui_agent.formats.importers.transcript import TranscriptError
from tui_agent.lab.analysis.runs import analyze_file
from tui_agent.store.audit import effects_of
from tui_agent.watch.watched import Watched

Records = list[dict[str, Any]]
F, S, U, C = "failed", "succeeded", "ended", "cancelled"


def _lines(records: Records) -> list[bytes]:
    return samples.lines(records).encode().splitlines(keepends=True)


def _seen(path: Path) -> tuple[list[str], bool]:
    """How the calls ended, the same by import, analysis and watching; and whether a loss is said loudly."""
    runs = load_transcripts(path)
    ends = [event for run in runs for event in run.events if isinstance(event, events.ToolResult)]
    told = [event.type.removeprefix("tool_") for event in ends]
    analysis = analyze_file(path, ("forge",))
    assert sum(row.tool_calls for row in analysis.rows) == len(told)
    watched = Watched(path)
    for now in (0.0, 4e9):
        watched.update(now)
    inner = [event.event if isinstance(event, events.LaneEvent) else event for event in watched.events]
    ended = sum(isinstance(event, events.ToolResult) for event in inner)
    assert ended in {len(told), len(told) - told.count(C)}, "a call without a result may still run"
    loud = runs[0].report.loss
    assert watched.loss == loud
    assert watch.main([str(path), "--once", "--strict"]) == int(bool(loud))
    for run in runs:
        _audited(run.events)
    return told, bool(loud)


_OUTCOMES = {F: "failed", S: "ok", U: "not known", C: "cancelled"}


def _audited(run: Sequence[events.Event]) -> None:
    """The audit holds each call that may have had an effect, with its end."""
    shown = {effect["seq"]: effect.get("outcome", "ok") for effect in effects_of(run)}
    for event in run:
        if isinstance(event, events.ToolResult) and facts_of(event).effect not in UNRECORDED:
            assert shown[event.seq] == _OUTCOMES[event.type.removeprefix("tool_")]


def _of_lines(folder: Path, content: bytes) -> tuple[list[str], bool]:
    path = folder / "recording.jsonl"
    path.write_bytes(content)
    return _seen(path)


# --- lines that crashes and second writers leave ------------------------------------------------------------------

DAMAGE: dict[str, tuple[Callable[[list[bytes]], bytes], int]] = {
    "NUL bytes in a line of their own (claude-code 49876)": (
        lambda lines: b"".join([*lines[:2], b"\0" * 300 + b"\n", *lines[2:]]),
        1,
    ),
    "NUL bytes before a record": (lambda lines: b"".join([*lines[:2], b"\0" * 300, *lines[2:]]), 0),
    "NUL bytes at the end (copilot-cli 2217)": (lambda lines: b"".join([*lines, b"\0" * 1_728]), 0),
    "the beginning of a record before the whole (copilot-cli 4098, codex 24425)": (
        lambda lines: b"".join([*lines[:2], lines[2][:50], *lines[2:]]),
        1,
    ),
    "two records in one line (claude-code 20992)": (
        lambda lines: b"".join([*lines[:2], lines[2].rstrip(), *lines[3:]]),
        0,
    ),
    "a raw end of line in a text (copilot-cli 2649)": (
        lambda lines: b"".join(lines).replace(b"no such file", b"no such\nfile"),
        0,
    ),
    "a raw line separator in a text (copilot-cli 2490)": (
        lambda lines: b"".join(lines).replace(b"no such file", "no such\u2028 file".encode()),
        0,
    ),
    "bytes of another encoding": (lambda lines: b"".join(lines).replace(b"no such", b"no s\xfcch"), 0),
    "UTF-16, as PowerShell writes it": (lambda lines: b"".join(lines).decode().encode("utf-16"), 0),
    "ends of lines of Windows": (lambda lines: b"".join(lines).replace(b"\n", b"\r\n"), 0),
    "the end of a record behind the last (goose 2529)": (lambda lines: b"".join([*lines, b'ole":\n']), 1),
    "a text before the first record": (lambda lines: b"".join([b"(node:7) Warning: x\n", *lines]), 1),
}


@pytest.mark.parametrize("name", more_agents.LINES)
@pytest.mark.parametrize("damage", DAMAGE)
def test_what_is_whole_in_a_damaged_file_is_read_and_the_rest_is_counted(
    name: str, damage: str, tmp_path: Path
) -> None:
    lines = _lines(more_agents.LINES[name]())
    whole, _ = _of_lines(tmp_path, b"".join(lines))
    make, damaged = DAMAGE[damage]
    ends, loud = _of_lines(tmp_path, make(lines))
    assert ends == whole
    assert len(load_transcripts(tmp_path / "recording.jsonl")[0].report.damaged) == damaged
    assert loud or not damaged


def test_a_damaged_line_costs_no_more_than_its_length(tmp_path: Path) -> None:
    """Beginnings of records without an end, and pieces that go on for ever."""
    lines = _lines(more_agents.pi())
    hostile = b'{"type": "message", "x": "' * 5_000 + b"\n"
    pieces = b'{"type": "message", "x": "\n' + b"y\n" * 5_000
    path = tmp_path / "recording.jsonl"
    path.write_bytes(b"".join(lines) + hostile + pieces)
    with pytest.raises(TranscriptError, match="are not JSON objects"):
        load_transcripts(path)


def test_an_export_behind_a_word_of_its_program_is_read(tmp_path: Path) -> None:
    """opencode 12130: `opencode export ID 2>&1 > FILE`."""
    info = {"id": "m1", "role": "assistant", "sessionID": "o"}
    state = {"status": "error", "input": {}, "error": "no"}
    part = {"type": "tool", "callID": "c1", "tool": "read", "state": state, "messageID": "m1"}
    export = {"info": {"id": "o"}, "messages": [{"info": info, "parts": [part]}]}
    path = tmp_path / "session.json"
    path.write_text("Exporting session: ses_1" + json.dumps(export, indent=2))
    assert _seen(path) == ([F], False)
    path.write_text(json.dumps(export, indent=2)[:-40])
    with pytest.raises(TranscriptError, match="cut off"):
        load_transcripts(path)


# --- calls and results that do not match ------------------------------------------------------------------------

_TYPED = samples.claude("user", "u1", None, "build it", 0)


def _claude(*more: dict[str, Any]) -> Records:
    return [_TYPED, *agent_records.bash(1, "u1", fails=True), *more]


def _orphan(number: int) -> dict[str, Any]:
    return agent_records.bash(number, "r1", fails=True)[1]


def _copilot(*records: dict[str, Any]) -> Records:
    started = {"type": "session.start", "data": {"sessionId": "p", "copilotVersion": "1.0.102"}}
    return [started, {"type": "user.message", "data": {"content": "fix it"}}, *records]


def _asked(key: str) -> dict[str, Any]:
    call = {"toolCallId": key, "name": "bash", "arguments": {"command": "make"}}
    return {"type": "assistant.message", "data": {"content": "", "toolRequests": [call]}}


def _told(key: str, *, success: bool = True) -> dict[str, Any]:
    result = {"toolCallId": key, "success": success, "result": {"content": "what make says"}}
    return {"type": "tool.execution_complete", "data": result}


def _pi(*messages: dict[str, Any]) -> Records:
    head: dict[str, Any] = {"type": "session", "version": 3, "id": "p", "cwd": "/w"}
    said = {"role": "user", "content": "fix it"}
    return [head, *({"type": "message", "message": one} for one in (said, *messages))]


def _pi_call(key: str, **more: Any) -> dict[str, Any]:
    call = {"type": "toolCall", "id": key, "name": "exec", "arguments": {"command": "make"}}
    return {"role": "assistant", "content": [call], **more}


def _pi_result(key: str, text: str = "no", *, fails: bool = True) -> dict[str, Any]:
    return {"role": "toolResult", "toolCallId": key, "content": text, "isError": fails}


_REPAIRED = "[openclaw] missing tool result in session history; inserted synthetic error result for transcript repair."
_SERVER_CALL = {"type": "server_tool_use", "id": "srv_1", "name": "advisor", "input": {}}
_SERVER_RESULT = {"type": "advisor_tool_result", "tool_use_id": "srv_1", "content": "advice"}


def _codex_exec(*items: dict[str, Any], kind: str = "type") -> Records:
    made: Records = [{"type": "thread.started", "thread_id": "t"}, {"type": "turn.started"}]
    for item in items:
        of = item.pop("of", "item.completed")
        made.append({"type": of, "item": {kind: item.pop("kind"), **item}})
    return made


def _command(key: str, code: int | None, **more: Any) -> dict[str, Any]:
    status = "failed" if code else "completed"
    item = {"kind": "command_execution", "id": key, "command": "make", "exit_code": code, "status": status}
    return {**item, "aggregated_output": "x", **more}


_LAGGED = {
    "kind": "error",
    "id": "i9",
    "message": "in-process app-server event stream lagged; dropped 96 events",
}


def _gemini(*records: dict[str, Any]) -> Records:
    head = {"sessionId": "g", "projectHash": "h", "startTime": more_agents.at(0)}
    said = {"id": "u", "type": "user", "content": "fix it", "timestamp": more_agents.at(1)}
    return [head, said, *records]


def _gemini_reply(key: str, *statuses: str) -> dict[str, Any]:
    calls = [
        {
            "id": f"{key}-{number}",
            "name": "read_file",
            "args": {},
            "status": status,
            "result": [{"functionResponse": {"response": {"error" if status == "error" else "output": "x"}}}],
        }
        for number, status in enumerate(statuses)
    ]
    return {"id": key, "type": "gemini", "content": "", "timestamp": more_agents.at(2), "toolCalls": calls}


def _opencode_part(key: str, **state: Any) -> dict[str, Any]:
    part = {
        "id": f"p-{key}",
        "messageID": "m1",
        "type": "tool",
        "tool": "write",
        "callID": key,
        "state": state,
    }
    return {"type": "tool_use", "timestamp": 1_795_770_000_000, "sessionID": "o", "part": part}


def _kimi(*events_of_loop: dict[str, Any]) -> Records:
    return [
        *more_agents.kimi_code()[:3],
        *({"type": "context.append_loop_event", "event": one, "time": 1} for one in events_of_loop),
    ]


def _blocks(*messages: tuple[str, *tuple[dict[str, Any], ...]]) -> Records:
    said = {"role": "user", "content": [{"type": "text", "text": "<task>build it</task>"}]}
    return [said, *({"role": role, "content": blocks} for role, *blocks in messages)]


_USE = {"type": "tool_use", "id": "t1", "name": "execute_command", "input": {"command": "make"}}
_MARKED = {"type": "tool_result", "tool_use_id": "t1", "content": "no rule", "is_error": True}


def _vibe(*messages: dict[str, Any]) -> Records:
    return [{"role": "user", "content": "fix it"}, *messages]


_CHAT = {"role": "assistant", "content": "", "tool_calls": [samples.chat_call("v1", "bash", command="make")]}


def _cursor(*content: dict[str, Any], **more: Any) -> Records:
    return [*more_agents.cursor()[:1], {"role": "assistant", "message": {"content": list(content)}}, more]


def _hands(*records: dict[str, Any]) -> Records:
    call = {"kind": "ActionEvent", "id": "a1", "tool_call_id": "k1", "tool_name": "terminal"}
    asked = {**call, "llm_response_id": "r1", "action": {"command": "make"}, "source": "agent"}
    said = {"kind": "MessageEvent", "source": "user", "llm_message": {"content": "fix it"}}
    return [{"timestamp": more_agents.at(place), **one} for place, one in enumerate((said, asked, *records))]


_BROKE = {
    "kind": "AgentErrorEvent",
    "tool_call_id": "k1",
    "tool_name": "terminal",
    "error": "the server was restarted",
}
_SEEN = {
    "kind": "ObservationEvent",
    "tool_call_id": "k1",
    "tool_name": "terminal",
    "observation": {"exit_code": 0, "content": "built", "is_error": False},
}

CALL = [agent_records.script("k", agent_records.running("make")), agent_records.ran("x1", "make", 2)]
COUNTED = {"type": "token_count", "rate_limits": {}, "credits": {}}

TWINS = {
    "role": "assistant",
    "content": "",
    "tool_calls": [samples.chat_call("0", "bash", command=one) for one in ("make", "ls", "make")],
}

REPORTS: dict[str, tuple[Records, list[str], bool]] = {
    # Claude Code
    "claude-code 8484: compaction left a result without its call": (_claude(_orphan(2)), [F], True),
    "claude-code 45286: the result of one of two calls was never written": (
        _claude(agent_records.bash(2, "r1", fails=True)[0]),
        [F, C],
        False,
    ),
    "claude-code 22526: a parent that stands nowhere": (
        _claude(
            samples.claude("user", "u2", "phantom", "and test it", 5),
            *agent_records.bash(6, "u2", fails=False),
        ),
        [F, S],
        False,
    ),
    "claude-code 36583: a snapshot that is named as a message": (
        _claude(
            {"type": "file-history-snapshot", "messageId": "u1", "uuid": "u1", "snapshot": {}},
            *agent_records.bash(2, "r1", fails=False),
        ),
        [F, S],
        False,
    ),
    "claude-code 63790: records of a command between a server's call and its result": (
        _claude(
            samples.claude("assistant", "a8", "r1", [_SERVER_CALL], 8, message={"id": "m8"}),
            samples.claude("user", "c8", "a8", "<command-name>/plugin</command-name>", 8),
            samples.claude("assistant", "b8", "c8", [_SERVER_RESULT], 9, message={"id": "m8"}),
        ),
        [F, S],
        False,
    ),
    "claude-code-trace 273: two calls under one message": (
        _claude(
            samples.claude("assistant", "a2", "r1", [{**_USE, "id": "x1"}], 3, message={"id": "m2"}),
            samples.claude("assistant", "a3", "a2", [{**_USE, "id": "x2"}], 3, message={"id": "m2"}),
            samples.claude("user", "r2", "a3", samples.tool_result("x1", "no", is_error=True), 4),
            samples.claude("user", "r3", "r2", samples.tool_result("x2", "yes"), 4),
        ),
        [F, F, S],
        False,
    ),
    # Codex CLI
    "codex 30932: the history once more in a record of its compaction": (
        agent_records.codex(
            *CALL,
            {"type": "compacted", "payload": {"replacement_history": [one["payload"] for one in CALL]}},
        ),
        [F],
        False,
    ),
    "codex 35746: a count of tokens with all its fields, twice under one number": (
        agent_records.codex(
            *CALL,
            *({"type": "event_msg", "payload": COUNTED, "ordinal": 3} for _ in range(2)),
        ),
        [F],
        False,
    ),
    "codex: what was run for a call that is gone": (
        agent_records.codex(
            *CALL,
            agent_records.printed("k", agent_records.DONE, "x"),
            agent_records.ran("x2", "make test", 2),
        ),
        [F],
        True,
    ),
    "codex 14691: a command that was left behind is called completed": (
        _codex_exec(_command("i1", None, of="item.started"), _command("i1", None)),
        [U],
        True,
    ),
    "codex 14691: a call that was started and never ended": (
        _codex_exec(_command("i1", 2), _command("i2", None, of="item.started")),
        [F, C],
        False,
    ),
    "codex 19689: events that the stream itself has dropped": (
        _codex_exec(_command("i1", 2), _LAGGED),
        [F],
        True,
    ),
    "codex 4250: items of the first form": (_codex_exec(_command("i1", 2), kind="item_type"), [F], False),
    # Gemini CLI
    "gemini-cli 28036: a message that is written again with more calls": (
        _gemini(_gemini_reply("m", "error"), _gemini_reply("m", "error", "success")),
        [F, S],
        False,
    ),
    "gemini-cli 27770: all messages are set to fewer": (
        _gemini(_gemini_reply("m", "error"), {"$set": {"messages": []}}, _gemini_reply("n", "success")),
        [S],
        False,
    ),
    "gemini-cli 26425: a call that was running when the file was cut": (
        _gemini(
            _gemini_reply("m", "error"),
            _gemini_reply("n", "executing") | {"toolCalls": [{"id": "n", "name": "x"}]},
        ),
        [F, C],
        False,
    ),
    # Qwen Code
    "claude-code 61188 (of the same form): a parent of another process": (
        [*more_agents.qwen_code(), {**more_agents.qwen_code()[0], "uuid": "z", "parentUuid": "phantom"}],
        [F, S, F, S],
        False,
    ),
    # Kimi Code
    "MoonshotAI/kimi-cli 2496: a compacted session that is taken up": (
        [
            *more_agents.kimi_code(),
            {"type": "context.apply_compaction", "time": 1},
            *more_agents.kimi_code()[1:2],
        ],
        [F, S, F, S],
        False,
    ),
    "kimi: a result without its call": (
        _kimi(
            {"type": "step.begin", "uuid": "s"},
            {"type": "tool.call", "stepUuid": "s", "toolCallId": "k", "name": "Bash", "args": {}},
            {"type": "tool.result", "toolCallId": "k", "result": {"output": "no", "isError": True}},
            {"type": "tool.result", "toolCallId": "gone", "result": {"output": "no", "isError": True}},
        ),
        [F],
        True,
    ),
    "agentsview: kinds of records that do not belong to the conversation": (
        [
            *more_agents.kimi_code(),
            {"type": "usage.record", "usage": {}, "usageScope": "turn"},
            {"type": "llm.tools_snapshot", "tools": [], "hash": "h"},
            {"type": "permission.set_mode", "mode": "yolo"},
        ],
        [F, S, F, S],
        False,
    ),
    # OpenCode
    "opencode 42286: a call that is pending for ever": (
        [
            _opencode_part("c1", status="error", input={}, error="no"),
            _opencode_part("c2", status="running", input={}),
        ],
        [F, C],
        False,
    ),
    "opencode 10616: a call that was aborted": (
        [_opencode_part("c1", status="error", input={}, error="Tool execution aborted")],
        [C],
        False,
    ),
    "opencode 40235: an interruption behind the end of the same call": (
        [
            _opencode_part("c1", status="completed", input={}, output="x"),
            _opencode_part("c1", status="error", input={}, error="Tool execution aborted"),
        ],
        [S],
        False,
    ),
    "takopi 22: a part that is printed with each change": (
        [
            _opencode_part("c1", status="running", input={}),
            _opencode_part("c1", status="error", input={}, error="no"),
            _opencode_part("c1", status="error", input={}, error="no"),
        ],
        [F],
        False,
    ),
    # Copilot CLI
    "copilot-cli 3366: a call whose end was never written": (
        _copilot(_asked("k1"), _told("k1", success=False), _asked("k2")),
        [F, C],
        False,
    ),
    "copilot-cli 2209: a session in several parts": (
        _copilot(
            _asked("k1"),
            _told("k1", success=False),
            {"type": "session.shutdown", "data": {"shutdownType": "routine"}},
            {"type": "session.resume", "data": {"sessionId": "p"}},
            _asked("k2"),
            _told("k2"),
        ),
        [F, S],
        False,
    ),
    "PolyPilot 385: events that are no part of the conversation": (
        _copilot(
            _asked("k1"),
            _told("k1"),
            *({"type": "system.notification", "data": {"content": "done"}} for _ in range(9)),
        ),
        [S],
        False,
    ),
    "copilot-cli: an event of a kind that nobody knows": (
        _copilot(
            _asked("k1"),
            _told("k1"),
            {"type": "tool.run_finished", "data": {"toolCallId": "k2", "result": "no"}},
        ),
        [S],
        True,
    ),
    # vibe
    "mistral-vibe 398: a result whose call was cut off": (
        _vibe(
            _CHAT,
            {"role": "tool", "tool_call_id": "v1", "name": "bash", "content": "returncode: 2\nno"},
            {"role": "tool", "tool_call_id": "gone", "name": "bash", "content": "returncode: 0"},
        ),
        [S],
        True,
    ),
    "mistral-vibe 555: a reply that says nothing": (
        _vibe(
            _CHAT,
            {"role": "tool", "tool_call_id": "v1", "content": "<tool_error>no</tool_error>"},
            {"role": "assistant", "content": ""},
        ),
        [F],
        False,
    ),
    "mistral-vibe 1114: a result behind a word of the operator": (
        _vibe(
            _CHAT,
            {"role": "user", "content": "go on"},
            {"role": "tool", "tool_call_id": "v1", "content": "Error: no"},
        ),
        [F],
        False,
    ),
    "NeMo-Agent-Toolkit 1663: calls of one reply with one id, and one of them twice": (
        _vibe(
            TWINS,
            {"role": "tool", "tool_call_id": "0", "content": "<tool_error>no</tool_error>"},
            {"role": "tool", "tool_call_id": "0", "content": "a.py"},
        ),
        [F, S],
        False,
    ),
    # pi, OpenClaw
    "openclaw 109443: ids that begin anew with each reply": (
        _pi(_pi_call("exec_0"), _pi_result("exec_0"), _pi_call("exec_0"), _pi_result("exec_0", fails=False)),
        [F, S],
        False,
    ),
    "openclaw 10310: a result that was made up": (
        _pi(_pi_call("e1"), _pi_result("e1"), _pi_call("e2"), _pi_result("e2", _REPAIRED)),
        [F, U],
        False,
    ),
    "openclaw 81397: a result that stands twice": (
        _pi(_pi_call("e1"), _pi_result("e1"), _pi_result("e1")),
        [F],
        False,
    ),
    "openclaw 3409: a reply that broke in a call": (
        _pi(
            _pi_call("e1", stopReason="error", errorMessage="Bad control character"),
            _pi_result("e1", _REPAIRED),
            _pi_call("e2"),
            _pi_result("e2"),
        ),
        [U, F],
        False,
    ),
    # Cline, Roo, Kilo
    "cline: a result without its call": (
        _blocks(("assistant", _USE), ("user", _MARKED), ("user", {**_MARKED, "tool_use_id": "gone"})),
        [F],
        True,
    ),
    "anton 471: calls without an id": (
        _blocks(("assistant", {**_USE, "id": ""}), ("assistant", _USE), ("user", _MARKED)),
        [C, F],
        False,
    ),
    "kilocode 4482: a call that stands twice in its reply, with a result each": (
        _blocks(("assistant", _USE, _USE), ("user", _MARKED, _MARKED)),
        [F],
        False,
    ),
    "roo: a result that stands twice": (
        _blocks(("assistant", _USE), ("user", _MARKED), ("user", _MARKED)),
        [F],
        False,
    ),
    # goose
    "goose 1624: a call that was interrupted": (
        agent_records.goose(2)[:-1],
        [S, C],
        False,
    ),
    "goose 7914: a word of the operator behind a call without a result": (
        [*agent_records.goose(2)[:-1], agent_records.goose(2)[1]],
        [S, C],
        False,
    ),
    "goose 283: messages of the first form": (
        [
            *agent_records.goose(2),
            {
                "role": "assistant",
                "content": [{"tool_name": "text_editor", "arguments": {"command": "view"}}],
            },
            {"role": "user", "content": [{"id": "c", "tool_result": "[]"}]},
        ],
        [S, F],
        True,
    ),
    # Cursor
    "relayhistory 198: a turn that was aborted": (
        _cursor(
            {"type": "tool_use", "name": "Shell", "input": {}},
            type="turn_ended",
            status="error",
            error="aborted",
        ),
        [U],
        True,
    ),
    "pond 207: blocks of kinds that came later": (
        _cursor({"type": "tool_use", "name": "Shell", "input": {}}, {"type": "redacted"}, type="turn_ended"),
        [U],
        True,
    ),
    # OpenHands
    "software-agent-sdk 1782: an observation that stands twice": (_hands(_SEEN, _SEEN), [S], False),
    "software-agent-sdk 2114: an error of another server, then the observation": (
        _hands(_BROKE, _SEEN),
        [F],
        False,
    ),
    "software-agent-sdk 2127: an action without its observation": (_hands(), [C], False),
}


@pytest.mark.parametrize("name", REPORTS)
def test_a_reported_file_comes_to_what_happened(name: str, tmp_path: Path) -> None:
    records, ends, loud = REPORTS[name]
    assert _of_lines(tmp_path, samples.lines(records).encode()) == (ends, loud)


# --- documents, databases and texts -----------------------------------------------------------------------------


def _atif(change: Callable[[Records], object]) -> dict[str, Any]:
    document = agent_records.atif(2, "inside")
    change(document["steps"])
    return document


@pytest.mark.parametrize(
    ("document", "seen"),
    [
        # Phoenix 14975: what a resumed trajectory copied
        (_atif(lambda steps: steps.insert(1, {**steps[1], "is_copied_context": True})), ([S, F], False)),
        # a result of no call, and one that does not say of which it is
        (
            _atif(lambda steps: steps[1]["observation"]["results"][0].update(source_call_id="x")),
            ([C, F], True),
        ),
        (_atif(lambda steps: steps[1]["observation"]["results"][0].pop("source_call_id")), ([S, F], False)),
        # inspect_ai 672: a sample that broke has no messages
        (
            {
                **(log := more_agents.inspect_log()),
                "samples": [*log["samples"], {"id": 3, "messages": [], "error": {"message": "no"}}],
            },
            ([F, S, F, S, S], False),
        ),
        # inspect_ai 3217: a sample that was cancelled in a call
        (
            {
                **log,
                "samples": [
                    {
                        **log["samples"][0],
                        "messages": log["samples"][0]["messages"][:-2],
                        "error": {"message": "no"},
                    }
                ],
            },
            ([F, S, F, C], False),
        ),
    ],
)
def test_a_reported_document_comes_to_what_happened(
    document: dict[str, Any], seen: tuple[list[str], bool], tmp_path: Path
) -> None:
    path = tmp_path / "document.json"
    path.write_text(json.dumps(document))
    runs = load_transcripts(path)
    ends = [event for run in runs for event in run.events if isinstance(event, events.ToolResult)]
    assert ([event.type.removeprefix("tool_") for event in ends], bool(runs[0].report.loss)) == seen


@pytest.mark.parametrize(
    ("old", "new", "tasks"),
    [
        ("\n", "\r\n", ["fix it", "thanks"]),
        ("#### fix it", "#### fix it  \n#### and test it", ["fix it\nand test it", "thanks"]),  # aider 916
        ("I change it.", "# Plan\n\n## Step\n\n> quoted\n", ["fix it", "thanks"]),
        # agentsview 740: what looks like a prompt or a line of its own stands in a fence
        ("I change it.", "```\n#### not asked\n> Applied edit to b.py\n```", ["fix it", "thanks"]),
    ],
)
def test_a_history_of_aider_is_read_in_each_of_its_forms(
    old: str, new: str, tasks: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "history.md"
    path.write_text(more_agents.aider().replace(old, new), newline="")
    told = [event for run in load_transcripts(path) for event in run.events]
    ends = [event.type.removeprefix("tool_") for event in told if isinstance(event, events.ToolResult)]
    assert ([event.task for event in told if isinstance(event, events.RunStarted)], ends) == (tasks, [F, S])


def test_an_interruption_behind_the_end_of_the_same_call_in_a_message_of_opencode_2(tmp_path: Path) -> None:
    """opencode 40235, as version 2 would write it."""
    path = tmp_path / "opencode.db"
    recordings.make_database(path, 2)
    ended = {"status": "completed", "content": [{"type": "text", "text": "x"}], "metadata": {"exit": 0}}
    aborted = {"status": "error", "error": {"message": "Tool execution aborted"}}
    content = [{"type": "tool", "id": "c1", "name": "bash", "state": state} for state in (ended, aborted)]
    rows = (("m0", "user", {"text": "fix it"}), ("m1", "assistant", {"content": content}))
    for key, kind, data in rows:
        recordings.write_row(path, ("session_message", key, kind, 1, data))
    assert _seen(path) == ([S], False)


_INTERRUPTED = "tool call was interrupted and did not produce a result, you may retry this call"


@pytest.mark.parametrize(
    ("row", "seen"),
    [
        (None, ([F, C], False)),  # Crush 3881: it was killed in a call
        (("c2", _INTERRUPTED), ([F, U], False)),  # Crush 2622: and made up a result when it was taken up
        (("gone", "no"), ([F, C], True)),  # a result whose call was taken away
    ],
)
def test_a_session_of_crush_that_was_killed_in_a_call(
    row: tuple[str, str] | None, seen: tuple[list[str], bool], tmp_path: Path
) -> None:
    path = tmp_path / "crush.db"
    more_agents.make_crush(path)
    for one in more_agents.crush()[:4]:
        more_agents.write_crush(path, one)
    if row is not None:
        told = {"tool_call_id": row[0], "content": row[1], "is_error": True}
        more_agents.write_crush(path, ("x1", "tool", [{"type": "tool_result", "data": told}]))
    assert _seen(path) == seen
