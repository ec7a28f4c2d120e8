"""`analyze`: rows that say what a policy would have done and what the recording shows after it."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest

from tests.formats import agent_records, samples
from tests.formats.samples import TRAJECTORIES
from tui_agent.cli.errors import UsageError
from tui_agent.core.events import Failure, FailureKind
from tui_agent.core.names import POLICIES
from tui_agent.lab.analysis.patterns import joined, pattern_of
from tui_agent.lab.analysis.runs import FileReport, First, RunReport, analyze
from tui_agent.lab.analysis.summary import PolicySummary, summaries
from tui_agent.lab.analysis.table import as_csv, as_html, as_json, as_text
from tui_agent.lab.commands import analyze as command


def _command(*arguments: str) -> int:
    return command.main(arguments)


def _rows(files: list[FileReport]) -> list[RunReport]:
    return [row for file in files for row in file.rows]


def _by_policy(files: list[FileReport]) -> dict[str, PolicySummary]:
    return {total.policy: total for total in summaries(files)}


def recording(folder: Path, failures: int, reward: float | None = 1.0, name: str = "failing") -> Path:
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
    path = folder / f"{name}-{failures}.json"
    path.write_text(json.dumps([{"task_id": failures, "trial": 0, "reward": reward, "traj": messages}]))
    return path


def test_a_row_has_the_first_verdict_of_each_kind_and_what_came_after(tmp_path: Path) -> None:
    (row,) = _rows(analyze([recording(tmp_path, 3)], ["combined"]))
    assert (row.tool_calls, row.tool_errors, row.iterations, row.outcome) == (4, 3, 5, "answered")
    assert (row.failures, row.recovered_same_call, row.recovered_worked_round, row.unrecovered) == (
        3,
        3,
        0,
        0,
    )
    assert (row.solved, row.source) == (True, "tau-bench")
    guide, escalate = row.firsts["guide"], row.firsts["escalate"]
    assert (guide.step, guide.ok_after, guide.failed_after, guide.answered) == (1, 1, 2, True)
    assert (escalate.step, escalate.detector) == (3, "attempts")
    assert (escalate.ok_after, escalate.failed_after, escalate.answered) == (1, 0, True)
    assert "stop" not in row.firsts


def test_every_policy_judges_the_same_facts_by_its_own_rules(tmp_path: Path) -> None:
    rows = {row.policy: row for row in _rows(analyze([recording(tmp_path, 5)]))}
    assert tuple(rows) == POLICIES
    assert {row.tool_errors for row in rows.values()} == {5}
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
        "combined": {"escalate": 3},
    }


def test_trips_are_false_on_solved_runs_and_true_on_unsolved_ones(tmp_path: Path) -> None:
    for name, failures, reward in (("a", 0, 1.0), ("b", 5, 1.0), ("c", 5, 0.0), ("d", 5, None)):
        (tmp_path / name).mkdir()
        recording(tmp_path / name, failures, reward)
    totals = _by_policy(analyze([tmp_path], ["hpd", "combined"]))
    hpd = totals["hpd"]
    assert (hpd.runs, hpd.solved, hpd.unsolved) == (4, 2, 1)
    stop = hpd.levels["stop"]
    assert (stop.runs, stop.false_trips, stop.true_trips, stop.first_step) == (3, 1, 1, 4)
    assert hpd.interrupted == stop
    assert hpd.levels["pivot"].runs == hpd.levels["guide"].runs == 0
    combined = totals["combined"]
    assert (combined.interrupted.runs, combined.interrupted.first_step) == (3, 3)
    assert combined.levels["guide"].first_step == 1
    assert all(trips.runs == 3 for trips in combined.rules.values())


def test_rates_are_of_calls_of_failures_and_of_outcomes(tmp_path: Path) -> None:
    (total,) = summaries(analyze([recording(tmp_path, 3)], ["combined"]))
    assert (total.error_rate, total.recovery_rate, total.partial_answer_rate) == (0.75, 1.0, 0.0)
    (tmp_path / "none.json").write_text(json.dumps([{"role": "user", "content": "Hello"}]))
    (total,) = summaries(analyze([tmp_path / "none.json"], ["combined"]))
    assert (total.error_rate, total.recovery_rate, total.partial_answer_rate) == (None, None, 0.0)


def test_a_failure_that_another_call_for_the_same_target_makes_good_is_worked_round(tmp_path: Path) -> None:
    messages: list[dict[str, object]] = [{"role": "user", "content": "Read it"}]
    for number, text in enumerate(("Error: too long", "text")):
        given = json.dumps({"path": "a.py", "offset": number})
        call = {"id": f"c{number}", "type": "function", "function": {"name": "read", "arguments": given}}
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": text},
        ]
    path = tmp_path / "round.json"
    path.write_text(json.dumps(messages))
    (row,) = _rows(analyze([path], ["combined"]))
    assert (row.failures, row.recovered_same_call, row.recovered_worked_round, row.unrecovered) == (
        1,
        0,
        1,
        0,
    )


def test_a_call_whose_result_the_recording_lacks_is_a_coherence_violation(tmp_path: Path) -> None:
    document = json.loads(recording(tmp_path, 1).read_text())
    del document[0]["traj"][2]
    path = tmp_path / "lacking.json"
    path.write_text(json.dumps(document))
    assert [row.coherence_violations for row in _rows(analyze([path], ["combined"]))] == [1]


def test_empty_runs_are_counted_and_the_others_keep_their_number(tmp_path: Path) -> None:
    (run,) = json.loads(recording(tmp_path, 0).read_text())
    path = tmp_path / "many.json"
    path.write_text(json.dumps([run, {**run, "traj": []}, run]))
    (file,) = analyze([path], ["combined"])
    assert ([row.run for row in file.rows], file.empty) == ([1, 3], 1)
    assert "Empty runs, not judged: 1." in as_text([file])


def test_failures_with_the_same_kind_tool_and_message_are_one_pattern(tmp_path: Path) -> None:
    recording(tmp_path, 2)
    recording(tmp_path, 3)
    ((pattern, seen),) = joined(file.patterns for file in analyze([tmp_path], ["combined", "hpd"]))
    assert pattern == ("tool_execution", "make", "Error: no rule")
    assert (seen.failures, seen.runs) == (5, 2)


@pytest.mark.parametrize(
    ("message", "line"),
    [
        ("exit code 1\ncollected 3 items\n3 failed in 0.31s", "exit code 1: 3 failed in <duration>"),
        ("exit code 1", "exit code 1"),
        ("Traceback (most recent call last):\n  File x\nNameError: y", "NameError: y"),
        ("no such file\nnearest: a.py", "no such file"),
        ("", ""),
    ],
)
def test_a_pattern_is_the_telling_line_without_volatile_parts(message: str, line: str) -> None:
    failure = Failure(kind=FailureKind.TOOL_EXECUTION, message=message, tool="bash")
    assert pattern_of(failure) == ("tool_execution", "bash", line)


def test_a_file_that_cannot_be_read_is_a_row_and_the_others_are_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recording(tmp_path, 1)
    (tmp_path / "bad\x1b[2J.json").write_text("{}")
    assert _command(str(tmp_path), "--policy", "combined") == 1
    out = capsys.readouterr().out
    assert "failing-1.json" in out
    assert "Not read:" in out
    assert "\x1b" not in out


def test_exit_codes_say_what_was_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _command(str(recording(tmp_path, 1))) == 0
    assert _command(str(tmp_path / "nope")) == 2
    (tmp_path / "empty").mkdir()
    assert _command(str(tmp_path / "empty")) == 2
    errors = capsys.readouterr().err
    assert "does not exist" in errors
    assert "no .json, .jsonl or .traj file" in errors
    with pytest.raises(UsageError, match="nonsense"):
        _command(str(tmp_path), "--policy", "nonsense")


def test_rows_are_the_same_whatever_the_number_of_processes(tmp_path: Path) -> None:
    for name in ("claude_code", "codex", "tau_bench"):
        (tmp_path / name).mkdir()
        path = samples.write(tmp_path / name, name)
        path.rename(path.with_suffix(".json"))
    (tmp_path / "bad.json").write_text("[")
    assert analyze([tmp_path], ["combined", "hpd"], jobs=2) == analyze(
        [tmp_path], ["combined", "hpd"], jobs=1
    )


def test_progress_is_reported_at_the_beginning_and_after_each_file(tmp_path: Path) -> None:
    recording(tmp_path, 0)
    recording(tmp_path, 1)
    calls: list[tuple[int, int]] = []
    analyze([tmp_path], ["hpd"], progress=lambda done, total, _: calls.append((done, total)))
    assert calls == [(0, 2), (1, 2), (2, 2)]


def test_an_operator_who_is_absent_changes_asking_into_another_way(tmp_path: Path) -> None:
    different = json.loads(recording(tmp_path, 4).read_text())
    for number, message in enumerate(different[0]["traj"]):
        for call in message.get("tool_calls", []):
            call["function"]["arguments"] = json.dumps({"target": number})
    path = tmp_path / "different.json"
    path.write_text(json.dumps(different))
    (present,) = _rows(analyze([path], ["combined"], present="present"))
    (absent,) = _rows(analyze([path], ["combined"], present="absent"))
    assert "escalate" in present.firsts
    assert "pivot" in absent.firsts
    assert not {"escalate", "degrade", "stop"} & absent.firsts.keys()


def test_json_and_csv_hold_what_the_text_shows(tmp_path: Path) -> None:
    files = analyze([recording(tmp_path, 3)], ["combined", "hpd"])
    document = json.loads(as_json(files))
    assert [run["firsts"].get("escalate", {}).get("step") for run in document["runs"]] == [3, None]
    assert [(run["solved"], run["trip"] and run["trip"]["step"]) for run in document["runs"]] == [
        (True, 3),
        (True, None),
    ]
    assert document["summary"][0]["levels"]["escalate"]["false_trips"] == 1
    assert document["patterns"][0] | {"line": ""} == {
        "kind": "tool_execution",
        "tool": "make",
        "line": "",
        "failures": 3,
        "runs": 1,
    }
    table = list(csv.DictReader(io.StringIO(as_csv(files))))
    assert [(row["policy"], row["tool_calls"], row["trip_step"], row["reward"]) for row in table] == [
        ("combined", "4", "3", "1.0"),
        ("hpd", "4", "", "1.0"),
    ]
    text = as_text(files)
    assert "3 attempts" in text
    assert "1 (1/0)" in text
    assert "1 ok, 0 failed, answered" in text


def test_a_formula_in_a_title_is_text_in_the_csv() -> None:
    row = RunReport("x", "hpd", title="=HYPERLINK(1)", model="@x")
    (read,) = csv.DictReader(io.StringIO(as_csv([FileReport("x", (row,))])))
    assert (read["title"], read["model"]) == ("'=HYPERLINK(1)", "'@x")


@pytest.mark.skipif(not TRAJECTORIES.is_dir(), reason="the shared recordings are not here")
def test_over_real_recordings_combined_cuts_no_solved_run() -> None:
    (total,) = summaries(analyze([TRAJECTORIES], ["combined"]))
    assert (total.runs, total.solved, total.unsolved) == (108, 43, 57)
    assert [total.levels[level].false_trips for level in ("escalate", "degrade", "stop")] == [0, 0, 0]


@pytest.mark.parametrize("name", samples.NAMES)
def test_policies_side_by_side_report_what_each_reports_alone(tmp_path: Path, name: str) -> None:
    path = samples.write(tmp_path, name)
    together = _rows(analyze([path]))
    assert len(together) >= len(POLICIES)
    for policy in POLICIES:
        assert [row for row in together if row.policy == policy] == _rows(analyze([path], [policy]))


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_line_goes_beyond_the_terminal_and_nothing_is_lost(tmp_path: Path, width: int) -> None:
    files = analyze(
        [recording(tmp_path, 3), recording(tmp_path, 4, name="a-name-that-is-rather-long-for-a-file")]
    )
    wide, fitted = as_text(files), as_text(files, width=width)
    assert max(map(len, fitted.splitlines())) <= width < max(map(len, wide.splitlines()))
    words = {word for word in re.findall(r"[\w.%]+", wide) if word != "policy"}
    assert not {word for word in words if word not in fitted.replace("\n    ", " ")}


def test_one_page_has_plots_and_tables_and_needs_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recording(tmp_path, 3)
    page = tmp_path / "report.html"
    assert command.main([str(tmp_path), "--html", str(page)]) == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert f"Written: {page}" in said.err
    text = page.read_text("utf-8")
    assert text.count("<svg") == 2
    assert "What became of failures" in text
    assert "By rule: runs that it would have interrupted" in text
    assert not re.findall(r"<script|src=|href=|url\(|@import", text)
    assert "default-src 'none'" in text


def test_recorded_text_stays_text_in_the_page() -> None:
    hostile = "<img src=x>\x1b[2J"
    row = RunReport(hostile, "combined", reward=1.0)
    row.firsts["pivot"] = First("pivot", 1, 1, 1, hostile, "", "")
    text = as_html([FileReport(hostile, (row,), error=hostile)])
    assert "<img" not in text
    assert "\x1b" not in text


def test_a_page_that_cannot_be_written_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recording(tmp_path, 3)
    assert command.main([str(tmp_path), "--html", str(tmp_path / "none" / "page.html")]) == 2
    assert "does not exist" in capsys.readouterr().err
    (tmp_path / "folder.html").mkdir()
    assert command.main([str(tmp_path), "--html", str(tmp_path / "folder.html")]) == 2
    assert "cannot be written" in capsys.readouterr().err


class _Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_how_far_it_is_is_said_where_no_bar_can_be_drawn_too() -> None:
    now = [0.0]
    lines = io.StringIO()
    with command.Progress(lines, lambda: now[0]) as progress:
        for done in range(1, 5):
            now[0] += 6.0
            progress(done, 9, Path("x.json"))
    assert lines.getvalue() == "2 of 9 files read\n4 of 9 files read\n"
    screen = _Screen()
    with command.Progress(screen, lambda: 0.0) as progress:
        progress(3, 9, Path("x.json"))
    assert "3/9 x.json" in screen.getvalue()
    assert screen.getvalue().endswith("\r\x1b[K")


@pytest.mark.parametrize(("options", "code"), [((), 0), (("--strict",), 1)])
def test_too_great_a_loss_is_said_and_fails_only_where_that_is_wanted(
    options: tuple[str, ...], code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = agent_records.script("k", agent_records.running("make"))
    lines = agent_records.codex(script, agent_records.printed("k", agent_records.DONE, "no rule"))
    (tmp_path / "rollout.jsonl").write_text(samples.lines(lines))
    assert command.main([str(tmp_path), "--policy", "combined", *options]) == code
    told = capsys.readouterr()
    assert "how a call ended is not known for 1 of 1" in told.out
    assert "how a call ended is not known for 1 of 1" in told.err
