"""The morning after a job of Harbor's: what became of each trial, in the same report as a night of ours.

Its words are others': those of the job, of the tasks and of the agents. They are only shown.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tui_agent import untrusted_files
from tui_agent.agents.followed import ended_calls
from tui_agent.agents.morning import Report
from tui_agent.core.events import RunFinished
from tui_agent.formats.importers.harbor import grade_of_trial, result_of, trials
from tui_agent.formats.importers.load import find_transcripts, load_transcripts
from tui_agent.formats.importers.transcript import TranscriptError
from tui_agent.formats.importers.values import count_at, number_at, object_at, objects_at, text_at, time_at
from tui_agent.quantities import counted, dollars, time_of_day
from tui_agent.terminal_text import one_line

_PHASES = {
    "environment_setup": "environment",
    "agent_setup": "agent set up",
    "agent_execution": "agent",
    "verifier": "verifier",
}
_LOG = "trial.log"


def job_reports(folder: Path) -> list[Report]:
    """The trials of a job, or one trial. Blocking: their sessions are read."""
    return [_report(trial, folder) for trial in trials(folder)]


def _report(trial: Path, job: Path) -> Report:
    result = result_of(trial)
    sessions = find_transcripts([trial])
    return Report(
        name=one_line(trial.name, 100),
        headline=_headline(trial, result, sessions),
        facts=tuple(_facts(result, sessions)),
        events=tuple(said for _, said in sorted(_events(result))),
        commands=tuple(_commands(trial, job, result, sessions)),
    )


def _headline(trial: Path, result: Mapping[str, Any], sessions: Sequence[Path]) -> str:
    if time_at(result, "finished_at") is None:
        return "open: it was cut off, or still runs" if sessions else "open: it has not begun"
    errors = [f"{kind}: {message}".rstrip(": ") for kind, message, _ in _errors(result)]
    reward = grade_of_trial(trial / "agent" / _LOG)
    graded = "no reward" if reward is None else f"reward {reward:g}"
    done = "done" if reward is not None and reward >= 1 and not errors else "not done"
    return one_line(", ".join((f"{done}: {graded}", *errors)), 300)


def _errors(result: Mapping[str, Any]) -> Iterator[tuple[str, str, float | None]]:
    """The faults that broke a trial, or one of its steps: kind, words and time."""
    for one in (result, *objects_at(result, "step_results")):
        error = object_at(one, "exception_info")
        if error:
            kind, message = text_at(error, "exception_type"), text_at(error, "exception_message")
            yield kind or "an error", message, time_at(error, "occurred_at")


def _facts(result: Mapping[str, Any], sessions: Sequence[Path]) -> Iterator[str]:
    began, ended = time_at(result, "started_at"), time_at(result, "finished_at")
    if began is not None:
        yield time_of_day(began) + (f" to {time_of_day(ended)}" if ended is not None else "")
    task, agent = text_at(result, "task_name"), text_at(result, "agent_info", "name")
    if task or agent:
        yield one_line(" by ".join(one for one in (f"task {task}" if task else "", agent) if one), 200)
    contexts = [object_at(one, "agent_result") for one in (result, *objects_at(result, "step_results"))]
    costs = [cost for one in contexts if (cost := number_at(one, "cost_usd")) is not None]
    if costs:
        yield f"cost {dollars(sum(costs))}"
    tokens = [
        count
        for one in contexts
        for key in ("n_input_tokens", "n_output_tokens")
        if (count := count_at(one, key)) is not None
    ]
    if tokens:
        yield counted(sum(tokens), "token")
    for session in sessions:
        yield from _of_session(session)
    rewards = object_at(result, "verifier_result", "rewards")
    if len(rewards) > 1:
        yield one_line("rewards: " + ", ".join(f"{name} {value}" for name, value in rewards.items()), 300)


def _of_session(session: Path) -> Iterator[str]:
    try:
        runs = load_transcripts(session)
    except TranscriptError as error:
        yield one_line(f"a session cannot be read: {error}", 300)
        return
    calls, failed = ended_calls(event for run in runs for event in run.events)
    ends = [
        event for run in runs if not run.subagent for event in run.events if isinstance(event, RunFinished)
    ]
    said = ends[-1].answer if ends else ""
    if calls:
        yield counted(calls, "call") + (f", {failed} failed" if failed else "")
    if said:
        yield f"it said: {one_line(said, 300)}"


def _events(result: Mapping[str, Any]) -> Iterator[tuple[float, str]]:
    for step in (result, *objects_at(result, "step_results")):
        name = text_at(step, "step_name")
        for phase, said in _PHASES.items():
            for key, what in (("started_at", "begins"), ("finished_at", "ends")):
                if (at := time_at(step, phase, key)) is not None:
                    of_step = f" of step {one_line(name, 60)}" if name else ""
                    yield at, f"{time_of_day(at)}  {said}{of_step} {what}"
    for kind, message, occurred in _errors(result):
        if occurred is not None:
            yield occurred, f"{time_of_day(occurred)}  {one_line(f'{kind}: {message}', 300)}"


def _commands(
    trial: Path, job: Path, result: Mapping[str, Any], sessions: Sequence[Path]
) -> Iterator[tuple[str, str]]:
    if untrusted_files.is_file(trial / _LOG, trial):
        yield "output", f"less {shlex.quote(str(trial / _LOG))}"
    if sessions:
        yield "open", f"agent-tui watch {shlex.quote(str(sessions[0]))}"
    if time_at(result, "finished_at") is None and job != trial:
        yield "resume", f"harbor jobs resume -p {shlex.quote(str(job))}"
