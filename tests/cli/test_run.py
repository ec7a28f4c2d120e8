"""`agent-tui run`: what it prints, how it ends, and that nothing ends it badly."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from .conftest import CommandLine, Ended

FIELDS = [
    "session_id",
    "outcome",
    "reason",
    "answer",
    "policy",
    "model",
    "iterations",
    "model_calls",
    "model_retries",
    "tool_calls",
    "tool_errors",
    "recoveries",
    "coherence_violations",
    "escalations",
    "confidence",
    "strategy",
    "uncertainties",
    "ring",
    "streak",
    "attempts",
    "usage",
    "duration_s",
    "rule",
    "failures",
    "model_faults",
    "recovered_same_call",
    "recovered_worked_round",
    "unrecovered",
    "next_step_chance",
    "files_changed",
    "receipts",
]

FULL = Path("/dev/full")

ANSWER = '[[turns]]\ntext = "It is done."\nusage = { prompt = 12, completion = 3, cost = 0.5 }\n'
LOOK = '[[turns]]\ncalls = [{ tool = "list_dir", args = {} }]\n'
LOOK_ON = LOOK + "repeat = 1000\n"
MISS = '[[turns]]\ncalls = [{ tool = "read_file", args = { path = "missing.txt" } }]\nrepeat = 1000\n'
WRITE = '[[turns]]\ncalls = [{ tool = "write_file", args = { path = "new.txt", content = "new" } }]\n'
TOUCH = '[[turns]]\ncalls = [{ tool = "bash", args = { command = "touch touched.txt" } }]\n'
HANG = '[[turns]]\ncalls = [{ tool = "bash", args = { command = "sleep 600" } }]\n'
ASK = '[[turns]]\ncalls = [{ tool = "ask_operator", args = { question = "Which?" } }]\n'


def result_of(ended: Ended) -> dict[str, Any]:
    result = json.loads(ended.out)
    assert isinstance(result, dict)
    return result


def journal_of(cli: CommandLine) -> list[dict[str, Any]]:
    (file,) = cli.state.glob("sessions/*/events.jsonl")
    return [json.loads(line) for line in file.read_text().splitlines()]


@pytest.mark.process
def test_json_is_one_object_with_the_fields_of_the_contract_and_nothing_else(cli: CommandLine) -> None:
    ended = cli.process("run", "do it", "--model", cli.scenario(LOOK + ANSWER), "--output", "json")
    assert ended.code == 0
    assert ended.out.count("\n") == 1
    result = result_of(ended)
    assert list(result) == FIELDS
    assert result["outcome"] == "answered"
    assert result["answer"] == "It is done."
    assert result["ring"] == [None] * 5
    usage = {
        *("prompt_tokens", "completion_tokens", "cached_tokens", "cache_write_tokens"),
        *("cost_usd", "unpriced_calls"),
    }
    assert set(result["usage"]) == usage
    assert (result["rule"], result["failures"], result["files_changed"]) == (None, 0, [])
    assert (result["iterations"], result["model_calls"], result["tool_calls"]) == (2, 2, 1)


def test_notices_go_to_standard_error_where_standard_output_is_for_a_program(cli: CommandLine) -> None:
    skill = cli.workspace / ".agents" / "skills" / "broken" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("no head\n")
    said = []
    for output in ("text", "json"):
        ended = cli("run", "do it", "--model", cli.scenario(LOOK + ANSWER), "--output", output)
        said.append([line for line in ended.err.splitlines() if line.startswith("! ")])
    assert said[0] == said[1]
    assert ".agents/skills/broken is left out" in "".join(said[1])
    assert result_of(ended)["outcome"] == "answered"


def test_jsonl_is_the_journal_as_it_happens_then_the_result(cli: CommandLine) -> None:
    ended = cli("run", "do it", "--model", cli.scenario(LOOK + ANSWER), "--output", "jsonl")
    *events, result = [json.loads(line) for line in ended.out.splitlines()]
    assert events == journal_of(cli)
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert all({"seq", "at", "type"} <= event.keys() for event in events)
    assert list(result) == ["type", *FIELDS]
    assert result["type"] == "result"


def test_text_is_the_answer_alone_and_no_terminal_acts_on_it(cli: CommandLine) -> None:
    turns = LOOK + '[[turns]]\ntext = "one\\n\\u001b]0;title\\u0007two\\tthree"\n'
    ended = cli("run", "do it", "--model", cli.scenario(turns))
    assert ended.code == 0
    assert ended.out == "one\ntwo\tthree\n"
    assert "list_dir" in ended.err
    assert "\x1b" not in ended.out + ended.err


@pytest.mark.parametrize(
    ("turns", "options", "code", "outcome"),
    [
        (ANSWER, [], 0, "answered"),
        (LOOK_ON, ["--max-iterations", "2"], 3, "partial"),
        (MISS, ["--policy", "forge"], 4, "stopped"),
        (MISS, ["--policy", "hpd"], 4, "stopped"),
        (MISS, [], 4, "stopped"),
        (MISS, ["--on-escalation", "partial"], 3, "partial"),
        (MISS, ["--on-escalation", "stop"], 5, "escalated"),
        (ASK + ANSWER, [], 0, "answered"),
        (ASK, ["--on-escalation", "partial"], 3, "partial"),
        (ASK, ["--on-escalation", "stop"], 5, "escalated"),
        (ASK + ANSWER, ["--on-escalation", "continue"], 0, "answered"),
        ('[[turns]]\nfault = { kind = "auth", status = 401, message = "no" }\n', [], 6, "model_failed"),
        ('[[turns]]\nfault = { kind = "not_found", status = 404, message = "no" }\n', [], 6, "model_failed"),
        (HANG, ["--approve", "all", "--timeout", "1"], 130, "interrupted"),
        (
            LOOK + "repeat = 9\nusage = { prompt = 1, completion = 1, cost = 0.6 }\n",
            ["--max-cost", "1"],
            3,
            "partial",
        ),
    ],
)
def test_outcome_and_exit_code_go_by_what_ended_the_run(
    cli: CommandLine, turns: str, options: list[str], code: int, outcome: str
) -> None:
    ended = cli("run", "do it", "--model", cli.scenario(turns), "--output", "json", *options)
    assert ended.code == code, ended
    result = result_of(ended)
    assert result["outcome"] == outcome
    assert result["answer"], "whatever stopped it, there is an answer or a partial one"
    assert result["reason"] or outcome == "answered"
    assert journal_of(cli)[-1]["outcome"] == outcome
    assert "Traceback" not in ended.err


@pytest.mark.parametrize(
    ("approve", "written", "touched"), [("ask", False, False), ("writes", True, False), ("all", True, True)]
)
def test_what_would_need_an_approval_is_denied_unless_allowed(
    cli: CommandLine, approve: str, written: bool, touched: bool
) -> None:
    model = cli.scenario(WRITE + TOUCH + ANSWER)
    ended = cli("run", "do it", "--model", model, "--output", "json", "--approve", approve)
    assert ended.code == 0
    assert (cli.workspace / "new.txt").exists() is written
    assert (cli.workspace / "touched.txt").exists() is touched
    refused = [event for event in journal_of(cli) if event["type"] == "tool_refused"]
    assert len(refused) == 2 - written - touched
    for event in refused:
        assert f"--approve {approve}" in event["content"]
        assert "do not repeat" in event["content"]


@pytest.mark.process
def test_the_task_can_come_from_standard_input(cli: CommandLine) -> None:
    ended = cli.process("run", "-", "--model", cli.scenario(ANSWER), stdin="do\nwhat I say\n")
    assert ended.code == 0
    assert (
        next(event for event in journal_of(cli) if event["type"] == "run_started")["task"]
        == "do\nwhat I say\n"
    )
    assert cli.process("run", "-", "--model", cli.scenario(ANSWER), stdin=" \n").code == 2


@pytest.mark.process
@pytest.mark.parametrize(
    ("number", "output"),
    [(signal.SIGINT, "json"), (signal.SIGTERM, "jsonl"), (signal.SIGHUP, "json")],
)
def test_a_signal_ends_the_run_as_interrupted_with_everything_recorded(
    cli: CommandLine, number: signal.Signals, output: str
) -> None:
    marker = cli.home / "started"
    os.mkfifo(marker)
    turns = (
        f'[[turns]]\ncalls = [{{ tool = "bash", args = {{ command = "echo up > {marker}; sleep 600" }} }}]\n'
    )
    before = signal.signal(
        signal.SIGHUP, signal.SIG_DFL
    )  # under nohup it is ignored, also by what is started
    process = cli.start(
        *("run", "do it", "--model", cli.scenario(turns), "--output", output, "--approve", "all"),
        *("--sandbox", "off"),  # the marker is outside the workspace
    )
    signal.signal(signal.SIGHUP, before)
    assert marker.read_text() == "up\n"  # blocks until the command runs
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    result = json.loads(out.splitlines()[-1])
    assert result["outcome"] == "interrupted"
    assert number.name in result["reason"]
    assert result["answer"]
    events = journal_of(cli)
    assert [event["type"] for event in events][-3:] == [
        "tool_cancelled",
        "iteration_finished",
        "run_finished",
    ]
    assert "Traceback" not in err


@pytest.mark.process
def test_a_reader_who_leaves_ends_the_run_quietly_and_coherently(cli: CommandLine) -> None:
    process = cli.start(
        "run", "do it", "--model", cli.scenario(LOOK_ON), "--output", "jsonl", "--max-iterations", "500"
    )
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["type"] == "session_started"
    process.stdout.close()
    process.wait(60)
    assert process.returncode == 130
    assert process.stderr is not None
    assert process.stderr.read() == ""
    assert journal_of(cli)[-1]["type"] == "run_finished"
    assert "its reader left" in journal_of(cli)[-1]["reason"]


@pytest.mark.process
@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
def test_a_full_disk_behind_standard_output_is_reported(cli: CommandLine) -> None:
    model = cli.scenario(ANSWER)
    with FULL.open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "tui_agent", "run", "x", "--model", model, "--output", "json"],
            check=False,
            cwd=cli.workspace,
            env=cli.environ(),
            stdin=subprocess.DEVNULL,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
        )
    assert done.returncode == 1
    assert "the disk is full" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_a_session_can_be_gone_on_with(cli: CommandLine) -> None:
    model = cli.scenario(ANSWER + "repeat = 2\n")
    first = result_of(cli("run", "do it", "--model", model, "--output", "json"))
    second = cli("run", "more", "--model", model, "--output", "json", "--resume", first["session_id"])
    assert second.code == 0
    assert result_of(second)["session_id"] == first["session_id"]
    tasks = [event["task"] for event in journal_of(cli) if event["type"] == "run_started"]
    assert tasks == ["do it", "more"]


def test_sessions_older_than_the_retention_go_to_the_trash(cli: CommandLine) -> None:
    model = cli.scenario(ANSWER)
    old = result_of(cli("run", "old", "--model", model, "--output", "json"))["session_id"]
    os.utime(cli.state / "sessions" / old / "events.jsonl", (0, 0))
    assert cli("run", "new", "--model", model, AGENT_TUI_RETENTION_DAYS="30").code == 0
    assert [folder.name for folder in (cli.state / "trash").iterdir()] == [old]
    assert old not in {folder.name for folder in (cli.state / "sessions").iterdir()}


def test_no_secret_of_the_environment_reaches_output_or_journal(cli: CommandLine) -> None:
    key = "sk-secret-0123456789abcdef"
    (cli.workspace / "note.txt").write_text(f"the key is {key}")
    turns = '[[turns]]\ncalls = [{ tool = "read_file", args = { path = "note.txt" } }]\n' + ANSWER
    ended = cli(
        "run",
        "x",
        "--model",
        cli.scenario(turns),
        "--output",
        "jsonl",
        OPENAI_API_KEY="sk-secret-0123456789abcdef",
    )
    assert ended.code == 0
    assert "sk-secret" not in ended.out + ended.err + json.dumps(journal_of(cli))


def test_progress_shows_the_whole_of_a_reply_that_comes_before_a_call(cli: CommandLine) -> None:
    # The end of a text that streams is held back while a secret could begin in it.
    look = '[[turns]]\ntext = "I look round first."\ncalls = [{ tool = "list_dir" }]\n'
    ended = cli("run", "x", "--model", cli.scenario(look + ANSWER), OPENAI_API_KEY="s" * 40)
    assert [line for line in ended.err.splitlines() if "look" in line] == ["I look round first."]


def test_step_mode_of_the_configuration_does_not_hold_a_run_without_a_screen(cli: CommandLine) -> None:
    assert cli("run", "x", "--model", cli.scenario(LOOK + ANSWER), AGENT_TUI_STEP="1").code == 0


def test_a_refusal_is_never_mistaken_for_a_result(
    cli: CommandLine, refused: Callable[[Ended, int], str]
) -> None:
    refused(cli("run", "x", "--output", "json"), 2)
