"""The tables of programs: each row says by examples what it lets run and what it does not."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import tui_agent.permissions
from tui_agent.core.names import Decision
from tui_agent.permissions.commands import SimpleCommand, read_command
from tui_agent.permissions.coverage import covers
from tui_agent.permissions.programs import Program, known_program, tables
from tui_agent.permissions.readers import reads_only
from tui_agent.permissions.risky import risks, risky_words
from tui_agent.permissions.rules import parse_rule

FOLDER = Path(tui_agent.permissions.__file__).parent


def rows() -> Iterator[tuple[str, str, str]]:
    """Table, call that is covered, call that is not."""
    for table, given in tomllib.loads((FOLDER / "programs.toml").read_text("utf-8")).items():
        for row in given.values() if table != "groups" else ():
            for each in (table, *row.get("also", ())):
                yield each, *row["examples"]


def simple(command: str, table: str) -> SimpleCommand:
    if table == "modules" and not command.startswith("python3 -m "):
        command = f"python3 -m {command}"
    reading = read_command(command)
    assert not reading.trouble
    (found,) = reading.commands
    return found


@pytest.mark.parametrize(("table", "covered", "left_out"), rows())
def test_a_row_covers_its_first_example_and_not_its_second(table: str, covered: str, left_out: str) -> None:
    for command, expected in ((covered, True), (left_out, False)):
        read = simple(command, table)
        if table == "reads":
            assert (reads_only(read) is not None) is expected, command
            continue
        known = known_program(read.words)
        assert known is not None
        rule = parse_rule(Decision.ALLOW, f"bash({known[0]} *)", "test")
        assert covers(rule, read, lambda _: True) is expected, command


def test_groups_of_options_are_read_within_groups() -> None:
    """`git log` takes the options of `git diff`, by a group within a group; no mark of a group is left."""
    log = tables().reads["git log"]
    assert log.options is not None
    assert {"--graph", "--stat", "--no-ext-diff"} <= log.options
    assert not [name for name, program in all_programs() for word in program.options or () if "@" in word]


def risky_rows() -> Iterator[tuple[str, str, str]]:
    """Program, call that asks under a rule for all of its calls, call that does not."""
    for names, row in tomllib.loads((FOLDER / "risky.toml").read_text("utf-8")).items():
        yield names.partition(", ")[0], *row["examples"]


@pytest.mark.parametrize(("program", "asks", "runs"), risky_rows())
def test_a_risky_word_asks_under_a_rule_for_all_calls(program: str, asks: str, runs: str) -> None:
    assert program in risks()
    assert risky_words(simple(asks, "rules"))
    assert not risky_words(simple(runs, "rules"))


def all_programs() -> Iterator[tuple[str, Program]]:
    for table in tables():
        yield from table.items()
