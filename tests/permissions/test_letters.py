"""Letters beyond ASCII: the grammar's parser, a native library, breaks down at times over them, and so gets none."""

from __future__ import annotations

from typing import Any

import pytest
import tree_sitter

from tui_agent.permissions.commands import Reading, read_command


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


def test_one_that_looks_like_another_ends_no_here_document() -> None:
    assert read_command("cat <<é\nè\n'\né\nrm -rf x #'").unread


def test_the_parser_gets_none(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[bytes] = []
    parser = tree_sitter.Parser

    class Recorded:
        def __init__(self, language: tree_sitter.Language) -> None:
            self._inner = parser(language)

        def parse(self, source: Any, **options: Any) -> tree_sitter.Tree:
            given.append(source(0, None))
            return self._inner.parse(source, **options)

    monkeypatch.setattr(tree_sitter, "Parser", Recorded)
    assert words(read_command("echo 日本 é\u0301 \U0001f600")) == [["echo", "日本", "é\u0301", "\U0001f600"]]
    assert given
    assert all(text.isascii() for text in given)
