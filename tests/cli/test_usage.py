"""What the command line understands, and what it says to what it does not."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tui_agent import __version__
from tui_agent import cli as front_door
from tui_agent.cli import COMMANDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from .conftest import CommandLine, Ended


def test_the_version_is_reported(cli: CommandLine) -> None:
    ended = cli.process("--version")
    assert (ended.code, ended.out.strip()) == (0, f"agent-tui {__version__}")


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_every_command_has_help_with_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert front_door.main([*command.split(), "--help"]) == 0
    said = capsys.readouterr().out
    assert "example:" in said
    assert f"agent-tui {command}".strip() in said.split("example:")[1]


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        (["--model", "run", "run", "--output", "yaml"], "run"),
        (["--output", "json", "run", "--on-escalation", "run"], "run"),
        (["--print", "replay", "--speed", "no"], "replay"),
        (["--model=x", "replay", "--speed", "no"], "replay"),
        (["--step", "resume", "--no"], "resume"),
        (["--format", "text", "sessions", "--no"], "sessions"),
    ],
)
def test_options_may_stand_before_the_command(
    arguments: list[str], command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert front_door.main(arguments) == 2
    assert f"agent-tui {command}" in capsys.readouterr().err


def test_a_word_with_a_capital_is_a_task_and_no_slip(monkeypatch: pytest.MonkeyPatch) -> None:
    from tui_agent.cli import console

    began: list[str] = []
    monkeypatch.setattr(console, "main", lambda arguments: began.extend(arguments) or 0)
    for word in ("Explain", "Resume", "Document"):
        assert front_door.main([word]) == 0
    assert began == ["Explain", "Resume", "Document"]


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["sesions"], ["did you mean `agent-tui sessions`", "agent-tui -- sesions"]),
        (["--model", "m", "rn"], ["did you mean `agent-tui run`"]),
        (["import", "run.traj"], ["did you mean `agent-tui sessions import`", "agent-tui -- import"]),
        (["fix", "the", "tests"], ["one word too many", "in quotes"]),
        (["serve", "fix it"], ["one word too many, 'fix it'.\n`agent-tui serve --help` shows what it takes"]),
        ([""], ["the task is empty"]),
        (["run"], ["there is no task", "agent-tui run -"]),
        (["run", "  "], ["the task is empty"]),
        (["run", "x", "--aprove", "all"], ["there is no option --aprove", "did you mean --approve?"]),
        (
            ["run", "x", "--max-steps", "3"],
            ["there is no option --max-steps; did you mean --max-iterations?"],
        ),
        (["x", "--max_turns=3"], ["did you mean --max-iterations?"]),
        (["run", "x", "--yolo"], ["did you mean --approve all?"]),
        (["x", "--dangerously-skip-permissions"], ["did you mean --approve all?"]),
        (["run", "x", "--cwd", "."], ["did you mean --workspace?"]),
        (["run", "x", "--max-budget-usd", "2"], ["did you mean --max-cost?"]),
        (["run", "x", "--output-format", "json"], ["did you mean --output?"]),
        (["x", "--output-format", "json"], ["there is no option --output-format.\n"]),
        (["-p", "--print"], ['did you mean `agent-tui run "TASK"`?']),
        (["--continue"], ["did you mean `agent-tui resume`?"]),
        (["x", "--nothing-like-it"], ["there is no option --nothing-like-it.\n"]),
        (["--completions", "powershell"], ["is not one of bash, zsh, fish"]),
        (["run", "x", "--policy", "forgee"], ["is not one of forge", "did you mean forge?"]),
        (["run", "x", "--max-iterations", "many"], ["'many' is not a whole number"]),
        (["run", "x", "--max-iterations", "0"], ["'0' is not a whole number from 1"]),
        (["run", "x", "--timeout", "-1"], ["--timeout"]),
        (["run", "x", "--max-cost", "nan"], ["'nan' is not a number above 0"]),
        (["run", "x", "--output", "yaml"], ["is not one of text, json, jsonl"]),
        (["run", "x", "--model"], ["--model: expected one argument"]),
        (["demo", "nothing-like-it"], ["there is no demo 'nothing-like-it'", "There are: "]),
    ],
)
def test_a_slip_is_reported_with_what_would_be_right(
    arguments: list[str], parts: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert front_door.main(arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    for part in parts:
        assert part in said.err


def test_a_usage_error_ends_the_process_with_exit_code_2(
    cli: CommandLine, refused: Callable[[Ended, int], str]
) -> None:
    assert "no option --aprove" in refused(cli.process("run", "x", "--aprove"), 2)


@pytest.mark.parametrize("arguments", [[], ["fix the tests"], ["demo"], ["resume"], ["--", "run"]])
def test_the_console_refuses_a_pipe_before_anything_is_loaded(
    cli: CommandLine, refused: Callable[[Ended, int], str], arguments: list[str]
) -> None:
    said = refused(cli.process(*arguments), 2)
    assert "needs a terminal" in said
    assert "agent-tui --plain" in said
    assert "agent-tui run" in said


def test_parsing_imports_nothing_heavy() -> None:
    script = (
        "import sys\n"
        "from tui_agent import cli\n"
        "cli.main(['--help'])\n"
        "from tui_agent.cli import console, demo, replay, resume, run, doctor\n"
        "[command.parser() for command in (console, demo, replay, resume, run, doctor)]\n"
        "heavy = {'pydantic', 'litellm', 'textual', 'asyncio', 'platformdirs'}\n"
        "print('HEAVY', sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("HEAVY []")
