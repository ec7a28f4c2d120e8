"""Sessions and streams of more agents in the shapes that their programs write: what fails, what works, an answer.

The shapes are those of files that these programs wrote (docs/AGENTS.md names the versions), or, for Cursor, goose,
Crush and Antigravity, those of their sources and documents. The words are ours.
"""

from __future__ import annotations

import io
import json
import sqlite3
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.formats import samples

Record = dict[str, Any]
Records = list[Record]


class Did(NamedTuple):
    """One call of the session that each agent writes."""

    key: str
    tool: str
    given: Record
    text: str
    code: int
    """Of a command; 1 for another failure."""


SHELL = {"command": "make"}
DID = (
    Did("c1", "bash", SHELL, "no rule", 2),
    Did("c2", "bash", {"command": "ls"}, "a.py", 0),
    Did("c3", "read", {"path": "b.py"}, "no such file", 1),
    Did("c4", "read", {"path": "a.py"}, "print(1)", 0),
)


def at(second: int) -> str:
    return f"2026-11-27T09:00:{second:02}.000Z"


def milliseconds(second: int) -> int:
    return 1_795_770_000_000 + second * 1_000


# --- streams of headless runs ---------------------------------------------------------------------------------


def _stream(head: Record, tool: str, *, marks_commands: bool) -> Records:
    def message(kind: str, number: int, *content: Record) -> Record:
        inner = {"id": f"m{number}", "role": kind, "content": list(content)}
        record = {"type": kind, "message": inner, "session_id": "s", "parent_tool_use_id": None}
        return {**record, "uuid": f"{kind}-{number}"}

    records = [{"type": "system", "subtype": "init", "session_id": "s", "cwd": "/w", **head}]
    for number, did in enumerate(DID):
        name = tool if did.tool == "bash" else did.tool
        use = {"type": "tool_use", "id": did.key, "name": name, "input": did.given}
        failed = bool(did.code) and (marks_commands or did.tool != "bash")
        text = f"Exit code {did.code}\n{did.text}" if failed and did.tool == "bash" else did.text
        result = {"type": "tool_result", "tool_use_id": did.key, "content": text, "is_error": failed}
        records += [message("assistant", number, use), message("user", number, result)]
    records.append(message("assistant", 9, {"type": "text", "text": "I gave up."}))
    return [*records, {"type": "result", "subtype": "success", "session_id": "s", "total_cost_usd": 0.5}]


def claude_stream() -> Records:
    return _stream({"claude_code_version": "2.1.197"}, "Bash", marks_commands=True)


def qwen_stream() -> Records:
    return _stream({"qwen_code_version": "0.24.4"}, "run_shell_command", marks_commands=True)


def older_qwen_stream() -> Records:
    return _stream({"qwen_code_version": "0.15.10"}, "run_shell_command", marks_commands=False)


def codex_exec() -> Records:
    records: Records = [{"type": "thread.started", "thread_id": "t"}, {"type": "turn.started"}]
    for number, did in enumerate(DID):
        item: Record = {"id": f"item_{number}", "type": "mcp_tool_call", "server": "files", "tool": did.tool}
        error = {"message": did.text} if did.code else None
        ended = {"status": "failed" if did.code else "completed", "error": error}
        if did.tool == "bash":
            command = f"/bin/bash -lc '{did.given['command']}'"
            item = {"id": f"item_{number}", "type": "command_execution", "command": command}
            ended = {"status": ended["status"], "exit_code": did.code, "aggregated_output": did.text}
        records.append({"type": "item.started", "item": {**item, "status": "in_progress", "exit_code": None}})
        records.append({"type": "item.completed", "item": {**item, **ended}})
    said = {"id": "item_9", "type": "agent_message", "text": "I gave up."}
    usage = {"input_tokens": 9, "output_tokens": 4}
    return [*records, {"type": "item.completed", "item": said}, {"type": "turn.completed", "usage": usage}]


def gemini_stream() -> Records:
    records: Records = [{"type": "init", "session_id": "g", "model": "m", "timestamp": at(0)}]
    records.append({"type": "message", "role": "user", "content": "fix it", "timestamp": at(1)})
    for number, did in enumerate(DID):
        name = "run_shell_command" if did.tool == "bash" else did.tool
        records.append({"type": "tool_use", "tool_name": name, "tool_id": did.key, "parameters": did.given})
        record: Record = {"type": "tool_result", "tool_id": did.key, "timestamp": at(number + 2)}
        if did.code and did.tool != "bash":
            record |= {"status": "error", "output": did.text, "error": {"type": "x", "message": did.text}}
        else:
            record |= {"status": "success", "output": did.text}
        records.append(record)
    for piece in ("I gave ", "up."):
        records.append({"type": "message", "role": "assistant", "content": piece, "delta": True})
    return [*records, {"type": "result", "status": "success"}]


