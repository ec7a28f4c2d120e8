"""`analyze`: rows that say what a policy would have done and what the recording shows after it."""

from __future__ import annotations

import argparse
import csv
import io
import json
from pathlib import Path

import pytest

from tests.importers import samples
from tests.importers.samples import TRAJECTORIES
from tui_agent.sessions import analyze as analysis
from tui_agent.sessions.analyze import POLICIES, RunReport, analyze
from tui_agent.sessions.analyze_table import as_csv, as_json, as_text, summaries


def _command(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    analysis.add_arguments(parser)
    return analysis.main(parser.parse_args(arguments))


def _recording(folder: Path, failures: int) -> Path:
    """One call that fails `failures` times in a row and then succeeds, and an answer."""
    messages: list[dict[str, object]] = [{"role": "user", "content": "Make it"}]
    for number in range(failures + 1):
        call = {"id": f"c{number}", "type": "function", "function": {"name": "make", "arguments": "{}"}}
        text = "Error: no rule" if number < failures else "made"
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": text},
        ]
    messages.append({"role": "assistant", "content": "Made."})
    path = folder / f"failing-{failures}.json"
    path.write_text(json.dumps([{"task_id": failures, "trial": 0, "reward": 1.0, "traj": messages}]))
    return path


def test_a_row_tells_the_first_verdict_of_each_kind_and_what_came_after(tmp_path: Path) -> None:
    (row,) = analyze([_recording(tmp_path, 3)], ["combined"])
    assert (row.calls, row.failures, row.recoveries, row.iterations, row.outcome) == (4, 3, 3, 5, "answered")
    assert (row.solved, row.source) == (True, "tau-bench")
    guide, escalate = row.firsts["guide"], row.firsts["escalate"]
    assert (guide.step, guide.ok_after, guide.failed_after, guide.answered) == (1, 1, 2, True)
    assert (escalate.step, escalate.detector) == (3, "attempts")
    assert (escalate.ok_after, escalate.failed_after, escalate.answered) == (1, 0, True)
    assert "stop" not in row.firsts


def test_every_policy_judges_the_same_facts_by_its_own_rules(tmp_path: Path) -> None:
    rows = {row.policy: row for row in analyze([_recording(tmp_path, 5)])}
    assert tuple(rows) == POLICIES
    assert {row.failures for row in rows.values()} == {5}
    steps = {
        policy: {
            level: first.step
            for level, first in row.firsts.items()
            if level in {"escalate", "degrade", "stop"}
        }
        for policy, row in rows.items()
    }
    assert steps == {
        "forge": {"stop": 5},
        "gigi": {"escalate": 3},
        "funnelcanary": {"degrade": 3},
        "hpd": {"stop": 4},
        "combined": {"escalate": 3, "stop": 5},
    }


def test_a_solved_run_that_would_have_been_cut_stands_in_the_sums(tmp_path: Path) -> None:
    rows = analyze([_recording(tmp_path, 0), _recording(tmp_path, 5)], ["hpd", "combined"])
    by_policy = {total.policy: total for total in summaries(rows)}
    hpd = by_policy["hpd"]
    assert (hpd.runs, hpd.solved, hpd.stop, hpd.solved_stop, hpd.solved_escalate) == (2, 2, 1, 1, 0)
    assert by_policy["combined"].solved_escalate == 1


def test_a_file_that_cannot_be_read_is_a_row_and_the_others_are_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _recording(tmp_path, 1)
    (tmp_path / "bad\x1b[2J.json").write_text("{}")
    assert _command(str(tmp_path), "--policy", "combined") == 1
    out = capsys.readouterr().out
    assert "failing-1.json" in out
    assert "Not read:" in out
    assert "\x1b" not in out


def test_exit_codes_tell_what_was_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _command(str(_recording(tmp_path, 1))) == 0
    assert _command(str(tmp_path / "nope")) == 2
    (tmp_path / "empty").mkdir()
    assert _command(str(tmp_path / "empty")) == 2
    told = capsys.readouterr().err
    assert "does not exist" in told
    assert "no .json, .jsonl or .traj file" in told
    with pytest.raises(SystemExit) as usage:
        _command(str(tmp_path), "--policy", "nonsense")
    assert usage.value.code == 2


def test_rows_are_the_same_whatever_the_number_of_processes(tmp_path: Path) -> None:
    for name in ("claude_code", "codex", "tau_bench"):
        (tmp_path / name).mkdir()
        path = samples.write(tmp_path / name, name)
        path.rename(path.with_suffix(".json"))
    (tmp_path / "bad.json").write_text("[")
    assert analyze([tmp_path], ["combined", "hpd"], jobs=2) == analyze(
        [tmp_path], ["combined", "hpd"], jobs=1
    )


def test_progress_is_told_after_each_file(tmp_path: Path) -> None:
    _recording(tmp_path, 0)
    _recording(tmp_path, 1)
    told: list[tuple[int, int]] = []
    analyze([tmp_path], ["hpd"], progress=lambda done, total, _: told.append((done, total)))
    assert told == [(1, 2), (2, 2)]


def test_an_operator_who_is_absent_changes_asking_into_ending(tmp_path: Path) -> None:
    different = json.loads(_recording(tmp_path, 4).read_text())
    for number, message in enumerate(different[0]["traj"]):
        for call in message.get("tool_calls", []):
            call["function"]["arguments"] = json.dumps({"target": number})
    path = tmp_path / "different.json"
    path.write_text(json.dumps(different))
    (present,) = analyze([path], ["combined"], present="present")
    (absent,) = analyze([path], ["combined"], present="absent")
    assert "escalate" in present.firsts
    assert "degrade" in absent.firsts


def test_json_and_csv_hold_what_the_text_shows(tmp_path: Path) -> None:
    rows = analyze([_recording(tmp_path, 3)], ["combined", "hpd"])
    document = json.loads(as_json(rows))
    assert [run["firsts"].get("escalate", {}).get("step") for run in document["runs"]] == [3, None]
    assert document["summary"][0]["solved_escalate"] == 1
    table = list(csv.DictReader(io.StringIO(as_csv(rows))))
    assert [(row["policy"], row["calls"], row["escalate_step"], row["reward"]) for row in table] == [
        ("combined", "4", "3", "1.0"),
        ("hpd", "4", "", "1.0"),
    ]
    text = as_text(rows)
    assert "3 attempts" in text
    assert "1 ok, 0 failed, answered" in text


def test_a_formula_in_a_title_is_text_in_the_csv() -> None:
    row = RunReport("x", "hpd", title="=HYPERLINK(1)", model="@x")
    (read,) = csv.DictReader(io.StringIO(as_csv([row])))
    assert (read["title"], read["model"]) == ("'=HYPERLINK(1)", "'@x")


@pytest.mark.skipif(not TRAJECTORIES.is_dir(), reason="the shared recordings are not here")
def test_over_real_recordings_combined_cuts_no_solved_run() -> None:
    total = next(one for one in summaries(analyze([TRAJECTORIES], ["combined"])) if one.policy == "combined")
    assert (total.runs, total.solved) == (108, 43)
    assert (total.solved_escalate, total.solved_degrade, total.solved_stop) == (0, 0, 0)
