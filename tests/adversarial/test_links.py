"""Attacks on the links that answer a question: by previews, by other pages, by forged and used links, by requests that
never end; and on whoever reads the page.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.adversarial.attack import Attack, attack, attacks
from tests.agents.test_answer_page import ASKED, Site, site_at
from tui_agent.agents import answer_page
from tui_agent.agents.questions import Link, Question

WORDS = b"answer=stop"


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with site_at(tmp_path / "questions") as made:
        yield made


async def exchanged(site: Site, sent: bytes) -> bytes:
    """What the server sends until it closes the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
    writer.write(sent)
    try:
        return await reader.read()
    except ConnectionResetError:
        return b""
    finally:
        writer.close()


def request(
    site: Site, path: str, *headers: str, method: str = "POST", body: bytes = WORDS, host: str | None = None
) -> bytes:
    host = f"127.0.0.1:{site.port}" if host is None else host
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join((*lines, "", "")).encode() + body


def path_of(link: Link) -> str:
    return "/" + link.address.rpartition("/")[2]


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1]) if answer else 0


async def still_answers(site: Site, link: Link) -> bool:
    """The question is open, and takes the right answer."""
    return status(await exchanged(site, request(site, path_of(link)))) == 200


# --- links that are not right -----------------------------------------------------------------------------------------


def parts(link: Link) -> list[str]:
    return path_of(link)[1:].split("-", 3)


def resigned(link: Link, key: bytes, **changed: str) -> str:
    run, number, expires, _ = parts(link)
    name = "-".join((changed.get("run", run), changed.get("number", number), changed.get("expires", expires)))
    made = (
        base64.urlsafe_b64encode(hmac.new(key, name.encode(), hashlib.sha256).digest()).decode().rstrip("=")
    )
    return f"/{name}-{made}"


def with_part(place: int, value: str) -> Callable[[Link, Link], str]:
    def changed(mine: Link, other: Link) -> str:
        made = parts(mine)
        made[place] = value
        return "/" + "-".join(made)

    return changed


FORGED: dict[str, tuple[str, Callable[[Link, Link], str]]] = {
    "other_question": (
        "The signature of one question under the number of another",
        lambda mine, other: "/" + "-".join((*parts(other)[:3], parts(mine)[3])),
    ),
    "longer_time": ("A link with a later end of its time", with_part(2, "99999999999")),
    "no_key": ("A link signed with an empty key", lambda mine, other: resigned(mine, b"")),
    "another_key": ("A link signed with a key of zeros", lambda mine, other: resigned(mine, bytes(32))),
    "cut": ("A link that lost its last letter", lambda mine, other: path_of(mine)[:-1]),
    "no_signature": ("A link without its signature", lambda mine, other: path_of(mine)[:-43]),
    "climbing": (
        "A link whose run climbs out of the folder",
        lambda mine, other: "/../" + path_of(mine)[1:],
    ),
    "percent": ("A link in percent signs", lambda mine, other: "/%2e%2e%2f" + path_of(mine)[1:]),
    "question_itself": (
        "The path of the question's file",
        lambda mine, other: f"/{mine.path.parent.name}/{mine.path.name}",
    ),
    "key": ("The path of the key", lambda mine, other: f"/{mine.path.parent.name}/key"),
    "other_digits": ("A link whose number is written in other digits", with_part(1, "\u0661")),
}


@attacks(
    *(
        Attack(
            name,
            tried,
            "The page of a link that belongs to no question; each question stays open",
            value=made,
        )
        for name, (tried, made) in FORGED.items()
    )
)
async def test_a_forged_link(row: Attack, site: Site) -> None:
    mine, other = site.ask(), site.ask()
    path = row.value(mine, other)
    for method in ("GET", "POST"):
        answer = await exchanged(site, request(site, path, method=method))
        assert status(answer) in {400, 404}
        assert b"go on?" not in answer
    assert await still_answers(site, mine)
    assert await still_answers(site, other)


@attack("A used link, sent again with another answer", "It is answered already; the first answer stands")
async def test_replay(site: Site) -> None:
    link = site.ask()
    first = request(site, path_of(link))
    assert status(await exchanged(site, first)) == 200
    for again in (first, request(site, path_of(link), body=b"answer=go+on")):
        assert status(await exchanged(site, again)) == 410
    assert await site.questions.answered(link) == "stop"


# --- whoever opens or sends it ----------------------------------------------------------------------------------------

BOTS = (
    "Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)",
    "WhatsApp/2.23.20.0",
    "TelegramBot (like TwitterBot)",
    "Mozilla/5.0 (compatible; Discordbot/2.0)",
    "facebookexternalhit/1.1",
)


@attack("Previews and scanners open the link, with the choices in its query", "The question stays open")
async def test_previews(site: Site) -> None:
    link = site.ask()
    for bot in BOTS:
        for method in ("GET", "HEAD"):
            for path in (path_of(link), f"{path_of(link)}?answer=stop"):
                asked = request(site, path, f"User-Agent: {bot}", method=method)
                assert status(await exchanged(site, asked)) == 200
    assert await still_answers(site, link)


def sent_by(name: str, tried: str, *headers: str, host: str | None = None) -> Attack:
    return Attack(name, tried, "A refusal; the question stays open", value=(headers, host))


