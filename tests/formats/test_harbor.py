"""Harbor's job folders: a trial counts once, with its reward, and its own files are no sessions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.formats import agent_records, samples
from tui_agent.cli import main
from tui_agent.formats.importers.load import find_transcripts, load_transcripts
from tui_agent.watch.places import sessions_below


def write(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def job(folder: Path) -> Path:
    """A job of four trials: one with a trajectory, one that goes on, one of two steps, one that never began."""
    for name in ("config.json", "result.json", "lock.json"):
        write(folder / name, {"id": "j"})
    trajectory = agent_records.atif(3, agent_records.ATIF_FORMS[0])
    native = samples.lines(samples.claude_code())
    result = {"verifier_result": {"rewards": {"reward": 1.0}}, "trial_name": "a"}
    for trial in "abcd":
        write(folder / trial / "config.json", {})
    write(folder / "a" / "result.json", result)
    write(folder / "a" / "agent" / "trajectory.json", trajectory)
    write(folder / "a" / "agent" / "sessions" / "projects" / "-app" / "s.jsonl", native)
    write(folder / "a" / "verifier" / "ctrf.json", {"results": {}})
    write(folder / "b" / "agent" / "sessions" / "projects" / "-app" / "s.jsonl", native)
    write(folder / "c" / "result.json", {"verifier_result": {"rewards": {"tests_passed": 0.5}}})
    for step in ("one", "two"):
        write(folder / "c" / "steps" / step / "agent" / "trajectory.json", trajectory)
    return folder


@pytest.mark.parametrize("place", ["", "above", "a"])
def test_a_trial_counts_once_by_its_trajectory_or_by_what_the_agent_wrote(place: str, tmp_path: Path) -> None:
    folder = job(tmp_path / "jobs" / "2026-11-27")
    top = {"": folder, "above": tmp_path, "a": folder / "a"}[place]
    found = [str(path.relative_to(folder)) for path in find_transcripts([top])]
    expected = [
        "a/agent/trajectory.json",
        "b/agent/sessions/projects/-app/s.jsonl",
        "c/steps/one/agent/trajectory.json",
        "c/steps/two/agent/trajectory.json",
    ]
    assert found == (expected[:1] if place == "a" else expected)
    assert {one.path for one in sessions_below(folder)} == {folder / name for name in expected}


def test_the_reward_of_a_trial_is_the_grade_of_its_session(tmp_path: Path) -> None:
    folder = job(tmp_path)
    grades = {
        path.relative_to(folder).parts[0]: load_transcripts(path)[0].reward
        for path in find_transcripts([folder])
    }
    assert grades == {"a": 1.0, "b": None, "c": 0.5}


HOSTILE = "\x1b]52;c;x\x07 <script>alert(1)</script> ``` \u202e"


def ended(trial: str, **more: Any) -> dict[str, Any]:
    phase = {"started_at": "2026-11-27T22:00:05Z", "finished_at": "2026-11-27T22:10:00Z"}
    return {
        "trial_name": trial,
        "task_name": "fix-git",
        "agent_info": {"name": "claude-code", "version": "2.1"},
        "started_at": "2026-11-27T22:00:00Z",
        "finished_at": "2026-11-27T22:11:00Z",
        "agent_execution": phase,
        "agent_result": {"n_input_tokens": 900, "n_output_tokens": 100, "cost_usd": 0.25},
        **more,
    }


def test_a_job_has_a_morning_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = job(tmp_path / "jobs" / "one job")
    rewards = {"verifier_result": {"rewards": {"reward": 1.0, "style": 0.5}}}
    error = {"exception_type": "AgentTimeoutError", "exception_message": HOSTILE}
    error["occurred_at"] = "2026-11-27T22:10:00Z"
    write(folder / "a" / "result.json", ended("a", **rewards))
    write(folder / "a" / "trial.log", "")
    steps = [{"step_name": "one", "exception_info": error, "agent_result": {"cost_usd": 0.5}}]
    write(folder / "c" / "result.json", ended("c", step_results=steps, agent_result=None))
    write(folder / "d" / "agent" / ".keep", "")
    for form in ("text", "markdown", "html"):
        assert main(["night", str(folder), "--form", form]) == 0
        said = capsys.readouterr().out
        assert not any(one in said for one in ("\x1b", "\x07", "\u202e"))
        assert ("<script" in said) == (form != "html")
        for words in (
            "done: reward 1",
            "task fix-git by claude-code",
            "$0.2500",
            "1,000 tokens",
            "rewards: reward 1.0, style 0.5",
            "open: it was cut off, or still runs",
            "open: it has not begun",
            "not done: no reward, AgentTimeoutError",
            "$0.5000",
            "agent-tui watch",
            "harbor jobs resume -p",
        ):
            assert words in said, (form, words)
    assert main(["night", str(folder / "a")]) == 0
    said = capsys.readouterr().out
    assert "less " in said
    calls = sum(
        len(step.get("tool_calls", ()))
        for step in agent_records.atif(3, agent_records.ATIF_FORMS[0])["steps"]
    )
    assert f"{calls} calls" in said


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    folder = job(tmp_path / "job")
    elsewhere = write(tmp_path / "elsewhere.json", agent_records.atif(3, agent_records.ATIF_FORMS[0]))
    (folder / "a" / "agent" / "trajectory.json").unlink()
    (folder / "a" / "agent" / "trajectory.json").symlink_to(elsewhere)
    assert elsewhere.resolve() not in {path.resolve() for path in find_transcripts([folder])}
