"""What makes a reply whole: ends in every form, and servers that say the end before it comes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from tui_agent.models.exchange import Exchange, of
from tui_agent.models.habits import Habits
from tui_agent.models.lessons import Learning, Sent
from tui_agent.models.protocol import ModelRequest
from tui_agent.models.routes import route
from tui_agent.models.watch import Watch

CALL = {
    "tool_calls": [{"index": 0, "id": "a", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}]
}
HALF = {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "bash", "arguments": '{"comm'}}]}
SAID = {"content": "Nine jars."}
HANG, BREAK, DONE = "hang", "break", "done"

Step = dict[str, Any] | str | tuple[dict[str, Any], str]


class Played(Exchange):
    """A stream of deltas, each with or without a finish reason."""

    def watched(self, stream: Sequence[Step]) -> AsyncIterator[Any]:
        return self._steps(stream)

    async def _steps(self, steps: Sequence[Step]) -> AsyncIterator[Any]:
        for step in steps:
            if step == HANG:
                await asyncio.Event().wait()
            if step == BREAK:
                raise ConnectionError
            yield step

    def read(self, chunk: Step) -> Any:
        if chunk == DONE:
            self.done = True
            return None
        delta, finish = chunk if isinstance(chunk, tuple) else (chunk, None)
        if isinstance(delta, dict) and "usage" in delta:
            self.saw_usage(delta["usage"], alone=True)
            return None
        self.saw_choice({"finish_reason": finish}, delta)
        return delta


async def played(*steps: Step) -> Played:
    request = ModelRequest(model="openai/m", messages=[], api_base="http://127.0.0.1:1/v1")
    habits = Habits()
    learning = Learning(habits, lambda _: {}, lambda _: Sent([], (), frozenset()))
    watch = Watch(silence=0.2, total=5.0, first=0.2)
    call = Played(request, route("openai/m", request.api_base), watch, learning)
    await call.begin(list(steps))
    async for _ in call.deltas():
        pass
    call.settle()
    return call


USAGE: Step = {"usage": {"prompt_tokens": 3, "completion_tokens": 2}}

ENDS: dict[str, tuple[Sequence[Step], str | None, bool]] = {
    "as it should be": ((SAID, ({}, "stop"), USAGE, DONE), "stop", False),
    "no end said": ((SAID, ({}, "stop"), USAGE), "stop", False),
    "no finish reason": ((SAID, DONE), "stop", True),
    "no finish reason, usage last": ((SAID, USAGE), "stop", True),
    "a whole call, and the body ends": ((CALL,), "tool_calls", True),
    "a whole call, and the end": ((CALL, DONE), "tool_calls", True),
    "broken behind the finish": ((SAID, ({}, "stop"), BREAK), "stop", True),
    "half a call": ((HALF,), None, False),
    "half a call, and the end": ((HALF, DONE), None, False),
    "text, and the body ends": ((SAID,), None, False),
    "an end that is repeated": (((SAID, "stop"), (SAID, "stop"), ({}, "stop"), DONE), "stop", False),
}


@pytest.mark.parametrize(("steps", "finish", "odd"), ENDS.values(), ids=ENDS)
async def test_a_reply_is_whole_or_not_by_what_came(
    steps: Sequence[Step], finish: str | None, odd: bool
) -> None:
    call = await played(*steps)
    assert call.finish == finish
    assert bool(call.remarks) is odd


async def test_a_stream_left_open_behind_its_end_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui_agent.models.exchange.GRACE", 0.01)
    call = await played(SAID, ({}, "stop"), HANG)
    assert (call.finish, call.assembler.text) == ("stop", "Nine jars.")
    assert call.remarks == ["the server left the stream open after the reply's end"]


async def test_what_breaks_or_hangs_before_the_end_is_no_reply() -> None:
    with pytest.raises(ConnectionError):
        await played(SAID, BREAK)
    with pytest.raises(TimeoutError):
        await played(SAID, HANG)


async def test_content_behind_an_end_is_read_to_its_own_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that says `stop` with every piece is not cut off while it thinks."""
    monkeypatch.setattr("tui_agent.models.exchange.LONG_GRACE", 0.01)
    call = await played((SAID, "stop"), (SAID, "stop"))
    assert call.assembler.text == "Nine jars.Nine jars."
    assert not call.over
    with pytest.raises(TimeoutError):
        await played((SAID, "stop"), (SAID, "stop"), HANG)


def test_fields_are_read_from_objects_and_from_plain_data() -> None:
    assert of({"a": 1}, "a") == 1
    assert of(ConnectionError(), "args") == ()
    assert of(None, "a") is None
