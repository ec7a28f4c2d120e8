"""Real recordings of other agents: counts that their own documents give."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.importers.samples import TRAJECTORIES
from tui_agent import events as e
from tui_agent.sessions.importers.load import Imported, judge, load_transcripts

pytestmark = pytest.mark.skipif(not TRAJECTORIES.is_dir(), reason="the shared recordings are not here")


def _load(name: str) -> list[Imported]:
    return load_transcripts(TRAJECTORIES / name)


def _ends(runs: list[Imported]) -> Counter[str]:
    return Counter(
        event.__dict__["type"] for run in runs for event in run.events if isinstance(event, e.ToolResult)
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
        if isinstance(event, e.VerdictReached) and event.level.rank >= e.Level.ESCALATE.rank
    ]
    assert cut == []
