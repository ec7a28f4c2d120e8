"""One page of the web, fetched and made readable, as a process: `python -m tui_agent.tools.web_process`.

A request as JSON on standard input, one JSON object on standard output. It is a process because names resolve, servers
drip and pages nest as their owners want: a process can be stopped, and bounded in memory.
"""

from __future__ import annotations

import codecs
import html
import ipaddress
import json
import os
import re
import signal
import socket
import ssl
import sys
import threading
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import urljoin, urlsplit

import certifi
import httpcore

from tui_agent import __version__
from tui_agent.tools.web_address import AddressError, checked_url, redirected, refusal

_MOST_REDIRECTS = 5
_SECONDS = 15.0
"""For a connection, and for each read; the whole is bounded by who started this process."""
_PIECE = 1 << 16
_ERROR_BYTES = 20_000
_TEXTUAL = re.compile(r"text/|application/(?:[\w.+-]*\+)?(?:json|xml|yaml|toml|javascript|x-sh|x-ndjson)\b")
_HTML = ("text/html", "application/xhtml+xml")
_BESIDE = (
    "script",
    "style",
    "noscript",
    "template",
    "svg",
    "nav",
    "footer",
    "aside",
    "iframe",
    "form",
    "button",
)
"""Elements that are no text of the page."""
_LAYOUT_SECONDS = 5.0
"""Of the processor, for making Markdown of a page."""
_SHORTEST_MAIN = 200
"""Characters from which on a page's `main` or `article` is taken for what it says."""
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


class FetchError(Exception):
    """Nothing was fetched; `transient`: it may be another time."""

    def __init__(self, message: str, *, transient: bool = False) -> None:
        super().__init__(message)
        self.transient = transient


class Guarded(httpcore.NetworkBackend):
    """Resolves a name once, judges what it resolves to, and connects to that very address."""

    def __init__(self, allowed: tuple[str, ...], backend: httpcore.NetworkBackend | None = None) -> None:
        self._allowed = allowed
        self._backend = backend or httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            said = error.strerror if isinstance(error, OSError) else str(error)
            raise FetchError(f"The host {host} could not be found: {said}.") from None
        addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
        for text in addresses:
            why = refusal(host, ipaddress.ip_address(text), self._allowed)
            if why:
                raise AddressError(why)
        fault: httpcore.NetworkError | httpcore.TimeoutException | None = None
        for text in addresses[:4]:
            try:
                return self._backend.connect_tcp(text, port, timeout, local_address, socket_options)
            except (httpcore.NetworkError, httpcore.TimeoutException) as error:
                fault = error
        raise fault or FetchError(f"The host {host} has no address.")


def fetch(request: dict[str, Any]) -> dict[str, Any]:
    """The page of a request (`url`, `private_hosts`, `max_bytes`, `raw`). Raises `FetchError`, `AddressError`."""
    url = checked_url(str(request["url"]))
    context = ssl.create_default_context(cafile=os.environ.get("SSL_CERT_FILE") or certifi.where())
    backend = Guarded(tuple(request["private_hosts"]))
    with httpcore.ConnectionPool(ssl_context=context, network_backend=backend, max_connections=1) as pool:
        for _ in range(_MOST_REDIRECTS + 1):
            page = _get(pool, url, int(request["max_bytes"]), raw=bool(request["raw"]))
            if isinstance(page, dict):
                return page
            url = redirected(url, page)
    raise FetchError(f"The address redirects more than {_MOST_REDIRECTS} times.")


