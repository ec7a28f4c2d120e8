"""Many runs: a killed bench goes on, results are written in three forms, and figures claim no more than they hold."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from tests import openai_server as server
from tests.lab.bench.harness import ran
from tui_agent import installed
from tui_agent.cli import main
from tui_agent.config.settings import Settings
from tui_agent.core.recovery.rules import Rule
from tui_agent.lab.bench import bench
from tui_agent.lab.bench.bench import BenchError, Plan, finished, journal_of, pieces, read_rows, run
from tui_agent.lab.bench.case import all_cases
from tui_agent.lab.bench.figures import broken, difference, estimate, losses, solved, summaries
from tui_agent.lab.bench.report import RULE_OF, write
from tui_agent.lab.bench.run import RealModel, Row, Unit
from tui_agent.lab.evaluation import behaviours
from tui_agent.store.lock import SessionLock

PLAN = Plan(("plain-work/upper", "sampling/seven"), ("repeats",), ("retries", "combined"), ("absent",), (1,))


def progress(done: int, total: int, rest: float) -> None:
    assert 0 < done <= total
    assert rest >= 0


@pytest.fixture(scope="module")
def carried_out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all runs of the plan."""
    folder = tmp_path_factory.mktemp("carried-out")
    run(PLAN, folder, 1, progress)
    return folder


@pytest.fixture
def out(carried_out: Path, tmp_path: Path) -> Path:
    """A folder of the test's own with all runs of the plan."""
    return Path(shutil.copytree(carried_out, tmp_path / "carried-out"))


async def row_of(folder: Path) -> Row:
    return await ran(folder, "plain-work/upper", "retries")


@pytest.mark.process
def test_a_killed_bench_goes_on_where_it_was(out: Path) -> None:
    whole = read_rows(out)
    assert len(whole) == 4
    kept = out / bench.ROWS
    lines = kept.read_text().splitlines(keepends=True)
    kept.write_text("".join(lines[:1]) + lines[1][:30])  # what a kill leaves: some rows, and a torn one
    seen: list[tuple[int, int]] = []
    again = run(PLAN, out, 1, lambda done, total, _: seen.append((done, total)))
    assert seen[-1] == (3, 3)
    assert sorted(map(str, again)) == sorted(map(str, whole))
    assert run(PLAN, out, 1, progress) == again
    unit = Unit("sampling/seven", "repeats", 1)
    assert (journal_of(out, unit, "combined", "absent") / "events.jsonl").is_file()


@pytest.mark.process
def test_a_bench_that_a_signal_ends_says_so_and_leaves_nothing_but_its_rows(tmp_path: Path) -> None:
    (scratch := tmp_path / "scratch").mkdir()
    some = ["plain-work", "polling", "sampling", "--policies", "retries", "--jobs", "1"]
    command = [sys.executable, "-m", "tui_agent", "bench", *some, "--out", str(tmp_path / "out")]
    env = {**os.environ, "TMPDIR": str(scratch)}
    with subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert "to go" in process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        said = process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert "the same command goes on" in said
    assert "Traceback" not in said
    assert "semaphore" not in said
    assert list(scratch.iterdir()) == []


@pytest.mark.process
def test_what_a_killed_bench_left_is_cleared_by_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    dead, alive, strange = (tmp_path / f"agent-tui-bench-{name}" for name in ("dead", "alive", "strange"))
    for place in (dead, alive, strange):
        (place / "job-1" / "workspace").mkdir(parents=True)
    SessionLock.acquire(dead).release()
    held = SessionLock.acquire(alive)
    run(replace(PLAN, cases=PLAN.cases[:1]), tmp_path / "out", 1, progress)
    assert sorted(place.name for place in tmp_path.glob("agent-tui-bench-*")) == [alive.name, strange.name]
    held.release()


def test_a_real_model_costs_no_more_than_it_may(out: Path) -> None:
    dear = [json.dumps(asdict(replace(row, cost=1.5))) + "\n" for row in read_rows(out)[:2]]
    (out / bench.ROWS).write_text("".join(dear))
    with pytest.raises(BenchError, match=r"has cost 3\.0000 USD, and 2\.0000 are allowed; 2 of 4 runs"):
        run(PLAN, out, 1, progress, max_cost=2.0)
    assert len(read_rows(out)) == 2


