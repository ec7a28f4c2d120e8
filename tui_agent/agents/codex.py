"""Codex CLI: tried with version 0.169.0.

Its event after a call has the output and nothing of how it ended. The session's own file has it by then: the command's
item, with its exit code, is among the last lines.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from tui_agent.agents.dialect import Answers, Dialect, Fields, JsonRegistry, Moment, Record, SettingsFile
from tui_agent.formats.importers.codex import result_of_output
from tui_agent.formats.importers.transcript import Call, Result
from tui_agent.formats.importers.values import content_text, text_at

_TAIL = 1 << 18
"""Bytes of the session's file, from its end, in which a call that has just ended stands."""


def _result(call: Call, record: Record) -> Result:
    text = content_text(record.get("tool_response"))
    return result_of_output(call, text, code=_exit_code(text_at(record, "transcript_path"), call.id))


def _exit_code(path: str, call: str) -> int | None:
    """Of the command that was run for the call; None where the file does not say."""
    if not path or not call:
        return None
    with suppress(OSError, ValueError), Path(path).open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL))
        for line in reversed(file.read(_TAIL).split(b"\n")):
            if b'"exit_code"' not in line or call.encode() not in line:
                continue
            with suppress(ValueError, RecursionError):
                item = json.loads(line)["payload"]["item"]
                if item["id"] == call and isinstance(item["exit_code"], int):
                    return int(item["exit_code"])
    return None


def _context(event: str, text: str) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}


def _deny(event: str, reason: str) -> dict[str, Any]:
    given = {"hookEventName": event, "permissionDecision": "deny", "permissionDecisionReason": reason}
    return {"hookSpecificOutput": given}


DIALECT = Dialect(
    name="codex",
    title="Codex CLI",
    program="codex",
    settings=SettingsFile(
        home=".codex",
        file="hooks.json",
        project=".codex/hooks.json",
        home_variable="CODEX_HOME",
        registry=JsonRegistry(),
        then="Codex runs a hook only once you have trusted it: type /hooks there.",
    ),
    events={
        "UserPromptSubmit": Moment.PROMPT,
        "PreToolUse": Moment.BEFORE_CALL,
        "PostToolUse": Moment.CALLS_ENDED,
        "Stop": Moment.ANSWERED,
        "SubagentStop": Moment.ANSWERED,
    },
    fields=Fields(
        texts={Moment.PROMPT: "prompt", Moment.ANSWERED: "last_assistant_message"}, goes_on="stop_hook_active"
    ),
    # It knows no `ask`: what would be asked about is refused with words.
    answers=Answers(note=_context, refuse=_deny, go_on=lambda _, why: {"decision": "block", "reason": why}),
    result=_result,
)
