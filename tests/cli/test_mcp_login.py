"""`agent-tui mcp login` and `logout`, and what `run` says of a server that nobody has logged in to: whole programs."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("keyring")
pytest.importorskip("mcp")

from tests import openai_server
from tests.cli.conftest import CommandLine
from tests.console.terminal import Terminal
from tests.file_keyring import use_file
from tests.mcp.authorization import AuthorizationServer, Guarded, authorization_server, browse, guarded_server
from tests.openai_server import OpenAIServer

VISITOR = "from urllib.request import urlopen; import sys; urlopen(sys.argv[1]).close()"


@pytest.fixture(autouse=True)
def keyring_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER", "SSH_CONNECTION"):
        monkeypatch.delenv(name, raising=False)
    return use_file(monkeypatch, tmp_path / "keyring.json")


@pytest.fixture
def issuer() -> Iterator[AuthorizationServer]:
    with authorization_server() as made:
        yield made


@pytest.fixture
def vault(issuer: AuthorizationServer, cli: CommandLine) -> Iterator[Guarded]:
    with guarded_server(issuer) as made:
        assert cli("mcp", "add", "vault", made.url).code == 0
        yield made


def test_a_browser_is_opened_and_the_login_is_kept_and_forgotten(
    cli: CommandLine, vault: Guarded, keyring_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    visitor = tmp_path / "visitor"
    visitor.write_text(f"#!{sys.executable}\n{VISITOR}\n")
    visitor.chmod(0o700)
    monkeypatch.setenv("BROWSER", str(visitor))
    assert "needs a login" in cli("mcp").out
    done = cli("mcp", "login", "vault")
    assert done.code == 0, done.err
    assert "A browser was opened to log in at 127.0.0.1" in done.out
    assert "Logged in to vault." in done.out
    assert "access-" not in done.out + done.err
    listed = json.loads(cli("mcp", "--json").out)["servers"]
    assert [(row["status"], len(row["tools"])) for row in listed] == [("connected", 3)]
    assert cli("mcp", "logout", "vault").out == "Logged out of vault.\n"
    assert cli("mcp", "logout", "vault").out == "There was no login to vault.\n"
    assert json.loads(keyring_file.read_text()) == {}


def test_what_cannot_be_logged_in_to_is_said_with_what_would_be_right(
    cli: CommandLine, vault: Guarded, issuer: AuthorizationServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli("mcp", "add", "program", "run-it")
    cli("mcp", "add", "header", "https://example.org/mcp", "--header", "Authorization: Bearer abc")
    cli("mcp", "add", "theirs", "--scope", "workspace", "https://example.org/mcp")
    for words, says in (
        (("vault",), "neither a browser nor a terminal here"),
        (("program",), "it has no address, or brings an Authorization header"),
        (("header", "--no-browser"), "it has no address, or brings an Authorization header"),
        (("theirs", "--no-browser"), "agree to it first: agent-tui mcp trust theirs"),
        (("valut",), "did you mean vault?"),
    ):
        ended = cli("mcp", "login", *words)
        assert ended.code == 2, words
        assert says in ended.err, words
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
    monkeypatch.setattr("keyring.core._keyring_backend", None)
    ended = cli("mcp", "login", "vault", "--no-browser")
    assert ended.code == 2
    assert "could not be kept: no keyring of this system could be used" in ended.err, ended.err
    assert issuer.asked == [], "nothing was begun that could not be kept"


@pytest.mark.process
def test_the_address_of_the_last_page_is_pasted_where_the_browser_is_elsewhere(
    cli: CommandLine, vault: Guarded, keyring_file: Path
) -> None:
    terminal = Terminal(["-m", "tui_agent", "mcp", "login", "vault"], cli.environ(), (1000, 30))
    try:
        terminal.shows("paste the address")
        address = next(line for line in terminal.picture.splitlines() if line.startswith("http")).strip()
        terminal.send("http://localhost/callback?code=x&state=y\r")
        terminal.shows("not the address that this login ends at")
        terminal.send(browse(address, follow=False) + "\r")
        terminal.shows("Logged in to vault")
    finally:
        terminal.close()
    assert "refresh-" in keyring_file.read_text()


@pytest.mark.process
def test_processes_that_find_a_token_ended_renew_it_once(
    cli: CommandLine, vault: Guarded, issuer: AuthorizationServer
) -> None:
    """The server takes whoever shows a used token to renew with for a thief, and ends all of them."""
    login = cli.start("mcp", "login", "vault", "--no-browser")
    assert login.stdout is not None
    address = next(line for line in login.stdout if line.startswith("http"))
    browse(address.strip())
    assert login.wait() == 0
    issuer.tokens.clear()
    processes = [cli.start("mcp", "--json", "--timeout", "120") for _ in range(3)]
    shown = [json.loads(process.communicate()[0]) for process in processes]
    assert [each["servers"][0]["status"] for each in shown] == ["connected"] * 3
    assert issuer.times("/token", grant_type="refresh_token") == 1


@pytest.mark.process
async def test_a_run_without_anybody_says_how_to_log_in_and_goes_on(
    cli: CommandLine, vault: Guarded, keyring_file: Path
) -> None:
    async with OpenAIServer([openai_server.text("done without it")]) as model:
        options = ("--model", "openai/test", "--api-base", model.url, "--sandbox", "off")
        process = cli.start("run", *options, "go", OPENAI_API_KEY="no-key-at-all")
        _, errors = await asyncio.to_thread(process.communicate)
    assert process.returncode == 0, errors
    assert "needs a login (nobody has logged in; `agent-tui mcp login vault` logs in)" in errors
    assert not keyring_file.exists()
