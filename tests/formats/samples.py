"""Small recordings of every format, made up for the tests: the shapes are the formats', the words are ours."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

SHARED = Path(os.environ.get("AGENT_TUI_SHARED", Path(__file__).resolve().parents[2].parent / "shared"))
TRAJECTORIES = SHARED / "trajectories"
LABELLED = SHARED / "labelled-runs"


def lines(records: Iterable[Any]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def claude(
    kind: str, uuid: str, parent: str | None, content: Any, second: int, **more: Any
) -> dict[str, Any]:
    message: dict[str, Any] = {"role": kind, "content": content}
    message.update(more.pop("message", {}))
    return {
        "type": kind,
        "uuid": uuid,
        "parentUuid": parent,
        "sessionId": "s-1",
        "cwd": "/home/me/project",
        "isSidechain": False,
        "timestamp": f"2026-01-02T03:04:{second:02}.000Z",
        "message": message,
        **more,
    }


def _use(key: str, name: str, **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": key, "name": name, "input": given}


def tool_result(key: str, content: Any, **more: Any) -> list[dict[str, Any]]:
    return [{"type": "tool_result", "tool_use_id": key, "content": content, **more}]


def claude_code() -> list[dict[str, Any]]:
    """Two parallel calls in one reply of three records, a failing edit, a refusal, an abandoned branch, a subagent."""
    usage = {"input_tokens": 5, "cache_read_input_tokens": 100, "output_tokens": 3}
    first = {"message": {"id": "m1", "model": "claude-x", "usage": usage}}
    last = {"message": {"id": "m1", "model": "claude-x", "usage": {**usage, "output_tokens": 40}}}
    reject = "The user doesn't want to proceed with this tool use. The tool use was rejected."
    return [
        {"type": "file-history-snapshot", "messageId": "x", "snapshot": {}},
        claude("user", "u0", None, "Fix the tset", 0),
        claude("assistant", "a0", "u0", [{"type": "text", "text": "an answer that was rewound"}], 1),
        claude("user", "u1", None, "Fix the test", 1),
        claude("assistant", "a1", "u1", [{"type": "thinking", "thinking": "Where is it?"}], 2, **first),
        claude("assistant", "a2", "a1", [_use("t1", "Read", file_path="a.py")], 3, **first),
        claude("user", "r1", "a2", tool_result("t1", "print(1)"), 4, toolUseResult={"type": "text"}),
        claude("assistant", "a3", "a2", [_use("t2", "Bash", command="pytest", description="Run")], 5, **last),
        {"type": "progress", "uuid": "p1", "parentUuid": "a3", "data": {}},
        claude(
            "user",
            "r2",
            "p1",
            tool_result("t2", "Exit code 1\n1 failed", is_error=True),
            6,
            toolUseResult="Error: x",
        ),
        claude(
            "assistant",
            "a4",
            "r2",
            [_use("t3", "Edit", file_path="a.py", old_string="1", new_string="2")],
            7,
            message={"id": "m2", "model": "claude-x"},
        ),
        claude(
            "user",
            "r3",
            "a4",
            tool_result("t3", "<tool_use_error>File has not been read yet.</tool_use_error>", is_error=True),
            8,
        ),
        claude("assistant", "a5", "r3", [_use("t4", "Edit", file_path="a.py")], 9, message={"id": "m3"}),
        claude(
            "user",
            "r4",
            "a5",
            tool_result("t4", "updated"),
            10,
            toolUseResult={
                "filePath": "a.py",
                "structuredPatch": [
                    {"oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 1, "lines": ["-1", "+2"]}
                ],
            },
        ),
        claude("assistant", "a6", "r4", [_use("t5", "Bash", command="rm -r x")], 11, message={"id": "m4"}),
        claude(
            "user",
            "r5",
            "a6",
            tool_result("t5", reject, is_error=True),
            12,
            toolUseResult="User rejected tool use",
        ),
        claude(
            "user", "i1", "r5", [{"type": "text", "text": "[Request interrupted by user for tool use]"}], 13
        ),
        claude("user", "u2", "i1", "Leave x alone", 14),
        claude("assistant", "a7", "u2", [_use("t6", "Nope")], 15, message={"id": "m5"}),
        claude(
            "user",
            "r6",
            "a7",
            tool_result(
                "t6", "<tool_use_error>Error: No such tool available: Nope</tool_use_error>", is_error=True
            ),
            16,
        ),
        claude(
            "assistant",
            "a8",
            "r6",
            [{"type": "text", "text": "API Error: 529 overloaded"}],
            17,
            isApiErrorMessage=True,
        ),
        claude("assistant", "a9", "a8", [{"type": "text", "text": "Done."}], 18, message={"id": "m7"}),
        {**claude("user", "s1", None, "Count the files", 5), "isSidechain": True},
        {
            **claude("assistant", "s2", "s1", [{"type": "text", "text": "Three."}], 6, message={"id": "m9"}),
            "isSidechain": True,
        },
    ]


def _codex(kind: str, payload: dict[str, Any], second: int) -> dict[str, Any]:
    return {"timestamp": f"2026-01-02T03:04:{second:02}.000Z", "type": kind, "payload": payload}


def _codex_call(key: str, name: str, arguments: str, second: int) -> dict[str, Any]:
    return _codex(
        "response_item",
        {"type": "function_call", "name": name, "arguments": arguments, "call_id": key},
        second,
    )


def _codex_output(key: str, output: Any, second: int, kind: str = "function_call_output") -> dict[str, Any]:
    return _codex("response_item", {"type": kind, "call_id": key, "output": output}, second)


def codex() -> list[dict[str, Any]]:
    """Texts twice, an injected context, outputs in both frames, a patch, a shell call, a search, a refusal."""
    said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Fix the test"}]}
    context = {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": "<environment_context>x"}],
    }
    answer = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}
    patch = "*** Begin Patch\n*** Update File: src/a.py\n@@\n-1\n+2\n*** End Patch"
    tokens = {"type": "token_count", "info": {"last_token_usage": {"input_tokens": 70, "output_tokens": 7}}}
    return [
        _codex("session_meta", {"id": "c-1", "cwd": "/home/me/project", "instructions": "Be brief."}, 0),
        _codex("response_item", context, 0),
        _codex("response_item", said, 1),
        _codex("event_msg", {"type": "user_message", "message": "Fix the test"}, 1),
        _codex("turn_context", {"model": "gpt-x", "cwd": "/home/me/project"}, 1),
        _codex(
            "response_item", {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Look."}]}, 2
        ),
        _codex("event_msg", {"type": "agent_reasoning", "text": "Look."}, 2),
        _codex_call("c1", "exec_command", '{"cmd": "./deploy"}', 3),
        _codex("event_msg", tokens, 3),
        _codex_output(
            "c1", "Chunk ID: 1\nWall time: 1.5 seconds\nProcess exited with code 1\nOutput:\n1 failed", 4
        ),
        _codex_call("c2", "shell", '{"command": ["ls"]}', 5),
        _codex_output(
            "c2", json.dumps({"output": "a.py", "metadata": {"exit_code": 0, "duration_seconds": 0.2}}), 6
        ),
        _codex(
            "response_item",
            {"type": "custom_tool_call", "name": "apply_patch", "input": patch, "call_id": "c3"},
            7,
        ),
        _codex_output(
            "c3", "Exit code: 0\nWall time: 0.1 seconds\nOutput:\nSuccess", 8, "custom_tool_call_output"
        ),
        _codex_call("c4", "exec_command", "{not json", 9),
        _codex_output("c4", "failed to parse function arguments: key must be a string", 10),
        _codex(
            "response_item",
            {"type": "local_shell_call", "call_id": "c5", "action": {"type": "exec", "command": ["rm", "x"]}},
            11,
        ),
        _codex_output("c5", "exec command rejected by user", 12),
        _codex(
            "response_item",
            {"type": "web_search_call", "status": "completed", "action": {"query": "pytest"}},
            13,
        ),
        _codex("event_msg", {"type": "stream_error", "message": "stream disconnected before completion"}, 14),
        _codex("response_item", answer, 15),
        _codex("event_msg", {"type": "agent_message", "message": "Done."}, 15),
        _codex("response_item", {"type": "ghost_snapshot"}, 16),
    ]


def openhands() -> list[dict[str, Any]]:
    """A message, an action with an exit code, an error of the scaffold, a rejection, the finish tool."""

    def at(second: int) -> str:
        return f"2026-01-02T03:04:{second:02}"

    def action(key: str, name: str, second: int, **given: Any) -> dict[str, Any]:
        call = {"id": key, "name": name, "arguments": json.dumps(given)}
        return {
            "kind": "ActionEvent",
            "id": f"e-{key}",
            "timestamp": at(second),
            "source": "agent",
            "thought": [],
            "tool_name": name,
            "tool_call_id": key,
            "tool_call": call,
            "llm_response_id": f"r-{key}",
        }

    def seen(key: str, name: str, second: int, text: str, **more: Any) -> dict[str, Any]:
        observation = {"content": [{"type": "text", "text": text}], "is_error": False, **more}
        return {
            "kind": "ObservationEvent",
            "timestamp": at(second),
            "source": "environment",
            "tool_name": name,
            "tool_call_id": key,
            "observation": observation,
        }

    user = {"role": "user", "content": [{"type": "text", "text": "Fix the test"}]}
    return [
        {
            "kind": "SystemPromptEvent",
            "timestamp": at(0),
            "system_prompt": {"type": "text", "text": "You code."},
        },
        {"kind": "MessageEvent", "timestamp": at(1), "source": "user", "llm_message": user},
        action("o1", "terminal", 2, command="pytest"),
        seen("o1", "terminal", 3, "1 failed", exit_code=1),
        action("o2", "file_editor", 4, command="str_replace", path="/w/a.py"),
        seen("o2", "file_editor", 5, "edited"),
        action("o3", "nope", 6),
        {
            "kind": "AgentErrorEvent",
            "timestamp": at(7),
            "tool_name": "nope",
            "tool_call_id": "o3",
            "error": "Tool 'nope' not found. Available: []",
        },
        action("o4", "terminal", 8, command="rm -r x"),
        {
            "kind": "UserRejectObservation",
            "timestamp": at(9),
            "tool_name": "terminal",
            "tool_call_id": "o4",
            "rejection_reason": "not that",
        },
        action("o5", "finish", 10, message="Done."),
        seen("o5", "finish", 11, "Done."),
        {"kind": "SomethingNew", "timestamp": at(12)},
    ]


def action(number: int, action: str, source: str = "agent", **args: Any) -> dict[str, Any]:
    return {
        "id": number,
        "timestamp": f"2026-01-02T03:04:{number:02}",
        "source": source,
        "action": action,
        "args": args,
    }


def seen(number: int, observation: str, content: str, **more: Any) -> dict[str, Any]:
    return {"id": number, "source": "agent", "observation": observation, "content": content, **more}


def openhands_history() -> list[dict[str, Any]]:
    """Actions and observations: a failing command, a reply that could not be parsed, an edit, an exception, the end."""
    return [
        action(0, "system", content="You code."),
        action(1, "message", "user", content="Fix the test"),
        action(2, "run", command="pytest", thought="Look."),
        seen(3, "run", "1 failed", cause=2, extras={"metadata": {"exit_code": 1}}),
        seen(4, "error", "Error parsing tool call arguments: Expecting value"),
        action(5, "edit", path="a.py"),
        seen(6, "edit", "edited", cause=5, extras={}),
        action(7, "run_ipython", code="x"),
        seen(8, "run_ipython", "Traceback (most recent call last):\nNameError: x", cause=7),
        action(9, "run", command="nope"),
        seen(10, "error", "Unknown tool 'nope'", cause=9),
        seen(11, "agent_state_changed", ""),
        action(12, "finish", final_thought="Done."),
    ]


def openhands_results() -> list[dict[str, Any]]:
    """One graded task of an evaluation."""
    metadata = {"llm_config": {"model": "m-1"}}
    grade = {"report": {"resolved": True}}
    return [
        {"instance_id": "a__a-1", "metadata": metadata, "history": openhands_history(), "test_result": grade}
    ]


def mini_swe_agent() -> dict[str, Any]:
    """Version 1.1: a failing command, a reply without one, a submission."""

    def ran(code: int, output: str, second: float) -> dict[str, Any]:
        content = f"<returncode>{code}</returncode>\n<output>\n{output}\n</output>"
        return {
            "role": "user",
            "content": content,
            "extra": {"returncode": code, "raw_output": output, "timestamp": second},
        }

    def said(text: str, second: float, *commands: str) -> dict[str, Any]:
        actions = [{"command": command} for command in commands]
        return {
            "role": "assistant",
            "content": text,
            "extra": {"cost": 0.01, "timestamp": second, "actions": actions},
        }

    return {
        "trajectory_format": "mini-swe-agent-1.1",
        "info": {
            "exit_status": "Submitted",
            "submission": "diff",
            "config": {"model": {"model_name": "m-1"}, "environment": {"cwd": "/w"}},
        },
        "messages": [
            {"role": "system", "content": "One command."},
            {"role": "user", "content": "Fix the test"},
            said("THOUGHT: run", 100.0, "pytest"),
            ran(1, "1 failed", 101.0),
            said("I think that it is fine.", 102.0),
            {
                "role": "user",
                "content": "Please always provide EXACTLY ONE action",
                "extra": {"timestamp": 103.0},
            },
            said("THOUGHT: again", 104.0, "pytest -q"),
            ran(0, "1 passed", 105.0),
            {"role": "exit", "content": "diff", "extra": {"exit_status": "Submitted", "submission": "diff"}},
        ],
    }


def swe_agent() -> dict[str, Any]:
    """A refused edit, a program that raises, a log that merely looks like it, a submission."""

    def step(action: str, observation: str) -> dict[str, Any]:
        return {"action": action, "observation": observation, "response": "r", "thought": "t", "state": "{}"}

    trace = 'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\nValueError: 1'
    return {
        "environment": "swe_main",
        "history": [
            {"role": "system", "content": "You code.", "agent": "primary"},
            {"role": "user", "content": "A demonstration", "is_demo": True},
            {"role": "user", "content": "Fix the test"},
        ],
        "trajectory": [
            step(
                "edit 1:1\nx\nend_of_edit\n",
                "Your proposed edit has introduced new syntax error(s).\n\nERRORS:\n- E999",
            ),
            step("edit 1:1\ny\nend_of_edit\n", "[File: /w/a.py (1 lines total)]\n1:y"),
            step("python a.py\n", trace),
            step("cat log.txt\n", trace),
            step("submit\n", "diff"),
        ],
        "info": {"exit_status": "submitted", "submission": "diff"},
    }


def chat_call(key: str, name: str, **given: Any) -> dict[str, Any]:
    return {"id": key, "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}


def vibe_messages() -> list[dict[str, Any]]:
    """A failure, a refusal, an interrupt, a failing command and a success, in mistral-vibe's wrappings."""

    def asked(key: str, name: str, **given: Any) -> dict[str, Any]:
        return {
            "role": "assistant",
            "content": "",
            "tool_calls": [chat_call(key, name, **given)],
            "message_id": key,
        }

    def got(key: str, name: str, content: str) -> dict[str, Any]:
        return {"role": "tool", "tool_call_id": key, "name": name, "content": content}

    return [
        {"role": "user", "content": "Fix the test", "message_id": "u-1"},
        {"role": "user", "content": "a reminder", "injected": True, "message_id": "u-2"},
        asked("v1", "read_file", path="nope.py"),
        got("v1", "read_file", "<tool_error>read_file failed: no such file</tool_error>"),
        asked("v2", "bash", command="rm -r x"),
        got("v2", "bash", "<user_cancellation>Tool execution not permitted by user.</user_cancellation>"),
        asked("v3", "bash", command="pytest"),
        got("v3", "bash", "command: pytest\nstdout: 1 failed\nreturncode: 1"),
        asked("v4", "search_replace", file_path="a.py", content="x"),
        got("v4", "search_replace", "file: a.py\nblocks_applied: 1"),
        {"role": "assistant", "content": "Done.", "message_id": "a-9"},
    ]


