"""Small recordings in the shapes that agents write of today, each with what has to come out of it.

The commands, names and texts are made up here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.formats import samples

Records = list[dict[str, Any]]


# --- Codex's code mode ----------------------------------------------------------------------------------------


def codex(*lines: dict[str, Any]) -> Records:
    head = {"type": "session_meta", "payload": {"id": "c-1", "cwd": "/w", "cli_version": "0.171.0"}}
    said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "build it"}]}
    records = [head, {"type": "response_item", "payload": said}, *lines]
    return [
        {"timestamp": f"2026-03-01T09:{place // 60:02}:{place % 60:02}.000Z", **one}
        for place, one in enumerate(records)
    ]


def script(key: str, text: str) -> dict[str, Any]:
    payload = {"type": "custom_tool_call", "call_id": key, "name": "exec", "input": text}
    return {"type": "response_item", "payload": payload}


def running(*commands: str) -> str:
    return "".join(f'text((await tools.exec_command({{cmd:"{one}"}})).output);\n' for one in commands)


def printed(key: str, status: str, *texts: str) -> dict[str, Any]:
    parts = (f"{status}\nWall time 0.2 seconds\nOutput:\n", *texts)
    output = [{"type": "input_text", "text": one} for one in parts]
    return {
        "type": "response_item",
        "payload": {"type": "custom_tool_call_output", "call_id": key, "output": output},
    }


def ran(key: str, command: str, code: int | None, status: str = "") -> dict[str, Any]:
    item = {
        "type": "CommandExecution",
        "id": key,
        "command": ["/bin/sh", "-c", command],
        "status": status or ("failed" if code else "completed"),
        "exit_code": code,
        "aggregated_output": f"what {command} says",
    }
    return {"type": "event_msg", "payload": {"type": "item_completed", "item": item}}


def waits(key: str, cell: str) -> dict[str, Any]:
    payload = {
        "type": "function_call",
        "call_id": key,
        "name": "wait",
        "arguments": f'{{"cell_id": "{cell}"}}',
    }
    return {"type": "response_item", "payload": payload}


def waited(key: str, text: str) -> dict[str, Any]:
    payload = {"type": "function_call_output", "call_id": key, "output": text}
    return {"type": "response_item", "payload": payload}


DONE, FAILED = "Script completed", "Script failed"

CODE_MODE: dict[str, tuple[Records, list[str]]] = {
    "the command's item tells": (
        codex(script("k", running("make")), ran("x1", "make", 2), printed("k", DONE, "no rule")),
        ["exec_command failed"],
    ),
    "several commands in one script are calls of their own": (
        codex(
            script("k", running("make", "ls", "make test")),
            ran("x1", "make", 2),
            ran("x2", "ls", 0),
            ran("x3", "make test", 2),
            printed("k", DONE, "…"),
        ),
        ["exec_command failed", "exec_command succeeded", "exec_command failed"],
    ),
    "an item that is written twice counts once": (
        codex(script("k", running("ls")), ran("x1", "ls", 0), ran("x1", "ls", 0), printed("k", DONE, "a")),
        ["exec_command succeeded"],
    ),
    "a script that failed": (
        codex(
            script("k", "await tools.apply_patch(p);"), printed("k", FAILED, "Script error:\nno such lines")
        ),
        ["exec failed"],
    ),
    "a script that failed because of its command is one failure": (
        codex(
            script("k", running("make")), ran("x1", "make", 2), printed("k", FAILED, "Script error:\nmake")
        ),
        ["exec_command failed"],
    ),
    "a script that failed after its command had worked": (
        codex(
            script("k", running("ls")),
            ran("x1", "ls", 0),
            printed("k", FAILED, "Script error:\nx is no list"),
        ),
        ["exec_command succeeded", "exec failed"],
    ),
    "without an item a command's end is not known": (
        codex(script("k", running("make")), printed("k", DONE, "make: no rule")),
        ["exec ended"],
    ),
    "the script prints the exit code": (
        codex(script("k", running("make")), printed("k", DONE, '{"exit_code":2,"output":"no rule"}')),
        ["exec failed"],
    ),
    "a script without a command": (
        codex(script("k", "text(await tools.update_plan(p));"), printed("k", DONE, "Plan updated")),
        ["exec succeeded"],
    ),
    "a header of another kind": (
        codex(script("k", "text(1);"), printed("k", "Script suspended", "1")),
        ["exec ended"],
    ),
    "a script that goes on and fails in the background": (
        codex(
            script("k", running("make")),
            printed("k", "Script running with cell ID 7"),
            ran("x1", "make", 2),
            waits("w", "7"),
            waited("w", "Script completed\nWall time 3.0 seconds\nOutput:\nno rule"),
        ),
        ["exec_command failed", "wait succeeded"],
    ),
    "a session that ends before the script's output": (
        codex(script("k", running("make")), ran("x1", "make", 2)),
        ["exec_command failed"],
    ),
    "a refused command": (
        codex(script("k", running("rm x")), ran("x1", "rm x", None, "declined"), printed("k", DONE, "no")),
        ["exec_command refused"],
    ),
}


# --- Claude Code ------------------------------------------------------------------------------------------------


def bash(number: int, parent: str, *, fails: bool, **more: Any) -> Records:
    """A call and its result."""
    use = {
        "type": "tool_use",
        "id": f"toolu_{number}",
        "name": "Bash",
        "input": {"command": f"make {number}"},
    }
    text = "Exit code 2\nno rule" if fails else "built"
    reply = {"id": f"m{number}", "model": "claude-x"}
    return [
        samples.claude("assistant", f"a{number}", parent, [use], number, message=reply, **more),
        samples.claude(
            "user",
            f"r{number}",
            f"a{number}",
            samples.tool_result(f"toolu_{number}", text, is_error=fails),
            number,
            **more,
        ),
    ]


def beside(kind: str, uuid: str, parent: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": "s-1", **more}


def forked_by_progress() -> Records:
    """The answer hangs on records of hooks that hang on the first call: 3 calls, 2 failures, one conversation."""
    told = [{"type": "text", "text": "There is no rule."}]
    return [
        samples.claude("user", "u1", None, "build it", 0),
        *bash(1, "u1", fails=True),
        *bash(2, "r1", fails=True),
        *bash(3, "r2", fails=False),
        beside("progress", "p1", "a1", data={"type": "hook_progress"}),
        beside("progress", "p2", "p1", data={"type": "hook_progress"}),
        samples.claude("assistant", "a4", "p2", told, 8, message={"id": "m8"}),
        samples.claude("user", "u2", "a4", "thanks", 9),
    ]


def forked_by_a_command() -> Records:
    """`/model` while a call runs: its records hang on the call, and the next task on them."""
    shown = "<local-command-stdout>Set model</local-command-stdout>"
    return [
        samples.claude("user", "u1", None, "build it", 0),
        *bash(1, "u1", fails=True),
        samples.claude("user", "c1", "a1", "<command-name>/model</command-name>", 3),
        samples.claude("user", "c2", "c1", shown, 3),
        *bash(2, "r1", fails=False),
        samples.claude("user", "u2", "c2", "and test it", 5),
        *bash(6, "u2", fails=True),
    ]


def gone_back() -> Records:
    """The second task was given again in other words: the first one's call is left."""
    return [
        samples.claude("user", "u1", None, "build it", 0),
        *bash(1, "u1", fails=False),
        samples.claude("user", "u2", "r1", "tset it", 3),
        *bash(4, "u2", fails=True),
        samples.claude("user", "u3", "r1", "test it", 6),
        *bash(7, "u3", fails=False),
    ]


