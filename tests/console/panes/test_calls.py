"""How a call is named in one line: its main argument first, nothing of the others lost."""

from __future__ import annotations

from typing import Any

import pytest

from tui_agent.console.panes.calls import short_input


@pytest.mark.parametrize(
    ("tool", "arguments", "line"),
    [
        ("bash", {"command": "make\ntest"}, "make test"),
        ("grep", {"pattern": "x", "path": "src"}, "x in src"),
        ("Bash", {"command": "mix test", "timeout": 30}, 'mix test {"timeout": 30}'),
        ("Grep", {"path": "lib", "pattern": "def"}, 'def {"path": "lib"}'),
        ("Read", {"file_path": "/src/a.py"}, "/src/a.py"),
        ("db__query", {"table": "t", "limit": 3}, '{"limit": 3, "table": "t"}'),
        ("Bash", {"command": ["ls"]}, '{"command": ["ls"]}'),
        ("Bash", {"command": ""}, '{"command": ""}'),
    ],
)
def test_the_argument_that_tells_most_comes_first(tool: str, arguments: dict[str, Any], line: str) -> None:
    assert short_input(tool, arguments) == line


@pytest.mark.parametrize(
    ("raw", "line"),
    [
        ('{"command": "make test"}', "make test"),
        ('{"command": "make', '{"command": "make'),
        ("[1]", "[1]"),
        ("{}", ""),
        ("[" * 100_000, "[" * 200 + " … " + "[" * 200),
    ],
)
def test_a_call_that_nobody_has_parsed_yet_is_named_all_the_same(raw: str, line: str) -> None:
    assert short_input("bash", {}, raw) == line
