"""Hints for failed commands: they know the workspace, are short and quick, and a configuration adds its own."""

from __future__ import annotations

import time
import tomllib
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from tests.tools.box import Box
from tui_agent.config.sections import HintRule, RecoverySettings
from tui_agent.tools import failure_hints
from tui_agent.tools.failure_hints import hint_for

FILES = {
    "src/shop/cart.py": "",
    "tool.py": "",
    "run.sh": "echo",
    "bin/lint": "#!/bin/sh\n",
    "Makefile": "all: x\n\ttrue\ntest-unit:\n\ttrue\nX := 1\n",
    "package.json": '{"scripts": {"test:unit": "x", "build": "y"}}',
    "pyproject.toml": "[tool.pytest.ini_options]\naddopts = '--cov=shop'\n",
}

HINTS = [
    ("python a.py", "ModuleNotFoundError: No module named 'shop.cart'", "PYTHONPATH=src"),
    ("python a.py", "ModuleNotFoundError: No module named 'tool'", "PYTHONPATH=."),
    (
        "python a.py",
        "ModuleNotFoundError: No module named 'yaml'",
        "has 'pyproject.toml': try 'python -m pip install -e .'",
    ),
    ("node a.js", "Error: Cannot find module 'left-pad'", "run 'npm install' first"),
    ("pip install x", "error: externally-managed-environment", "python3 -m venv .venv"),
    ("tool", "bash: line 1: tool: command not found", "has 'tool.py': run it as 'python3 tool.py'"),
    ("lint", "bash: line 1: lint: command not found", "has 'bin/lint': run it as 'bash bin/lint'"),
    ("pytest", "bash: line 1: pytest: command not found", "python3 -m pytest"),
    ("frobnicate", "/bin/sh: 1: frobnicate: not found", "'frobnicate' is not installed here"),
    ("npm run tset", 'npm ERR! Missing script: "tset"', "scripts 'test:unit' or 'build'"),
    ("make tset", "make: *** No rule to make target 'tset'.  Stop.", "targets 'all' or 'test-unit'"),
    ("pytest --cov", "pytest: error: unrecognized arguments: --cov=shop", "'--cov' comes from 'addopts'"),
    ("pytest -z", "pytest: error: unrecognized arguments: --zz", "no option '--zz' without the plugin"),
    ("git merge x", "CONFLICT (content): Merge conflict in src/a.py", "Resolve 'src/a.py'"),
    ("git commit", "error: Committing is not possible because you have unmerged files.", "git merge --abort"),
    ("git log", "fatal: not a git repository (or any parent): .git", "git init"),
    (
        "python -m http.server",
        "OSError: [Errno 98] Address already in use: ('', 8000)",
        "is taken by another process",
    ),
    ("node s", "Error: listen EADDRINUSE: address already in use :::3000", "Port 3000 is taken"),
    (
        "curl localhost:1",
        "curl: (7) Failed to connect to localhost port 1: Connection refused",
        "Nothing listens",
    ),
    ("pip install x", "Temporary failure in name resolution", "no network"),
    ("./run.sh", "bash: line 1: ./run.sh: Permission denied", "run it as 'bash run.sh'"),
    ("./tool.py", "bash: line 1: ./tool.py: Permission denied", "run it as 'python3 tool.py'"),
    ("touch /x", "touch: cannot touch '/x': Permission denied", "inside the workspace"),
    ("cp a b", "cp: error writing 'b': No space left on device", "The disk is full"),
    ("echo 'a", "bash: -c: line 1: unexpected EOF while looking for matching `''", "quotation marks"),
    (
        "python src/crt.py",
        "python: can't open file 'src/crt.py': [Errno 2] No such file or directory",
        "src/shop/cart.py",
    ),
    ("cat cart.py", "cat: cart.py: No such file or directory", "most like it is 'src/shop/cart.py'"),
    (
        "cd /testbed",
        "bash: line 1: cd: /testbed: No such file or directory",
        "'/testbed' is outside the workspace",
    ),
    ("cat workspace/a", "cat: workspace/a: No such file or directory", "leave 'workspace/' out"),
    ("cd src && cat tool.py", "cat: tool.py: No such file or directory", "seen from the workspace's root"),
    ("pytest tests/x.py", "ERROR: file or directory not found: src/shop/crat.py", "src/shop/cart.py"),
    (
        "python -m http.server",
        "The command did not end within 120 s and was stopped",
        "does not end by itself",
    ),
    ("pytest", "The command did not end within 120 s and was stopped", "Do less at once"),
]


