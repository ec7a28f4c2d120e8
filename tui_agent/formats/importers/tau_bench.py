"""tau-bench results: a list of graded runs, each a conversation in OpenAI's messages with a simulated customer.

A tool's result is a failure where it begins with `Error`: the environment turns every exception into `Error: …`
(tau-bench, `Env.step`), also those of arguments that do not fit. A tool that does not exist is an `Unknown action`.
`reward` 1.0 means solved.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tui_agent.core.events import FailureKind
from tui_agent.formats.importers.labels import grade_in
from tui_agent.formats.importers.openai_messages import MessageReader, judged, message_time
from tui_agent.formats.importers.step_reader import Runs
from tui_agent.formats.importers.transcript import Remarked, Result, Said
from tui_agent.formats.importers.values import clean, text_at

if TYPE_CHECKING:
    from tui_agent.formats.importers.reading import Record, Recording
    from tui_agent.formats.importers.transcript import Call, Transcript

_WRONG_ARGUMENTS = re.compile(
    r"Error: \S*\(\) (?:got an unexpected keyword argument|missing \d+ required|takes \d+ positional)"
)
_ENDS = ("###STOP###", "###TRANSFER###", "###OUT-OF-SCOPE###")


class TauBench(Runs):
    """Graded runs."""

    name = "tau-bench"

    @classmethod
    def matches(cls, recording: Recording) -> bool:
        """Objects with `traj` and `task_id` or `reward`."""
        return any(
            isinstance(run.get("traj"), list) and ("reward" in run or "task_id" in run)
            for run in recording.objects[:20]
        )

    def take(self, run: Record) -> None:
        """Read one run."""
        if not isinstance(run.get("traj"), list):
            self.report.records += 1
            self.report.skip("run without traj")
            return
        reader = MessageReader(self.report, _verdict)
        reader.read(run["traj"])
        transcript = reader.transcript
        task, trial = _label(run.get("task_id")), _label(run.get("trial"))
        transcript.id = f"task-{task}-trial-{trial}"
        transcript.title = f"task {task}, trial {trial}"
        transcript.reward = grade_in(run)
        transcript.model = text_at(run, "info", "model") or text_at(run, "model")
        _mark_the_end(transcript)
        self.runs.append(transcript)


def _mark_the_end(transcript: Transcript) -> None:
    """The simulated customer's last words are a mark of the benchmark, not a task."""
    last = transcript.steps[-1] if transcript.steps else None
    if isinstance(last, Said) and any(mark in last.text for mark in _ENDS):
        text = last.text
        for mark in _ENDS:
            text = text.replace(mark, "")
        transcript.steps[-1] = Remarked(
            f"The customer ended the conversation: {text.strip() or '(no words)'}", last.at
        )


def _label(value: Any) -> str:
    return clean(str(value)[:40]) if isinstance(value, int | str) and not isinstance(value, bool) else "?"


def _verdict(call: Call, content: str, record: Record) -> Result:
    at = message_time(record)
    if content.startswith("Unknown action"):
        return Result("failed", content, at, content, FailureKind.UNKNOWN_TOOL)
    if _WRONG_ARGUMENTS.match(content):
        return Result("failed", content, at, content, FailureKind.INVALID_TOOL_CALL)
    return judged(call, content, at, content if content.startswith("Error") else None)
