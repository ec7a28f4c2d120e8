"""Formatters and checkers after an edit: what joins the result, and that none of them can fail it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.runtime.session_harness import start_session
from tests.tools.box import Box
from tui_agent.config.sections import FileCommand
from tui_agent.core import events
from tui_agent.tools.file_checks import FileChecks
from tui_agent.tools.registry import default_tools

GREP = {"shell": 'grep -n TODO "$1" && exit 1 || exit 0'}
"""A checker: what is still to be done is a problem."""


def checked(
    box: Box, formatters: dict[str, Any] | None = None, checkers: dict[str, Any] | None = None
) -> None:
    def made(table: dict[str, Any] | None) -> dict[str, FileCommand]:
        return {glob: FileCommand.model_validate(value) for glob, value in (table or {}).items()}

    box.registry = default_tools(checks=FileChecks(made(formatters), made(checkers)))


async def test_a_formatted_file_is_known_as_it_is_and_shown(box: Box) -> None:
    checked(box, {"*.py": ["sed", "-i", "s/  */ /g", "{path}"]})
    file = box.put("src/a.py", "a = 1\n")
    output = await box.call("edit_file", path="src/a.py", old="1", new="1   +   2")
    assert file.read_text() == "a = 1 + 2\n"
    assert "Then it was formatted, which changed this:" in output.content
    assert "-a = 1   +   2\n+a = 1 + 2" in output.content
    assert "-a = 1\n+a = 1 + 2\n" in output.diff
    await box.call("edit_file", known=output.files, path="src/a.py", old="1 + 2", new="3")
    other = await box.call("write_file", path="a.txt", content="a  b")
    assert "formatted" not in other.content


async def test_a_checker_says_what_is_new(box: Box) -> None:
    checked(box, None, {"*.py": GREP})
    first = await box.call("write_file", path="a.py", content="x\n# TODO one\n")
    assert "reports (exit code 1):\n2:# TODO one" in first.content
    moved = await box.call("edit_file", path="a.py", old="x", new="x\ny")
    assert "reports nothing new; 1 line as before" in moved.content
    second = await box.call("edit_file", path="a.py", old="y", new="# TODO two")
    assert "2:# TODO two\n1 more line as before." in second.content
    assert "TODO one" not in second.content
    clean = await box.call("write_file", path="a.py", content="z\n")
    assert clean.content.endswith("finds nothing any more.")
    assert (await box.call("write_file", path="a.py", content="zz\n")).content.count("\n") == 0


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["no-such-program-of-ours", "{path}"], "did not check the file: there is no such program"),
        ({"shell": "sleep 60", "timeout": 0.3}, "did not end within 0.3 s and was stopped"),
        ({"shell": "exit 3"}, "found something wrong (exit code 3) and did not say what"),
        ({"shell": "seq 100000; exit 1"}, "characters left out here; the whole is in"),
        ({"shell": "rm a.py; exit 0"}, "Created a.py"),
    ],
)
async def test_a_checker_that_does_not_work_fails_no_edit(box: Box, command: Any, words: str) -> None:
    checked(box, None, {"*.py": command})
    output = await box.call("write_file", path="a.py", content="x\n")
    assert words in output.content
    assert output.changed == ("a.py",)
    assert len(output.content) < 5_000


async def test_a_formatter_and_a_checker_get_the_name_that_the_file_has(box: Box) -> None:
    name = "a\u202f b.py"
    checked(box, {"*.py": {"shell": 'echo ok > "$1"'}}, {"*.py": {"shell": 'cat "$1"; exit 1'}})
    output = await box.call("write_file", path=name, content="x\n")
    assert (box.root / name).read_text() == "ok\n"
    assert output.content.endswith("\nok")


async def test_a_formatter_that_removes_or_breaks_fails_no_edit(box: Box) -> None:
    checked(box, {"*.py": {"shell": 'rm "$1"; echo broken; exit 2'}})
    output = await box.call("write_file", path="a.py", content="x\n")
    assert "did not format the file: exit code 2.\nbroken" in output.content


async def test_a_name_is_no_option_and_no_command(box: Box) -> None:
    checked(box, None, {"*": ["wc", "-c", "{path}"], "**/*": {"shell": 'wc -c "$1" >&2; exit 1'}})
    output = await box.call("write_file", path="-x; touch gone $(touch gone)", content="xyz")
    assert "3 ./-x; touch gone $(touch gone)" in output.content
    assert not (box.root / "gone").exists()


async def test_the_commands_of_the_settings_run_in_a_session(tmp_path: Path) -> None:
    turn = {"calls": [{"tool": "write_file", "args": {"path": "a.py", "content": "# TODO it\n"}}]}
    live = await start_session(tmp_path, [turn, "done"], diagnostics={"*.py": GREP})
    await live.run()
    (written,) = live.of(events.ToolSucceeded)
    assert "1:# TODO it" in written.content
    await live.close()