def kimi_stream() -> Records:
    records: Records = [{"role": "meta", "type": "system.version", "version": "2.1.0"}]
    for did in DID:
        name = "Bash" if did.tool == "bash" else did.tool
        records.append({"role": "assistant", "tool_calls": [samples.chat_call(did.key, name, **did.given)]})
        end = f"\nCommand failed with exit code: {did.code}." if did.code and did.tool == "bash" else ""
        records.append({"role": "tool", "tool_call_id": did.key, "content": did.text + end})
    return [*records, {"role": "assistant", "content": "I gave up."}]


def opencode_stream() -> Records:
    def event(kind: str, second: int, message: str, **part: Any) -> Record:
        part = {"id": f"part-{second}", "messageID": message, "sessionID": "o", **part}
        return {"type": kind, "timestamp": milliseconds(second), "sessionID": "o", "part": part}

    records: Records = []
    for number, did in enumerate(DID):
        message, second = f"m{number}", 4 * number
        state: Record = {"status": "completed", "input": did.given, "output": did.text}
        if did.tool == "bash":
            state["metadata"] = {"output": did.text, "exit": did.code}
        elif did.code:
            state = {"status": "error", "input": did.given, "error": did.text}
        call = {"type": "tool", "tool": did.tool, "callID": did.key, "state": state}
        end = {"type": "step-finish", "reason": "tool-calls", "tokens": {"input": 9, "output": 4}, "cost": 0}
        records.append(event("step_start", second, message, type="step-start"))
        records.append(event("tool_use", second + 1, message, **call))
        records.append(event("step_finish", second + 2, message, **end))
    return [*records, event("text", 40, "m9", type="text", text="I gave up.")]


def cline_stream() -> Records:
    def event(kind: str, second: int, **more: Any) -> Record:
        return {"ts": at(second), "type": "agent_event", "event": {"type": kind, **more}}

    records: Records = [{"ts": at(0), "type": "hook_event", "hookEventName": "agent_start", "taskId": "k"}]
    for number, did in enumerate(DID):
        second = 4 * number
        name = "run_commands" if did.tool == "bash" else "read_files"
        about = {"contentType": "tool", "toolName": name, "toolCallId": did.key}
        told: Record = {"query": "q", "result": did.text, "success": not did.code}
        told |= {"error": f"Command exited with code {did.code}"} if did.code else {}
        records += [
            event("iteration_start", second, iteration=number + 1),
            event("usage", second, inputTokens=9, outputTokens=4),
            event("content_start", second + 1, **about, input=did.given),
            event("content_update", second + 1, **about, update={"stream": "stdout", "chunk": did.text}),
            event("content_end", second + 2, **about, output=[{"success": True}, told], durationMs=20),
            event("iteration_end", second + 3, iteration=number + 1),
        ]
    records.append(event("iteration_start", 30, iteration=9))
    for piece, whole in (("I gave ", "I gave "), ("up.", "I gave up.")):
        records.append(event("content_start", 30, contentType="text", text=piece, accumulated=whole))
    records.append(event("content_end", 31, contentType="text", text="I gave up."))
    records.append(event("done", 32, reason="completed", text="I gave up."))
    return [*records, {"ts": at(33), "type": "run_result", "finishReason": "completed", "text": "I gave up."}]


# --- sessions in files of lines -------------------------------------------------------------------------------


def qwen_code() -> Records:
    def record(kind: str, number: int, **more: Any) -> Record:
        head = {"uuid": f"{kind}-{number}", "parentUuid": None, "sessionId": "q", "cwd": "/w", "type": kind}
        return {**head, "timestamp": at(number), **more}

    records = [record("user", 0, message={"role": "user", "parts": [{"text": "fix it"}]})]
    for number, did in enumerate(DID, start=1):
        name = "run_shell_command" if did.tool == "bash" else did.tool
        call = {"functionCall": {"id": did.key, "name": name, "args": did.given}}
        records.append(record("assistant", number, model="m", message={"role": "model", "parts": [call]}))
        told = {"output": f"Output: {did.text}\nExit Code: {did.code}"}
        told = told if did.tool == "bash" else {"error": did.text} if did.code else {"output": did.text}
        response = {"functionResponse": {"id": did.key, "name": name, "response": told}}
        status = "error" if "error" in told else "success"
        result = {"message": {"role": "user", "parts": [response]}, "toolCallResult": {"status": status}}
        records.append(record("tool_result", number, **result))
        records.append(record("system", number, subtype="ui_telemetry", systemPayload={"uiEvent": {}}))
    return [*records, record("assistant", 9, message={"role": "model", "parts": [{"text": "I gave up."}]})]


