"""Work spread over processes and over a Dask cluster: nothing is lost, and nothing comes out otherwise."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.formats import samples
from tests.spread_work import killed_once, kills, square, straggles_once
from tui_agent import cluster, installed
from tui_agent.cli import main
from tui_agent.cluster import LOCAL, ClusterError, spread
from tui_agent.lab.bench.bench import Plan, journal_of, run
from tui_agent.lab.bench.report import write
from tui_agent.lab.bench.run import Unit

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """The address of a scheduler that is there already, with two workers."""
    distributed = pytest.importorskip("distributed", reason="the extra [cluster] is not installed")
    with distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        dashboard_address="127.0.0.1:0",
        silence_logs="CRITICAL",
        memory_limit=0,
    ) as made:
        yield made.scheduler_address


def test_a_killed_process_of_this_machine_loses_nothing(tmp_path: Path) -> None:
    items = [(tmp_path / "killed", number) for number in range(8)]
    found = {position: ended.result() for position, ended in spread(killed_once, items, LOCAL, 2)}
    assert found == {number: square(number) for number in range(8)}


def test_only_what_kills_its_process_each_time_is_blamed() -> None:
    ended = dict(spread(kills, range(6), LOCAL, 2))
    assert [position for position in range(6) if ended[position].exception() is not None] == [3]


def test_what_takes_too_long_is_begun_on_another_worker(
    tmp_path: Path, scheduler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "LEAST_STRAGGLE", 0.5)
    items = [(tmp_path / "straggles", number) for number in range(5)]
    found = {position: ended.result() for position, ended in spread(straggles_once, items, scheduler)}
    assert found == {number: square(number) for number in range(5)}


def test_a_cluster_on_this_machine_is_there_for_as_long_as_it_is_needed() -> None:
    pytest.importorskip("distributed", reason="the extra [cluster] is not installed")
    assert {place: ended.result() for place, ended in spread(square, [1, 2, 3], "dask", 1)} == {
        0: 1,
        1: 4,
        2: 9,
    }


def test_without_a_scheduler_it_is_said_how_one_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed", reason="the extra [cluster] is not installed")
    monkeypatch.setattr(cluster, "CONNECT", 0.2)
    with pytest.raises(ClusterError, match="Start one"):
        list(spread(square, [1], "tcp://127.0.0.1:1"))


def test_workers_of_several_threads_are_refused() -> None:
    distributed = pytest.importorskip("distributed", reason="the extra [cluster] is not installed")
    with (
        distributed.LocalCluster(
            n_workers=1,
            threads_per_worker=2,
            processes=False,
            protocol="tcp",
            dashboard_address="127.0.0.1:0",
        ) as made,
        pytest.raises(ClusterError, match="--nthreads 1"),
    ):
        list(spread(square, [1], made.scheduler_address))


def test_without_dask_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    path = samples.write(tmp_path, "codex")
    path.rename(path.with_suffix(".json"))
    assert main(["analyze", str(tmp_path), "--cluster", "dask"]) == 1
    assert installed.adding("cluster") in capsys.readouterr().err


# --- the same results -------------------------------------------------------------------------------------------


def test_analyze_writes_the_same_bytes_on_a_cluster(tmp_path: Path, scheduler: str) -> None:
    pytest.importorskip("pyarrow", reason="the extra [bench] is not installed")
    runs = tmp_path / "runs"
    for name in ("claude_code", "codex", "tau_bench"):
        (runs / name).mkdir(parents=True)
        path = samples.write(runs / name, name)
        path.rename(path.with_suffix(".json"))
    (runs / "bad.json").write_text("[")
    written = []
    for where in (LOCAL, scheduler):
        out = tmp_path / f"{len(written)}.parquet"
        assert main(["analyze", str(runs), "--out", str(out), "--cluster", where]) == 1  # one cannot be read
        written.append(out.read_bytes())
    assert written[0] == written[1]


def test_a_bench_gives_the_same_bytes_on_a_cluster(tmp_path: Path, scheduler: str) -> None:
    pytest.importorskip("pyarrow", reason="the extra [bench] is not installed")
    plan = Plan(
        ("plain-work/upper", "sampling/seven"), ("repeats",), ("retries", "combined"), ("absent",), (1,)
    )
    made = []
    for where in (LOCAL, scheduler):
        out = tmp_path / str(len(made))
        write(run(plan, out, 1, lambda *_: None, cluster=where), out)
        made.append(
            [(out / name).read_bytes() for name in ("results.parquet", "BENCHMARK.md", "report.html")]
        )
        journal = journal_of(out, Unit("sampling/seven", "repeats", 1), "combined", "absent")
        assert (journal / "events.jsonl").stat().st_size
    assert made[0] == made[1]


# --- last, since Dask does not always start another worker in the place of one that was killed ----------------------


def test_a_killed_worker_of_a_cluster_loses_nothing(tmp_path: Path, scheduler: str) -> None:
    items = [(tmp_path / "killed", number) for number in range(8)]
    found = {position: ended.result() for position, ended in spread(killed_once, items, scheduler)}
    assert found == {number: square(number) for number in range(8)}
