"""Attacks by servers of the web: pages made to end or to stall their reader, redirects to where nobody wanted to go."""

from __future__ import annotations

import asyncio
import gzip
import re
import time
import zlib
from collections.abc import Callable

import aiohttp
import pytest

from tests.adversarial.attack import Attack, attack, attacks
from tests.test_serve import address as address
from tests.tools.box import Box
from tests.tools.web_server import WebServer, moved, page, read_here
from tui_agent.config.sections import WebSettings
from tui_agent.console.serve import Address
from tui_agent.tools.errors import ToolError
from tui_agent.tools.registry import default_tools
from tui_agent.tools.tool import ToolOutput
from tui_agent.tools.web_address import AddressError, redirected

GIVEN_UP = 25.0
"""Seconds after which the reader is ended; a page should be read long before."""
WORDS = "what the page says"
GZIPPED = "Content-Encoding: gzip"


@pytest.fixture
def web(box: Box) -> Box:
    box.registry = default_tools(web=WebSettings(private_hosts=("127.0.0.0/8",), timeout=GIVEN_UP))
    return box


@pytest.fixture
def web_here(web: Box, monkeypatch: pytest.MonkeyPatch) -> Box:
    """The same with the reader in this process: for what neither stalls nor ends it."""
    read_here(monkeypatch)
    return web


async def _read(row: Attack, box: Box) -> ToolOutput:
    async with WebServer({"/": row.value() if callable(row.value) else row.value}) as server:
        return await box.call("web_fetch", url=f"{server.url}/")


def reads(
    name: str,
    tried: str,
    answer: bytes | Callable[[], bytes],
    fell: str = "",
    *,
    slow: bool = False,
    holds: str = "",
) -> Attack:
    """`answer`: what the server sends, or what makes it where that takes time."""
    return Attack(name, tried, holds or "The text of the page, in bounded time", fell, slow, answer)


def in_charset(charset: str) -> bytes:
    return page(f"<html><body><p>{WORDS}</p></body></html>", f"text/html; charset={charset}")


def whole(body: str) -> bytes:
    return page(f"<html><body><p>{WORDS}</p>{body}</body></html>")


def packed(body: bytes, *headers: str) -> bytes:
    return page(gzip.compress(body), "text/html", "200 OK", GZIPPED, *headers)


def more(text: str, shown: int = 20) -> str:
    """How long a text is of which only the beginning is shown."""
    return f", {len(text):,} characters" if len(text) > shown else ""


TRACEBACK = "a traceback in place of the page"
STALLED = "given up after 25 s"


@attacks(
    *[
        reads(
            "charset_" + re.sub(r"\W", "_", name[:20]),
            f"A page whose charset is `{name[:20]}`{more(name)}",
            in_charset(name),
            fell,
        )
        for name, fell in (
            ("idna", ""),
            ("base64", ""),
            ("undefined", ""),
            ("rot13", ""),
            ("punycode", ""),
            ("unicode_escape", ""),
            ("hex", ""),
            ("zlib", ""),
            ("uu", ""),
            ("mbcs", ""),
            ("x" * 3_000, ""),
            ("utf-8,utf-16", ""),
        )
    ],
    reads(
        "charset_of_text",
        "Plain text whose charset is `base64`",
        page(WORDS, "text/plain; charset=base64"),
        TRACEBACK,
    ),
    reads(
        "charset_in_the_page",
        "A page that names `idna` in its `meta`",
        page(f"<meta charset=idna><p>{WORDS}</p>", "text/html"),
    ),
    reads("declaration_open", "`<![foo`", whole("<![foo"), TRACEBACK),
    reads(
        "declaration_wrong",
        "`<![if` and `<!DOCTYPE [` without an end",
        whole("<![if !a]><!DOCTYPE [ <!x"),
        "",
    ),
    reads("link_of_no_address", "A link to `http://[::1`", whole("<a href='http://[::1'>a</a>"), TRACEBACK),
)
async def test_a_page_whose_marks_are_wrong(row: Attack, web_here: Box) -> None:
    assert WORDS in (await _read(row, web_here)).content


@pytest.mark.process
@attacks(
    reads("elements_nested", "`<div>` 200,000 times", whole("<div>" * 200_000), STALLED),
    reads(
        "elements_mixed",
        "200,000 elements of eight kinds within each other",
        whole("<b><i><u><p><ul><li><table><td>" * 25_000),
        STALLED,
    ),
    reads(
        "articles_nested",
        "`<article>` 390 times, 60 times over",
        whole(("<article>" * 390 + "x" + "</article>" * 390) * 60),
    ),
    reads("elements_never_closed", "`</b>` 200,000 times", whole("</b>" * 200_000)),
    reads("attributes", "An element with 200,000 attributes", whole("<p " + "a=b " * 200_000 + ">")),
    reads("tags_open", "`<a` 300,000 times without an end", whole("<a" * 300_000)),
    reads("comments_open", "`<!--` 200,000 times", whole("<!--" * 200_000)),
    reads("scripts_open", "`<script>` 100,000 times without an end", whole("<script>" * 100_000)),
    reads("entities", "`&amp` and broken entities, 300,000 times", whole("&#x;&amp&#99999999999;" * 20_000)),
    reads(
        "table_of_cells",
        "A table of 60,000 cells without an end",
        whole("<table><tr>" + "<td>a" * 60_000),
        slow=True,
    ),
    reads(
        "bomb",
        "900 KB that unpack to 900 MB of spaces",
        lambda: packed(f"<p>{WORDS}</p>".encode() + b" " * 200_000_000),
        slow=True,
    ),
    reads(
        "bomb_of_elements",
        "A packed page of 40 million `<div>`",
        lambda: packed(f"<p>{WORDS}</p>".encode() + b"<div>" * 10_000_000),
        STALLED,
        slow=True,
    ),
    reads(
        "bomb_of_text",
        "The same as plain text with a charset",
        lambda: page(
            gzip.compress(WORDS.encode() + b"a" * 100_000_000),
            "text/plain; charset=utf-16-le",
            "200 OK",
            GZIPPED,
        ),
        slow=True,
        holds="Cut where it is too much",
    ),
)
async def test_a_page_made_to_end_or_to_stall_its_reader(row: Attack, web: Box) -> None:
    began = time.monotonic()
    output = await _read(row, web)
    taken = time.monotonic() - began
    if row.name != "bomb_of_text":
        assert WORDS in output.content
    assert taken < GIVEN_UP
    assert len(output.content) < 200_000