def vibe_meta() -> dict[str, Any]:
    return {
        "session_id": "v-1",
        "start_time": "2026-01-02T03:04:05+00:00",
        "environment": {"working_directory": "/home/me/project"},
        "title": "The test",
        "config": {"active_model": "devstral"},
    }


def tau_bench() -> list[dict[str, Any]]:
    """Two graded runs, one solved after a failure."""

    def run(task: int, reward: float, *messages: dict[str, Any]) -> dict[str, Any]:
        return {"task_id": task, "trial": 0, "reward": reward, "info": {}, "traj": list(messages)}

    call = {"role": "assistant", "content": None, "tool_calls": [chat_call("k1", "book", seat=1)]}
    again = {"role": "assistant", "content": None, "tool_calls": [chat_call("k1", "book", seat=2)]}
    return [
        run(
            0,
            1.0,
            {"role": "system", "content": "Policy"},
            {"role": "user", "content": "A seat, please"},
            call,
            {"role": "tool", "tool_call_id": "k1", "name": "book", "content": "Error: not enough seats"},
            again,
            {"role": "tool", "tool_call_id": "k1", "name": "book", "content": '{"seat": 2}'},
            {"role": "assistant", "content": "Booked."},
            {"role": "user", "content": "Thanks ###STOP###"},
        ),
        run(1, 0.0, {"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hello."}),
    ]


