"""Which errors are the same trouble with another name, and that any text has a shape, soon and short."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_agent.core.recovery.error_shape import error_shape
from tui_agent.core.recovery.signature import normalise

TRACEBACK = (
    "exit code 1\nTraceback (most recent call last):\n"
    '  File "{path}", line {line}, in {function}\n'
    "    {source}\n"
    "{last}"
)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "exit code 1\ncat: a.txt: No such file or directory",
            "exit code 1\ncat: /b/c: No such file or directory",
        ),
        (
            "exit code 127\nbash: line 1: rg: command not found",
            "exit code 127\nbash: line 3: fd: command not found",
        ),
        ("Table 'world.cities' doesn't exist", "Table 'shop.orders' doesn't exist"),
        ("Unknown column 'a.b' in 'where clause'", 'Unknown column "c" in "field list"'),
        (
            "right syntax to use near 'WHERE name = 'x' LIMIT 1' at line 1",
            "right syntax to use near '<table>' at line 12",
        ),
        (
            "Error: flight HAT223 not available on date 2024-05-14",
            "Error: flight HAT9 not available on date 2024-06-01",
        ),
        ("python3: No module named pytest", "/usr/bin/python3: No module named numpy.linalg"),
        (
            TRACEBACK.format(path="/a/b.py", line=3, function="f", source="f(x)", last="KeyError: 'a'"),
            TRACEBACK.format(
                path="c.py", line=99, function="<module>", source="y = d['b']", last="KeyError: 'b'"
            ),
        ),
        ("missing: [a_b, c_d]", "missing: [e_f]"),
    ],
)
def test_errors_that_differ_in_names_paths_and_numbers_have_one_shape(one: str, other: str) -> None:
    assert error_shape(one) == error_shape(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("cat: a.txt: No such file or directory", "cat: a.txt: Permission denied"),
        ("KeyError: 'a'", "ValueError: 'a'"),
        ("sqlite3.OperationalError: x", "sqlite3.IntegrityError: x"),
        (
            "Traceback (most recent call last): KeyError: 'a'",
            "Traceback (most recent call last): TypeError: 'a'",
        ),
        ("Table 'a.b' doesn't exist", "Unknown column 'a.b' in 'where clause'"),
        ("Error: not enough seats on flight HAT229", "Error: flight HAT229 not available on date 2024-05-14"),
        ("", "exit code 1"),
    ],
)
def test_errors_that_say_something_else_have_different_shapes(one: str, other: str) -> None:
    assert error_shape(one) != error_shape(other)


@given(st.text())
def test_any_text_has_a_short_shape_of_one_line(message: str) -> None:
    shape = error_shape(message)
    assert len(shape) <= 200
    assert "\n" not in shape


@pytest.mark.parametrize(
    "message",
    [
        "a" * 1_000_000,
        "a." * 500_000,
        "'" * 100_000,
        "near '" * 20_000,
        "<*>" * 100_000,
        "_" * 100_000 + "/",
        'File "' * 100_000,
        ' File "x", line 1\n    y\n' * 50_000,
        "x: " * 100_000,
        "Aa" * 100_000,
        "`" * 99_999,
        "\ud800 /" * 10_000,
    ],
    ids=lambda message: f"{message[:6]!r}",
)
def test_the_shape_of_hostile_text_takes_milliseconds(message: str) -> None:
    started = time.process_time()
    assert len(error_shape(message)) <= 200
    assert time.process_time() - started < 0.25


def test_a_syntax_error_has_one_shape_and_one_signature_whatever_command_the_shell_quotes() -> None:
    message = "exit code 2\nbash: -c: line 1: syntax error near unexpected token `('\nbash: -c: line 1: `{command}'\n"
    texts = [message.format(command=command) for command in ("echo (a)", "awk '{print $1}' f | sort (x)")]
    assert len({error_shape(text) for text in texts}) == 1
    assert len({normalise(text) for text in texts}) == 1
    assert "unexpected token" in normalise(texts[0])
