"""Gemini CLI: tried with version 0.61.0.

Its event after a call is the same for a success and a failure: `error` stands in the response if the tool
itself failed, and a command's exit code is a line of the text for the model.
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
)
from tui_agent.agents.headless import Headless, words
from tui_agent.formats.importers.gemini_cli import result_of_text
from tui_agent.formats.importers.transcript import Call, Result
from tui_agent.formats.importers.values import content_text, object_at, text_at


def _result(call: Call, record: Record) -> Result:
    response = object_at(record, "tool_response")
    invalid = "invalid_tool_params" in text_at(response, "error", "type")
    text = content_text(response.get("llmContent"))
    return result_of_text(call, text, text_at(response, "error", "message"), invalid=invalid)


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
    # It knows `ask`, and waits without end for the answer if nobody is there (`-p`): a call that would be
    # asked for is refused.
    answers=Answers(note=context, refuse=decision("deny"), go_on=decision("deny"), frames_notes=True),
    result=_result,
    headless=Headless(
        resume=lambda session, prompt: ["--resume", session or "latest", "-p", prompt],
        switches=words(
            "-d --debug --skip-trust -s --sandbox -y --yolo --screen-reader --raw-output "
            "--accept-raw-output-risk"
        ),
        prompt=words("-p --prompt"),
        session=words("-r --resume --session-id"),
        fault=r"(?:^\[ERROR\]|^\s+message:|\b_?ApiError:) (?P<words>.*)",
        hides_faults=True,
        forgets_empty=True,
    ),
)
