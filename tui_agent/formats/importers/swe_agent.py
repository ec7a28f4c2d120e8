"""SWE-agent trajectories: one JSON document with a step a reply, each an action in text and its observation.

A step has no flag of success: a failure is read from its observation. The patterns below are SWE-agent's own
messages (refused edits and submissions, time-outs) and words that a shell or an interpreter prints when a
program ends in an error; the latter count only if the step ran a program, so that reading a log is not a
failure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from tui_agent.formats.importers.faults import rejection_kind
from tui_agent.formats.importers.labels import grade_in
from tui_agent.formats.importers.reading import Record, Recording
from tui_agent.formats.importers.results import changed_files, program_raised, says_timed_out
from tui_agent.formats.importers.step_reader import Format
from tui_agent.formats.importers.transcript import Call, ImportReport, Result, Transcript, Turn
from tui_agent.formats.importers.values import (
    content_text,
    count_at,
    list_at,
    number_at,
    objects_at,
    parsed,
    text_at,
    value_at,
)

_ACI = frozenset(
    {
        "open", "goto", "scroll_up", "scroll_down", "create", "edit", "insert", "append", "search_dir",
        "search_file", "find_file", "submit", "str_replace_editor", "view_code", "filemap",
        "exit_cost", "exit_context", "exit_forfeit",
    }
)  # fmt: skip
"""SWE-agent's own commands; anything else is a shell command."""
_IN_OPEN_FILE = frozenset({"edit", "insert", "append"})
"""Those that name no file: they change the one that is open."""
_SHOWN = re.compile(r"\[File: (.{1,1000}?) \(\d+ lines total\)\]")
"""How an observation begins that shows a file."""
_READERS = frozenset(
    {
        "cat", "head", "tail", "less", "more", "grep", "rg", "sed", "awk", "find", "ls", "tree", "diff",
        "git", "nl", "wc",
    }
)  # fmt: skip

_REFUSALS = (
    "Your edit was not applied", "Invalid line number", "No replacement was performed", "Text not found:",
    "Error: ", "ERROR", "Usage:", "No file open", "File not found",
)  # fmt: skip
_EDITOR = re.compile(
    r"The path .{1,400}? (?:does not exist|is a directory)|File already exists at|No edit history"
    r"|(?:Invalid|Parameter) `",
    re.DOTALL,
)
"""How `str_replace_editor` refuses."""
_NOT_RUN = (
    "Your proposed edit has introduced new syntax error",
    "Your bash command contained syntax errors and was NOT executed",
)
_UNSUPPORTED = re.compile(r"Operation '.{0,400}' is not supported by this environment", re.DOTALL)
_WRONG_SUBMISSION = "Wrong flag!"
_MISSING = re.compile(r"^File (?:\S+ )?not found|^Error: File .* (?:already exists|not found)", re.MULTILINE)
_TIMED_OUT = re.compile(
    r"^(?:EXECUTION TIMED OUT|COMMAND TIMED OUT|The command .{0,400} was cancelled because it took more)",
    re.DOTALL,
)
_SHELL = re.compile(
    r"^(?:/\S+: |bash: |sh: |-bash: )"
    r".*(?:command not found|No such file or directory|Permission denied|syntax error)",
    re.MULTILINE,
)
_PYTEST = re.compile(r"^=+ .*\b[1-9]\d* (?:failed|error)", re.MULTILINE)


class SWEAgent(Format):
    """Prompts of the history, then the steps."""

    name = "SWE-agent"

    def __init__(self, report: ImportReport) -> None:
        super().__init__(report, Transcript(operator_present=False))

    @classmethod
    def matches(cls, recording: Recording) -> bool:
        """A document with `trajectory`, whose steps have `action` and `observation`."""
        steps = objects_at(recording.document, "trajectory")
        return any("action" in step and "observation" in step for step in steps[:20])

    @classmethod
    def records(cls, recording: Recording) -> Sequence[Any]:
        return [*_prompts(recording.document), *list_at(recording.document, "trajectory")]

    def take(self, step: Record) -> None:
        if "role" not in step:
            self._step(step)
        elif step["role"] == "user":
            self.said(content_text(step.get("content")), None)
        else:
            self.transcript.system_prompt = content_text(step.get("content"))

    def _step(self, step: Record) -> None:
        action = text_at(step, "action").strip()
        thought = text_at(step, "thought").strip() or _beside(text_at(step, "response"), action)
        observation = content_text(step.get("observation"))
        turn = Turn(text=thought, completion_tokens=count_at(step, "tokens_received"))
        if action:
            key = f"step-{len(self.transcript.steps)}"
            call = self.call(turn, key, *_asked(action, _open_file(step)))
            turn.results[key] = _result(call, observation, number_at(step, "execution_time"))
        else:
            turn.rejected = observation or "The reply held no action."
            turn.rejected_as = rejection_kind(observation)
        self.add(turn)

    def around(self, recording: Recording) -> None:
        """The run's name, grade and end."""
        info = value_at(recording.document, "info")
        self.about(info, id="instance_id", ending="exit_status", answer="submission")
        self.about(recording.document, id="instance_id")
        self.transcript.reward = grade_in(info)
        self.transcript.finished = self.transcript.ending.startswith("submitted")


