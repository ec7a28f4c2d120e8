"""mistral-vibe: tried with version 3.0.2.

To it a command that ends with an exit code other than 0 is a success; the code stands in the output. It says nothing of
prompts and answers, so a whole conversation is one run.
"""

from __future__ import annotations

from typing import Any

from tui_agent.agents.dialect import Answers, Dialect, Fields, Moment, Record, SettingsFile, TomlRegistry
from tui_agent.agents.headless import Headless, words
from tui_agent.formats.importers.results import exited, failed, streams
from tui_agent.formats.importers.transcript import Call, Result
from tui_agent.formats.importers.values import code_at, text_at, value_at


def _result(call: Call, record: Record) -> Result:
    text = text_at(record, "tool_output_text")
    error = text_at(record, "tool_error")
    if text_at(record, "tool_status") == "failure" or error:
        return failed(text, None, error or text)
    output = value_at(record, "tool_output")
    code = code_at(output, "returncode")
    return exited(call, text if code is None else streams(output), None, code)


def _context(_: str, text: str) -> dict[str, Any]:
    return {"hook_specific_output": {"additional_context": text}}


DIALECT = Dialect(
    name="mistral-vibe",
    title="mistral-vibe",
    program="vibe",
    settings=SettingsFile(
        home=".vibe",
        file="hooks.toml",
        project=".vibe/hooks.toml",
        home_variable="VIBE_HOME",
        registry=TomlRegistry(),
    ),
    events={
        "pre_tool": Moment.BEFORE_CALL,
        "post_tool": Moment.CALLS_ENDED,
        "post_agent": Moment.ANSWERED,
    },
    fields=Fields(call="tool_call_id", lane=""),
    # It does not say that it goes on already, so it is not told to.
    answers=Answers(note=_context, refuse=lambda _, reason: {"decision": "deny", "reason": reason}),
    result=_result,
    headless=Headless(
        resume=lambda session, prompt: [
            *(["--resume", session] if session else ["--continue"]),
            "-p",
            prompt,
        ],
        switches=words("-c --continue --auto-approve --smart-approve --trust --check-upgrade"),
        prompt=words("-p --prompt"),
        session=words("-c --continue --resume"),
    ),
)