def kimi_code(agent: str = "main") -> Records:
    def context(kind: str, second: int, **event: Any) -> Record:
        loop = {"type": kind, "turnId": "0", **event}
        record = {"type": "context.append_loop_event", "agentId": agent, "event": loop}
        return {**record, "time": milliseconds(second)}

    said = {"role": "user", "content": [{"type": "text", "text": "fix it"}], "toolCalls": []}
    records: Records = [
        {"type": "metadata", "protocol_version": "1.5", "created_at": milliseconds(0)},
        {"type": "profile.bind", "agentId": agent, "modelAlias": "m", "systemPrompt": "You code."},
        {"type": "context.append_message", "agentId": agent, "message": said, "time": milliseconds(1)},
    ]
    for number, did in enumerate(DID, start=1):
        name, step = "Bash" if did.tool == "bash" else did.tool, f"step-{number}"
        end = f"\nCommand failed with exit code: {did.code}." if did.code and did.tool == "bash" else ""
        told = {"output": did.text + end, "durationMs": 20} | ({"isError": True} if did.code else {})
        call = {"stepUuid": step, "toolCallId": did.key, "name": name, "args": did.given}
        records += [
            context("step.begin", 2 * number, uuid=step),
            context("tool.call", 2 * number, **call),
            context("tool.result", 2 * number + 1, toolCallId=did.key, result=told),
            context("step.end", 2 * number + 1, uuid=step, usage={"inputOther": 9, "output": 4}),
        ]
    part = {"stepUuid": "step-9", "part": {"type": "text", "text": "I gave up."}}
    records += [context("step.begin", 20, uuid="step-9"), context("content.part", 20, **part)]
    copy = {"message": {"role": "tool", "toolCallId": "c1", "content": [{"type": "text", "text": "no rule"}]}}
    return [*records, {"type": "agent.message.appended", "message": copy, "kind": "event"}]


def pi(**head: Any) -> Records:
    records: Records = [{"type": "session", "version": 3, "id": "p", "timestamp": at(0), "cwd": "/w", **head}]

    def entry(message: Record) -> None:
        number = len(records)
        parent = f"e{number - 1}" if number > 1 else None
        made = {"type": "message", "id": f"e{number}", "parentId": parent, "timestamp": at(number)}
        records.append({**made, "message": {**message, "timestamp": milliseconds(number)}})

    entry({"role": "user", "content": [{"type": "text", "text": "fix it"}]})
    for did in DID:
        call = {"type": "toolCall", "id": did.key, "name": did.tool, "arguments": did.given}
        entry({"role": "assistant", "content": [call], "usage": {"input": 9, "output": 4}})
        end = f"\n\nCommand exited with code {did.code}" if did.code and did.tool == "bash" else ""
        told = [{"type": "text", "text": did.text + end}]
        entry({"role": "toolResult", "toolCallId": did.key, "content": told, "isError": bool(did.code)})
    entry({"role": "assistant", "content": [{"type": "text", "text": "I gave up."}]})
    return records


def cursor() -> Records:
    asked = "<timestamp>now</timestamp>\n<user_query>\nfix it\n</user_query>"
    records: Records = [{"role": "user", "message": {"content": [{"type": "text", "text": asked}]}}]
    for did in DID:
        use = {"type": "tool_use", "name": did.tool, "input": did.given}
        records.append({"role": "assistant", "message": {"content": [use]}})
    records.append({"role": "assistant", "message": {"content": [{"type": "text", "text": "I gave up."}]}})
    return [*records, {"type": "turn_ended", "status": "success"}]


def antigravity() -> Records:
    def step(kind: str, second: int, **more: Any) -> Record:
        source = "USER_EXPLICIT" if kind == "USER_INPUT" else "MODEL"
        return {"type": kind, "source": source, "status": "DONE", "created_at": at(second), **more}

    records = [step("USER_INPUT", 0, content="<USER_REQUEST>fix it</USER_REQUEST>")]
    for number, did in enumerate(DID, start=1):
        calls = [{"name": did.tool, "args": did.given}]
        records.append(step("PLANNER_RESPONSE", number, content="", tool_calls=calls))
        status = "ERROR" if did.code else "DONE"
        records.append(step("TOOL", number, content=did.text, status=status))
    return [*records, step("PLANNER_RESPONSE", 9, content="I gave up.")]


