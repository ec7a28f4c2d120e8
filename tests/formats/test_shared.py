"""Real recordings of other agents: counts that their own documents give."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.formats.samples import LABELLED, TRAJECTORIES
from tui_agent.core import events
from tui_agent.formats.importers.load import Imported, find_transcripts, judge, load_transcripts

pytestmark = pytest.mark.skipif(not TRAJECTORIES.is_dir(), reason="the shared recordings are not here")
labelled = pytest.mark.skipif(not LABELLED.is_dir(), reason="the labelled runs are not here")


def _load(name: str) -> list[Imported]:
    return load_transcripts(TRAJECTORIES / name)


def _ends(runs: list[Imported]) -> Counter[str]:
    return Counter(
        event.__dict__["type"] for run in runs for event in run.events if isinstance(event, events.ToolResult)
    )


@pytest.mark.parametrize(
    ("name", "source", "runs", "ends"),
    [
        ("claude-code-small.jsonl", "Claude Code", 3, {"tool_succeeded": 18, "tool_failed": 3}),
        (
            "claude-code-large.jsonl",
            "Claude Code",
            1,
            {"tool_succeeded": 179, "tool_failed": 6, "tool_refused": 1},
        ),
        (
            "mini-swe-agent-github-issue.traj.json",
            "mini-swe-agent",
            1,
            {"tool_succeeded": 8, "tool_failed": 2},
        ),
        ("openhands-events.jsonl", "OpenHands", 1, {"tool_failed": 3}),
        ("swe-agent-babyencryption.traj", "SWE-agent", 1, {"tool_succeeded": 11, "tool_failed": 5}),
        ("swe-agent-pydicom-1458.traj", "SWE-agent", 1, {"tool_succeeded": 8, "tool_failed": 4}),
        ("tau-bench-airline-gpt-4o.json", "tau-bench", 100, {"tool_succeeded": 539, "tool_failed": 33}),
    ],
)
def test_real_recordings_are_read_whole(name: str, source: str, runs: int, ends: dict[str, int]) -> None:
    loaded = _load(name)
    assert {run.source for run in loaded} == {source}
    assert len(loaded) == runs
    assert _ends(loaded) == ends
    report = loaded[0].report
    assert report.clean
    assert report.understood + sum(report.skipped.values()) == report.records


def test_combined_cuts_no_run_that_its_recording_calls_solved() -> None:
    runs = [run for run in _load("tau-bench-airline-gpt-4o.json") if run.reward == 1.0]
    assert len(runs) == 43
    cut = [
        run.title
        for run in runs
        for event in judge(run, "combined").events
        if isinstance(event, events.VerdictReached) and event.level.rank >= events.Level.ESCALATE.rank
    ]
    assert cut == []


@labelled
@pytest.mark.parametrize(
    ("folder", "source", "runs", "solved", "rejected"),
    [
        (
            "swebench-gemini-3-pro",
            "mini-swe-agent",
            250,
            185,
            {"no_tool_call": 2},
        ),
        ("intercode", "OpenAI messages", 2_611, 1_199, {}),
    ],
)
def test_labelled_runs_have_their_grades_and_rejected_replies(
    folder: str, source: str, runs: int, solved: int, rejected: dict[str, int]
) -> None:
    loaded = [run for path in find_transcripts([LABELLED / folder]) for run in load_transcripts(path)]
    assert {run.source for run in loaded} == {source}
    assert (len(loaded), sum(run.reward == 1.0 for run in loaded)) == (runs, solved)
    assert {run.reward for run in loaded} == {0.0, 1.0}
    kinds = Counter(
        str(event.failure.kind)
        for run in loaded
        for event in run.events
        if isinstance(event, events.ReplyRejected)
    )
    assert kinds == rejected
