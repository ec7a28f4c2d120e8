"""Server-sent events in every form in which model servers send them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import pytest

from tui_agent.models.event_stream import Event, events


async def body(pieces: Sequence[bytes | Exception]) -> AsyncIterator[bytes]:
    for piece in pieces:
        if isinstance(piece, Exception):
            raise piece
        yield piece


async def read(*pieces: bytes | Exception) -> list[Event]:
    return [event async for event in events(body(pieces))]


ONE, TWO = '{"a": 1}', '{"b": 2}'

FORMS = {
    "as it should be": (b'data: {"a": 1}\n\ndata: {"b": 2}\n\n', [ONE, TWO]),
    "carriage returns": (b'data: {"a": 1}\r\n\r\ndata: {"b": 2}\r\n\r\n', [ONE, TWO]),
    "carriage returns alone": (b'data: {"a": 1}\r\rdata: {"b": 2}\r\r', [ONE, TWO]),
    "no blank": (b'data:{"a": 1}\n\ndata:{"b": 2}\n\n', [ONE, TWO]),
    "no empty line between": (b'data: {"a": 1}\ndata: {"b": 2}\n\n', [ONE, TWO]),
    "no empty line at the end": (b'data: {"a": 1}\n\ndata: {"b": 2}', [ONE, TWO]),
    "comments": (b': hi\n\ndata: {"a": 1}\n\n: ping\n\n: ping\n\ndata: {"b": 2}\n\n', [ONE, TWO]),
    "a byte order mark": (b'\xef\xbb\xbfdata: {"a": 1}\n\ndata: {"b": 2}\n\n', [ONE, TWO]),
    "several lines of one value": (b'data: {"a":\ndata:  1}\n\n', ['{"a":\n 1}']),
    "lines of JSON": (b'{"a": 1}\n{"b": 2}\n', [ONE, TWO]),
    "ids and retries": (b'id: 7\nretry: 10\ndata: {"a": 1}\n\n', [ONE]),
    "the end": (b'data: {"a": 1}\n\ndata: [DONE]\n\n', [ONE, "[DONE]"]),
    "half a value at the end": (b'data: {"a": 1}\n\ndata: {"b":', [ONE]),
    "a line separator within": ('data: {"a": "x\u2028y"}\n\n'.encode(), ['{"a": "x\u2028y"}']),
    "bytes that are no text": (b'data: {"a": "\xff"}\n\n', ['{"a": "�"}']),
    "no JSON": (b"data: hello\n\n", ["hello"]),
    "nothing": (b"", []),
}


@pytest.mark.parametrize(("sent", "data"), FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("size", [1, 2, 7, 1_000])
async def test_events_are_read_however_they_are_cut(sent: bytes, data: list[str], size: int) -> None:
    pieces = [sent[at : at + size] for at in range(0, len(sent), size)]
    assert [event.data for event in await read(*pieces)] == data


async def test_an_event_has_its_name() -> None:
    assert await read(b'event: error\ndata: {"a": 1}\n\ndata: {"b": 2}\n\n') == [
        Event(ONE, "error"),
        Event(TWO),
    ]


async def test_the_last_whole_event_comes_before_the_error_with_which_a_body_breaks() -> None:
    found = []
    with pytest.raises(ConnectionError):  # noqa: PT012
        async for event in events(body([b'data: {"a": 1}\n\ndata: {"b": 2}', ConnectionError()])):
            found.append(event.data)  # noqa: PERF401  # what came before the error is what is looked at
    assert found == [ONE, TWO]