@attacks(
    sent_by("other_page", "A form of another page sends an answer", "Origin: http://evil.example"),
    sent_by("other_port", "A page of another port of this host sends one", "Origin: http://127.0.0.1:1"),
    sent_by("hidden_page", "A page that hides its origin sends one", "Origin: null"),
    sent_by("cross_site", "The browser says that another site sends one", "Sec-Fetch-Site: cross-site"),
    sent_by("same_site", "A page beside this one sends one", "Sec-Fetch-Site: same-site"),
    sent_by("other_host", "A name that was made to lead here (DNS rebinding)", host="evil.example"),
    sent_by("no_host", "A request for no name", host=""),
    sent_by("two_hosts", "A request for two names", "Host: evil.example"),
)
async def test_an_answer_that_another_page_sends(row: Attack, site: Site) -> None:
    link = site.ask()
    headers, host = row.value
    answer = await exchanged(site, request(site, path_of(link), *headers, host=host))
    assert status(answer) in {400, 403}
    assert b"go on?" not in answer
    assert await still_answers(site, link)


# --- requests that are too much ---------------------------------------------------------------------------------------


@attack("A body of 100 MB that is announced, and one that comes in pieces", "A refusal, without reading it")
async def test_huge_body(site: Site) -> None:
    link = site.ask()
    path = path_of(link)
    announced = request(site, path, "X: x", body=b"answer=" + b"x" * 65_536)
    in_pieces = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{site.port}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
        + (b"4000\r\n" + b"x" * 0x4000 + b"\r\n") * 8
    )
    for sent in (announced, in_pieces):
        assert status(await exchanged(site, sent)) in {0, 413}
    assert await still_answers(site, link)


@attack("A head of 1 MB: one header, many headers, a line without an end", "A refusal, without keeping it")
async def test_huge_head(site: Site) -> None:
    link = site.ask()
    for head in ("X: " + "x" * 1_000_000, "\r\n".join(f"X{n}: x" for n in range(100_000))):
        assert status(await exchanged(site, request(site, path_of(link), head))) in {0, 400, 431}
    assert status(await exchanged(site, b"GET /" + b"x" * 1_000_000)) in {0, 400, 431}
    assert await still_answers(site, link)


@attack(
    "Two requests in one, to pass one by what looks at them before", "The first is answered, the second never"
)
async def test_smuggled(site: Site) -> None:
    link, other = site.ask(), site.ask()
    inner = request(site, path_of(other))
    lengths = request(site, path_of(link), f"Content-Length: {len(WORDS + inner)}", body=WORDS + inner)
    both = request(site, path_of(link), "Transfer-Encoding: chunked", body=b"0\r\n\r\n" + inner)
    behind = request(site, path_of(link), method="GET", body=b"") + inner
    for sent in (lengths, both, behind):
        await exchanged(site, sent)
    assert await still_answers(site, other)


@attack(
    "A connection that sends a letter now and then, and one that reads nothing",
    "It ends at its time, whatever comes",
)
async def test_slow_loris(tmp_path: Path) -> None:
    async with site_at(tmp_path / "questions") as site:
        site.server.seconds = 0.2
        reader, writer = await asyncio.open_connection("127.0.0.1", site.port)

        async def drip() -> None:
            while True:
                writer.write(b"G")
                await asyncio.sleep(0.01)

        dripping = asyncio.create_task(drip())
        async with asyncio.timeout(60):
            with suppress(ConnectionResetError):
                assert await reader.read() == b""
        dripping.cancel()
        writer.close()


@attack(
    "A thousand connections that say nothing", "A question is answered beside them; no more than 64 stay open"
)
async def test_flood(site: Site) -> None:
    link = site.ask()
    idle = [await asyncio.open_connection("127.0.0.1", site.port) for _ in range(1_000)]
    assert await still_answers(site, link)
    assert len(site.server._open) <= answer_page._MOST
    for _, writer in idle:
        writer.close()


# --- whoever reads the page -------------------------------------------------------------------------------------------

HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(1)></h1></form><form action=//evil.example>"
    "\"' onfocus=alert(1) autofocus \x1b]52;c;x\x07 \u202e [link](javascript:alert(1))"
)


@attack("A question, choices and an answer of HTML, ANSI and marks", "Text; the page runs and loads nothing")
async def test_hostile_words(site: Site) -> None:
    link = site.ask(Question(title=HOSTILE, text=HOSTILE, choices=(HOSTILE, "stop")))
    shown = await exchanged(site, request(site, path_of(link), method="GET", body=b""))
    taken = await exchanged(site, request(site, path_of(link), body=b"answer=" + HOSTILE.encode()))
    assert (status(shown), status(taken)) == (200, 200)
    for page in (shown, taken):
        head, _, body = page.partition(b"\r\n\r\n")
        text = body.decode()
        assert not any(one in text for one in ("<script", "<img", "<form action", "<a ", "\x1b", "\x07"))
        assert "&lt;script&gt;" in text
        assert text.count("<form") in {0, 2}
        assert b"default-src 'none'" in head
        assert b"frame-ancestors 'none'" in head


@attack(
    "An answer of 30,000 letters, of half a character, of nothing, of a thousand fields",
    "Cut, made whole, or sent back",
    fell="the server ended the connection with a traceback on a thousand fields",
)
async def test_odd_answers(site: Site) -> None:
    for body, expected, kept in (
        (b"answer=" + b"x" * 30_000, 200, "x" * 2_000),
        (b"answer=%ff%fe+\xf0\x9f", 200, "\ufffd\ufffd \ufffd"),
        (b"answer=%00%1b[31m", 200, "\x00\x1b[31m"),
        (b"answer=++", 400, None),
        (b"", 400, None),
        (b"&".join(b"a=b" for _ in range(1_000)), 400, None),
    ):
        link = site.ask(ASKED)
        assert status(await exchanged(site, request(site, path_of(link), body=body))) == expected
        assert site.questions.settle(link) == kept
