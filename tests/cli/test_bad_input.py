"""What bad input gets: what happened, why, what to do; the right exit code; no traceback; nothing lost."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import socket
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests import openai_server as server

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import CommandLine, Ended

    Told = Callable[[Ended, int], str]

ANSWER = '[[turns]]\ntext = "It is done."\n'


@pytest.fixture
def impatient(cli: CommandLine) -> None:
    """Retries without waiting, so that no test waits for a back-off."""
    cli.config_file.parent.mkdir(parents=True)
    cli.config_file.write_text("[recovery]\nbackoff_base = 0\n")


def failed_result(ended: Ended, code: int) -> dict[str, Any]:
    """The one object on standard output of a run that failed; no traceback anywhere."""
    assert ended.code == code, ended
    assert "Traceback" not in ended.out + ended.err
    (line,) = ended.out.splitlines()
    result = json.loads(line)
    assert isinstance(result, dict)
    assert result["answer"], "a partial answer is given whatever stopped the run"
    return result


# --- the model -----------------------------------------------------------------------------------------------


def test_no_model_is_told_with_how_to_choose_one(cli: CommandLine, told: Told) -> None:
    said = told(cli("run", "x"), 2)
    assert "No model is chosen" in said
    assert "--model" in said
    assert "agent-tui demo" in said
    assert "anthropic/…" in told(cli("run", "x", ANTHROPIC_API_KEY="sk-nobody"), 2)


def test_an_unknown_scenario_is_told_before_a_session_begins(cli: CommandLine, told: Told) -> None:
    assert "nope" in told(cli("run", "x", "--model", "scripted:nope"), 2)
    assert not list(cli.state.glob("sessions/*"))


async def run_against(cli: CommandLine, *script: server.Answer, **environ: str) -> Ended:
    async with server.OpenAIServer(script) as served:
        arguments = ("run", "x", "--model", "openai/m", "--api-base", served.url, "--output", "json")
        return await asyncio.to_thread(cli, *arguments, **environ)


@pytest.mark.parametrize(
    ("model", "words"), [("openai/m", "OPENAI_API_KEY is not set"), ("no-such-thing", "PROVIDER/NAME")]
)
def test_no_key_and_no_provider_are_told_before_anything_is_sent(
    cli: CommandLine, model: str, words: str
) -> None:
    nowhere = "http://127.0.0.1:9"
    ended = cli("run", "x", "--model", model, "--output", "json", HTTPS_PROXY=nowhere, HTTP_PROXY=nowhere)
    result = failed_result(ended, 6)
    assert result["outcome"] == "model_failed"
    assert result["model_calls"] == 1
    assert words in result["reason"]


@pytest.mark.parametrize(
    ("answer", "kind", "advice"),
    [
        (server.error(401, "Incorrect API key provided", code="invalid_api_key"), "auth", "key"),
        (server.error(404, "The model `m` does not exist", code="model_not_found"), "not_found", "model"),
    ],
)
async def test_what_cannot_be_mended_by_trying_again_is_not_tried_again(
    cli: CommandLine, answer: server.Answer, kind: str, advice: str
) -> None:
    result = failed_result(await run_against(cli, answer, OPENAI_API_KEY="sk-wrong-0123456789"), 6)
    assert result["outcome"] == "model_failed"
    assert result["model_calls"] == 1
    assert kind in result["reason"]
    assert advice in result["reason"]
    assert "sk-wrong" not in json.dumps(result)


@pytest.mark.usefixtures("impatient")
def test_no_server_is_tried_again_then_told_with_its_address(cli: CommandLine) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, not listening: refused, and nobody else can have it
        address = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        arguments = ("run", "x", "--model", "openai/m", "--api-base", address, "--output", "json")
        result = failed_result(cli(*arguments, OPENAI_API_KEY="sk-x"), 6)
    assert result["model_calls"] == 5
    assert result["model_retries"] == 4
    assert address in result["reason"]


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    "answer",
    [server.raw(b"<html>It works!</html>"), server.stream(b"data: {not json\n\n", server.DONE)],
    ids=["a web page", "a malformed stream"],
)
async def test_a_server_that_answers_rubbish_is_told(cli: CommandLine, answer: server.Answer) -> None:
    result = failed_result(await run_against(cli, answer, OPENAI_API_KEY="sk-x"), 6)
    assert result["outcome"] == "model_failed"
    assert result["model_calls"] > 1, "rubbish may be passing, so it is tried again"
    assert result["reason"]


# --- places --------------------------------------------------------------------------------------------------


def test_a_workspace_that_cannot_serve_is_told(cli: CommandLine, told: Told) -> None:
    model = cli.scenario(ANSWER)
    said = told(cli("run", "x", "--model", model, "--workspace", "missing"), 2)
    assert "missing does not exist" in said
    (cli.workspace / "file").touch()
    assert "is not a folder" in told(cli("run", "x", "--model", model, "--workspace", "file"), 2)


def test_a_workspace_without_the_right_to_write_is_told(cli: CommandLine, told: Told) -> None:
    locked = cli.workspace / "locked"
    locked.mkdir(mode=0o555)
    if os.access(locked, os.W_OK):
        pytest.skip("this user may write everywhere")
    said = told(cli("run", "x", "--model", cli.scenario(ANSWER), "--workspace", "locked"), 2)
    assert "cannot be written" in said


def test_a_state_folder_that_cannot_be_made_is_told(cli: CommandLine, told: Told) -> None:
    (cli.workspace / "file").touch()
    said = told(cli("run", "x", "--model", cli.scenario(ANSWER), "--state-dir", "file/state"), 2)
    assert "file/state" in said


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("polcy = 'hpd'", ["config.toml: polcy", "the nearest is policy"]),
        ("max_iterations = 'many'", ["config.toml: max_iterations", "must be a valid integer"]),
        ("[recovery", ["config.toml: it is not valid TOML"]),
    ],
)
def test_a_wrong_configuration_is_told_with_file_and_key(
    cli: CommandLine, told: Told, text: str, parts: list[str]
) -> None:
    cli.config_file.parent.mkdir(parents=True)
    cli.config_file.write_text(text)
    said = told(cli("run", "x", "--model", cli.scenario(ANSWER)), 2)
    for part in parts:
        assert part in said


def test_a_checkout_that_would_approve_everything_is_refused(cli: CommandLine, told: Told) -> None:
    (cli.workspace / ".agent-tui.toml").write_text('approve = "all"')
    said = told(cli("run", "x", "--model", cli.scenario(ANSWER)), 2)
    assert ".agent-tui.toml: approve" in said


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


def test_a_session_that_is_not_there_is_told(cli: CommandLine, told: Told) -> None:
    assert "nope" in told(cli("run", "x", "--model", cli.scenario(ANSWER), "--resume", "nope"), 2)


@pytest.mark.parametrize("content", [b"", b"\x00\xff\n", b'{"a": 1}\n'])
def test_a_session_file_that_is_none_is_told(cli: CommandLine, told: Told, content: bytes) -> None:
    file = cli.workspace / "events.jsonl"
    file.write_bytes(content)
    assert "events.jsonl" in told(cli("replay", "events.jsonl", "--print"), 2)
    folder = cli.state / "sessions" / "broken"
    folder.mkdir(parents=True)
    (folder / "events.jsonl").write_bytes(content)
    assert "broken" in told(cli("run", "x", "--model", cli.scenario(ANSWER), "--resume", "broken"), 2)
    assert (folder / "events.jsonl").read_bytes() == content, "what is not ours is left as it was"
