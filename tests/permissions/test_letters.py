"""Letters beyond ASCII: the grammar's scanner reads outside its memory over some (`{` with U+31860); it gets none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import tree_sitter

from tui_agent.permissions.commands import Reading, read_command
from tui_agent.shell_syntax import parse


def words_of_structure(command: str) -> list[list[str]]:
    return [list(simple.words) for simple in parse(command).simple_commands()]


def words(reading: Reading) -> list[list[str]]:
    return [[word.text for word in command.words] for command in reading.commands]


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("cat 'ü b' \"ö\" ä\\ é", [["cat", "ü b", "ö", "ä é"]]),
        ("ls 日本/*.py && rm -rf 日本", [["ls", "日本/*.py"], ["rm", "-rf", "日本"]]),
        ("é=1 ls", [["é=1", "ls"]]),  # no name of a variable: bash looks for a program
    ],
)
def test_they_are_read_as_they_stand(command: str, found: list[list[str]]) -> None:
    reading = read_command(command)
    assert not reading.trouble
    assert words(reading) == found
    assert words_of_structure(command) == found


def test_one_that_looks_like_another_ends_no_here_document() -> None:
    assert read_command("cat <<é\nè\n'\né\nrm -rf x #'").unread


@pytest.mark.parametrize("read", [lambda text: words(read_command(text)), words_of_structure])
def test_the_parser_gets_none(
    read: Callable[[str], list[list[str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[bytes] = []
    parser = tree_sitter.Parser

    class Recorded:
        def __init__(self, language: tree_sitter.Language) -> None:
            self._inner = parser(language)

        def parse(self, source: Any, **options: Any) -> tree_sitter.Tree:
            given.append(source(0, None))
            return self._inner.parse(source, **options)

    monkeypatch.setattr(tree_sitter, "Parser", Recorded)
    assert read("echo 日本 é\u0301 {\U00031860") == [["echo", "日本", "é\u0301", "{\U00031860"]]
    assert given
    assert all(text.isascii() for text in given)
