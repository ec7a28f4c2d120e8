"""A small server that speaks ntfy's protocol on this machine: publishing (JSON at the root, or a body to the topic),
caching, and streams of JSON lines with `since` and `poll`. A plain webhook is served under `/hook`."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest


class NtfyServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: list[int] = []
        """Status of the next answers; 200 when none is left."""
        self.got: list[tuple[str, dict[str, Any]]] = []
        """What was posted as JSON, by its path."""
        self.tokens: list[str | None] = []
        """The `Authorization` of each request."""
        self.cache: list[dict[str, Any]] = []
        self.changed = threading.Condition()
        self.streams = 0
        """Streams that were opened so far; one of an earlier number than `cut` ends."""
        self.cut = 0
        self.since: list[str] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def publish(self, topic: str, message: str, **fields: Any) -> dict[str, Any]:
        with self.changed:
            made = {"id": f"m{len(self.cache)}", "time": int(time.time()), "event": "message", "topic": topic}
            self.cache.append({**made, "message": message or "triggered", **fields})
            self.changed.notify_all()
            return self.cache[-1]

    def drop_streams(self) -> None:
        with self.changed:
            self.cut = self.streams
            self.changed.notify_all()

    def asked(self) -> dict[str, Any]:
        """The newest message that has buttons, once it is there."""
        with self.changed:
            assert self.changed.wait_for(lambda: any(one.get("actions") for one in self.cache), 60)
            return next(one for one in reversed(self.cache) if one.get("actions"))

    def press(self, label: str) -> None:
        """Press a button of that message, as the app does."""
        button = next(one for one in self.asked()["actions"] if one["label"] == label)
        topic = urlsplit(button["url"]).path.strip("/")
        assert (button["action"], button["method"]) == ("http", "POST")
        self.publish(topic, button["body"])


class Handler(BaseHTTPRequestHandler):
    server: NtfyServer

    def do_POST(self) -> None:
        self.server.tokens.append(self.headers["Authorization"])
        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        status = self.server.answers.pop(0) if self.server.answers else 200
        said = b""
        if status == 200:
            said = json.dumps(self._taken(text)).encode()
        self.send_response(status)
        if status == 302:
            self.send_header("Location", f"{self.server.address}/elsewhere")
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def _taken(self, text: str) -> dict[str, Any]:
        topic = self.path.strip("/")
        if topic and topic != "hook":
            return self.server.publish(topic, text)
        body = json.loads(text)
        self.server.got.append((self.path, body))
        if topic:
            return {}
        fields = {name: body[name] for name in ("title", "actions", "click") if name in body}
        assert len(fields.get("actions", ())) <= 3
        return self.server.publish(body["topic"], body.get("message", ""), **fields)

    def do_GET(self) -> None:
        server, split = self.server, urlsplit(self.path)
        server.tokens.append(self.headers["Authorization"])
        topic, _, form = split.path.strip("/").partition("/")
        asked = {name: values[0] for name, values in parse_qs(split.query).items()}
        assert form == "json"
        with server.changed:
            server.streams += 1
            number = server.streams
            server.since.append(asked.get("since", "none"))
        self.send_response(200)
        self.send_header("Content-Type", "application/x-ndjson")
        self.end_headers()
        self._line({"id": "o", "time": int(time.time()), "event": "open", "topic": topic})
        place = self._first(asked.get("since", "none"))
        while number > server.cut:
            with server.changed:
                new, place = server.cache[place:], len(server.cache)
            for message in new:
                if message["topic"] == topic:
                    self._line(message)
            if asked.get("poll") == "1":
                return
            with server.changed:
                while len(server.cache) == place and number > server.cut:
                    server.changed.wait()

    def _first(self, since: str) -> int:
        cache = self.server.cache
        if since == "none":
            return len(cache)
        if since.isdigit():
            return next((place for place, one in enumerate(cache) if one["time"] >= int(since)), len(cache))
        return next((place + 1 for place, one in enumerate(cache) if one["id"] == since), 0)

    def _line(self, message: dict[str, Any]) -> None:
        self.wfile.write(json.dumps(message).encode() + b"\n")
        self.wfile.flush()

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def ntfy_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[NtfyServer]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with NtfyServer() as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield made
        made.drop_streams()
        made.shutdown()
        thread.join()
