"""What bad input gets: what happened, why, what to do; the right exit code; no traceback; nothing lost."""

from __future__ import annotations

import asyncio
import json
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests import openai_server as server
from tests.cli.conftest import failed_result

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import CommandLine, Ended

    Refused = Callable[[Ended, int], str]

ANSWER = '[[turns]]\ntext = "It is done."\n'


REFUSED = server.error(401, "Incorrect API key provided", code="invalid_api_key")


# --- the model -----------------------------------------------------------------------------------------------


def test_no_model_is_reported_with_how_to_choose_one(cli: CommandLine, refused: Refused) -> None:
    said = refused(cli("run", "x"), 2)
    assert "No model is chosen" in said
    assert "--model" in said
    assert "agent-tui demo" in said
    assert "anthropic/…" in refused(cli("run", "x", ANTHROPIC_API_KEY="sk-nobody"), 2)


def test_an_unknown_scenario_is_reported_before_a_session_begins(cli: CommandLine, refused: Refused) -> None:
    assert "nope" in refused(cli("run", "x", "--model", "scripted:nope"), 2)
    assert not list(cli.state.glob("sessions/*"))


@pytest.mark.process
async def test_a_key_that_is_refused_is_not_tried_again_and_not_shown(
    cli: CommandLine,
) -> None:
    async with server.OpenAIServer([REFUSED]) as served:
        arguments = ("run", "x", "--model", "openai/m", "--api-base", served.url, "--output", "json")
        given = {"OPENAI_API_KEY": "sk-wrong-0123456789"}
        ended = await asyncio.to_thread(cli.process, *arguments, **given)
    result = failed_result(ended, 6)
    assert result["outcome"] == "model_failed"
    assert result["model_calls"] == 1
    assert "key not accepted" in result["reason"]
    assert "key" in result["reason"]
    assert "sk-wrong" not in ended.out + ended.err


# --- places --------------------------------------------------------------------------------------------------


def test_a_workspace_that_cannot_serve_is_reported(cli: CommandLine, refused: Refused) -> None:
    model = cli.scenario(ANSWER)
    said = refused(cli("run", "x", "--model", model, "--workspace", "missing"), 2)
    assert "missing does not exist" in said
    (cli.workspace / "file").touch()
    assert "is not a folder" in refused(cli("run", "x", "--model", model, "--workspace", "file"), 2)


def test_a_workspace_without_the_right_to_write_answers_questions(cli: CommandLine) -> None:
    (cli.workspace / "locked").mkdir(mode=0o555)
    done = cli("run", "x", "--model", cli.scenario(ANSWER), "--workspace", "locked")
    assert done.code == 0, done.err


def test_a_state_folder_that_cannot_be_made_is_reported(cli: CommandLine, refused: Refused) -> None:
    (cli.workspace / "file").touch()
    said = refused(cli("run", "x", "--model", cli.scenario(ANSWER), "--state-dir", "file/state"), 2)
    assert "file/state" in said


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("polcy = 'hpd'", ["config.toml: polcy", "the nearest is policy"]),
        ("max_iterations = 'many'", ["config.toml: max_iterations", "must be a whole number"]),
        ("[recovery", ["config.toml: it is not valid TOML"]),
    ],
)
def test_a_wrong_configuration_is_reported_with_file_and_key(
    cli: CommandLine, refused: Refused, text: str, parts: list[str]
) -> None:
    cli.config_file.parent.mkdir(parents=True)
    cli.config_file.write_text(text)
    said = refused(cli("run", "x", "--model", cli.scenario(ANSWER)), 2)
    for part in parts:
        assert part in said


def test_a_checkout_that_would_approve_everything_is_refused(cli: CommandLine, refused: Refused) -> None:
    (cli.workspace / ".agent-tui.toml").write_text('approve = "all"')
    said = refused(cli("run", "x", "--model", cli.scenario(ANSWER)), 2)
    assert ".agent-tui.toml: approve" in said


@pytest.mark.process
def test_a_full_disk_under_the_journal_ends_the_run_as_an_error_that_says_so(cli: CommandLine) -> None:
    turns = (
        '[[turns]]\ncalls = [{ tool = "write_file", args = { path = "a.txt", content = "a" } }]\n' + ANSWER
    )
    command = [sys.executable, "-m", "tui_agent", "run", "x", "--output", "json", "--approve", "all"]
    command += ["--model", cli.scenario(turns)]
    done = subprocess.run(
        ["bash", "-c", f"ulimit -f 2; exec {shlex.join(command)}"],
        cwd=cli.workspace,
        env=cli.environ(PYTHONDONTWRITEBYTECODE="1"),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 1, done
    assert "Traceback" not in done.stderr
    result = json.loads(done.stdout)
    assert result["outcome"] == "error"
    assert "largest size allowed" in result["reason"]
    assert not (cli.workspace / "a.txt").exists(), "nothing is done that could not be recorded"


# --- sessions ------------------------------------------------------------------------------------------------


def test_a_session_that_is_not_there_is_reported(cli: CommandLine, refused: Refused) -> None:
    assert "nope" in refused(cli("run", "x", "--model", cli.scenario(ANSWER), "--resume", "nope"), 2)


@pytest.mark.parametrize("content", [b"", b"\x00\xff\n", b'{"a": 1}\n'])
def test_a_session_file_that_is_none_is_reported(cli: CommandLine, refused: Refused, content: bytes) -> None:
    file = cli.workspace / "events.jsonl"
    file.write_bytes(content)
    assert "events.jsonl" in refused(cli("replay", "events.jsonl", "--print"), 2)
    folder = cli.state / "sessions" / "broken"
    folder.mkdir(parents=True)
    (folder / "events.jsonl").write_bytes(content)
    assert "broken" in refused(cli("run", "x", "--model", cli.scenario(ANSWER), "--resume", "broken"), 2)
    assert (folder / "events.jsonl").read_bytes() == content, "what is not ours is left as it was"
