"""What stands on the screen before anything was said."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tui_agent.config.settings import Settings
from tui_agent.console.looks.welcome import branch_of, welcome
from tui_agent.frontend.lines.styled import text_of
from tui_agent.store.summary import SessionRow


def test_it_names_workspace_branch_model_approvals_and_the_last_sessions(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/topic/\x1b[2Jx\n", encoding="utf-8")
    settings = Settings(workspace=tmp_path, model="openai/gpt-5")
    row = SessionRow("s1", title="Fix the cart", runs=1, outcome="partial", failures=3, ended_at=1_000.0)
    text = "\n".join(text_of(line) for line in welcome(settings, [row], now=lambda: 1_300.0).lines(40))
    for part in (str(tmp_path), "on topic/", "openai/gpt-5", "edits and commands ask you first", "F10"):
        assert part in text
    assert "5 min       Fix the cart  partial, 0 of 3 recovered" in text
    assert "\x1b" not in text


def test_it_says_that_a_workspace_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(workspace=tmp_path)
    gone = Settings(workspace=tmp_path / "gone")
    for each in (settings, gone):
        assert "read-only" not in "".join(text_of(line) for line in welcome(each, []).lines(40))
    monkeypatch.setattr("os.access", lambda _, mode: not mode & os.W_OK)
    assert f"{tmp_path}, read-only: edits would fail" in "".join(
        text_of(line) for line in welcome(settings, []).lines(40)
    )


@pytest.mark.parametrize("height", [12, 14, 16, 20, 40])
def test_where_rows_are_few_the_earlier_sessions_are_in_sight(height: int) -> None:
    rows = [SessionRow(f"s{n}", title=f"task {n}", runs=1, ended_at=1_000.0) for n in range(6)]
    shown = welcome(Settings(model="openai/gpt-5"), rows, now=lambda: 1_300.0).lines(height)
    text = "\n".join(text_of(line) for line in shown)
    assert len(shown) <= height
    assert ("task 4" if height >= 20 else "task 2") in text
    for part in ("workspace", "openai/gpt-5", "approvals", "policy", "Enter", "commands", "F1"):
        assert part in text


@pytest.mark.parametrize(
    ("head", "branch"),
    [("ref: refs/heads/main\n", "main"), ("a1b2c3d4e5f6a7b8\n", "a1b2c3d4e5"), (None, "")],
)
def test_the_branch_is_read_without_running_git(tmp_path: Path, head: str | None, branch: str) -> None:
    if head is not None:
        (tmp_path / ".git").mkdir()
        (tmp_path / ".git" / "HEAD").write_text(head, encoding="utf-8")
    assert branch_of(tmp_path / "deep" / "inside") == branch
