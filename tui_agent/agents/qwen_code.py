"""Qwen Code: tried with version 0.24.4.

It has Claude Code's events for each call. A command's exit code is a line of the text for the model; older versions
take a command that failed for a success.
"""

from __future__ import annotations

from tui_agent.agents.dialect import (
    Answers,
    Dialect,
    Fields,
    JsonRegistry,
    Moment,
    Record,
    SettingsFile,
    context,
    decision,
    in_group,
    permission,
)
from tui_agent.agents.headless import Headless, words
from tui_agent.formats.importers.gemini_cli import result_of_text
from tui_agent.formats.importers.qwen_code import result_of_error
from tui_agent.formats.importers.transcript import Call, Result
from tui_agent.formats.importers.values import content_text, text_at, value_at


def _result(call: Call, record: Record) -> Result:
    if "error" in record:
        error = text_at(record, "error")
        if record.get("is_interrupt") is True:
            return Result("cancelled", error, message="interrupted by the operator")
        return result_of_error(call, error)
    response = record.get("tool_response")
    return result_of_text(call, content_text(value_at(response, "llmContent") or response))


DIALECT = Dialect(
    name="qwen-code",
    title="Qwen Code",
    program="qwen",
    settings=SettingsFile(
        home=".qwen",
        file="settings.json",
        project=".qwen/settings.json",
        home_variable="QWEN_HOME",
        registry=JsonRegistry(in_group(10_000)),
    ),
    events={
        "UserPromptSubmit": Moment.PROMPT,
        "PreToolUse": Moment.BEFORE_CALL,
        "PostToolUse": Moment.CALLS_ENDED,
        "PostToolUseFailure": Moment.CALLS_ENDED,
        "Stop": Moment.ANSWERED,
        "SubagentStop": Moment.ANSWERED,
        "StopFailure": Moment.MODEL_FAILED,
        "Notification": Moment.NOTICE,
        "SessionEnd": Moment.ENDED,
    },
    fields=Fields(
        texts={
            Moment.PROMPT: "prompt",
            Moment.ANSWERED: "last_assistant_message",
            Moment.MODEL_FAILED: "error",
            Moment.NOTICE: "message",
        },
    ),
    answers=Answers(note=context, refuse=permission("deny"), ask=permission("ask"), go_on=decision("block")),
    result=_result,
    unattended=lambda record: record.get("permission_mode") == "yolo",
    headless=Headless(
        resume=lambda session, prompt: [
            *(["--resume", session] if session else ["--continue"]),
            "-p",
            prompt,
        ],
        switches=words(
            "-d --debug -s --sandbox -y --yolo -c --continue --bare --safe-mode --checkpointing "
            "--include-partial-messages --screen-reader --openai-logging --chat-recording"
        ),
        prompt=words("-p --prompt"),
        session=words("-c --continue -r --resume --session-id"),
        fault=r"^\[API Error: (?P<words>.*?)\]?$",
    ),
)