def gone_back_twice() -> Records:
    """And then the operator took up what was left."""
    return [*gone_back(), samples.claude("user", "u4", "r4", "once more", 9), *bash(10, "u4", fails=True)]


def copied_records() -> Records:
    """A session that was taken up again and begins with what it had."""
    first = [samples.claude("user", "u1", None, "build it", 0), *bash(1, "u1", fails=True)]
    return [*first, *first, *bash(2, "r1", fails=False)]


CLAUDE: dict[str, tuple[Records, int, int]] = {
    "progress": (forked_by_progress(), 3, 2),
    "a command of the console": (forked_by_a_command(), 3, 2),
    "going back": (gone_back(), 2, 0),
    "going back twice": (gone_back_twice(), 3, 2),
    "copies of records": (copied_records(), 2, 1),
}
"""With the calls and the failures of the conversation."""


# --- messages in Anthropic's form ---------------------------------------------------------------------------------


def blocks(count: int) -> Records:
    """So many calls, of which every second one fails."""
    made: Records = [{"role": "user", "content": [{"type": "text", "text": "<task>build it</task>"}]}]
    for number in range(count):
        use = {
            "type": "tool_use",
            "id": f"t{number}",
            "name": "execute_command",
            "input": {"command": "make"},
        }
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": "what make says"}
        marked = result | ({"is_error": True} if number % 2 else {})
        details = {"type": "text", "text": "<environment_details>time</environment_details>"}
        made += [{"role": "assistant", "content": [use]}, {"role": "user", "content": [marked, details]}]
    return [*made, {"role": "assistant", "content": [{"type": "text", "text": "It does not build."}]}]