def openai_messages() -> dict[str, Any]:
    """Content in parts, a call without arguments that are JSON, an error as text and one as an object."""
    broken = {"id": "x3", "type": "function", "function": {"name": "read", "arguments": "{oops"}}
    return {
        "model": "gpt-x",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Fix"},
                    {"type": "image_url", "image_url": {"url": "x"}},
                ],
            },
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [chat_call("x1", "read"), chat_call("x2", "run")],
            },
            {"role": "tool", "tool_call_id": "x2", "content": '{"exit_code": 2, "output": "no"}'},
            {"role": "tool", "tool_call_id": "x1", "content": "Error: no such file"},
            {"role": "assistant", "content": "", "tool_calls": [broken]},
            {"role": "tool", "tool_call_id": "x3", "content": "error: arguments are not JSON"},
            {"role": "tool", "tool_call_id": "x9", "content": "whose is it?"},
            {"role": "assistant", "content": "Done."},
        ],
    }


def _bare_list() -> list[dict[str, str]]:
    """The same run as mini-swe-agent kept it before version 1.1: only roles and texts."""
    texts = {
        "THOUGHT: run": "run\n\n```bash\npytest\n```",
        "THOUGHT: again": "again\n\n```bash\npytest -q\n```",
    }
    messages = mini_swe_agent()["messages"][:-1]
    return [{"role": one["role"], "content": texts.get(one["content"], one["content"])} for one in messages]


