"""What a live screen has beside its dashboard, without a screen."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from functools import partial
from pathlib import Path

import pytest

from tests.console.live_harness import HandSession
from tui_agent.console.looks.command_keys import live_hints
from tui_agent.console.prompt.message_queue import MessageQueue
from tui_agent.console.prompt.suggesting import Suggesting
from tui_agent.console.tabs.live_session import LiveSession
from tui_agent.core.events import SessionStarted


async def test_what_was_asked_for_before_the_session_is_open_is_done_in_its_order_but_for_what_was_dropped() -> (
    None
):
    live, said, done = LiveSession(lambda: None), list[str](), list[str]()
    queue = MessageQueue(live, lambda: None, said.append)

    async def deliver(text: str) -> None:
        done.append(text)

    await queue.send("one", partial(deliver, "one"))
    queue.when_open(partial(done.append, "a command"))
    await queue.send("two", partial(deliver, "two"))
    assert [each.text for each in queue.waiting] == ["one", "two"]
    first = queue.waiting[0].id
    assert queue.drop(first)
    assert not queue.drop(first)
    assert said == ["That message has gone out already."]
    live.open(HandSession())
    await queue.opened()
    assert done == ["a command", "two"]
    assert queue.waiting == []


async def test_files_are_offered_once_they_were_read(tmp_path: Path) -> None:
    (tmp_path / "a cart.py").touch()
    (tmp_path / "prices.py").touch()
    live, renewed, reading = LiveSession(lambda: None), list[str](), list[asyncio.Task[None]]()

    def background(work: Coroutine[object, object, None]) -> None:
        reading.append(asyncio.ensure_future(work))

    suggest = Suggesting(live, lambda _: (), background, partial(renewed.append, "more"), pytest.fail)
    assert suggest("look at @ca") == []
    session = HandSession()
    session.record(SessionStarted(session_id="there", workspace=str(tmp_path)))
    live.open(session)
    assert suggest("look at @ca") == []
    assert suggest("look at @ca") == []
    await asyncio.gather(*reading)
    assert (len(reading), renewed) == (1, ["more"])
    assert [each.text for each in suggest("look at @ca")] == ['look at @"a cart.py" ']


@pytest.mark.parametrize(
    ("way_out", "under_way", "by_itself", "words"),
    [
        ("", False, False, ["help", "commands", "files"]),
        ("interrupt", True, True, ["help", "interrupt", "pause", "step"]),
        ("close list", True, False, ["help", "auto", "step", "close list"]),
    ],
)
def test_the_last_line_says_what_can_be_done_now(
    way_out: str, under_way: bool, by_itself: bool, words: list[str]
) -> None:
    hints = live_hints(way_out, under_way=under_way, by_itself=by_itself)
    assert [hint.word for hint in hints][: len(words)] == words