def goose(count: int) -> Records:
    """A session of goose: a head, then messages; every second call fails, in one of its two ways."""
    made: Records = [
        {"working_dir": "/w", "description": "build", "message_count": 3},
        {"role": "user", "created": 1_750_000_000, "content": [{"type": "text", "text": "build it"}]},
    ]
    for number, told in zip(range(count), _told_by_goose(), strict=False):
        call = {"status": "success", "value": {"name": "developer__shell", "arguments": {"command": "make"}}}
        made += [
            {
                "role": "assistant",
                "created": 1_750_000_001 + number,
                "content": [{"type": "toolRequest", "id": f"g{number}", "toolCall": call}],
            },
            {
                "role": "user",
                "created": 1_750_000_001 + number,
                "content": [{"type": "toolResponse", "id": f"g{number}", "toolResult": told}],
            },
        ]
    return made


def _told_by_goose() -> Iterator[dict[str, Any]]:
    text = [{"type": "text", "text": "what make says"}]
    while True:
        yield {"status": "success", "value": text}
        yield {"status": "error", "error": "the command failed"}
        yield {"status": "success", "value": {"content": text, "isError": False}}
        yield {"status": "success", "value": {"content": text, "isError": True}}


def written_in_tags() -> Records:
    """Cline and Roo before they had calls of the API."""
    asked = "I run it.\n<execute_command>\n<command>make all</command>\n</execute_command>"
    told = "Command execution was not successful, inspect the cause.\nExit code: 2\nOutput:\nno rule"
    return [
        {"role": "user", "content": [{"type": "text", "text": "<task>build it</task>"}]},
        {"role": "assistant", "content": [{"type": "text", "text": asked}]},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "[execute_command for 'make all'] Result:"},
                {"type": "text", "text": told},
            ],
        },
        {"role": "assistant", "content": "It does not build."},
    ]


# --- ATIF ----------------------------------------------------------------------------------------------------------


def atif(count: int, form: str) -> dict[str, Any]:
    """A trajectory whose every second call fails; `form`: where the results are, and their marks."""
    steps: Records = [{"step_id": 1, "source": "user", "message": "build it"}]
    for number in range(count):
        key, fails = f"call_{number}", number % 2
        call = {"tool_call_id": key, "function_name": "bash", "arguments": {"command": f"make {number}"}}
        asked = {"step_id": 0, "source": "agent", "message": "", "tool_calls": [call]}
        told: dict[str, Any] = {"content": "what make says"}
        steps.append(asked)
        match form:
            case "inside":
                told |= {"source_call_id": key, "extra": {"exit_code": 2 * fails}}
                asked["observation"] = {"results": [told]}
            case "own step, named by the step":
                extra = {"tool_call_id": key, "exec_exit_code": 2 * fails}
                steps.append(
                    {"source": "system", "message": "", "extra": extra, "observation": {"results": [told]}}
                )
            case "own step, named by the result":
                told |= {"extra": {"tool_call_id": key, "exec_exit_code": 2 * fails}}
                steps.append({"source": "agent", "message": "", "observation": {"results": [told]}})
            case "own step, as its message":
                extra = {"tool_call_id": key, "is_error": bool(fails)}
                steps.append({"source": "environment", "message": told["content"], "extra": extra})
    for number, step in enumerate(steps, 1):
        step["step_id"] = number
    return {
        "schema_version": "ATIF-v1.8",
        "session_id": "a",
        "agent": {"name": "x", "version": "1"},
        "steps": steps,
    }


ATIF_FORMS = (
    "inside",
    "own step, named by the step",
    "own step, named by the result",
    "own step, as its message",
)
