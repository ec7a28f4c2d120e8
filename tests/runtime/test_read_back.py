"""What a result says of a file is compared with the file; only what no line bears out is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_agent.runtime.read_back import comparable, contradiction
from tui_agent.tools.tool import ToolOutput

HELD = "# levels\nlevel 9\nlimit = 10\n"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "app.conf").write_text(HELD, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("tool", "arguments", "output"),
    [
        ("edit_file", {"path": "app.conf", "old": "limit = 10", "new": "limit = 50"}, "Replaced 1."),
        ("write_file", {"path": "app.conf", "content": "limit = 50\n"}, "Wrote."),
        ("write_file", {"path": "new.conf", "content": "limit = 50\n"}, "Wrote."),
        ("mcp__code__search", {"query": "level"}, "app.conf:2:level 3"),
        ("bash", {"command": "grep -rn level ."}, "app.conf:2:level 3"),
        ("bash", {"command": "cat app.conf"}, "level 3\n"),
        ("mcp__fs__read_text", {"path": "app.conf"}, "1\tlevel 3\n2\tlimit = 20\n"),
    ],
)
def test_what_no_line_of_the_file_bears_out_is_said(
    workspace: Path, tool: str, arguments: dict[str, Any], output: str
) -> None:
    assert comparable(tool, arguments, ToolOutput(output))
    found = contradiction(workspace, tool, arguments, ToolOutput(output))
    assert found is not None
    assert found.wrote is (tool in {"edit_file", "write_file"})
    assert "level 9" not in found.found


@pytest.mark.parametrize(
    ("tool", "arguments", "output"),
    [
        ("edit_file", {"path": "app.conf", "old": "limit = 5", "new": "limit = 10"}, "Replaced 1."),
        ("edit_file", {"path": "app.conf", "old": "limit = 5", "new": "limit=50"}, "Replaced; formatted."),
        ("edit_file", {"path": "app.conf", "old": "# levels", "new": ""}, "Replaced 1."),
        ("write_file", {"path": "app.conf", "content": "level 9\nlimit=10\n"}, "Wrote; formatted."),
        ("bash", {"command": "make"}, "app.conf:2: error: level 3"),
        ("bash", {"command": "grep -n level app.conf | sed s/9/3/"}, "app.conf:2:level 3"),
        ("bash", {"command": "cat app.conf other.conf"}, "level 3"),
        ("mcp__lint__check", {"path": "app.conf"}, "app.conf:2:level 3"),
        ("mcp__code__search", {"query": "level"}, "app.conf:7:level 9\napp.conf:9:level 3"),
        ("mcp__code__search", {"query": "level"}, "../elsewhere.conf:2:level 3"),
        ("mcp__code__search", {"query": "level"}, "gone.conf:2:level 3"),
    ],
)
def test_what_may_be_right_is_not(workspace: Path, tool: str, arguments: dict[str, Any], output: str) -> None:
    said = ToolOutput(output)
    assert not comparable(tool, arguments, said) or contradiction(workspace, tool, arguments, said) is None


def test_a_result_that_names_the_bytes_it_read_is_believed(workspace: Path) -> None:
    output = ToolOutput("1\tlevel 3", files={"app.conf": "0" * 64})
    assert not comparable("read_file", {"path": "app.conf"}, output)


@given(
    st.sampled_from(["edit_file", "write_file", "grep", "read_file", "bash", "mcp__x__search"]),
    st.dictionaries(
        st.sampled_from(["path", "old", "new", "content", "command", "file_path"]),
        st.one_of(st.text(), st.none(), st.integers(), st.lists(st.text())),
    ),
    st.text(),
)
def test_no_arguments_and_no_output_break_it(tool: str, arguments: dict[str, Any], output: str) -> None:
    if comparable(tool, arguments, ToolOutput(output)):
        contradiction(Path("/nonexistent"), tool, arguments, ToolOutput(output))
