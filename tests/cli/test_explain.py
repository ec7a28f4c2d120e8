"""`agent-tui explain`: a rule in the terminal, all of them, and what happens with one that does not exist."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tui_agent import cli
from tui_agent.rule_book import book_path, read_book

RULES = list(read_book(book_path()))


def test_a_rule_is_printed_with_its_reason_source_code_and_case(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["explain", "attempts.escalate"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("attempts.escalate\n\n")
    for label in ("Why:", "Key:", "Source:", "Code:", "Case:"):
        assert f"\n{label}" in printed
    assert "attempts_limit" in printed
    assert "](" not in printed


def test_the_list_has_a_line_for_each_rule(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["explain", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == RULES
    assert all(len(line.split()) > 3 for line in lines)


@pytest.mark.parametrize(
    ("word", "nearest"),
    [("attempts.escalat", "attempts.escalate"), ("ring", "ring.stop"), ("STREAK.stopp", "streak.stop")],
)
def test_an_unknown_rule_names_the_nearest(
    word: str, nearest: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["explain", word]) == 2
    errors = capsys.readouterr().err
    assert nearest in errors
    assert "explain list" in errors


def test_something_far_from_every_rule_gets_the_form_of_an_id(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["explain", "%%%"]) == 2
    assert "attempts.escalate" in capsys.readouterr().err


def test_lines_fit_a_narrow_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    cli.main(["explain", "window.cut"])
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 60


def test_nothing_heavy_is_imported() -> None:
    program = (
        "import sys; from tui_agent.cli import main; main(['explain', 'ring.stop']); "
        "sys.exit(bool({'textual', 'pydantic', 'litellm'} & sys.modules.keys()))"
    )
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
