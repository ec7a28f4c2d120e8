"""Links that answer a question: one answer, by a POST, from whoever has the link, while somebody waits for it."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import pytest

from tests.agents.conftest import Supervise
from tests.agents.test_notices import Hurried
from tests.agents.test_supervise import DONE, LIMIT_OF_2_H, runs, simulated
from tests.ntfy_server import NtfyServer, ntfy_server
from tui_agent.agents.answer_page import AnswerServer
from tui_agent.agents.notices import Notices, questions_in
from tui_agent.agents.questions import Link, Question, Questions
from tui_agent.cli import main
from tui_agent.config.sections import NotifySettings
from tui_agent.store.redaction import Redactor

server = ntfy_server
ASKED = Question(title="Codex CLI in work: a question", text="go on?", choices=("go on", "stop"))


@dataclass
class Site:
    """The server of links, with the questions of one process."""

    questions: Questions
    server: AnswerServer
    port: int

    def ask(self, question: Question = ASKED, patience: float = 600.0) -> Link:
        return self.questions.ask(question, patience)

    @property
    def origin(self) -> str:
        return self.server.base


@asynccontextmanager
async def site_at(folder: Path, clock: Hurried | None = None) -> AsyncIterator[Site]:
    clock = clock or Hurried()
    answers = AnswerServer("", folder, clock.now)
    listening = await asyncio.start_server(answers.serve, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    answers.base = f"http://127.0.0.1:{port}"
    async with listening:
        questions = Questions(answers.base, folder, clock)
        yield Site(questions, answers, port)
        questions.close()
        answers.end()


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with site_at(tmp_path / "questions") as made:
        yield made


@pytest.fixture
async def browser() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as made:
        yield made


async def opened(browser: aiohttp.ClientSession, address: str, **headers: str) -> tuple[int, str]:
    async with browser.get(address, headers=headers) as page:
        return page.status, await page.text()


async def sent(
    browser: aiohttp.ClientSession, address: str, words: str = "go on", **headers: str
) -> tuple[int, str]:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    async with browser.post(address, data={"answer": words}, headers=given) as page:
        return page.status, await page.text()


async def test_a_link_shows_its_question_and_takes_one_answer(
    site: Site, browser: aiohttp.ClientSession
) -> None:
    link = site.ask()
    status, page = await opened(browser, link.address)
    assert (status, re.findall(r'<button name="answer" value="([^"]*)"', page)) == (200, ["go on", "stop"])
    assert "go on?" in page
    status, page = await sent(browser, link.address, "use <ninja>", Origin=site.origin)
    assert (status, "use &lt;ninja&gt;" in page) == (200, True)
    assert await site.questions.answered(link) == "use <ninja>"
    for again in (opened(browser, link.address), sent(browser, link.address, "stop")):
        status, page = await again
        assert (status, "answered already" in page, "<form" in page) == (410, True, False)
    assert await site.questions.answered(link) == "use <ninja>"


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE"])
async def test_nothing_but_the_form_answers(method: str, site: Site, browser: aiohttp.ClientSession) -> None:
    link = site.ask()
    given = f"{link.address}?answer=stop&fbclid=1"
    async with browser.request(method, given, data={"answer": "stop"}) as page:
        assert page.status == (200 if method in {"GET", "HEAD"} else 405)
    assert (await opened(browser, given))[0] == 200, "it is still open"
    assert site.questions.settle(link) is None


async def test_a_link_says_why_it_takes_no_answer(tmp_path: Path, browser: aiohttp.ClientSession) -> None:
    folder = tmp_path / "questions"
    async with site_at(folder) as site:
        late, settled, gone = site.ask(patience=-1), site.ask(), site.ask()
        site.questions.settle(settled)
        for link, said in ((late, "too late"), (settled, "answered elsewhere")):
            for status, page in (await opened(browser, link.address), await sent(browser, link.address)):
                assert (status, said in page) == (410, True)
        site.questions.close()
        status, page = await sent(browser, gone.address)
        assert (status, "the run that asked has ended" in page) == (410, True)


async def test_of_two_answers_at_once_one_is_taken(site: Site, browser: aiohttp.ClientSession) -> None:
    link = site.ask()
    words = [f"answer {number}" for number in range(12)]
    given = await asyncio.gather(*(sent(browser, link.address, each) for each in words))
    taken = [words[place] for place, (status, _) in enumerate(given) if status == 200]
    assert [await site.questions.answered(link)] == taken
    assert {status for status, _ in given} == {200, 410}
    assert [one.suffix for one in link.path.parent.iterdir() if one.suffix == ".part"] == []


async def test_questions_and_their_key_are_for_their_owner_alone(site: Site) -> None:
    run = site.ask().path.parent
    assert {oct(one.stat().st_mode & 0o777) for one in run.iterdir()} == {"0o600"}
    assert oct(run.stat().st_mode & 0o777) == "0o700"


async def test_what_is_long_gone_is_removed_and_what_waits_is_not(site: Site, tmp_path: Path) -> None:
    waits, old = site.ask().path.parent, Questions("http://x", tmp_path / "questions", Hurried())
    gone = old.ask(ASKED, 600).path.parent
    old.close()
    for run in (waits, gone):
        os.utime(run, (0, 0))
    new = Questions("http://x", tmp_path / "questions", Hurried())
    new.ask(ASKED, 600)
    new.close()
    assert (waits.exists(), gone.exists()) == (True, False)


# --- by notices -------------------------------------------------------------------------------------------------------


def noticed(settings: NotifySettings, folder: Path) -> Notices:
    return Notices(settings, folder, Hurried(), print, Redactor({"API_TOKEN": "s3cret-s3cret-s3cret"}))


async def test_every_way_carries_the_link_and_no_secret(
    server: NtfyServer, tmp_path: Path, browser: aiohttp.ClientSession
) -> None:
    script = "import os; open(os.environ['OUT'], 'w').write(os.environ['AGENT_TUI_LINK'])"
    async with site_at(questions_in(tmp_path / "notices")) as site:
        settings = NotifySettings(
            ntfy=f"{server.address}/nights",
            webhook=f"{server.address}/hook",
            command=(sys.executable, "-c", script),
            link=site.origin,
        )
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("OUT", str(tmp_path / "out"))
            sender = noticed(settings, tmp_path / "notices")
            text = "curl -H s3cret-s3cret-s3cret \x1b[31m<b>\u202e" + "x" * 2_000
            asked = asyncio.create_task(sender.ask("Codex CLI in work", text, ("go on", "stop")))
            while not (tmp_path / "out").is_file() or len(server.got) < 2:
                await asyncio.sleep(0)
            by_hook = next(body for path, body in server.got if path == "/hook")
            link = by_hook["link"]
            assert by_hook["text"].endswith(f"(answer at {link})")
            assert len(by_hook["text"]) <= 1_000
            assert server.cache[0]["click"] == link
            while (tmp_path / "out").read_text() != link:
                await asyncio.sleep(0)
            _, page = await opened(browser, link)
            assert "&lt;b&gt;" in page
            assert not any(one in page for one in ("s3cret", "\x1b", "\u202e", "<b>"))
            await sent(browser, link, "stop", Origin=site.origin)
            assert await asked == "stop"
            await sender.close(60)


async def test_an_answer_by_another_way_settles_the_link(
    server: NtfyServer, tmp_path: Path, browser: aiohttp.ClientSession
) -> None:
    async with site_at(questions_in(tmp_path)) as site:
        settings = NotifySettings(
            ntfy=f"{server.address}/nights", replies=f"{server.address}/answers", link=site.origin
        )
        sender = noticed(settings, tmp_path)
        asked = asyncio.create_task(sender.ask("Codex CLI in work", "go on?", ("go on", "stop")))
        await asyncio.to_thread(server.press, "go on")
        assert await asked == "go on"
        status, page = await opened(browser, server.cache[0]["click"])
        assert (status, "answered elsewhere" in page) == (410, True)
        await sender.close(60)


@contextmanager
def serving(base: str) -> Iterator[int]:
    """The port of `agent-tui serve --answers`, for links that begin with `base`."""
    ours = [sys.executable, "-m", "tui_agent", "serve", "--answers"]
    given = {**os.environ, "AGENT_TUI_NOTIFY__LINK": base}
    with subprocess.Popen(ours, env=given, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        yield int(running.stdout.readline().split("port ")[1].split(",")[0])
        running.send_signal(signal.SIGINT)
        assert running.wait(60) == 0


@pytest.mark.process
def test_a_limit_is_agreed_to_by_a_link(
    home: Path,
    supervise: Supervise,
    server: NtfyServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    simulated(monkeypatch)
    with serving("https://me.example") as port:
        monkeypatch.setenv("AGENT_TUI_NOTIFY__LINK", "https://me.example")
        monkeypatch.setenv("AGENT_TUI_NOTIFY__WEBHOOK", f"{server.address}/hook")

        def answer() -> None:
            with server.changed:
                assert server.changed.wait_for(lambda: any("link" in body for _, body in server.got), 60)
            link = next(body["link"] for _, body in server.got if "link" in body)
            # As behind what ends the encryption: it connects to the port, and passes the name on.
            there = f"http://127.0.0.1:{port}{urlsplit(link).path}"
            given = urllib.request.Request(there, b"answer=go+on", {"Host": "me.example"})
            answered.append(urllib.request.urlopen(given).status)

        answered: list[int] = []
        person = threading.Thread(target=answer)
        person.start()
        done = supervise([LIMIT_OF_2_H, [DONE]], "--on-limit", "ask")
        person.join()
    assert answered == [200]
    assert (done.returncode, len(runs(home))) == (0, 2)
    assert "answered from away: go on" in done.stderr


def test_links_need_an_address(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", "--answers"]) == 2
    assert "your notices carry no links" in capsys.readouterr().err
    assert main(["serve", "--answers", "--host", "10.1.2.3"]) == 2
    assert "whoever has a link answers its question" in capsys.readouterr().err
    for wrong in ("me.example", "ftp://me.example", "https://me.example/path", "https://a@me.example"):
        monkeypatch.setenv("AGENT_TUI_NOTIFY__LINK", wrong)
        assert main(["serve", "--answers"]) == 2
        assert "must be an address as https://HOST" in capsys.readouterr().err