async def served(tmp_path: Path, max_cost: float, prices: dict[str, Any]) -> list[Row]:
    """The plan with a model whose runs take two replies of 100 tokens each."""
    plan = replace(PLAN, cases=PLAN.cases[:1], model="openai/served")
    looks = server.calls([("list_dir", '{"path": "."}')], usage=(100, 0))
    async with server.OpenAIServer([looks, server.text("Done.", usage=(100, 0))] * 10) as known:
        settings = Settings.model_validate({
            "model": plan.model, "api_base": known.url, "sandbox": {"mode": "off"}, "prices": prices,
        })  # fmt: skip
        return await asyncio.to_thread(run, plan, tmp_path, 1, progress, RealModel(settings), max_cost)


@pytest.mark.process
async def test_each_run_of_a_real_model_is_kept_and_has_what_is_left_of_the_cost(tmp_path: Path) -> None:
    prices = {"openai/served": {"prompt": 10_000.0, "completion": 0.0}}  # a reply costs one dollar
    with pytest.raises(BenchError, match=r"3\.0000 USD, and 3\.0000 are allowed; 1 of 2 runs have ended"):
        await served(tmp_path, 3.0, prices)
    first, cut = read_rows(tmp_path)
    assert (first.cost, cut.cost) == (2.0, 1.0)
    assert (first.rule, cut.rule) == ("", "limit.cost")
    assert finished([first, cut]) == [first]
    rows = await served(tmp_path, 20.0, prices)
    assert [(row.rule, row.cost) for row in rows] == [("", 2.0), ("", 4.0)]
    write(rows, tmp_path)
    text = (tmp_path / "BENCHMARK.md").read_text()
    assert "The model is a real one" in text
    assert "`openai/served`, 2 contestants, 1 seed; 6.0000 USD." in text
    assert "--model openai/served --max-cost USD --policies retries,combined" in text
    assert "small machines" not in text


async def test_a_limit_on_what_nobody_knows_is_refused_after_one_run(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match=r'\[prices."openai/served"\] with prompt and completion in USD'):
        await served(tmp_path, 2.0, {})
    assert len(read_rows(tmp_path)) == 1


def test_runs_of_a_case_are_given_out_together_and_the_last_ones_by_unit() -> None:
    plan = Plan(("a", "b", "c", "d"), ("x", "y"), ("retries", "combined"), ("absent",), (1, 2))
    given = list(pieces(list(plan.runs())))
    assert [run for piece in given for run in piece.runs] == list(plan.runs())
    assert [len(piece.runs) for piece in given] == [8, 8, 8, 2, 2, 2, 2]
    many = list(plan.runs()) * 40
    assert max(len(piece.runs) for piece in pieces(sorted(many, key=lambda run: run.unit.case))) <= 300


def test_rows_of_other_cases_are_not_mixed_in(tmp_path: Path) -> None:
    (tmp_path / bench.PLAN).write_text(json.dumps({"version": "0", "cases": "other", "model": ""}))
    with pytest.raises(BenchError, match="Name another folder"):
        run(PLAN, tmp_path, 1, progress)


async def test_results_are_the_same_as_parquet(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="the extra [bench] is not installed")
    rows = [
        await row_of(tmp_path),
        replace(await row_of(tmp_path), until_person=1.5, cost=0.25, rule="ring.stop", seed=2),
    ]
    write(rows, tmp_path)
    assert parquet.read_table(tmp_path / "results.parquet").to_pylist() == [asdict(row) for row in rows]


async def test_without_pyarrow_the_report_is_written_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert [path.name for path in write([await row_of(tmp_path)], tmp_path)] == [
        "BENCHMARK.md",
        "report.html",
    ]
    assert installed.adding("bench") in capsys.readouterr().err


def test_the_report_says_what_cannot_be_seen_and_how_it_was_run(out: Path, tmp_path: Path) -> None:
    write(read_rows(out), tmp_path)
    text = (tmp_path / "BENCHMARK.md").read_text()
    assert "cannot be seen by any rule that reads errors" in " ".join(text.split())
    assert (
        "agent-tui bench CASES --behaviours repeats --policies retries,combined --seed 1 --repeat 1" in text
    )
    assert "the same success on purpose" in text
    page = (tmp_path / "report.html").read_text()
    assert page.count("<svg") >= 1
    tables = re.findall("<table>.*?</table>", page)
    assert tables
    for rows_of in (re.findall("<tr>.*?</tr>", table) for table in tables):
        assert len({len(re.findall("<t[hd]>", row)) for row in rows_of}) == 1
    assert "<script" not in page


