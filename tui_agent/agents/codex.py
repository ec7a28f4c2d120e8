"""Codex CLI: tried with version 0.171.0.

Its event after a call has the output and nothing of how it ended. The session's own file has it by then: the command's
item, with its exit code, is among the last lines.
"""

from __future__ import annotations

import math

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
    latest_records,
    permission,
)
from tui_agent.agents.headless import Headless, words
from tui_agent.formats.importers.codex import result_of_output
from tui_agent.formats.importers.transcript import Call, Result
from tui_agent.formats.importers.values import content_text, number_at, text_at, value_at


def _result(call: Call, record: Record) -> Result:
    text = content_text(record.get("tool_response"))
    return result_of_output(call, text, code=_exit_code(text_at(record, "transcript_path"), call.id))


def _exit_code(path: str, call: str) -> int | None:
    """The exit code of the command that was run for the call; None if the file does not say."""
    for one in latest_records(path, '"exit_code"') if call else ():
        if text_at(one, "payload", "item", "id") == call:
            code = value_at(one, "payload", "item", "exit_code")
            return code if isinstance(code, int) else None
    return None


def _window(path: str, now: float) -> float | None:
    """The share of the shortest window; 0 once it has reset. Records with an API key have none."""
    for record in latest_records(path, '"rate_limits"'):
        given = value_at(record, "payload", "rate_limits")
        windows = [one for one in given.values() if isinstance(one, dict)] if isinstance(given, dict) else []
        used = [
            (number_at(one, "window_minutes") or math.inf, number_at(one, "used_percent"), one)
            for one in windows
        ]
        known = [(minutes, percent, one) for minutes, percent, one in used if percent is not None]
        if known:
            _, percent, shortest = min(known, key=lambda one: one[0])
            ends = number_at(shortest, "resets_at")
            return 0.0 if ends is not None and ends <= now else percent
    return None


DIALECT = Dialect(
    name="codex",
    title="Codex CLI",
    program="codex",
    settings=SettingsFile(
        home=".codex",
        file="hooks.json",
        project=".codex/hooks.json",
        home_variable="CODEX_HOME",
        registry=JsonRegistry(in_group(10)),
        then="Codex runs a hook only once you have trusted it: type /hooks there.",
    ),
    events={
        "UserPromptSubmit": Moment.PROMPT,
        "PreToolUse": Moment.BEFORE_CALL,
        "PostToolUse": Moment.CALLS_ENDED,
        "Stop": Moment.ANSWERED,
        "SubagentStop": Moment.ANSWERED,
    },
    fields=Fields(texts={Moment.PROMPT: "prompt", Moment.ANSWERED: "last_assistant_message"}),
    # It knows no `ask`: what would be asked about is refused with words.
    answers=Answers(note=context, refuse=permission("deny"), go_on=decision("block")),
    result=_result,
    headless=Headless(
        resume=lambda session, prompt: ["resume", session or "--last", prompt],
        switches=words(
            "--strict-config --oss --approve-for-me --dangerously-bypass-approvals-and-sandbox "
            "--dangerously-bypass-hook-trust --worktree --skip-git-repo-check --trust --ephemeral "
            "--ignore-user-config --ignore-rules --json --full-auto"
        ),
        command="exec",
        fault=r"^ERROR: (?P<words>(?!Reconnecting).*)",
        names_session=r"^session id: (?P<session>\S+)$",
        window=_window,
    ),
)
