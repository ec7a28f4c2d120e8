"""Notices to a person who is away, by small servers on this machine."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.agents.conftest import Supervise
from tests.agents.test_supervise import DONE, LIMIT_OF_2_H, STUCK, runs, simulated
from tests.ntfy_server import NtfyServer, ntfy_server
from tui_agent.agents.notices import Notices
from tui_agent.agents.waiting import Clock
from tui_agent.cli import main
from tui_agent.config.sections import NotifySettings
from tui_agent.store.redaction import Redactor

server = ntfy_server


class Hurried(Clock):
    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)


def notices(settings: NotifySettings, folder: Path, said: list[str] | None = None) -> Notices:
    say = print if said is None else said.append
    return Notices(settings, folder, Hurried(), say, Redactor({"API_TOKEN": "s3cret-s3cret-s3cret"}))


def sent(settings: NotifySettings, folder: Path, *texts: str, patience: float = 60.0) -> list[str]:
    """Send them; what was said of those that could not be sent."""
    said: list[str] = []

    async def send() -> None:
        sender = notices(settings, folder, said)
        sender.begin()
        for text in texts:
            sender.put("Claude Code in work: ended", text)
        await sender.close(patience)

    asyncio.run(send())
    return said


@pytest.mark.parametrize(
    "lost", [[], [503, 429, 500], [302]], ids=["at once", "after faults", "no redirects"]
)
def test_notices_arrive_in_their_order_whatever_the_network_does(
    lost: list[int], server: NtfyServer, tmp_path: Path
) -> None:
    server.answers = lost
    assert sent(NotifySettings(ntfy=f"{server.address}/nights"), tmp_path, "one", "two") == []
    assert [(path, body["topic"], body["message"]) for path, body in server.got] == [
        ("/", "nights", "one"),
        ("/", "nights", "two"),
    ]


def test_secrets_are_masked_and_texts_are_short(server: NtfyServer, tmp_path: Path) -> None:
    text = "token s3cret-s3cret-s3cret \x1b[31m" + "x" * 100_000
    assert sent(NotifySettings(webhook=f"{server.address}/hook"), tmp_path, text) == []
    ((path, body),) = server.got
    assert (path, "s3cret" in body["text"], "\x1b" in body["text"]) == ("/hook", False, False)
    assert len(body["text"]) <= 1_100


def test_what_is_not_sent_is_said_and_sent_by_the_next_run(server: NtfyServer, tmp_path: Path) -> None:
    nowhere = {"webhook": "http://127.0.0.1:1/x", "ntfy": "http://127.0.0.1:1/topic"}
    said = sent(NotifySettings(**nowhere), tmp_path, "it is done", patience=0.2)
    told = "not sent yet, and kept for the next run: Claude Code in work: ended: it is done"
    assert said == [told]
    assert sent(NotifySettings(**nowhere), tmp_path, patience=0.2) == [told]
    reached = NotifySettings(webhook=f"{server.address}/hook", ntfy=f"{server.address}/nights")
    assert sent(reached, tmp_path, "more") == []
    assert [body["text"] for path, body in server.got if path == "/hook"] == ["it is done", "more"]
    assert [one["message"] for one in server.cache] == ["it is done", "more"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a process of its own is forked")
def test_what_a_killed_process_had_to_say_is_said_by_the_next_and_never_by_two(
    server: NtfyServer, tmp_path: Path
) -> None:
    ready, told = os.pipe()
    if (pid := os.fork()) == 0:

        async def wait() -> None:
            sender = notices(NotifySettings(ntfy="http://127.0.0.1:1/topic"), tmp_path)
            sender.put("Codex CLI in work: a question", "go on?")
            os.write(told, b"1")
            signal.pause()

        asyncio.run(wait())
    os.read(ready, 1)
    try:
        settings = NotifySettings(ntfy=f"{server.address}/nights")
        assert sent(settings, tmp_path, "of another run") == []
        assert [one["message"] for one in server.cache] == ["of another run"]
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    (file,) = tmp_path.iterdir()
    with file.open("ab") as torn:
        torn.write(b'{"notice": 1, "ti')
    assert sent(settings, tmp_path) == []
    assert [one["message"] for one in server.cache] == ["of another run", "go on?"]


def test_a_disk_that_takes_nothing_keeps_no_notice_back(server: NtfyServer, tmp_path: Path) -> None:
    (tmp_path / "in the way").touch()
    said = sent(NotifySettings(ntfy=f"{server.address}/nights"), tmp_path / "in the way" / "notices", "one")
    assert [one["message"] for one in server.cache] == ["one"]
    assert len(said) == 1
    assert said[0].startswith("notices that wait are not kept")


# --- answers ----------------------------------------------------------------------------------------------------------


def asking(
    server: NtfyServer, folder: Path, answer: Callable[[NtfyServer], None], **settings: Any
) -> str | None:
    """Ask by the topic, while somebody there does `answer`."""
    given = NotifySettings(ntfy=f"{server.address}/nights", replies=f"{server.address}/answers", **settings)

    async def ask() -> str | None:
        sender = notices(given, folder)
        asked = asyncio.create_task(
            sender.ask("Codex CLI in work: a question", "x" * 2_000, ("go on", "stop"))
        )
        await asyncio.to_thread(answer, server)
        said = await asked
        await sender.close(60)
        return said

    return asyncio.run(ask())


def code_of(server: NtfyServer) -> str:
    return str(server.asked()["actions"][0]["body"]).split()[0]


def after_others(server: NtfyServer) -> None:
    for words in (
        "go on",
        "XXXX stop",
        "",
        f"{code_of(server)}x stop",
        "\x00",
        code_of(server).lower() + " stop",
    ):
        server.publish("answers", words)
    server.publish("nights", f"{code_of(server)} stop")
    server.publish("answers", f"  {code_of(server)}   use ninja\nand\x00\x1b[31m -j2 " + "y" * 10_000)


def through_lost_connections(server: NtfyServer) -> None:
    server.asked()
    server.publish("answers", "something else")
    for _ in range(3):
        server.drop_streams()
    server.press("stop")


ANSWERED: dict[str, tuple[Callable[[NtfyServer], None], str]] = {
    "a button": (lambda server: server.press("stop"), "stop"),
    "words, behind what is no answer": (after_others, "use ninja\nand␀ -j2 yyy"),
    "connections that are lost": (through_lost_connections, "stop"),
}


@pytest.mark.parametrize("case", ANSWERED)
def test_an_answer_comes_back_by_the_topic(case: str, server: NtfyServer, tmp_path: Path) -> None:
    answer, said = ANSWERED[case]
    given = asking(server, tmp_path, answer)
    assert (given or "").startswith(said)
    assert len(given or "") <= 2_000
    assert len(server.asked()["message"]) <= 1_000
    assert set(server.since[1:]) <= {"all", "m1", "m2"}


def test_what_was_answered_before_a_connection_stood_is_heard(server: NtfyServer, tmp_path: Path) -> None:
    def early(server: NtfyServer) -> None:
        server.press("go on")
        server.drop_streams()

    assert asking(server, tmp_path, early) == "go on"


def test_nobody_is_waited_for_longer_than_was_set(server: NtfyServer, tmp_path: Path) -> None:
    assert asking(server, tmp_path, lambda _: None, patience=0.05) is None


def test_a_protected_topic_gets_its_token_and_a_webhook_does_not(
    server: NtfyServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NTFY_TOKEN", "tk_1")
    asking(server, tmp_path, lambda server: server.press("go on"))
    assert set(server.tokens) == {"Bearer tk_1"}
    server.tokens.clear()
    sent(NotifySettings(webhook=f"{server.address}/hook"), tmp_path, "one")
    assert server.tokens == [None]


def test_a_command_gets_the_notice_in_its_variables(tmp_path: Path) -> None:
    script = "import os; open(os.environ['OUT'], 'a').write(os.environ['AGENT_TUI_TEXT'] + chr(10))"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OUT", str(tmp_path / "out"))
        assert sent(NotifySettings(command=(sys.executable, "-c", script)), tmp_path, "one; rm -rf x") == []
    assert (tmp_path / "out").read_text() == "one; rm -rf x\n"


def test_limits_and_ends_of_a_supervised_agent_are_told(
    home: Path, supervise: Supervise, server: NtfyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulated(monkeypatch)
    monkeypatch.setenv("AGENT_TUI_NOTIFY__NTFY", f"{server.address}/nights")
    assert supervise([LIMIT_OF_2_H, [DONE]], "--on-limit", "wait").returncode == 0
    told = [(body["title"], body["message"]) for _, body in server.got]
    assert [title for title, _ in told] == ["Claude Code in work: a limit", "Claude Code in work: ended"]
    assert "it waits, and goes on at" in told[0][1]
    assert told[1][1] == "exit code 0"


@pytest.mark.parametrize(
    ("label", "code", "attempts"), [("go on", 0, 2), ("stop", 4, 1)], ids=["go on", "stop"]
)
def test_a_limit_is_agreed_to_from_away(
    label: str,
    code: int,
    attempts: int,
    home: Path,
    supervise: Supervise,
    server: NtfyServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    simulated(monkeypatch)
    monkeypatch.setenv("AGENT_TUI_NOTIFY__NTFY", f"{server.address}/nights")
    monkeypatch.setenv("AGENT_TUI_NOTIFY__REPLIES", f"{server.address}/answers")
    threading.Thread(target=server.press, args=(label,)).start()
    done = supervise([LIMIT_OF_2_H, [DONE]], "--on-limit", "ask")
    assert (done.returncode, len(runs(home))) == (code, attempts)
    assert f"answered from away: {label}" in done.stderr
    assert "It can go on at" in server.asked()["message"]


def test_a_stuck_agent_is_told_what_a_person_says_from_away(
    home: Path, supervise: Supervise, server: NtfyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_TUI_NOTIFY__NTFY", f"{server.address}/nights")
    monkeypatch.setenv("AGENT_TUI_NOTIFY__REPLIES", f"{server.address}/answers")
    says = threading.Thread(target=lambda: server.publish("answers", f"{code_of(server)} use ninja"))
    says.start()
    assert supervise([STUCK, [DONE]]).returncode == 0
    assert runs(home)[1]["argv"][-1] == "use ninja"


def test_nothing_is_sent_unless_it_is_configured(supervise: Supervise, server: NtfyServer) -> None:
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
    monkeypatch.setenv(f"AGENT_TUI_NOTIFY__{key.upper()}", value)
    assert main(["supervise", "--", "claude", "-p", "x"]) == 2
    assert "must be an address as https://" in capsys.readouterr().err
