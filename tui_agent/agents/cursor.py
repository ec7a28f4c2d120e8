"""Cursor CLI: not run here; its events are those of its documentation, as others recorded them with version 2026.09.

A command that fails is a success to it, with the exit code in the output. It also runs the hooks of Claude Code's
settings.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from typing import Any

from tui_agent.agents.dialect import (
    Answers,
    Dialect,
    Fields,
    JsonRegistry,
    Moment,
    Record,
    SettingsFile,
)
from tui_agent.formats.importers.results import exited, failed, streams
from tui_agent.formats.importers.transcript import Call, Result
from tui_agent.formats.importers.values import code_at, content_text, text_at, value_at


def sends(record: Record) -> bool:
    """True if a record in Claude Code's form is of this agent, which names its version in all of them."""
    return "cursor_version" in record or "conversation_id" in record


def _result(call: Call, record: Record) -> Result:
    error = text_at(record, "error_message")
    if record.get("is_interrupt") is True:
        return Result("cancelled", error, message="interrupted by the operator")
    if text_at(record, "failure_type") == "permission_denied":
        return Result("denied", error, message=error)
    if error:
        timed_out = text_at(record, "failure_type") == "timeout"
        result = failed(error, None, error)
        return replace(result, unknown_effect=timed_out or result.unknown_effect)
    output: Any = record.get("tool_output")
    with suppress(ValueError, TypeError, RecursionError):
        output = json.loads(output)
    code = code_at(output, "exitCode")
    return exited(call, content_text(output) if code is None else streams(output), None, code)


def _said(record: Record) -> str:
    return content_text(value_at(record, "message", "content")) if record.get("role") == "assistant" else ""


def _deny(_: str, why: str) -> dict[str, Any]:
    return {"permission": "deny", "agent_message": why, "user_message": why}


def _hook(command: str) -> dict[str, Any]:
    return {"command": command, "timeout": 10}


DIALECT = Dialect(
    name="cursor",
    title="Cursor CLI",
    program="cursor-agent",
    settings=SettingsFile(
        home=".cursor",
        file="hooks.json",
        project=".cursor/hooks.json",
        home_variable="CURSOR_CONFIG_DIR",
        registry=JsonRegistry(_hook, version=1),
    ),
    events={
        "beforeSubmitPrompt": Moment.PROMPT,
        "preToolUse": Moment.BEFORE_CALL,
        "postToolUse": Moment.CALLS_ENDED,
        "postToolUseFailure": Moment.CALLS_ENDED,
        "stop": Moment.ANSWERED,
        "sessionEnd": Moment.ENDED,
    },
    fields=Fields(
        session="conversation_id",
        lane="",
        workspace="workspace_roots",
        texts={Moment.PROMPT: "prompt"},
        goes_on="loop_count",
    ),
    # Its documentation takes `ask` for a call, and says that nothing comes of it: what would be asked is refused.
    answers=Answers(
        note=lambda _, text: {"additional_context": text},
        refuse=_deny,
        go_on=lambda _, reason: {"followup_message": reason},
    ),
    result=_result,
    stopped=lambda record: text_at(record, "status") in {"aborted", "error"},
    said=_said,
)
