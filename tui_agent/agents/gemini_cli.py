"""Gemini CLI: tried with version 0.61.0.

Its event after a call is the same for a success and a failure: `error` stands in the response where the tool itself
failed, and a command's exit code is a line of the text for the model.
"""

from __future__ import annotations

import re
from typing import Any

from tui_agent.agents.dialect import (
    Answers,
    Dialect,
    Fields,
    JsonRegistry,
    Moment,
    Record,
    SettingsFile,
    in_group,
)
from tui_agent.agents.headless import Headless, words
from tui_agent.core.events import FailureKind
from tui_agent.formats.importers.changes import changed_files
from tui_agent.formats.importers.transcript import Call, Result
from tui_agent.formats.importers.values import content_text, exit_message, says_timed_out, text_at, value_at

_FRAME = re.compile(r"\A<untrusted_context>\n|\n</untrusted_context>\s*\Z")
_EXIT = re.compile(r"^Exit Code: (\d{1,9})$", re.MULTILINE)
_AROUND = re.compile(r"^(?:Exit Code|Process Group PGID|Background PIDs): .*$\n?|^Output: ", re.MULTILINE)


def _result(call: Call, record: Record) -> Result:
    text = _FRAME.sub("", content_text(value_at(record, "tool_response", "llmContent")))
    code = _EXIT.search(text)
    text = _AROUND.sub("", text)
    error = text_at(record, "tool_response", "error", "message")
    if error:
        kind = FailureKind.TOOL_EXECUTION
        if "invalid_tool_params" in text_at(record, "tool_response", "error", "type"):
            kind = FailureKind.INVALID_TOOL_CALL
        return Result("failed", text, message=error, kind=kind, unknown_effect=says_timed_out(error))
    if code is not None and int(code[1]):
        return Result("failed", text, message=exit_message(int(code[1]), text))
    return Result("ok", text, changed=changed_files(call.name, call.input))


def _context(event: str, text: str) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}


def _deny(_: str, reason: str) -> dict[str, Any]:
    return {"decision": "deny", "reason": reason}


DIALECT = Dialect(
    name="gemini-cli",
    title="Gemini CLI",
    program="gemini",
    settings=SettingsFile(
        home=".gemini",
        file="settings.json",
        project=".gemini/settings.json",
        home_variable="",
        registry=JsonRegistry(in_group(10_000)),
    ),
    events={
        "BeforeAgent": Moment.PROMPT,
        "BeforeTool": Moment.BEFORE_CALL,
        "AfterTool": Moment.CALLS_ENDED,
        "AfterAgent": Moment.ANSWERED,
        "SessionEnd": Moment.ENDED,
    },
    fields=Fields(texts={Moment.PROMPT: "prompt", Moment.ANSWERED: "prompt_response"}),
    # It knows `ask`, and waits for ever for the answer where nobody is there (`-p`): what would be asked is refused.
    answers=Answers(note=_context, refuse=_deny, go_on=_deny, frames_notes=True),
    result=_result,
    headless=Headless(
        resume=lambda session, prompt: ["--resume", session or "latest", "-p", prompt],
        switches=words(
            "-d --debug --skip-trust -s --sandbox -y --yolo --screen-reader --raw-output "
            "--accept-raw-output-risk"
        ),
        prompt=words("-p --prompt"),
        session=words("-r --resume --session-id"),
        fault=r"^(?:\[ERROR\]|\s+message:) (?P<words>.*)",
        hides_faults=True,
    ),
)