def _prompts(document: Any) -> Iterator[Record]:
    """System prompt and task from the history; demonstrations are no part of the run."""
    system = False
    for message in objects_at(document, "history"):
        match message.get("role"):
            case _ if message.get("is_demo") is True:
                pass
            case "system" if not system:
                system = True
                yield message
            case "user" if content_text(message.get("content")):
                yield message
                return
            case "assistant":
                return


def _beside(response: str, action: str) -> str:
    """The text of a response without its action, which the call shows."""
    return re.sub(rf"```\w*\n{re.escape(action)}\s*```", "", response).strip() if action else response.strip()


def _open_file(step: Record) -> str:
    """The file that `edit` works on, as the state beside the step has it."""
    state = step.get("state")
    state = parsed(state) if isinstance(state, str) else state
    name, folder = text_at(state, "open_file"), text_at(state, "working_dir")
    return "" if name == "n/a" else name.removeprefix(f"{folder}/") if folder else name


def _asked(action: str, open_file: str) -> tuple[str, dict[str, str]]:
    """A call's tool and its arguments."""
    word, _, rest = action.partition(" ")
    first, _, more = word.partition("\n")
    if first not in _ACI:
        return "bash", {"command": action}
    given: dict[str, str] = {}
    arguments = f"{more} {rest}".strip() if more else rest.strip()
    if first == "str_replace_editor":
        parts = arguments.split(None, 2)
        given = dict(zip(("command", "path", "arguments"), parts, strict=False))
    elif first == "edit":
        span, _, text = arguments.partition("\n")
        given = {"lines": span.strip(), "text": text.removesuffix("end_of_edit").removesuffix("\n")}
    elif first == "create" and arguments:
        given = {"path": arguments}
    elif arguments:
        given = {"arguments": arguments}
    if first in _IN_OPEN_FILE and open_file:
        given = {"path": open_file, **given}
    return first, given


def _result(call: Call, observation: str, seconds: float | None) -> Result:
    seconds = seconds if seconds is not None and seconds >= 0 else None
    message = _failure(call, observation)
    if message is not None:
        unknown = _TIMED_OUT.match(observation) or (call.name == "bash" and says_timed_out(message[:200]))
        return Result("failed", observation, None, message, duration=seconds, unknown_effect=bool(unknown))
    changed = changed_files(call.name, call.input)
    shown = _SHOWN.match(observation.strip()) if call.name in _IN_OPEN_FILE else None
    if shown and "path" not in (call.input or {}):
        changed = (shown[1],)
    return Result("ok", observation, changed=changed, duration=seconds)


def _failure(call: Call, observation: str) -> str | None:
    """The failure in an observation; None for a success."""
    text = observation.strip()
    if not text:
        return None
    if _TIMED_OUT.match(text) or text.startswith(_NOT_RUN) or _UNSUPPORTED.match(text):
        return text
    if call.name == "submit" and text.startswith(_WRONG_SUBMISSION):
        return text
    if call.name == "str_replace_editor" and _EDITOR.match(text):
        return text
    if call.name != "bash":
        if _MISSING.search(text[:500]):
            return text
        return text if text.startswith(_REFUSALS) else None
    command = str((call.input or {}).get("command", ""))
    if _program(command) in _READERS:
        return text if _SHELL.match(text) or re.match(r"^\w+: .*No such file or directory", text) else None
    failed = program_raised(text) or _SHELL.search(text[:2_000]) or _PYTEST.search(text[-2_000:])
    return text if failed else None


def _program(command: str) -> str:
    """The first program of a command, past directories changed and variables set."""
    for part in re.split(r"&&|;|\n", command[:2_000]):
        words = [word for word in part.split() if not re.match(r"^\w+=", word)]
        if words and words[0] not in {"cd", "export", "source", "."}:
            return words[0]
    return ""
