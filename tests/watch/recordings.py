"""Sessions of agents in the shapes that their programs write: a failing command twice, a refusal, an answer.

The shapes are those of files that these programs wrote: Codex CLI 0.169.0, Gemini CLI 0.61.0, Copilot CLI 1.0.102,
OpenCode 1.18.33, mistral-vibe 3.0.2. The words are ours.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

Record = dict[str, Any]
COMMAND = {"command": "python3 nope.py"}
SAID = "python3: can't open file 'nope.py'"
REFUSED = "This call of bash was not executed: it failed 3 times with the same error."


def at(second: int) -> str:
    return f"2026-11-24T13:00:{second:02}.000Z"


def milliseconds(second: int) -> int:
    return 1_795_525_200_000 + second * 1_000


def gemini_cli() -> list[Record]:
    """A message is written again when its calls end; the operator goes back once; a context is put in."""

    def call(number: int, status: str, **response: str) -> Record:
        answer = {"functionResponse": {"id": f"c{number}", "name": "run_shell_command", "response": response}}
        made = {"id": f"c{number}", "name": "run_shell_command", "args": COMMAND, "status": status}
        return {**made, "result": [answer] if response else [], "timestamp": at(2 * number + 1)}

    def message(key: str, second: int, kind: str, content: Any, **more: Any) -> Record:
        return {"id": key, "timestamp": at(second), "type": kind, "content": content, **more}

    failed = (
        f"<untrusted_context>\nOutput: {SAID}\nExit Code: 2\nProcess Group PGID: 595\n</untrusted_context>"
    )
    context = message("u0", 0, "user", [{"text": "<session_context>\nToday is Tuesday."}])
    records: list[Record] = [
        {"sessionId": "g-1", "projectHash": "3957", "startTime": at(0), "kind": "main"},
        {"$set": {"messages": [context], "lastUpdated": at(0)}},
        message("ux", 0, "user", [{"text": "something else"}]),
        message("gx", 0, "gemini", "An answer.", model="gemini-x"),
        {"$rewindTo": "ux"},
        message("u1", 1, "user", [{"text": "fix it"}]),
    ]
    for number in (1, 2, 3):
        head = message(
            f"g{number}", 2 * number, "gemini", "", model="gemini-x", tokens={"input": 9, "output": 4}
        )
        refused = {"error": f"Tool execution blocked: {REFUSED}"}
        ended = call(3, "error", **refused) if number == 3 else call(number, "success", output=failed)
        records += [
            head,
            {"$set": {"lastUpdated": at(2 * number)}},
            {**head, "toolCalls": [call(number, "executing")]},
            {**head, "toolCalls": [ended]},
            message(f"r{number}", 2 * number + 1, "user", ended["result"]),
        ]
    records.append(message("g4", 9, "gemini", "I gave up.", model="gemini-x"))
    return records


def copilot_cli() -> list[Record]:
    """A failing command is a success; the refusal of a hook is an error."""

    def event(kind: str, second: int, **data: Any) -> Record:
        return {"type": kind, "data": data, "id": f"{kind}-{second}", "timestamp": at(second)}

    behind = (
        f'\n<shellId: 7 completed with exit code 2>\n\nTool "bash" succeeded. Additional guidance: {SAID}'
    )
    records = [
        event("session.start", 0, sessionId="p-1", copilotVersion="1.0.102", context={"cwd": "/w"}),
        event("user.message", 1, content="fix it"),
    ]
    for number in (1, 2, 3):
        asked = [{"toolCallId": f"c{number}", "name": "bash", "arguments": COMMAND}]
        records.append(event("assistant.message", 2 * number, model="m", content="", toolRequests=asked))
        records.append(event("tool.execution_start", 2 * number, toolCallId=f"c{number}", toolName="bash"))
        ended: Record = {
            "success": True,
            "result": {"content": SAID + behind},
            "shellExecution": {"exitCode": 2},
        }
        if number == 3:
            ended = {"success": False, "error": {"message": f"Denied by hook: {REFUSED}", "code": "denied"}}
        records.append(event("tool.execution_complete", 2 * number + 1, toolCallId=f"c{number}", **ended))
    return [*records, event("assistant.message", 9, content="I gave up.", toolRequests=[])]


def codex() -> list[Record]:
    """Newer rollouts confirm texts by items that are completed, the model's before its item."""

    def line(kind: str, second: int, **payload: Any) -> Record:
        return {"timestamp": at(second), "type": kind, "payload": payload}

    def message(role: str, second: int, text: str) -> Record:
        kind = "output_text" if role == "assistant" else "input_text"
        return line(
            "response_item", second, type="message", role=role, content=[{"type": kind, "text": text}]
        )

    def completed(kind: str, second: int, text: str) -> Record:
        item = {"type": kind, "id": "i", "content": [{"type": "text", "text": text}]}
        return line("event_msg", second, type="item_completed", item=item)

    records = [
        line("session_meta", 0, id="c-1", cwd="/w"),
        message("user", 0, "<environment_context>\n</environment_context>"),
        message("user", 0, "<something_new> put in by Codex"),
        line("turn_context", 0, model="m", cwd="/w"),
        message("user", 1, "fix it"),
        completed("UserMessage", 1, "fix it"),
    ]
    for number in (1, 2, 3):
        given = json.dumps({"cmd": COMMAND["command"]})
        made = {"type": "function_call", "name": "bash", "call_id": f"c{number}", "arguments": given}
        text = f"Wall time: 0.1 seconds\nProcess exited with code 2\nOutput:\n{SAID}"
        text = f"Command blocked by PreToolUse hook: {REFUSED}" if number == 3 else text
        output = {"type": "function_call_output", "call_id": f"c{number}", "output": text}
        records += [
            line("response_item", 2 * number, **made),
            line("response_item", 2 * number + 1, **output),
        ]
        records.append(line("event_msg", 2 * number + 1, type="token_count", info=None))
    return [*records, completed("AgentMessage", 9, "I gave up."), message("assistant", 9, "I gave up.")]