def _get(pool: httpcore.ConnectionPool, url: str, limit: int, *, raw: bool) -> dict[str, Any] | str:
    """The page, or the target of its redirect."""
    headers: dict[bytes | str, bytes | str] = {
        "Host": urlsplit(url).netloc,
        "User-Agent": f"agent-tui/{__version__}",
        "Accept": "text/markdown, text/html;q=0.9, text/plain;q=0.9, application/json;q=0.9, */*;q=0.5",
        "Accept-Encoding": "gzip, deflate",
    }
    times = dict.fromkeys(("connect", "read", "write", "pool"), _SECONDS)
    try:
        with pool.stream("GET", url, headers=headers, extensions={"timeout": times}) as response:
            got = {
                name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers
            }
            if response.status in _REDIRECTS and got.get("location"):
                return got["location"]
            kind = got.get("content-type", "").partition(";")[0].strip().lower()
            failed = response.status >= 400
            if kind and not _TEXTUAL.match(kind) and kind not in _HTML and not failed:
                raise FetchError(
                    f"{url} is {kind}, which is not text. Use a command to get it, such as curl -o FILE."
                )
            encoding = got.get("content-encoding", "").strip().lower()
            data, whole = _bounded(
                _decoded(response.iter_stream(), encoding, limit), _ERROR_BYTES if failed else limit
            )
    except (httpcore.TimeoutException, TimeoutError):
        raise FetchError(f"{url}: the server did not answer in time.", transient=True) from None
    except (
        httpcore.NetworkError,
        httpcore.ProtocolError,
        httpcore.UnsupportedProtocol,
        ssl.SSLError,
    ) as error:
        said = f"{type(error).__name__}: {str(error)[:300]}".rstrip(": ")
        raise FetchError(f"{url} could not be fetched: {said}.", transient=True) from None
    charset = re.search(r"charset=[\"']?([\w.:-]+)", got.get("content-type", ""), re.IGNORECASE)
    text, title = _readable(data, kind, charset[1] if charset else "", url, raw=raw)
    if failed:
        phrase = response.extensions.get("reason_phrase", b"").decode("latin-1")
        said = f"{url}: the server answered {response.status} {phrase}".rstrip() + "."
        transient = response.status == 429 or response.status >= 500
        raise FetchError(f"{said}\n{text[:1_000]}".rstrip(), transient=transient)
    return {"url": url, "title": title, "text": text, "whole": whole, "bytes": len(data)}


def _decoded(stream: Iterable[bytes], encoding: str, limit: int) -> Iterator[bytes]:
    """The body's bytes; no piece is larger than `limit`, however far it unpacks. Raises `FetchError`."""
    if encoding in {"", "identity"}:
        yield from stream
        return
    if encoding not in {"gzip", "x-gzip", "deflate"}:
        raise FetchError(f"The server packed the page as {encoding[:40]!r}, which was not asked for.")
    unpack = zlib.decompressobj(47)
    try:
        for piece in stream:
            left = piece
            while left:
                yield unpack.decompress(left, _PIECE)
                left = unpack.unconsumed_tail
    except zlib.error as error:
        raise FetchError(f"The server's packed answer is damaged: {error}.", transient=True) from None


def _bounded(pieces: Iterable[bytes], limit: int) -> tuple[bytes, bool]:
    """The first `limit` bytes, and whether that is all of them."""
    data = bytearray()
    for piece in pieces:
        data += piece
        if len(data) > limit:
            return bytes(data[:limit]), False
    return bytes(data), True


def _readable(data: bytes, kind: str, charset: str, url: str, *, raw: bool) -> tuple[str, str]:
    """The text and the title of a page. Raises `FetchError` if it is no text."""
    looks_like_html = not kind and data[:1_000].lstrip().lower().startswith((b"<!doctype html", b"<html"))
    if (kind in _HTML or looks_like_html) and not raw:
        return _of_html(data, charset, url)
    if b"\0" in data[:_PIECE] and not charset.lower().startswith(("utf-16", "utf-32")):
        raise FetchError(f"{url} is not text. Use a command to get it, such as curl -o FILE.")
    return data.decode(_codec(charset), "replace"), ""


_NO_CHARSETS = frozenset({"idna", "punycode", "undefined", "unicode_escape", "raw_unicode_escape"})
"""Names of Python's that are no charset of a page: they raise, run escapes, or take quadratic time."""


def _codec(charset: str) -> str:
    """The charset, if it is one that text can be in; else UTF-8."""
    try:
        name = codecs.lookup(charset or "utf-8").name.replace("-", "_")
        if name in _NO_CHARSETS:
            return "utf-8"
        b"a".decode(charset or "utf-8", "replace")
    except (LookupError, ValueError):
        return "utf-8"
    return charset or "utf-8"


class _TooLongError(Exception):
    """A page takes too much of the processor to be laid out."""


@contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """Raise `_TooLongError` in the block when it has used so much of the processor, if signals can be had."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return

    def over(*_: object) -> None:
        raise _TooLongError

    signal.signal(signal.SIGPROF, over)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


_DEEPEST = 400
"""Elements within each other, which no page for people has."""
_TAG = re.compile(r"<(/?)[a-zA-Z][^<>]{0,2000}>")
_EMPTY = re.compile(
    r"<(?:area|base|br|col|embed|hr|img|input|link|meta|param|source|track|wbr|p|li|t[dhr])\b", re.IGNORECASE
)


def _of_html(data: bytes, charset: str, url: str) -> tuple[str, str]:
    """A page as Markdown and its title; as bare text if it is made so that it cannot be laid out."""
    from bs4.dammit import EncodingDetector

    charset = charset or EncodingDetector.find_declared_encoding(data, is_html=True) or ""
    source = data.decode(_codec(charset), "replace").removeprefix("\ufeff")
    # The parser raises what it likes for what is no HTML.
    with suppress(Exception), _at_most(_LAYOUT_SECONDS):
        if not _is_deep(source):
            return _laid_out(source, url)
    return _bare(source), ""


def _is_deep(source: str) -> bool:
    """True if more elements are open at some place than a page for people has."""
    depth = 0
    for tag in _TAG.finditer(source):
        if tag[1]:
            depth = max(depth - 1, 0)
        elif not tag[0].endswith("/>") and not _EMPTY.match(tag[0]):
            depth += 1
            if depth > _DEEPEST:
                return True
    return False


def _bare(source: str) -> str:
    """The text between the tags, in linear time."""
    pieces: list[str] = []
    inside = ""
    for piece in source.split("<"):
        tag, closed, text = piece.partition(">")
        name = tag[:10].lower()
        if inside:
            if not name.startswith(f"/{inside}"):
                continue
            inside = ""
        inside = next((one for one in ("script", "style") if name.startswith(one)), "")
        if not inside:
            pieces.append(text if closed else "")
    lines = (" ".join(html.unescape(line).split()) for line in "\n".join(filter(None, pieces)).split("\n"))
    return "\n".join(filter(None, lines))


def _laid_out(source: str, url: str) -> tuple[str, str]:
    from bs4 import BeautifulSoup
    from markdownify import MarkdownConverter

    soup = BeautifulSoup(source, "html.parser")
    title = " ".join(soup.title.get_text().split()) if soup.title is not None else ""
    for element in soup(_BESIDE):
        element.decompose()
    for element in soup.select(
        '[hidden], [aria-hidden="true"], [style*="display:none"], [style*="display: none"]'
    ):
        element.decompose()
    for link in soup("a", href=True):
        target = _joined(url, str(link["href"]))
        if target.startswith(("http://", "https://")) and "#" not in str(link["href"])[:1]:
            link["href"] = target
        else:
            del link["href"]
    root = next((found for found in soup.select("main, [role=main], article") if _says_much(found)), None)
    root = root or soup.body or soup
    text = MarkdownConverter(heading_style="ATX", bullets="-", strip=["img"]).convert_soup(root)
    lines = (line.rstrip() for line in text.split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n"), title


def _joined(url: str, target: str) -> str:
    """The address of a link; "" for what is none."""
    try:
        return urljoin(url, target)
    except ValueError:
        return ""


def _says_much(element: Any) -> bool:
    return len(element.get_text(" ", strip=True)) >= _SHORTEST_MAIN


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """The page as `fetch` has it, or `error` and whether it is `transient`."""
    try:
        return fetch(request)
    except AddressError as error:
        return {"error": str(error), "transient": False}
    except FetchError as error:
        return {"error": str(error), "transient": error.transient}
    except Exception as error:  # noqa: BLE001 - whatever a server makes of it is an answer
        said = f"The page could not be read: {type(error).__name__}: {str(error)[:300]}"
        return {"error": said, "transient": False}


def main() -> None:
    """Answer the one request."""
    answered = answer(json.loads(sys.stdin.buffer.read()))
    sys.stdout.buffer.write(json.dumps(answered).encode("utf-8", "replace"))


if __name__ == "__main__":
    main()
