"""Who is asked, and what "for this session" covers."""

from __future__ import annotations

import pytest

from tui_agent.agent.approvals import allowed_by, needs_approval, session_rule
from tui_agent.events import Approval
from tui_agent.tools.registry import default_tools
from tui_agent.tools.tool import Effect

TABLE = [
    (Approval.ASK, {Effect.WRITE, Effect.COMMAND}),
    (Approval.WRITES, {Effect.COMMAND}),
    (Approval.ALL, set()),
]


@pytest.mark.parametrize(("approve", "asking"), TABLE)
def test_which_effects_ask(approve: Approval, asking: set[Effect]) -> None:
    assert {effect for effect in Effect if needs_approval(effect, approve)} == asking


COVERS = [
    ("pytest -q", "pytest tests", True),
    ("pytest -q", "pytest; rm -rf .", False),
    ("pytest -q", "pytest $(rm x)", False),
    ("pytest -q", "pytest\nrm x", False),
    ("pytest -q", "ruff check", False),
    ("rm a.txt", "rm b.txt", False),
    ("rm a.txt", "rm a.txt", True),
    ("python a.py", "python b.py", False),
    ("git status", "git push --force", False),
    ("/bin/rm a", "/bin/rm b", False),
]


@pytest.mark.parametrize(("allowed", "asked", "covered"), COVERS)
def test_a_command_allowed_for_the_session_covers_only_harmless_relatives(
    allowed: str, asked: str, covered: bool
) -> None:
    bash = default_tools().get("bash")
    assert bash is not None
    rule, _ = session_rule(bash, {"command": allowed})
    assert allowed_by(frozenset({rule}), bash, {"command": asked}) is covered


def test_one_file_edit_allowed_for_the_session_covers_every_file_edit() -> None:
    tools = default_tools()
    write, edit = tools.get("write_file"), tools.get("edit_file")
    assert write is not None
    assert edit is not None
    rule, words = session_rule(write, {"path": "a", "content": ""})
    assert allowed_by(frozenset({rule}), edit, {"path": "b", "old": "x", "new": "y"})
    assert "every file edit" in words