def mistral_vibe_store() -> list[Record]:
    """What the model answered, what the tools did; a hook skips the third call."""

    def record(kind: str, **payload: Any) -> Record:
        return {"payload": payload, "recovery_journal_record_version": 1, "type": kind}

    def result(action: str, kind: str, **inner: Any) -> Record:
        return record("action_result", action_id=action, state="succeeded", result={"type": kind, **inner})

    def moment(second: int) -> Record:
        return record("core_input", input={"determinism": {"time_unix_ms": milliseconds(second)}})

    text = [{"type": "text", "text": "fix it"}]
    entry = {"type": "message", "role": "user", "id": "u", "content": text, "updatedAt": milliseconds(1)}
    records = [record("projection_delta", delta=[{"op": "append_entry", "entry": entry}])]
    for number in (1, 2, 3):
        part = {
            "type": "tool_call",
            "id": f"c{number}",
            "name": "bash",
            "arguments_json": json.dumps(COMMAND),
        }
        shell = {"returncode": 2, "stdout": "", "stderr": SAID}
        asked = {"hook": "pre_tool_call", "input": {"tool_call": {"call_id": f"c{number}"}}}
        skipped = {
            "hook": "pre_tool_call",
            "output": {"type": "skip", "reason": [{"type": "text", "text": REFUSED}]},
        }
        reply = {"finish_reason": "tool_call", "parts": [part]}
        records += [
            moment(2 * number),
            result(f"a{number}", "completion_succeeded", result=reply),
            record("action_intent", action_id=f"h{number}", request=asked),
            moment(2 * number + 1),
            result(f"h{number}", "hook_completed", result=skipped)
            if number == 3
            else result(
                f"t{number}", "tool_succeeded", call_id=f"c{number}", result={"structured_content": shell}
            ),
        ]
    answer = {"finish_reason": "stop", "parts": [{"type": "text", "text": "I gave up."}]}
    return [*records, moment(9), result("a4", "completion_succeeded", result=answer)]


def opencode() -> Iterator[tuple[str, str, str, int, Record]]:
    """Rows as they are written: table, id, the message it belongs to, its time, and its data; a row comes again."""

    def message(key: str, second: int, **data: Any) -> tuple[str, str, str, int, Record]:
        return "message", key, "", second, {"time": {"created": milliseconds(second)}, **data}

    def part(key: str, owner: str, second: int, **data: Any) -> tuple[str, str, str, int, Record]:
        return "part", key, owner, second, data

    yield message("m0", 1, role="user")
    yield part("p0", "m0", 1, type="text", text="fix it")
    yield part("p00", "m0", 1, type="text", text="put in", synthetic=True)
    for number in (1, 2, 3):
        key = f"m{number}"
        yield message(key, 2 * number, role="assistant", modelID="m")
        tool: Record = {"type": "tool", "tool": "bash", "callID": f"c{number}"}
        times = {"start": milliseconds(2 * number), "end": milliseconds(2 * number + 1)}
        yield part(f"p{number}", key, 2 * number, **tool, state={"status": "pending", "input": {}})
        yield part(f"p{number}", key, 2 * number, **tool, state={"status": "running", "input": COMMAND})
        ended: Record = {"status": "completed", "output": SAID, "metadata": {"exit": 2, "output": SAID}}
        ended = {"status": "error", "error": REFUSED} if number == 3 else ended
        yield part(
            f"p{number}", key, 2 * number + 1, **tool, state={**ended, "input": COMMAND, "time": times}
        )
        yield message(key, 2 * number + 1, role="assistant", modelID="m", finish="tool-calls")
    yield message("m4", 9, role="assistant", modelID="m")
    yield part("p4", "m4", 9, type="text", text="I gave")
    yield part("p4", "m4", 9, type="text", text="I gave up.")
    yield message("m4", 9, role="assistant", modelID="m", finish="stop")


