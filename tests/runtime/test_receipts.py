"""Receipts: what shows the claims of an answer, from the loop to the result, the journal, the exports, the screens."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, get_args

import pytest

from tests.scripted_model import scripted_model
from tui_agent.config.settings import Settings
from tui_agent.console.panes.block_context import BlockContext
from tui_agent.console.panes.blocks import draw_block
from tui_agent.core import events
from tui_agent.core.fold import fold
from tui_agent.core.projections.entries import OutcomeEntry
from tui_agent.core.receipt_lines import listed
from tui_agent.core.recovery.claims import (
    Kind,
    claimed,
    commands_run,
    figures_measured,
    files_written,
    speaks_of,
)
from tui_agent.core.values import Receipt
from tui_agent.formats.exporters import export_session, transcript_text
from tui_agent.formats.importers.judgement import judged
from tui_agent.frontend.lines.styled import text_of
from tui_agent.headless import run_headless
from tui_agent.store.audit import effects_of
from tui_agent.store.journal import read_journal


def call(tool: str, **arguments: str) -> dict[str, Any]:
    return {"calls": [{"tool": tool, "args": arguments}]}


TURNS = [
    call("write_file", path="sums.py", content="def total(x):\n    return sum(x)\n"),
    call("write_file", path="repro_total.py", content="print(1)\n"),
    call("write_file", path="check.sh", content="echo '41 passed in 1.20s'\n"),
    call("bash", command="sh check.sh"),
    call("write_file", path="README.md", content="It took 0.25 s.\n"),
    call("write_file", path="sums.py", content="def total(x):\n    return sum(map(int, x))\n"),
    call("bash", command="cat README.md"),
    "All 41 tests pass.",
    "All 41 tests pass, mypy is clean, and it took 0.25 s. I created sums.py and lost.py, and I ran `sh check.sh`.",
]
SHOWN = [
    ("stale", "sh check.sh: 41 passed in 1.20s, step 4, 1 change since"),
    ("missing", "“All 41 tests pass, mypy is clean, and it took 0.25 s.”: not shown"),
    ("missing", "lost.py: not shown"),
    ("shown", "0.25 s: It took 0.25 s."),
    ("shown", "written: sums.py"),
    ("stray", "left behind: repro_total.py"),
]


async def test_receipts_reach_the_result_the_journal_the_exports_and_the_screens(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "work").mkdir()
    settings = Settings(
        model="scripted",
        approve="all",
        output="json",
        workspace=tmp_path / "work",
        state_dir=tmp_path / "state",
    )
    ran = run_headless(settings, "Write total in sums.py.", model=scripted_model(TURNS))
    assert await asyncio.wait_for(ran, 60) == 0
    result = json.loads(capsys.readouterr().out)
    tests = result["receipts"][0]
    assert {key: tests[key] for key in ("step", "command", "exit_code", "said", "changed_since")} == {
        "step": 4, "command": "sh check.sh", "exit_code": 0, "said": "41 passed in 1.20s", "changed_since": 1,
    }  # fmt: skip
    recorded = read_journal(tmp_path / "state" / "sessions" / result["session_id"]).events
    state = fold(recorded)
    assert list(listed(state.run.receipts)) == SHOWN
    audited = [one["text"] for one in effects_of(recorded) if one["kind"] == "receipt"]
    assert "stale: sh check.sh: 41 passed in 1.20s, step 4, 1 change since" in audited
    for text in (
        transcript_text(recorded),
        export_session(recorded, "markdown"),
        export_session(recorded, "html"),
    ):
        assert "41 passed in 1.20s, step 4, 1 change since" in text
    outcome = state.conversation.entries[-1]
    assert isinstance(outcome, OutcomeEntry)
    drawn = [text_of(line) for line in draw_block(outcome, 100, BlockContext())]
    assert "△ sh check.sh: 41 passed in 1.20s, step 4, 1 change since" in [line.strip() for line in drawn]


@pytest.mark.parametrize(
    "answer",
    [
        "All tests pass.",
        "Alle 7 Tests laufen erfolgreich durch.",
        "Ich habe `pytest -q` ausgeführt, ohne Fehler.",
        "Les 7 tests passent.",
        "Todas las pruebas pasan.",
        "テストは7件すべて成功しました。",
    ],
)
def test_another_agents_answer_has_its_receipts(answer: str) -> None:
    """Watched and imported runs are judged by the same detectors."""
    tool = {"call_id": "1", "tool": "Bash", "input": {"command": "pytest -q"}, "key": "k"}
    recorded = [
        events.RunStarted(run=1, task="fix it", model="m", policy="combined"),
        events.IterationStarted(iteration=1),
        events.ReplyFinished(
            calls=(events.ToolCall(id="1", name="Bash", arguments='{"command": "pytest -q"}'),)
        ),
        events.ToolSucceeded(**tool, index=0, content="7 passed in 0.10s"),
        events.IterationFinished(iteration=1),
        events.IterationStarted(iteration=2),
        events.ReplyFinished(text=answer),
        events.IterationFinished(iteration=2),
        events.RunFinished(outcome=events.Outcome.ANSWERED, answer=answer),
    ]
    ended = [one for one in judged(recorded) if isinstance(one, events.RunFinished)]
    assert list(listed(ended[0].receipts)) == [
        ("shown", "pytest -q: 7 passed in 0.10s, step 1, nothing changed since")
    ]


@pytest.mark.parametrize(
    ("receipt", "standing", "words"),
    [
        (
            Receipt(kind="tests", command="make test", failed=True, said="1 failed", step=3),
            "failed",
            "make test: 1 failed, step 3, nothing changed since",
        ),
        (
            Receipt(kind="build", command="go build", exit_code=0, step=0, changed_since=2),
            "stale",
            "go build: exit code 0, in an earlier run, 2 changes since",
        ),
        (Receipt(kind="command", claim="make run"), "missing", "make run: not shown"),
        (
            Receipt(kind="command", command="make run", step=2),
            "shown",
            "make run: it ran, step 2, nothing changed since",
        ),
    ],
)
def test_a_receipt_is_a_line(receipt: Receipt, standing: str, words: str) -> None:
    assert (receipt.standing, receipt.in_words) == (standing, words)


@pytest.mark.parametrize(
    ("answer", "kinds"),
    [
        ("All 12 tests pass. The build still fails.", ["tests"]),
        ("The project builds cleanly and ruff is clean.", ["build", "lint"]),
        ("Type checking passes with no errors.", ["lint"]),
        ("The build should pass now. Would the tests pass? mypy may be clean.", []),
        ("```\nAll tests pass\n```", []),
    ],
)
def test_claims_of_checks_are_plain_statements(answer: str, kinds: list[str]) -> None:
    every: tuple[Kind, ...] = get_args(Kind)
    assert [kind for kind in every if claimed(answer, kind)] == kinds


@pytest.mark.parametrize(
    ("answer", "files", "commands", "figures"),
    [
        ("I created `src/a.py` and updated README.", ["src/a.py", "README"], [], []),
        ("I updated `src/a.py` and `src/b.py`.", ["src/a.py", "src/b.py"], [], []),
        ("I created a.py with `touch a.py b.py`.", ["a.py"], [], []),
        ("You can change `a.py`. It was not added to b.py.", [], [], []),
        ("Fixed url.User and Box.xyann in `net/url.go`.", ["net/url.go"], [], []),
        (
            "I ran `pytest -q` and verified it with `make lint`. Run `make` to start.",
            [],
            ["pytest -q", "make lint"],
            [],
        ),
        ("Coverage is 98.5% and it took 1,200 ms, 3x faster.", [], [], ["98.5%", "1,200 ms", "3x"]),
        ("It should take about 3 s. The limit is 5 MB.", [], [], []),
    ],
)
def test_files_commands_and_figures_of_an_answer(
    answer: str, files: list[str], commands: list[str], figures: list[str]
) -> None:
    assert [*files_written(answer)] == files
    assert [*commands_run(answer)] == commands
    assert [*figures_measured(answer)] == figures


@pytest.mark.parametrize(
    ("answer", "kind", "command", "spoken"),
    [
        ("`ruff` ist sauber.", "lint", "ruff check .", True),
        ("`mypy` ist sauber.", "lint", "ruff check .", False),
        ("Ich habe drei Dateien geändert.", "tests", "pytest -q", False),
        ("Tests sind grün.", "build", "go build", False),
        ("```\n`pytest -q`\n```", "tests", "pytest -q", False),
    ],
)
def test_a_check_is_shown_if_an_answer_names_it_in_any_language(
    answer: str, kind: Kind, command: str, spoken: bool
) -> None:
    assert speaks_of(answer, kind, command) is spoken
