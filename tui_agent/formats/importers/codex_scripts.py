"""Codex's code mode: the model writes a script, and what the script ran stands in items of its own.

A script's output has a header of its own, which tells of the script alone: a command that failed in it is told by its
item (`CommandExecution` with an exit code), or by an object with an `exit_code` that the script prints. Versions that
write no such items leave open how a command ended.
"""

from __future__ import annotations

import json
import re
import shlex
from typing import TYPE_CHECKING, Any

from tui_agent.formats.importers.results import exit_message, failed
from tui_agent.formats.importers.transcript import Call, Result, Status
from tui_agent.formats.importers.values import (
    clean,
    code_at,
    content_text,
    joined,
    list_at,
    number_at,
    object_at,
    parsed,
    text_at,
)

if TYPE_CHECKING:
    from tui_agent.formats.importers.reading import Record

ITEMS = frozenset({"CommandExecution", "FileChange", "McpToolCall", "DynamicToolCall"})
"""Items of what was run, for a script or for a call of its own."""
_STATUS = re.compile(r"^Script (completed|failed|terminated|running with cell ID (\S+))[^\n]*\n")
_HEADER = re.compile(r"^(?:Wall time:? (\d+(?:\.\d*)?) seconds\n)?(?:(?:Final o|O)utput:[ \t]*(?:\n|$))?")
_COMMANDS = re.compile(r"\b(?:exec_command|shell_command|local_shell|write_stdin|shell)\b")
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: ([^\n\"'`]+)$", re.MULTILINE)


class Script:
    """One script as far as it is known: `ran` are the ids of the commands that it ran, by their results."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.ran: dict[str, Status] = {}
        self.over = False

    def names(self, item: Record) -> bool:
        """True if the command of an item, or its tool, stands in the script."""
        command = _command(item) or text_at(item, "tool")
        return bool(command) and (command in self.text or json.dumps(command)[1:-1] in self.text)


def status_of(text: str) -> tuple[str, str]:
    """How the script stands by its output (`completed`, `failed`, `terminated`, `running`), and its cell; "" for no
    script's output.
    """
    match = _STATUS.match(text)
    return (match[1].split()[0], match[2] or "") if match else ("", "")


def script_result(call: Call, script: str, text: str, at: float | None) -> Result:
    """How a script has ended that ran nothing of which there is an item."""
    status, _ = status_of(text)
    body = text.partition("\n")[2]
    header = _HEADER.match(body)
    body = body[header.end() :] if header else body
    seconds = float(header[1]) if header and header[1] else None
    if status == "failed":
        return failed(
            body, at, body.removeprefix("Script error:").strip() or "Script failed", seconds=seconds
        )
    code = _printed_code(body)
    if code:
        return failed(body, at, exit_message(code, body), seconds=seconds)
    if status == "terminated" and call.name != "wait":
        return Result("cancelled", body, at, "the script was terminated", duration=seconds)
    known = call.name == "wait" or code == 0 or not _COMMANDS.search(script)
    if not known or (status not in {"completed", "terminated"} and call.name != "wait"):
        return Result("unknown", body, at, duration=seconds)
    changed = tuple(_PATCHED.findall(script.replace("\\n", "\n"))) if "apply_patch" in script else ()
    return Result("ok", body, at, changed=changed, duration=seconds)


def _printed_code(body: str) -> int | None:
    """The first exit code that is not 0 in the script's output; None if it printed none."""
    codes = [code_at(parsed(line), "exit_code") for line in (body, *body.splitlines()) if line[:1] == "{"]
    known = [code for code in codes if code is not None]
    return next(filter(None, known), known[0] if known else None)


def item_of_event(payload: Record) -> Record:
    """The item of an event in which older versions tell how something ended."""
    item = {**payload, "id": text_at(payload, "call_id")}
    match text_at(payload, "type"):
        case "exec_command_end":
            return (
                {"status": "failed" if payload.get("exit_code") else "completed"}
                | item
                | _is("CommandExecution")
            )
        case "patch_apply_end":
            worked = payload.get("success") is not False
            return item | _is("FileChange") | {"status": "completed" if worked else "failed"}
    told = object_at(payload, "result")
    failed = "Err" in told or object_at(told, "Ok").get("isError") is True
    asked = object_at(payload, "invocation")
    content = told.get("Err") or object_at(told, "Ok").get("content")
    status = {"status": "failed" if failed else "completed", "result": content}
    return {**asked, "id": item["id"]} | _is("McpToolCall") | status


def _is(kind: str) -> Record:
    return {"type": kind}


def item_call(key: str, item: Record) -> Call:
    """The call that an item is of."""
    match text_at(item, "type"):
        case "CommandExecution":
            return Call.of(key, "exec_command", {"cmd": _command(item)})
        case "FileChange":
            return Call.of(key, "apply_patch", {"changes": object_at(item, "changes")})
    server = text_at(item, "server")
    name = text_at(item, "tool") or text_at(item, "name")
    return Call.of(key, f"{server}__{name}" if server else name, object_at(item, "arguments"))


def item_result(item: Record, at: float | None) -> Result:
    """How what an item is of has ended."""
    text = text_at(item, "aggregated_output") or joined(text_at(item, "stdout"), text_at(item, "stderr"))
    status, code = text_at(item, "status").lower(), code_at(item, "exit_code")
    text = text or content_text(item.get("result") or item.get("content_items"))
    error = text_at(item, "error", "message") or text_at(item, "error")
    nanoseconds = number_at(item, "duration", "nanos")
    seconds = (number_at(item, "duration", "secs") or 0.0) + (nanoseconds or 0.0) / 1e9
    if status == "declined":
        return Result("denied", text, at, error or "denied by the operator")
    if code:
        return failed(text, at, exit_message(code, text), seconds=seconds)
    if status == "failed" or error or item.get("success") is False:
        return failed(text or error, at, error or text.strip() or "failed", seconds=seconds)
    if code is None and (status != "completed" or text_at(item, "type") == "CommandExecution"):
        return Result("unknown", text, at, duration=seconds)
    return Result("ok", text, at, changed=_paths(item), duration=seconds)


def _paths(item: Record) -> tuple[str, ...]:
    changes: Any = item.get("changes")
    named = [text_at(one, "path") for one in list_at(item, "changes")]
    return tuple(filter(None, map(clean, changes) if isinstance(changes, dict) else named))


def _command(item: Record) -> str:
    words = item.get("command")
    if isinstance(words, str):
        return words
    listed = [word for word in list_at(item, "command") if isinstance(word, str)]
    if len(listed) == 3 and listed[1] in {"-c", "-lc", "-Command", "/c"}:
        return listed[2]
    return shlex.join(listed)
