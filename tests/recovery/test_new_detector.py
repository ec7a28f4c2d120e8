"""A detector takes its file, its rules and its place in the list: whatever has to know all of them then knows it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tui_agent.core.recovery.parameters import Parameters, together
from tui_agent.core.recovery.streak import StreakParameters

ROOT = Path(__file__).resolve().parents[2]


def test_no_parameter_of_a_detector_hides_one_of_another() -> None:
    class FidgetParameters(Parameters):
        fidget: str = "off"
        streak_limit: str = "tight"

    with pytest.raises(
        TypeError, match="FidgetParameters and StreakParameters both have a parameter streak_limit"
    ):
        together((StreakParameters, FidgetParameters))


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a program makes of one more detector."""
    folder = tmp_path_factory.mktemp("throw_away")
    done = subprocess.run(
        [sys.executable, "-m", "tests.recovery.throw_away", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    facts: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return facts


def test_each_preset_but_combined_leaves_it_out(found: dict[str, Any]) -> None:
    assert found["policies"].pop("combined") == {"value": "guide", "has a say": True, "guides": True}
    for name, policy in found["policies"].items():
        assert (policy["value"], policy["has a say"]) == ("off", False), name
    assert not found["policies"]["hpd"]["guides"]


def test_the_benchmark_runs_without_it_and_judges_nothing_in_none(found: dict[str, Any]) -> None:
    contestants = found["contestants"]
    assert contestants["standard"]
    assert contestants["without it"] == ["fidget"]
    assert contestants["in none"] == ["form", "model"], "they say what became of a reply and of a fault"
    assert {"combined", "without-ring", "notes-only"} <= set(contestants["has a say in"])
    assert not {"none", "retries", "forge", "without-fidget"} & set(contestants["has a say in"])


def test_its_parameters_are_keys_with_their_bounds_and_what_they_mean(found: dict[str, Any]) -> None:
    keys = found["keys"]
    assert keys["switch"] == {"fidget": "off"}
    assert keys["number"] == {"fidget_limit": 7}
    assert "recovery.fidget_limit: must be" in keys["wrong"]
    assert keys["row"] == ["7", "Such steps in a row that are allowed."]


def test_its_verdict_is_recorded_explained_and_saved(found: dict[str, Any]) -> None:
    session = found["session"]
    reason = "list_dir alone for 3 steps"
    assert session["verdicts"] == [[3, "fidget.guide", reason]]
    assert session["why"] == [["fidget", "3 of 2 steps with one tool alone", "guide", "fidget.guide", reason]]
    assert session["read back"]


def test_it_hears_other_events_and_the_operators_answer(found: dict[str, Any]) -> None:
    assert found["heard"] == [4, 1, 0]


def test_documents_that_lack_it_fail_their_checks(found: dict[str, Any]) -> None:
    documents = found["documents"]
    assert [line.split(" | ")[0] for line in documents["keys"]] == ["| `fidget`", "| `fidget_limit`"]
    assert len(documents["missed"]) == 2, documents["missed"]
