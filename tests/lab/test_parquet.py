"""Rows as Parquet, and what may be asked of them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.formats import samples
from tui_agent import installed
from tui_agent.cli import main
from tui_agent.lab.parquet import ParquetError, ask, rows_file

pytest.importorskip("pyarrow", reason="the extra [bench] is not installed")
pytest.importorskip("duckdb", reason="the extra [sql] is not installed")


@pytest.fixture
def results(tmp_path: Path) -> Path:
    path = tmp_path / "it's" / "results.parquet"
    path.parent.mkdir()
    with rows_file(path, {"policy": str, "failures": int}) as add:
        add({"policy": "combined", "failures": count} for count in range(4))
        add([{"policy": "hp\x1b[2Jd\udcff", "failures": None}])
    return path


def test_results_answer_sql(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sql = "SELECT policy, sum(failures) AS failed FROM runs GROUP BY policy ORDER BY policy"
    assert main(["analyze", str(results.parent), "--sql", sql]) == 0
    shown = capsys.readouterr().out
    assert "combined" in shown
    assert "\x1b" not in shown
    assert main(["analyze", str(results), "--sql", sql, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)[0] == {"policy": "combined", "failed": 6}


def test_recordings_answer_sql_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = samples.write(tmp_path, "codex")
    path.rename(path.with_suffix(".json"))
    sql = "SELECT policy, tool_calls FROM runs"
    assert main(["analyze", str(tmp_path), "--policy", "hpd", "--sql", sql, "--format", "csv"]) == 0
    assert capsys.readouterr().out.startswith("policy,tool_calls\nhpd,")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM '{secret}'",
        "SELECT * FROM read_text('{secret}')",
        "SELECT * FROM read_csv('{secret}')",
        "SELECT * FROM glob('{folder}/*')",
        "SELECT * FROM read_csv('http://127.0.0.1:9/x')",
        "SELECT * FROM runs WHERE policy IN (SELECT content FROM read_text('{secret}'))",
        "COPY runs TO '{folder}/out.csv'",
        "COPY runs TO '{results}'",
        "ATTACH '{folder}/new.db'",
        "INSTALL httpfs",
        "LOAD '{secret}'",
        "SET enable_external_access = true",
        "SELECT 1; SELECT 2",
        "SELECT nope FROM runs",
        "",
    ],
)
def test_sql_reads_nothing_else_and_writes_nothing(sql: str, results: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("a,b\n1,2\n")
    before = sorted(tmp_path.rglob("*")), results.read_bytes()
    with pytest.raises(ParquetError):
        ask([results], sql.format(secret=secret, folder=tmp_path, results=results))
    assert (sorted(tmp_path.rglob("*")), results.read_bytes()) == before


def test_without_duckdb_the_extra_is_named(
    results: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    assert main(["analyze", str(results), "--sql", "SELECT 1"]) == 1
    assert installed.adding("sql") in capsys.readouterr().err


def test_results_are_asked_and_not_judged(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", str(results)]) == 2
    assert "--sql" in capsys.readouterr().err