async def test_the_report_is_the_same_in_whatever_order_the_runs_ended(tmp_path: Path) -> None:
    one = await row_of(tmp_path)
    rows = [
        replace(one, case=f"f/{n}", policy=policy, solved=n % 3 == 0, negative=n > 6)
        for n in range(10)
        for policy in ("combined", "retries")
    ]
    pages = []
    for order in (rows, rows[::-1]):
        write(order, tmp_path)
        pages.append((tmp_path / "report.html").read_text())
    assert pages[0] == pages[1]


# --- figures ---------------------------------------------------------------------------------------------------


async def made(folder: Path) -> tuple[list[Row], list[Row]]:
    """Ten cases: one policy solves all of them, the other one eight."""
    one = await row_of(folder)
    cases = [replace(one, case=f"f/{n}", policy="retries", negative=False, kind="k") for n in range(10)]
    others = [replace(row, policy="combined", solved=n > 1) for n, row in enumerate(cases)]
    return cases, others


async def test_differences_are_paired_by_unit_and_have_an_interval(tmp_path: Path) -> None:
    simple, own = await made(tmp_path)
    found = difference(own, simple, solved)
    assert (found.mean, found.count, found.cases) == (-0.2, 10, 10)
    assert found.low < found.mean < found.high <= 0
    assert difference(own, [], solved).count == 0
    assert difference(simple, simple, solved).decided == 0


async def test_a_loss_is_named_where_its_interval_holds_no_zero(tmp_path: Path) -> None:
    simple, own = await made(tmp_path)
    worse = [replace(row, solved=False) for row in own]
    found = losses([*simple, *worse], "combined")
    assert [(loss.kind, loss.what, loss.others) for loss in found] == [("k", "success", ("retries",))]
    assert losses([*simple, *simple], "combined") == []
    assert broken(own, simple).mean == 0.2


async def test_the_same_rows_give_the_same_intervals(tmp_path: Path) -> None:
    simple, own = await made(tmp_path)
    assert estimate(own, solved) == estimate(own, solved)
    assert summaries([*simple, *own]) == summaries([*simple, *own])


# --- the command -----------------------------------------------------------------------------------------------


@pytest.mark.process
def test_the_command_runs_and_reports_and_reports_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "out")
    options = ["plain-work", "--policies", "retries,combined", "--behaviours", "repeats", "--jobs", "1"]
    assert main(["bench", *options, "--out", out]) == 0
    first = (tmp_path / "out" / "BENCHMARK.md").read_text()
    assert main(["bench", "report", out]) == 0
    assert (tmp_path / "out" / "BENCHMARK.md").read_text() == first
    assert "10 runs" in first
    assert len(read_rows(tmp_path / "out")) == 10
    head, _, retries, combined, gap, *paths = capsys.readouterr().out.splitlines()
    assert head.split()[:3] == ["policy", "success", "harm"]
    assert (retries.split()[0], combined.split()[0], gap) == ("retries", "combined", "")
    assert paths[1].endswith("report.html")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["nonsense"], "There is no case 'nonsense'. Families:"),
        (["--policies", "best"], "--policies: there is no 'best'; there are none, retries,"),
        (["--behaviours", "kind"], "--behaviours: there is no 'kind'"),
        (["--operators", "nobody"], "--operators: there is no 'nobody'; there are absent, well"),
        (["--model", "openai/x"], "say how much at most with --max-cost"),
        (
            ["--model", "openai/x", "--max-cost", "1", "--policies", "combined,adviser-right"],
            "adviser-right advises the scripted models alone",
        ),
        (["--repeat", "0"], "--repeat and --jobs are 1 or more"),
        (["report"], "name one folder with results"),
        (["report", "/nonexistent"], "name one folder with results"),
    ],
)
def test_wrong_usage_is_said_before_anything_runs(
    options: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", *options]) == 2
    assert says in capsys.readouterr().err


def test_everything_there_is_can_be_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--list"]) == 0
    listed = capsys.readouterr().out
    assert "polling/five-sleeps" in listed
    assert "without-ring" in listed
    assert "gives-up" in listed


def test_rules_of_silent_failures_are_named_for_kinds_that_there_are() -> None:
    assert RULE_OF.keys() <= {case.kind for case in all_cases() if case.visible == "implicit"}
    assert set(RULE_OF.values()) == {rule.value for rule in Rule if rule.startswith("implicit.")} - {
        "implicit.returns",
        "implicit.nothing",
        "implicit.elsewhere",
    }


def test_counted_habits_are_what_the_machines_use() -> None:
    assert behaviours.main(["--check"]) == 0
