"""Lines that a peer sends: a message, or an error that says why it is none. Nothing ends the connection."""

from __future__ import annotations

import asyncio
import json
import math
import socket
from typing import Any

import pytest

from tui_agent.acp import wire
from tui_agent.acp.wire import Rejected, Wire, encoded, message_in


@pytest.mark.parametrize(
    ("line", "code", "request_id"),
    [
        (b"Loaded cached credentials.", wire.PARSE_ERROR, None),
        (b"\xff\xfe{}", wire.PARSE_ERROR, None),
        (b"[" * 100_000, wire.PARSE_ERROR, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"a"', wire.PARSE_ERROR, None),
        (b"17", wire.INVALID_REQUEST, None),
        (b'[{"jsonrpc":"2.0","id":1,"method":"initialize"}]', wire.INVALID_REQUEST, None),
        (b'{"id":1,"method":["initialize"]}', wire.INVALID_REQUEST, 1),
        (b'{"id":{"a":1},"method":"initialize"}', wire.INVALID_REQUEST, None),
        (b'{"id":true,"method":"initialize"}', wire.INVALID_REQUEST, None),
        (b'{"id":[],"result":{}}', wire.INVALID_REQUEST, None),
        (b'{"jsonrpc":"2.0","id":"x"}', wire.INVALID_REQUEST, None),
    ],
)
def test_rubbish_is_told_from_a_message(line: bytes, code: int, request_id: object) -> None:
    found = message_in(line)
    assert isinstance(found, Rejected)
    assert (found.code, found.request) == (code, request_id)
    assert "\n" not in found.said
    assert len(found.said) < 300


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"", None),
        (b" \r", None),
        (b'{"method":"session/cancel","params":{}}\r', {"method": "session/cancel", "params": {}}),
        (b'{"id":"a","method":"x"}', {"id": "a", "method": "x"}),
        (b'{"id":1,"result":null}', {"id": 1, "result": None}),
        (b'\x1b]0;agent: ready\x07\x1b[1;32m{"id":1,"result":null}\x1b[0m', {"id": 1, "result": None}),
        (b'{"id":1,"error":"no"}', {"id": 1, "error": {"code": wire.INTERNAL_ERROR, "message": "no"}}),
    ],
)
def test_a_message_is_read(line: bytes, message: object) -> None:
    assert message_in(line) == message


def test_whatever_is_sent_is_one_line_of_json() -> None:
    line = encoded({"a": math.inf, "b": [math.nan, "two\nlines"], "c": {1, 2}, "d": "\ud800"})
    assert line.count(b"\n") == 1
    assert json.loads(line, parse_constant=lambda _: pytest.fail("no JSON"))["a"] is None


async def pair() -> tuple[Wire, asyncio.StreamReader, asyncio.StreamWriter]:
    mine, its = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=mine)
    return Wire(*await asyncio.open_connection(sock=its)), reader, writer


async def test_a_message_that_is_too_long_is_left_out_and_the_next_one_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(wire, "LONGEST", 100_000)
    its, reader, writer = await pair()
    writer.write(b'{"id":1,"method":"' + b"x" * 500_000 + b'"}\n{"method":"next"}\n{"method":"last"}')
    writer.write_eof()
    assert await its.receive() == {"method": "next"}
    assert await its.receive() == {"method": "last"}
    assert await its.receive() is None
    assert b"100,000 bytes" in await reader.readline()
    await its.close()
    writer.close()


async def test_a_flood_of_rubbish_is_answered_in_its_beginning_only() -> None:
    its, reader, writer = await pair()
    writer.write(b"rubbish\n" * 5_000 + b'{"method":"good"}\n' + b"rubbish\n")
    writer.write_eof()
    assert await its.receive() == {"method": "good"}
    assert await its.receive() is None
    await its.close()
    answers = (await reader.read()).splitlines()
    assert len(answers) == wire.MOST_REFUSALS + 1
    writer.close()


async def test_requests_that_are_open_are_bounded_and_known_by_their_ids(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(wire, "MOST_OPEN", 2)
    its, reader, writer = await pair()
    for number in (1, 1, 2, 3):
        writer.write(encoded({"id": number, "method": "m"}))
    writer.write(encoded({"method": "note"}))
    assert [await its.receive() for _ in range(3)] == [
        {"id": 1, "method": "m"},
        {"id": 2, "method": "m"},
        {"method": "note"},
    ]
    await its.send({"id": 1, "result": {}})
    assert [*its.open] == [2]
    refused = [json.loads(await reader.readline()) for _ in range(3)]
    assert [("error" in one, one["id"]) for one in refused] == [(True, 1), (True, 3), (False, 1)]
    await its.close()
    writer.close()


async def test_nothing_is_taken_from_a_peer_any_more_once_it_is_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    its, reader, writer = await pair()
    waiting = asyncio.create_task(its.receive())
    await asyncio.sleep(0)
    its.end()
    writer.write(b'{"method":"late"}\n' * 1_000)
    assert await waiting is None
    assert await its.receive() is None
    await its.close()
    assert await reader.read() == b""
    writer.close()
    assert not caplog.records


async def test_a_peer_that_reads_nothing_counts_as_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "MOST_UNREAD", 1_000_000)
    its, _, writer = await pair()
    update: dict[str, Any] = {"method": "session/update", "params": {"text": "x" * 100_000}}
    for _ in range(60):
        its.post(update)
    assert await its.receive() is None
    assert "unread" in its.fault
    with pytest.raises(ConnectionError, match="unread"):
        await its.send({"id": 1, "method": "session/request_permission"})
    await its.send({"id": 1, "result": {}})  # an answer is dropped
    writer.close()
