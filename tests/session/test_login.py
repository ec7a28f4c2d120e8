"""A wrong or missing key is mended in the console: litellm in its host, a server that wants a key, a keyring."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("keyring")

from tests import openai_server as server
from tests.console.terminal import Terminal
from tests.file_keyring import FILE_VARIABLE, use_file
from tests.kept_host import environment
from tests.openai_server import Answer, OpenAIServer, Recorded
from tests.runtime.scripted import ScriptedOperator
from tui_agent.config.settings import Settings
from tui_agent.core.names import Outcome
from tui_agent.core.recovery.model_faults import ModelFaults
from tui_agent.models.hosted import HostedModel
from tui_agent.session.opening import open_session
from tui_agent.session.session import Session

WRONG, RIGHT = "sk-wrong-0123456789abcdef", "right-key-as-a-server-of-ones-own-has-it"


class Guarded(OpenAIServer):
    """Answers whoever has the right key, which it repeats in its answer."""

    def respond(self, request: Recorded) -> Answer:
        if request.method != "GET" and request.headers.get("authorization") != f"Bearer {RIGHT}":
            return server.error(401, "Incorrect API key provided", code="invalid_api_key")
        return super().respond(request)


@pytest.fixture
def keyring_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the keyring of this test keeps what it is given, also for the host's process."""
    return use_file(monkeypatch, tmp_path / "keyring.json")


@asynccontextmanager
async def console(folder: Path, **variables: str):
    """A session with a host of its own, in whose environment these variables are."""
    workspace = folder / "workspace"
    workspace.mkdir(exist_ok=True)
    passed = ("PYTHON_KEYRING_BACKEND", "PYTHONPATH", FILE_VARIABLE)
    own = {name: os.environ[name] for name in passed if name in os.environ}
    host = HostedModel(environment={**environment(), **own, **variables})
    async with Guarded([server.text(f"your key is {RIGHT}")]) as provider:
        settings = Settings(
            model="openai/test",
            api_base=provider.url,
            workspace=workspace,
            state_dir=folder / "state",
            sandbox={"mode": "off"},
        )
        session = await open_session(settings, ScriptedOperator(present=False), hosted=host)
        try:
            yield session
        finally:
            await session.close()
            await host.close()


async def run(session: Session) -> Any:
    await session.submit("go")
    return await session.wait()


@pytest.mark.process
async def test_a_wrong_key_is_mended_in_the_session_and_kept_in_the_keyring_alone(
    tmp_path: Path, keyring_file: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OPENAI_API_KEY", WRONG)
    async with console(tmp_path, OPENAI_API_KEY=WRONG) as session:
        failed = await run(session)
        assert failed.outcome is Outcome.MODEL_FAILED
        assert session.state.recovery.of(ModelFaults).last is not None
        assert "/login" in session.state.recovery.of(ModelFaults).last.fault.advice
        assert session.models.key_variable() == "OPENAI_API_KEY"
        said = await session.models.log_in("OPENAI_API_KEY", RIGHT)
        assert "keyring of this system" in said
        assert "outweighs it at the next start" in said
        answered = await run(session)
        assert answered.outcome is Outcome.ANSWERED
        assert answered.answer == "your key is [masked:OPENAI_API_KEY]"
    assert RIGHT in keyring_file.read_text()
    written = [file for file in tmp_path.rglob("*") if file.is_file() and file != keyring_file]
    assert [file for file in written if RIGHT.encode() in file.read_bytes()] == []

    monkeypatch.delenv("OPENAI_API_KEY")
    async with console(tmp_path) as later:
        assert (await run(later)).outcome is Outcome.ANSWERED
        assert await later.models.log_out("OPENAI_API_KEY") == "OPENAI_API_KEY was removed from the keyring."
        assert await later.models.log_out("OPENAI_API_KEY") == "The keyring holds no OPENAI_API_KEY."
        assert (await run(later)).outcome is Outcome.MODEL_FAILED
    assert RIGHT not in keyring_file.read_text()


@pytest.mark.process
async def test_without_a_keyring_the_key_is_used_and_the_variable_is_named(
    tmp_path: Path, keyring_file: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
    async with console(tmp_path, OPENAI_API_KEY=WRONG) as session:
        said = await session.models.log_in("OPENAI_API_KEY", RIGHT)
        assert said == (
            "The key is used until this console ends. It is not kept: no keyring of this system could be used "
            "(NoKeyringError). For the next start set OPENAI_API_KEY in your environment."
        )
        assert (await run(session)).outcome is Outcome.ANSWERED
    assert not keyring_file.exists()


async def test_a_key_is_named_by_its_provider_or_variable(tmp_path: Path):
    async with console(tmp_path) as session:
        assert session.models.key_variable("anthropic") == "ANTHROPIC_API_KEY"
        assert session.models.key_variable("MY_KEY") == "MY_KEY"
        with pytest.raises(ValueError, match="No provider 'nobody' is known"):
            session.models.key_variable("nobody")


@contextmanager
def guarded_server() -> Iterator[str]:
    """The address of a server in a thread of its own."""
    loop, begun, addresses = asyncio.new_event_loop(), threading.Event(), list[str]()
    over = asyncio.Event()

    async def serve() -> None:
        async with Guarded([server.text("hello there")]) as provider:
            addresses.append(provider.url)
            begun.set()
            await over.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    begun.wait()
    try:
        yield addresses[0]
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join()
        loop.close()


@pytest.mark.process
@pytest.mark.parametrize("plain", [False, True])
def test_the_key_is_typed_unseen_while_the_question_about_it_waits(
    tmp_path: Path, keyring_file: Path, plain: bool
):
    (tmp_path / "workspace").mkdir()
    with guarded_server() as address:
        home = {"HOME": str(tmp_path), "AGENT_TUI_STATE_DIR": str(tmp_path / "state")}
        options = [
            "--model",
            "openai/test",
            "--api-base",
            address,
            "--workspace",
            str(tmp_path / "workspace"),
        ]
        terminal = Terminal(
            ["-m", "tui_agent", *(["--plain"] if plain else []), *options, "--sandbox", "off", "say hello"],
            {**home, "OPENAI_API_KEY": WRONG, "NO_MOTION": "1"},
        )
        try:
            terminal.shows("/login", "retry once")
            if not plain:
                terminal.shows("Esc prompt")  # the card has the keys
            terminal.send("/login\r")
            terminal.shows("Key for OPENAI_API_KEY")
            terminal.send(RIGHT)
            if not plain:
                terminal.shows("•" * len(RIGHT))
            terminal.send("\r")
            terminal.shows("outweighs it")
            if not plain:
                terminal.send("r\r")
                terminal.shows("hello there")
            assert RIGHT.encode() not in terminal.output
        finally:
            terminal.close()
    assert RIGHT in keyring_file.read_text()
