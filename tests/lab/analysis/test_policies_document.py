"""`lab/evaluation/policies.py`: one section a set of recordings, both with and without an operator."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.lab.analysis.test_analyze import recording
from tui_agent.core.names import POLICIES
from tui_agent.lab.analysis.runs import FileReport, RunReport
from tui_agent.lab.analysis.summary import PolicySummary, Trips, summaries
from tui_agent.lab.evaluation import policies


def test_each_set_has_its_tables_with_and_without_an_operator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policies, "TARGET", tmp_path / "POLICIES.md")
    recording(tmp_path, 0)
    recording(tmp_path, 5)
    assert policies.main([f"made up={tmp_path}/failing-*.json", str(tmp_path / "failing-0.json")]) == 0
    text = (tmp_path / "POLICIES.md").read_text()
    assert [line for line in text.splitlines() if line.startswith("#")] == [
        "# Policies over recorded runs",
        "## made up",
        "### With an operator",
        "### Without an operator",
        "### Failures",
        "## failing-0",
        "### With an operator",
        "### Without an operator",
        "### Failures",
    ]
    assert "2 runs (tau-bench); 2 solved; 0 unsolved; 7 calls, 71.4 % of them failed." in text
    assert all(text.count(f"\n| {policy} | ") == 6 for policy in POLICIES)
    assert "| 1 (1/0) |" in text
    assert str(tmp_path) not in text
    assert "- `hpd` interrupts 50.0 % of the solved runs, and ends 50.0 % of the solved runs." in text


def test_the_words_follow_from_the_figures() -> None:
    quiet, none = summary("forge", (0, 0)), summary("hpd", (1, 30))
    harmful, telling = summary("gigi", (20, 1)), summary("combined", (1, 30), ended=(0, 10))
    words = policies.verdicts_in_words([quiet, none, harmful, telling])
    assert "- `forge` interrupts no run." in words
    assert (
        "- `combined` interrupts 1.0 % of the solved runs and 60.0 % of the unsolved ones, "
        "and ends none of the solved runs and 20.0 % of the unsolved ones." in words
    ), words
    assert "told apart by `hpd` and `combined`." in words
    assert "`gigi` interrupts a larger share of the solved runs" in words
    assert "No policy tells solved from unsolved" in policies.verdicts_in_words([quiet, harmful])


def summary(policy: str, interrupted: tuple[int, int], ended: tuple[int, int] = (0, 0)) -> PolicySummary:
    """Of 100 solved and 50 unsolved runs."""
    trips = [Trips(sum(pair), *pair, 3 if sum(pair) else None) for pair in (interrupted, ended)]
    empty = summaries([FileReport("a", (RunReport("a", policy),))])[0]
    return replace(empty, runs=150, solved=100, unsolved=50, interrupted=trips[0], ended=trips[1])


@pytest.mark.parametrize("arguments", [[], ["nowhere=/nonexistent/*.json"]])
def test_without_recordings_nothing_is_written(
    arguments: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(policies, "TARGET", tmp_path / "POLICIES.md")
    assert policies.main(arguments) == 2
    assert "recordings" in capsys.readouterr().err
    assert not (tmp_path / "POLICIES.md").exists()
