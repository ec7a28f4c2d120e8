"""A model that cannot be used ends `agent-tui run` with exit code 6 and a result that says why.

The real litellm in its host process and the real engine; only the process around them is shared by all tests here.
That a whole process says the same is tested once, with a refused key (`test_bad_input.py`).
"""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest

from tests import openai_server as server
from tests.cli.conftest import CommandLine, Ended, failed_result
from tui_agent.config.settings import load_settings
from tui_agent.headless import run_headless

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.kept_host import KeptHost

    Failed = Callable[..., Awaitable[dict[str, Any]]]

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.fixture
def failed(cli: CommandLine, host: KeptHost, capsys: pytest.CaptureFixture[str]) -> Failed:
    """The result of a run that fails: `agent-tui run x --output json` with these options, retries without a wait."""
    cli.config_file.parent.mkdir(parents=True)
    cli.config_file.write_text("[recovery]\nbackoff_base = 0\n")

    async def run(**options: str) -> dict[str, Any]:
        with mock.patch.dict(os.environ, cli.environ(), clear=True):
            settings = load_settings({"output": "json", **options}, cwd=cli.workspace)
            code = await run_headless(settings, "x", model=host)
        return failed_result(Ended(code, *capsys.readouterr()), 6)

    return run


@pytest.mark.parametrize(
    ("model", "words"), [("openai/m", "OPENAI_API_KEY is not set"), ("no-such-thing", "PROVIDER/NAME")]
)
async def test_no_key_and_no_provider_are_reported_before_anything_is_sent(
    failed: Failed, model: str, words: str
) -> None:
    result = await failed(model=model)
    assert result["outcome"] == "model_failed"
    assert result["model_calls"] == 1
    assert words in result["reason"]


async def test_a_model_that_the_server_does_not_have_is_not_tried_again(failed: Failed) -> None:
    answer = server.error(404, "The model `m` does not exist", code="model_not_found")
    async with server.OpenAIServer([answer]) as served:
        result = await failed(model="openai/m", api_base=served.url)
    assert result["outcome"] == "model_failed"
    assert result["model_calls"] == 1
    assert "not found" in result["reason"]
    assert "model" in result["reason"]


async def test_no_server_is_tried_again_then_reported_with_its_address(failed: Failed) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, not listening: refused, and nobody else can have it
        address = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        result = await failed(model="openai/m", api_base=address)
    assert result["model_calls"] == 5
    assert result["model_retries"] == 4
    assert address in result["reason"]


@pytest.mark.parametrize(
    "answer",
    [server.raw(b"<html>It works!</html>"), server.stream(b"data: {not json\n\n", server.DONE)],
    ids=["a web page", "a malformed stream"],
)
async def test_a_server_that_answers_nonsense_is_reported(failed: Failed, answer: server.Answer) -> None:
    async with server.OpenAIServer([answer]) as served:
        result = await failed(model="openai/m", api_base=served.url)
    assert result["outcome"] == "model_failed"
    assert result["model_calls"] > 1, "nonsense may pass, so it is tried again"
    assert result["reason"]
