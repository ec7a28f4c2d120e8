"""Claude Code: tried with version 2.1.197; its own types of 2.1.330 have the same events.

PostToolBatch is the one event that also has the calls that were rejected before they ran. It has no mark of a failure,
so that PostToolUseFailure, which comes before it, is heard as well.
"""

from __future__ import annotations

from tui_agent.agents import copilot, cursor
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
from tui_agent.formats.importers.claude_code import marked_as_failure, result_of_text
from tui_agent.formats.importers.transcript import Call, Result
from tui_agent.formats.importers.values import content_text, text_at


def _result(call: Call, record: Record) -> Result:
    if "error" in record:
        if record.get("is_interrupt") is True:
            return Result("cancelled", text_at(record, "error"), message="interrupted by the operator")
        return result_of_text(call, text_at(record, "error"), failed=True)
    text = content_text(record.get("tool_response"))
    return result_of_text(call, text, failed=marked_as_failure(text))


DIALECT = Dialect(
    name="claude-code",
    title="Claude Code",
    program="claude",
    settings=SettingsFile(
        home=".claude",
        file="settings.json",
        project=".claude/settings.local.json",
        home_variable="CLAUDE_CONFIG_DIR",
        registry=JsonRegistry(in_group(10)),
    ),
    events={
        "UserPromptSubmit": Moment.PROMPT,
        "PreToolUse": Moment.BEFORE_CALL,
        "PostToolUseFailure": Moment.CALL_FAILED,
        "PostToolBatch": Moment.CALLS_ENDED,
        "Stop": Moment.ANSWERED,
        "SubagentStop": Moment.ANSWERED,
        "StopFailure": Moment.MODEL_FAILED,
        "Notification": Moment.NOTICE,
        "SessionEnd": Moment.ENDED,
    },
    fields=Fields(
        batch="tool_calls",
        texts={
            Moment.PROMPT: "prompt",
            Moment.ANSWERED: "last_assistant_message",
            Moment.MODEL_FAILED: "error",
            Moment.NOTICE: "message",
        },
    ),
    answers=Answers(
        note=context,
        refuse=permission("deny"),
        ask=permission("ask"),
        go_on=decision("block"),
    ),
    result=_result,
    # Copilot CLI and Cursor run these hooks too. They have hooks of their own, and nothing is noted twice.
    sends=lambda record: not copilot.sends(record) and not cursor.sends(record),
    unattended=lambda record: record.get("permission_mode") in {"bypassPermissions", "dontAsk"},
    headless=Headless(
        resume=lambda session, prompt: [*(["--resume", session] if session else ["--continue"]), prompt],
        switches=words(
            "-p --print --verbose --dangerously-skip-permissions --allow-dangerously-skip-permissions "
            "-c --continue --fork-session --include-partial-messages --include-hook-events "
            "--replay-user-messages --no-session-persistence --strict-mcp-config "
            "--disable-slash-commands --exclude-dynamic-system-prompt-sections --bare --brief "
            "--chrome --no-chrome --ide --safe-mode"
        ),
        several=words(
            "--add-dir --allowedTools --allowed-tools --betas --disallowedTools --disallowed-tools "
            "--file --mcp-config --tools"
        ),
        session=words("--session-id -r --resume -c --continue --fork-session"),
        fault=r"^API Error: (?P<words>.*)",
    ),
)