@attacks(
    *[
        Attack(
            f"location_{name}",
            f"A redirect to `{place[:40]}`{more(place, 40)}",
            "A refusal that names the place",
            fell,
            value=place,
        )
        for name, place, fell in (
            ("no_address", "http://[::1", TRACEBACK),
            ("no_port", "http://a:99999/", ""),
            ("port", "http://127.0.0.1:1/", "it was followed"),
            ("port_of_the_name", "//127.0.0.1:22/", "it was followed"),
            ("file", "file:///etc/passwd", ""),
            ("user", "http://a@127.0.0.1/", ""),
            ("host", "http://127.0.0.2/", ""),
            ("blank", "/a b\t", ""),
            ("long", "/" + "a" * 5_000, ""),
            ("script", "javascript:alert(1)", ""),
        )
    ]
)
async def test_a_redirect_to_where_nobody_wanted_to_go(row: Attack, web_here: Box) -> None:
    async with WebServer({"/": moved(row.value)}) as server:
        with pytest.raises(ToolError, match=r"redirects|address") as refused:
            await web_here.call("web_fetch", url=f"{server.url}/")
    assert len(refused.value.message) < 6_000
    assert len(server.requests) == 1


@attack(
    "Redirects from http to https and back, with and without the port", "Only the one into https is followed"
)
def test_redirects_between_the_two_ports_of_the_web() -> None:
    assert redirected("http://a.org/", "https://a.org/x") == "https://a.org/x"
    assert redirected("http://a.org:80/", "https://a.org:443/x") == "https://a.org:443/x"
    for before, after in (
        ("https://a.org/", "http://a.org/"),
        ("https://a.org/", "https://a.org:8443/"),
        ("http://a.org:8080/", "http://a.org/"),
        ("http://a.org:8080/", "https://a.org/"),
    ):
        with pytest.raises(AddressError):
            redirected(before, after)


@attacks(
    Attack(
        "drip",
        "A page of which a byte comes each 100 ms",
        "Given up after the time for it",
        value=b"a",
        slow=True,
    ),
    Attack(
        "headers_endless",
        "A header that never ends",
        "A refusal, in bounded memory",
        value=b"X-A: " + b"a" * 65_536,
        slow=True,
    ),
)
async def test_a_server_that_never_ends(row: Attack, box: Box) -> None:
    box.registry = default_tools(web=WebSettings(private_hosts=("127.0.0.0/8",), timeout=4))
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n" + (b"\r\n" if row.name == "drip" else b"")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        try:
            writer.write(head)
            while True:
                writer.write(row.value)
                await writer.drain()
                await asyncio.sleep(0.1 if row.name == "drip" else 0)
        except OSError:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    began = time.monotonic()
    with pytest.raises(ToolError):
        await box.call("web_fetch", url=f"http://127.0.0.1:{port}/")
    assert time.monotonic() - began < 120
    server.close()


@attack(
    "A packed page that is cut, or no gzip at all", "A refusal that says that it is damaged, or what there is"
)
async def test_a_damaged_page(web: Box) -> None:
    squeezed = gzip.compress(f"<p>{WORDS}</p>".encode() * 1_000)
    answers = {
        "/cut": page(squeezed[:60], "text/html", "200 OK", GZIPPED),
        "/none": page(b"\x1f\x8b\x08\x00garbage", "text/html", "200 OK", GZIPPED),
        "/twice": page(zlib.compress(squeezed), "text/html", "200 OK", "Content-Encoding: gzip, deflate"),
    }
    async with WebServer(answers) as server:
        for path in answers:
            try:
                assert "Traceback" not in (await web.call("web_fetch", url=server.url + path)).content
            except ToolError as error:
                assert "packed" in error.message  # noqa: PT017 - either way is right


@attack(
    "A websocket of `serve` with two Origin headers, or two Host headers, one of them right",
    "403",
    fell="only the first one counted",
)
async def test_headers_that_come_twice(address: Address) -> None:
    async def asked(*lines: str) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", address.port)
        cookie = f"Cookie: {address.cookie_name}={address.cookie}"
        upgrade = (
            "Upgrade: websocket",
            "Connection: Upgrade",
            "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Key: " + "a" * 22 + "==",
        )
        writer.write("\r\n".join(("GET /ws HTTP/1.1", *lines, cookie, *upgrade, "", "")).encode())
        status = await reader.readline()
        writer.close()
        return status

    right = f"Host: {address.netloc}", f"Origin: {address.origin}"
    assert b" 101 " in await asked(*right)
    for lines in (
        (*right, "Origin: http://evil.example"),
        (right[0], "Origin: http://evil.example", right[1]),
        (*right, right[1]),
        (right[0],),
        (*right, "Host: evil.example"),
    ):
        assert b" 40" in await asked(*lines), lines
    assert aiohttp.__version__
