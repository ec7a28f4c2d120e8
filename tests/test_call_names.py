"""How a call is named in one line: its main argument first, nothing of the others lost."""

from __future__ import annotations

from typing import Any

import pytest

from tui_agent.call_names import short_input, telling_arguments


@pytest.mark.parametrize(
    ("tool", "arguments", "line"),
    [
        ("bash", {"command": "make\ntest"}, "make test"),
        ("grep", {"pattern": "x", "path": "src"}, "x in src"),
        ("Bash", {"command": "mix test", "timeout": 30}, "mix test timeout=30"),
        ("Grep", {"path": "lib", "pattern": "def"}, "def path=lib"),
        ("Read", {"file_path": "/src/a.py"}, "/src/a.py"),
        ("db__query", {"table": "t", "limit": 3}, "table=t limit=3"),
        ("open", {"arguments": "a.py"}, "a.py"),
        (
            "book",
            {"by": "a b", "legs": ["x"] * 50},
            'by="a b" legs=["x", "x", "x", "x", … "x", "x", "x", "x"]',
        ),
        ("Bash", {"command": ["ls"]}, 'command=["ls"]'),
        ("Bash", {"command": ""}, 'command=""'),
    ],
)
def test_the_argument_that_tells_most_comes_first(tool: str, arguments: dict[str, Any], line: str) -> None:
    assert short_input(tool, arguments) == line


def test_calls_that_look_alike_are_told_apart_by_the_arguments_that_differ() -> None:
    flights = [{"date": "2024-05-27", "number": number} for number in range(9)]
    calls: list[tuple[str, dict[str, Any]]] = [
        ("book", {"cabin": "business", "flights": flights, "payment": "card_1"}),
        ("book", {"cabin": "business", "flights": flights, "payment": "card_2", "bags": 1}),
        ("edit_file", {"path": "a.py", "old": "x", "new": "y"}),
        ("edit_file", {"path": "a.py", "old": "z", "new": "y"}),
        ("edit_file", {"path": "b.py", "old": "z", "new": "y"}),
    ]
    told = zip(calls, telling_arguments(calls), strict=True)
    lines = [short_input(tool, arguments, telling=telling) for (tool, arguments), telling in told]
    assert lines[0].startswith("payment=card_1 cabin=business flights=[")
    assert lines[1].startswith("payment=card_2 bags=1 cabin=business")
    assert lines[2:] == ["a.py old=x", "a.py old=z", "b.py"]


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
