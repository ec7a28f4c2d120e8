"""tau-bench results: a list of graded runs, each a conversation in OpenAI's messages with a simulated customer.

A tool's result is a failure if it begins with `Error`: the environment turns every exception into `Error: …`
(tau-bench, `Env.step`), also those of arguments that do not fit. A tool that does not exist is an `Unknown
action`. `reward` 1.0 means solved.
"""

from __future__ import annotations

import re
from typing import Any

from tui_agent.core.events import FailureKind
from tui_agent.formats.importers.labels import grade_in
from tui_agent.formats.importers.openai_messages import MessageReader, message_time
from tui_agent.formats.importers.reading import Record
from tui_agent.formats.importers.results import judged
from tui_agent.formats.importers.step_reader import Runs
from tui_agent.formats.importers.transcript import Call, Remarked, Result, Said
from tui_agent.formats.importers.values import clean, text_at

_WRONG_ARGUMENTS = re.compile(
    r"Error: \S*\(\) (?:got an unexpected keyword argument|missing \d+ required|takes \d+ positional)"
)
_ENDS = re.compile(r"###(?:STOP|TRANSFER|OUT-OF-SCOPE)###")


class TauBench(Runs):
    """Graded runs."""

    name = "tau-bench"

    @classmethod
    def knows(cls, run: Record) -> bool:
        """Objects with `traj` and `task_id` or `reward`."""
        return isinstance(run.get("traj"), list) and ("reward" in run or "task_id" in run)

    def take(self, run: Record) -> None:
        if not isinstance(run.get("traj"), list):
            self.report.records += 1
            self.report.skip("run without traj")
            return
        reader = _Conversation(self.report)
        reader.read(run["traj"])
        transcript = reader.transcript
        task, trial = _label(run.get("task_id")), _label(run.get("trial"))
        transcript.id = f"task-{task}-trial-{trial}"
        transcript.title = f"task {task}, trial {trial}"
        transcript.reward = grade_in(run)
        transcript.model = text_at(run, "info", "model") or text_at(run, "model")
        last = reader.last
        if isinstance(last, Said) and _ENDS.search(last.text):
            # The simulated customer's last words are a mark of the benchmark, not a task.
            text = _ENDS.sub("", last.text).strip() or "(no words)"
            transcript.steps[-1] = Remarked(f"The customer ended the conversation: {text}", last.at)
        self.runs.append(transcript)


def _label(value: Any) -> str:
    return clean(str(value)[:40]) if isinstance(value, int | str) and not isinstance(value, bool) else "?"


class _Conversation(MessageReader):
    def judge(self, call: Call, content: str, record: Record) -> Result:
        at = message_time(record)
        if content.startswith("Unknown action"):
            return Result("failed", content, at, content, FailureKind.UNKNOWN_TOOL)
        if _WRONG_ARGUMENTS.match(content):
            return Result("failed", content, at, content, FailureKind.INVALID_TOOL_CALL)
        return judged(call, content, at, content if content.startswith("Error") else None)