def aider() -> str:
    return """
# aider chat started at 2026-11-27 09:00:00

> Aider v0.86.2

#### fix it

I change it.

```
<<<<<<< SEARCH
#### no heading
> no quote
>>>>>>> REPLACE
```

> Tokens: 4.2k sent, 1.1k received.
> # 1 SEARCH/REPLACE block failed to match!

## SearchReplaceNoExactMatch: This SEARCH block failed to exactly match lines in a.py
<<<<<<< SEARCH
#### no heading
=======
>>>>>>> REPLACE

The SEARCH section must exactly match an existing block of lines including all white space

Once more.

> Applied edit to a.py

# aider chat started at 2026-11-27 10:00:00

#### thanks

You are welcome.
"""


def cline() -> Record:
    asked = {"type": "text", "text": '<user_input mode="act">fix it</user_input>'}
    messages: Records = [{"role": "user", "content": [asked], "ts": milliseconds(0)}]
    for number, did in enumerate(DID, start=1):
        name = "run_commands" if did.tool == "bash" else "read_files"
        use = {"type": "tool_use", "id": did.key, "name": name, "input": did.given}
        told = {"query": "q", "result": did.text, "success": not did.code}
        told |= {"error": f"Command exited with code {did.code}"} if did.code else {}
        result = {"type": "tool_result", "tool_use_id": did.key, "content": [{"success": True}, told]}
        messages.append({"role": "assistant", "content": [use], "ts": milliseconds(number)})
        messages.append({"role": "user", "content": [result], "ts": milliseconds(number)})
    messages.append({"role": "assistant", "content": [{"type": "text", "text": "I gave up."}]})
    return {"version": 1, "sessionId": "k", "messages": messages}


def inspect_log() -> Record:
    """Two samples: one whose calls fail, one that is right at once."""

    def sample(key: int, grade: str, did: tuple[Did, ...]) -> Record:
        messages: Records = [{"id": "u", "role": "user", "content": "fix it"}]
        events: Records = []
        for number, one in enumerate(did):
            call = {"id": one.key, "function": one.tool, "arguments": one.given, "type": "function"}
            messages.append({"id": f"a{number}", "role": "assistant", "content": "", "tool_calls": [call]})
            error = {"type": "unknown", "message": "attachment://long"} if one.code else None
            told = {"id": f"t{number}", "role": "tool", "tool_call_id": one.key, "content": one.text}
            messages.append({**told, "error": error} if error else told)
            event = {"event": "tool", "id": one.key, "message_id": f"t{number}", "completed": at(number)}
            events.append({**event, "function": one.tool, "working_time": 0.5})
        messages.append({"id": "z", "role": "assistant", "content": "I gave up."})
        made = {"id": key, "epoch": 1, "messages": messages, "events": events}
        return {**made, "attachments": {"long": "a long error"}, "scores": {"includes": {"value": grade}}}

    samples_of_it = [sample(1, "I", DID), sample(2, "C", DID[1:2])]
    return {"version": 2, "eval": {"task": "t", "model": "m"}, "samples": samples_of_it}


# --- databases and archives -----------------------------------------------------------------------------------


@contextmanager
def _written(path: Path) -> Iterator[sqlite3.Connection]:
    """A database that is not waited for until it is on the disk."""
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA synchronous = OFF")
        yield database


def make_crush(path: Path) -> None:
    with _written(path) as database:
        database.executescript(
            "CREATE TABLE files (id TEXT); CREATE TABLE sessions (id TEXT, parent_session_id TEXT, title TEXT, "
            "updated_at INTEGER, created_at INTEGER); CREATE TABLE messages (id TEXT, session_id TEXT, role TEXT, "
            "parts TEXT, model TEXT, created_at INTEGER, updated_at INTEGER);"
            "INSERT INTO sessions VALUES ('s', NULL, 'A title', 1795770000, 1795770000);"
        )
        database.commit()