def opencode_2() -> Iterator[tuple[str, str, str, int, Record]]:
    """The same as whole messages, as version 2 keeps them: in place of a part's message stands the kind."""

    def message(key: str, kind: str, second: int, **data: Any) -> tuple[str, str, str, int, Record]:
        return "session_message", key, kind, second, {"time": {"created": milliseconds(second)}, **data}

    yield message("m0", "user", 1, text="fix it")
    yield message("m00", "synthetic", 1, text="put in")
    for number in (1, 2, 3):
        second = 2 * number
        reply: Record = {"agent": "build", "model": {"id": "m", "providerID": "here"}}
        times = {"created": milliseconds(second), "completed": milliseconds(second + 1)}
        tool: Record = {"type": "tool", "id": f"c{number}", "name": "bash", "time": times}
        texts = [{"type": "text", "text": SAID}]
        ended: Record = {"status": "completed", "content": texts, "metadata": {"exit": 2}}
        if number == 3:
            ended = {"status": "error", "error": {"type": "unknown", "message": REFUSED}}
        for state in ({"status": "streaming", "input": "{"}, {"status": "running", "input": COMMAND}):
            yield message(f"m{number}", "assistant", second, **reply, content=[{**tool, "state": state}])
        content = [{**tool, "state": {**ended, "input": COMMAND}}]
        yield message(f"m{number}", "assistant", second + 1, **reply, content=content, finish="tool-calls")
    for text in ("I gave", "I gave up."):
        yield message("m4", "assistant", 9, **reply, content=[{"type": "text", "text": text}])
    yield message("m4", "assistant", 9, **reply, content=[{"type": "text", "text": text}], finish="stop")
    yield message("m5", "idle", 9, outcome="succeeded")


def make_database(path: Path, version: int = 1, *, own_sessions: bool = False, alone: bool = False) -> None:
    """`own_sessions`: version 2 has a table of them; `alone`: nothing is left of version 1."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "PRAGMA journal_mode = WAL;"
            "CREATE TABLE session (id, parent_id, directory, title, time_created, time_updated);"
            "CREATE TABLE message (id PRIMARY KEY, session_id, time_created, time_updated, data);"
            "CREATE TABLE part (id PRIMARY KEY, message_id, session_id, time_created, time_updated, data);"
            + "CREATE TABLE session_message (id PRIMARY KEY, type, session_id, time_created, time_updated, data);"
            * (version > 1)
            + f"INSERT INTO session VALUES ('ses_1', NULL, '/w', 'A title', {milliseconds(0)}, {milliseconds(0)});"
            + "CREATE TABLE session_v2 AS SELECT * FROM session;" * own_sessions
            + "DROP TABLE session; DROP TABLE message; DROP TABLE part;" * alone
        )
        connection.commit()


def write_row(path: Path, row: tuple[str, str, str, int, Record]) -> None:
    table, key, owner, second, data = row
    owners = [] if table == "message" else [owner]
    created = milliseconds(second)
    marks = ", ".join("?" for _ in range(5 + len(owners)))
    with closing(sqlite3.connect(path)) as connection:
        known = connection.execute(f"SELECT time_created FROM {table} WHERE id = ?", (key,)).fetchone()
        first = known[0] if known else created
        values = (key, *owners, "ses_1", first, created, json.dumps(data))
        connection.execute(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", values)
        connection.commit()


def atif() -> Record:
    """Failures by a mark, by an exit code, and by the text alone."""

    def step(number: int, source: str, text: str, **more: Any) -> Record:
        return {"step_id": number, "timestamp": at(number), "source": source, "message": text, **more}

    def acts(number: int, content: str, **extra: Any) -> Record:
        call = {"tool_call_id": f"c{number}", "function_name": "bash", "arguments": COMMAND}
        seen = {"results": [{"source_call_id": f"c{number}", "content": content, "extra": extra}]}
        return step(number, "agent", "", model_name="m", tool_calls=[call], observation=seen)

    steps = [
        step(1, "system", "You code."),
        step(2, "user", "fix it"),
        acts(3, SAID, exit_code=2),
        acts(4, SAID, is_error=True),
        acts(5, f"Error: {REFUSED}"),
        step(6, "agent", "I gave up."),
    ]
    return {"schema_version": "ATIF-v1.6", "session_id": "a-1", "agent": {"name": "x"}, "steps": steps}


LINES = {
    "gemini_cli": gemini_cli,
    "copilot_cli": copilot_cli,
    "codex": codex,
    "mistral_vibe_store": mistral_vibe_store,
}
