"""OpenCode: tried with version 1.18.33.

It runs no commands at its events: a plugin (`opencode_plugin.ts`) tells them, and its fields are named there. A command
that fails is a success to it, with the exit code in the metadata; what fails otherwise has no event of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tui_agent.agents.dialect import Answers, Dialect, Fields, Moment, Record, SettingsFile
from tui_agent.agents.headless import Headless, words
from tui_agent.formats.importers.opencode_results import result_of_error, result_of_output
from tui_agent.formats.importers.transcript import Call, Result
from tui_agent.formats.importers.values import content_text, object_at, text_at


@dataclass(frozen=True)
class PluginFile:
    """A file that is ours as a whole."""

    def add(self, text: str, events: Iterable[str], command: str) -> str:
        """The plugin, whatever the file held."""
        plugin = Path(__file__).with_name("opencode_plugin.ts").read_text("utf-8")
        return plugin.replace('const COMMAND = ""', f"const COMMAND = {json.dumps(command)}")

    def remove(self, text: str, events: Iterable[str], mark: str) -> str:
        """Give "" if the file is ours, else the text as it is."""
        return "" if mark in text else text


def _result(call: Call, record: Record) -> Result:
    if error := text_at(record, "error"):
        return result_of_error(call, error)
    return result_of_output(call, content_text(record.get("tool_output")), object_at(record, "tool_metadata"))


DIALECT = Dialect(
    name="opencode",
    title="OpenCode",
    program="opencode",
    settings=SettingsFile(
        home=".config",
        file="opencode/plugins/agent-tui.ts",
        project=".opencode/plugins/agent-tui.ts",
        home_variable="XDG_CONFIG_HOME",
        registry=PluginFile(),
    ),
    events={
        "chat.message": Moment.PROMPT,
        "tool.execute.before": Moment.BEFORE_CALL,
        "tool.execute.after": Moment.CALLS_ENDED,
        "tool.execute.error": Moment.CALLS_ENDED,
        "session.idle": Moment.ANSWERED,
        "session.error": Moment.MODEL_FAILED,
    },
    fields=Fields(
        texts={Moment.PROMPT: "prompt", Moment.ANSWERED: "answer", Moment.MODEL_FAILED: "error"},
    ),
    # Its version asks no plugin about a permission, and ends once the model is done.
    answers=Answers(note=lambda _, text: {"note": text}, refuse=lambda _, reason: {"refuse": reason}),
    result=_result,
    headless=Headless(
        resume=lambda session, prompt: [*(["--session", session] if session else ["--continue"]), prompt],
        switches=words(
            "--print-logs --pure -c --continue --fork --share --thinking --auto "
            "--dangerously-skip-permissions"
        ),
        several=words("-f --file"),
        session=words("-c --continue -s --session --fork"),
        command="run",
    ),
)