def crush() -> list[tuple[str, str, Records]]:
    """Messages in the order in which they are written: id, role, parts."""

    def part(kind: str, **data: Any) -> Record:
        return {"type": kind, "data": data}

    rows = [("z", "user", [part("text", text="fix it")])]
    for number, did in enumerate(DID):
        given = json.dumps(did.given)
        asked = part("tool_call", id=did.key, name=did.tool, input=given, finished=True)
        rows.append((f"y{9 - number}", "assistant", [asked, part("finish", reason="tool_use")]))
        fails = bool(did.code) and did.tool != "bash"
        end = f"\nExit code {did.code}" if did.code and did.tool == "bash" else ""
        told = {"tool_call_id": did.key, "content": f"{did.text}{end}\n\n<cwd>/w</cwd>", "is_error": fails}
        rows.append((f"x{9 - number}", "tool", [part("tool_result", **told)]))
    return [*rows, ("a", "assistant", [part("text", text="I gave up."), part("finish", reason="end_turn")])]


def write_crush(path: Path, row: tuple[str, str, Records]) -> None:
    key, role, parts = row
    with _written(path) as database:
        database.execute("DELETE FROM messages WHERE id = ?", (key,))
        values = (key, "s", role, json.dumps(parts), "m", 1795770000, 1795770000)
        database.execute("INSERT INTO messages VALUES (?, ?, ?, ?, ?, ?, ?)", values)
        database.commit()


def make_goose(path: Path) -> None:
    with _written(path) as database:
        database.executescript(
            "CREATE TABLE schema_version (version INTEGER); CREATE TABLE sessions (id TEXT, name TEXT, "
            "description TEXT, working_dir TEXT, updated_at TIMESTAMP); CREATE TABLE messages (id INTEGER PRIMARY KEY "
            "AUTOINCREMENT, session_id TEXT, role TEXT, content_json TEXT, created_timestamp INTEGER);"
            "INSERT INTO sessions VALUES ('s', 'A title', '', '/w', '2026-11-27 09:00:00');"
        )
        database.commit()


def goose() -> list[tuple[str, Records]]:
    rows: list[tuple[str, Records]] = [("user", [{"type": "text", "text": "fix it"}])]
    for did in DID:
        call = {"status": "success", "value": {"name": did.tool, "arguments": did.given}}
        rows.append(("assistant", [{"type": "toolRequest", "id": did.key, "toolCall": call}]))
        told = {"status": "success", "value": {"content": [{"type": "text", "text": did.text}]}}
        told = {"status": "error", "error": did.text} if did.code else told
        rows.append(("user", [{"type": "toolResponse", "id": did.key, "toolResult": told}]))
    return [*rows, ("assistant", [{"type": "text", "text": "I gave up."}])]


def write_goose(path: Path, *rows: tuple[str, Records]) -> None:
    with _written(path) as database:
        for role, content in rows:
            values = ("s", role, json.dumps(content), 1795770000)
            query = (
                "INSERT INTO messages (session_id, role, content_json, created_timestamp) VALUES (?, ?, ?, ?)"
            )
            database.execute(query, values)
        database.commit()


def archive(document: Record, **packed: int) -> bytes:
    """A log as an archive with a file for each sample."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", packed.get("method", zipfile.ZIP_DEFLATED)) as made:
        made.writestr("header.json", json.dumps({**document, "samples": []}))
        for number, sample in enumerate(document["samples"], start=1):
            made.writestr(f"samples/{number}_epoch_1.json", json.dumps(sample))
    return written.getvalue()


LINES: dict[str, Callable[[], Records]] = {
    "Claude Code stream": claude_stream,
    "Qwen Code stream": qwen_stream,
    "Codex CLI stream": codex_exec,
    "Gemini CLI stream": gemini_stream,
    "Kimi Code stream": kimi_stream,
    "OpenCode stream": opencode_stream,
    "Cline stream": cline_stream,
    "Qwen Code": qwen_code,
    "Kimi Code": kimi_code,
    "pi": pi,
    "Cursor": cursor,
    "Antigravity": antigravity,
}
"""By the name of the format, what stands in a file of lines."""


def write(folder: Path, name: str) -> Path:
    """The session as the agent would have written it, under a name that says nothing."""
    path = folder / "recording"
    if name in LINES:
        path.write_text(samples.lines(LINES[name]()))
    elif name == "aider":
        path.write_text(aider())
    elif name == "Inspect":
        path.write_bytes(archive(inspect_log()))
    elif name in {"Crush", "goose"}:
        path = folder / "recording.db"
        if name == "Crush":
            make_crush(path)
            for row in crush():
                write_crush(path, row)
        else:
            make_goose(path)
            write_goose(path, *goose())
    else:
        path.write_text(json.dumps(cline()))
    return path
