"""Kimi Code: tried with version 2.1.0.

It tells of a call that ended and takes no answer to that, so its model reads no notes: it reads why a call is refused.
Those events come while it goes on already. That it is done it tells without its model's words, which its file has only
later: only the operator's answer sends it on.
"""

from __future__ import annotations

from tui_agent.agents.dialect import (
    Answers,
    Dialect,
    Fields,
    Moment,
    Record,
    SettingsFile,
    TomlRegistry,
    permission,
)
from tui_agent.agents.headless import Headless, words
from tui_agent.formats.importers.kimi_results import result_of_output
from tui_agent.formats.importers.transcript import Call, Result
from tui_agent.formats.importers.values import content_text, text_at


def _result(call: Call, record: Record) -> Result:
    failed = record.get("hook_event_name") == "PostToolUseFailure"
    error = text_at(record, "error", "message") or content_text(record.get("error"))
    return result_of_output(call, error if failed else text_at(record, "tool_output"), failed=failed)


DIALECT = Dialect(
    name="kimi-code",
    title="Kimi Code",
    program="kimi",
    settings=SettingsFile(
        home=".kimi-code",
        file="config.toml",
        project="",
        home_variable="KIMI_CODE_HOME",
        registry=TomlRegistry(event="event", named=False),
    ),
    events={
        "UserPromptSubmit": Moment.PROMPT,
        "PreToolUse": Moment.BEFORE_CALL,
        "PostToolUse": Moment.CALLS_ENDED,
        "PostToolUseFailure": Moment.CALLS_ENDED,
        "Stop": Moment.ANSWERED,
        "StopFailure": Moment.MODEL_FAILED,
        "SessionEnd": Moment.ENDED,
    },
    fields=Fields(
        call="tool_call_id",
        lane="",
        texts={Moment.PROMPT: "prompt", Moment.MODEL_FAILED: "error_message"},
    ),
    # It knows no `ask`: what would be asked about is refused with words.
    answers=Answers(refuse=permission("deny"), go_on=permission("deny")),
    result=_result,
    headless=Headless(
        resume=lambda session, prompt: [
            *(["--session", session] if session else ["--continue"]),
            "-p",
            prompt,
        ],
        switches=words("-c --continue -y --yolo --auto --plan"),
        prompt=words("-p --prompt"),
        session=words("-c --continue -S --session -r --resume"),
        names_session=r"kimi (?:-r|--resume|-S|--session) (?P<session>\S+)",
    ),
)
