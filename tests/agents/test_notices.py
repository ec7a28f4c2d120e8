"""Notices to a person who is away, by small servers on this machine."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.agents.conftest import Supervise
from tests.agents.test_supervise import DONE, LIMIT_OF_2_H, simulated
from tui_agent.agents.notices import Notices
from tui_agent.agents.waiting import Clock
from tui_agent.cli import main
from tui_agent.config.sections import NoticeSettings
from tui_agent.store.redaction import Redactor


class Server(HTTPServer):
    """Speaks ntfy's protocol, as far as publishing goes: JSON at the root, which names the topic."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: list[int] = []
        """Status of the next answers; 200 when none is left."""
        self.got: list[tuple[str, dict[str, Any]]] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status = self.server.answers.pop(0) if self.server.answers else 200
        if status == 200:
            self.server.got.append((self.path, body))
        self.send_response(status)
        if status == 302:
            self.send_header("Location", f"{self.server.address}/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with Server() as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield made
        made.shutdown()
        thread.join()


class Hurried(Clock):
    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)


def sent(settings: NoticeSettings, *texts: str, patience: float = 60.0) -> list[str]:
    """Send them; what was said of those that could not be sent."""
    said: list[str] = []

    async def send() -> None:
        sender = Notices(settings, Hurried(), said.append, Redactor({"API_TOKEN": "s3cret-s3cret-s3cret"}))
        for text in texts:
            sender.put("Claude Code in work: ended", text)
        await sender.close(patience)

    asyncio.run(send())
    return said


@pytest.mark.parametrize(
    "lost", [[], [503, 429, 500], [302]], ids=["at once", "after faults", "no redirects"]
)
def test_notices_arrive_in_their_order_whatever_the_network_does(lost: list[int], server: Server) -> None:
    server.answers = lost
    assert sent(NoticeSettings(ntfy=f"{server.address}/nights"), "one", "two") == []
    assert [(path, body["topic"], body["message"]) for path, body in server.got] == [
        ("/", "nights", "one"),
        ("/", "nights", "two"),
    ]


def test_secrets_are_masked_and_texts_are_short(server: Server) -> None:
    text = "token s3cret-s3cret-s3cret \x1b[31m" + "x" * 100_000
    assert sent(NoticeSettings(webhook=f"{server.address}/hook"), text) == []
    ((path, body),) = server.got
    assert (path, "s3cret" in body["text"], "\x1b" in body["text"]) == ("/hook", False, False)
    assert len(body["text"]) <= 1_100


def test_what_is_never_sent_is_said_at_the_end() -> None:
    said = sent(
        NoticeSettings(webhook="http://127.0.0.1:1/x", ntfy="http://127.0.0.1:1/topic"),
        "it is done",
        patience=0.2,
    )
    assert said == ["not sent: Claude Code in work: ended: it is done"]


def test_a_command_gets_the_notice_in_its_variables(tmp_path: Path) -> None:
    script = "import os; open(os.environ['OUT'], 'a').write(os.environ['AGENT_TUI_TEXT'] + chr(10))"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OUT", str(tmp_path / "out"))
        assert sent(NoticeSettings(command=(sys.executable, "-c", script)), "one; rm -rf x") == []
    assert (tmp_path / "out").read_text() == "one; rm -rf x\n"


def test_limits_and_ends_of_a_supervised_agent_are_told(
    home: Path, supervise: Supervise, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulated(monkeypatch)
    monkeypatch.setenv("AGENT_TUI_NOTICES__NTFY", f"{server.address}/nights")
    assert supervise([LIMIT_OF_2_H, [DONE]], "--on-limit", "wait").returncode == 0
    told = [(body["title"], body["message"]) for _, body in server.got]
    assert [title for title, _ in told] == ["Claude Code in work: a limit", "Claude Code in work: ended"]
    assert "it waits, and goes on at" in told[0][1]
    assert told[1][1] == "exit code 0"


def test_nothing_is_sent_unless_it_is_configured(supervise: Supervise, server: Server) -> None:
    supervise([[DONE]])
    assert server.got == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("ntfy", "file:///etc/topic"),
        ("ntfy", "http://host"),
        ("webhook", "ftp://host/x"),
        ("webhook", "host/x"),
    ],
)
def test_an_address_that_is_none_is_refused(
    key: str, value: str, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(f"AGENT_TUI_NOTICES__{key.upper()}", value)
    assert main(["supervise", "--", "claude", "-p", "x"]) == 2
    assert "must be an address as https://" in capsys.readouterr().err
