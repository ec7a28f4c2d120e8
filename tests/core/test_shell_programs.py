"""Which program a command runs behind those that merely wrap it."""

from __future__ import annotations

import time

import pytest

from tui_agent.core.recovery.writes import Writes, program_of, writes
from tui_agent.shell_programs import shell_code, unwrapped, working

UNWRAPPED = {
    "nice -n 5 timeout -k 3 60 pytest -q": "pytest -q",
    "sudo -u me A=1 env -i B=2 pytest": "pytest",
    "poetry run pytest": "poetry run pytest",
    "./timeout 5 pytest": "./timeout 5 pytest",
    "timeout 5": "",
    "timeout -v --preserve-status -f 60 pytest": "pytest",
    "exec -a name pytest": "pytest",
}
WORKING = {
    "poetry run pytest": "pytest",
    "poetry install": "poetry install",
    "uv run --with x -p 3.12 python -W error -m pytest -m slow": "pytest -m slow",
    "python3 run.py -m pytest": "python3 run.py -m pytest",
    "python3 -c pass -m pytest": "python3 -c pass -m pytest",
    "python3 -m": "python3 -m",
    "xvfb-run -a npx --yes jest -t a": "jest -t a",
    "coverage run -m pytest": "pytest",
    "coverage report": "coverage report",
}


@pytest.mark.parametrize(("command", "behind"), UNWRAPPED.items())
def test_the_program_that_the_exit_code_is_of(command: str, behind: str) -> None:
    assert " ".join(unwrapped(command.split())) == behind


@pytest.mark.parametrize(("command", "behind"), WORKING.items())
def test_the_program_that_does_the_work(command: str, behind: str) -> None:
    assert " ".join(working(command.split())) == behind


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["bash", "-lc", "make"], "make"),
        (["sh", "-e", "-c", "make"], "make"),
        (["sh", "a.sh"], None),
        (["bash", "-c"], None),
        (["ls", "-c", "a"], None),
    ],
)
def test_what_a_shell_is_given_as_text(words: list[str], code: str | None) -> None:
    assert shell_code(words) == code


@pytest.mark.parametrize("wrapped", ["sudo -u me", "coverage run -m", "conda run -n x", "python -bb -m"])
def test_what_runs_a_checker_writes_no_more_than_the_checker(wrapped: str) -> None:
    assert (program_of(f"{wrapped} pytest"), writes(f"{wrapped} pytest")) == ("pytest", Writes.NOTHING)


def test_many_wrappers_take_no_time() -> None:
    before = time.process_time()
    working(["npx", "nice", "-n", "1"] * 2_000)
    assert time.process_time() - before < 0.5
