"""Names stand apart from the classes they belong to, and are the same wherever they are read."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tui_agent.core.names import POLICIES
from tui_agent.core.recovery.policy import PRESETS

ROOT = Path(__file__).resolve().parents[1]

_KEYS = re.compile(r"`[^`]*`|'\w+'|<[^>]*>|\{[^}]*\}")
_ITERATION = re.compile(r"(?<![\w./-])iterations?(?![\w./-]\w)", re.IGNORECASE)


def test_the_names_of_policies_are_those_of_the_presets() -> None:
    assert tuple(PRESETS) == POLICIES
    assert [policy.name for policy in PRESETS.values()] == list(POLICIES)


def prose() -> Iterator[tuple[str, str]]:
    """Texts of several words in code, no docstrings, and lines of documents and templates, each with its place."""
    for path in (ROOT / "tui_agent").rglob("*.py"):
        source = path.read_text("utf-8")
        if not _ITERATION.search(source):
            continue
        nodes = list(ast.walk(ast.parse(source)))
        documents = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        for node in nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documents:
                yield f"{path.name}:{node.lineno}", _KEYS.sub("", node.value) if " " in node.value else ""
    for path in (ROOT / "README.md", *(ROOT / "docs").glob("[CRP]*.md"), *(ROOT / "tui_agent").rglob("*.j2")):
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            yield f"{path.name}:{number}", _KEYS.sub("", line)


def test_what_people_and_models_read_calls_a_step_a_step() -> None:
    """Forge's note is held to the letter."""
    found = [
        place for place, text in prose() if _ITERATION.search(text) and "The previous iteration" not in text
    ]
    assert not found