def _vibe_one_file() -> dict[str, Any]:
    return {"metadata": vibe_meta(), "messages": vibe_messages()}


_LINES: dict[str, Callable[[], list[Any]]] = {
    "claude_code": claude_code,
    "codex": codex,
    "openhands": openhands,
    "openhands_results": openhands_results,
    "openai_messages_lines": lambda: openai_messages()["messages"],
}
_DOCUMENTS: dict[str, Callable[[], Any]] = {
    "mini_swe_agent": mini_swe_agent,
    "mini_swe_agent_list": _bare_list,
    "swe_agent": swe_agent,
    "mistral_vibe_one_file": _vibe_one_file,
    "tau_bench": tau_bench,
    "openai_messages": openai_messages,
    "openai_messages_list": lambda: openai_messages()["messages"],
}


def write(folder: Path, name: str) -> Path:
    """The sample `name` as its recorder would have written it, under a name that says nothing."""
    path = folder / "recording"
    if name in _LINES:
        path.write_text(lines(_LINES[name]()))
    elif name in _DOCUMENTS:
        path.write_text(json.dumps(_DOCUMENTS[name]()))
    elif name == "openhands_folder":
        (path / "events").mkdir(parents=True)
        for number, event in enumerate(openhands()):
            (path / "events" / f"event-{number:05}-x.json").write_text(json.dumps(event))
    else:
        path.mkdir()
        (path / "messages.jsonl").write_text(lines(vibe_messages()))
        (path / "meta.json").write_text(json.dumps(vibe_meta()))
    return path


NAMES = (*_LINES, *_DOCUMENTS, "openhands_folder", "mistral_vibe")
