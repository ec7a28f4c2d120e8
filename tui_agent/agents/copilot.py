"""Copilot CLI: tried with version 1.0.102.

Hooks under the names that begin with a capital get the names of Claude Code's fields and tools. A command that fails is
a success to it, with the exit code in the last line of the output. In a folder that it trusts it also runs the hooks of
Claude Code's settings.
"""

from __future__ import annotations

import re
from typing import Any

from tui_agent.agents.dialect import (
    Answers,
    Dialect,
    Fields,
    Form,
    JsonRegistry,
    Moment,
    Record,
    SettingsFile,
    decision,
)
from tui_agent.agents.headless import Headless, words
from tui_agent.formats.importers.results import exited, failed
from tui_agent.formats.importers.transcript import Call, Result
from tui_agent.formats.importers.values import text_at

_EXIT = re.compile(r"\s*<(?:exited|shellId: \S+ completed) with exit code (\d{1,9})>\s*\Z")
_TOOLS = {
    "Bash": ("bash", "powershell"),
    "Read": ("view",),
    "Write": ("create",),
    "Edit": ("edit", "str_replace_editor", "apply_patch"),
    "Grep": ("grep", "rg"),
    "Glob": ("glob",),
    "WebFetch": ("web_fetch",),
    "WebSearch": ("web_search",),
    "AskUserQuestion": ("ask_user",),
    "TodoWrite": ("update_todo",),
    "Agent": ("task",),
}


def sends(record: Record) -> bool:
    """True if a record in Claude Code's form is of this agent, which dates it and names no mode of
    permissions.
    """
    return "timestamp" in record and "permission_mode" not in record


def _result(call: Call, record: Record) -> Result:
    if error := text_at(record, "error"):
        return failed(error, None, error)
    text = text_at(record, "tool_result", "text_result_for_llm")
    code = _EXIT.search(text)
    return exited(call, text[: code.start()], None, int(code[1])) if code else exited(call, text, None, None)


def _said(record: Record) -> str:
    return text_at(record, "data", "content") if text_at(record, "type") == "assistant.message" else ""


def _decision(decision: str) -> Form:
    return lambda _, why: {"permissionDecision": decision, "permissionDecisionReason": why}


def _hook(command: str) -> dict[str, Any]:
    return {"type": "command", "bash": command, "timeoutSec": 10}


DIALECT = Dialect(
    name="copilot",
    title="Copilot CLI",
    program="copilot",
    settings=SettingsFile(
        home=".copilot",
        file="hooks/agent-tui.json",
        project=".github/copilot/settings.local.json",
        home_variable="COPILOT_HOME",
        registry=JsonRegistry(_hook, version=1),
    ),
    events={
        "UserPromptSubmit": Moment.PROMPT,
        "PreToolUse": Moment.BEFORE_CALL,
        "PostToolUse": Moment.CALLS_ENDED,
        "PostToolUseFailure": Moment.CALLS_ENDED,
        "Stop": Moment.ANSWERED,
        "SessionEnd": Moment.ENDED,
    },
    fields=Fields(
        lane="",
        names={native: name for name, natives in _TOOLS.items() for native in natives},
        texts={Moment.PROMPT: "prompt"},
    ),
    answers=Answers(
        note=lambda _, text: {"additionalContext": text},
        refuse=_decision("deny"),
        ask=_decision("ask"),
        go_on=decision("block"),
    ),
    result=_result,
    sends=sends,
    said=_said,
    headless=Headless(
        resume=lambda session, prompt: [f"--resume={session}" if session else "--continue", "-p", prompt],
        switches=words(
            "--trust-folder -s --silent --disable-client-telemetry --enable-memory --continue "
            "--allow-all --allow-all-tools --allow-all-paths --allow-all-urls --yolo "
            "--disallow-temp-dir --autopilot --experimental --no-ask-user --no-auto-update --no-color "
            "--no-custom-instructions"
        ),
        several=words("--allow-tool --deny-tool --available-tools --excluded-tools"),
        prompt=words("-p --prompt"),
        session=words("--continue --resume -r --session-id"),
        names_session=r"copilot --resume=(?P<session>\S+)$",
    ),
)