@pytest.fixture
def full(box: Box) -> Box:
    for path, content in FILES.items():
        box.put(path, content)
    return box


@pytest.mark.parametrize(("command", "message", "words"), HINTS)
def test_a_hint_says_what_would_help_in_this_workspace(
    full: Box, command: str, message: str, words: str
) -> None:
    text = f"The command failed with exit code 1.\nbefore\n{message}\nafter"
    hint = hint_for("bash", {"command": command}, text, full.workspace)
    assert words in hint
    assert len(hint) <= 500
    assert "\n" not in hint


def test_a_folder_of_the_workspaces_own_name_is_not_taken_for_the_workspace(full: Box) -> None:
    full.put("workspace/a.py", "")
    text = "The command failed with exit code 1.\ncat: workspace/b.py: No such file or directory"
    assert "leave" not in hint_for("bash", {"command": "cat workspace/b.py"}, text, full.workspace)


@pytest.mark.parametrize(
    ("tool", "message"),
    [
        ("bash", "The command failed with exit code 1.\nassert 1 == 2"),
        ("bash", "zzzz: qqqq: No such file or directory"),
        ("read_file", "There is no file 'cart.py' in the workspace. Did you mean 'src/shop/cart.py'?"),
        ("edit_file", "'old' was not found in the file."),
        ("bash", ""),
    ],
)
def test_nothing_is_said_where_nothing_is_known_or_the_error_says_it(
    full: Box, tool: str, message: str
) -> None:
    assert hint_for(tool, {"command": "x"}, message, full.workspace) == ""


def test_hints_of_the_configuration_come_first_and_count_for_every_tool(full: Box) -> None:
    extra = [("relation .* does not exist", "Run 'make migrate' first.")]
    message = 'bash: x: command not found\nERROR:  Relation "users" does not exist'
    for tool in ("bash", "sql"):
        assert hint_for(tool, {"command": "x"}, message, full.workspace, extra) == "Run 'make migrate' first."


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("(a+)+b", "must not repeat a group"),
        ("(a|a)*b", "must not repeat a group"),
        ("(?:a{1,}){2,}", "must not repeat a group"),
        (".*.*.*x", "must not hold more than 2"),
        ("(", "must be a regular expression"),
        ("a" * 201, "at most 200"),
    ],
)
def test_a_pattern_that_could_take_long_is_refused(pattern: str, problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        HintRule(pattern=pattern, hint="x")


@pytest.mark.parametrize(
    "pattern", ["relation .* does not exist", r"\(a\)+", "[*+]{1,3} (x|y)? .*", "a{3}b*"]
)
def test_an_ordinary_pattern_is_taken(pattern: str) -> None:
    settings = RecoverySettings.model_validate({"hints": [{"pattern": pattern, "hint": "x"}]})
    assert settings.hints == (HintRule(pattern=pattern, hint="x"),)
    assert settings.overrides() == {}


@pytest.mark.parametrize(
    "text",
    ["a" * 1_000_000, "a:" * 500_000, "a\n" * 500_000, "'" * 500_000, ("a" * 500 + "\n") * 1_000],
    ids=["one line", "colons", "short lines", "quotes", "long lines"],
)
def test_a_long_error_takes_no_time(full: Box, text: str) -> None:
    rule = HintRule(pattern="a*a*b", hint="x")
    started = time.process_time()
    assert hint_for("bash", {"command": "x"}, text, full.workspace, [(rule.pattern, rule.hint)]) == ""
    assert time.process_time() - started < 3


TABLE: list[dict[str, Any]] = tomllib.loads(
    Path(failure_hints.__file__).with_suffix(".toml").read_text("utf-8")
)["error"]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row["examples"][0][:40])
def test_a_row_of_the_table_takes_its_examples_and_needs_each_pattern(row: dict[str, Any]) -> None:
    """Rows that are said by one function count as one."""
    said = (row.get("hint", ""), row.get("says", ""))
    patterns = failure_hints._table().patterns
    own = [error for made, error in patterns if made == said]
    for line in row["examples"]:
        first = next((error for _, error in patterns if error.search(line)), None)
        assert first in own, f"{line}: taken by {first and first.pattern}"
    alike = [other for other in TABLE if (other.get("hint", ""), other.get("says", "")) == said]
    lines = [line for other in alike for line in other["examples"]]
    assert not [error.pattern for error in own if not any(map(error.search, lines))]
