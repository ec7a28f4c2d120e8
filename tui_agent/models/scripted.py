"""A model that plays a scenario: it streams, calls tools, fails and reacts, all as its data file says.

Its place in the script moves on when a turn has been delivered, as a reply or as a fault, so an interrupted
turn is played again. Call ids name their turn (`label-3.0`), by which a fresh model finds its place in the
history of a session that was resumed, forked or rewound. No turn is written in Python here; the format is
described in `scenarios/README.md`.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from typing import Any

from tui_agent.core.names import FaultKind
from tui_agent.core.values import Fault, ToolCall
from tui_agent.models.protocol import Delta, ModelFault, ModelRequest, Reply
from tui_agent.models.scenario import RequestView, Scenario, ScriptedFault, Turn, filled

_CALL_ID = re.compile(r"(?P<turn>.+)-(?P<count>\d+)\.\d+")
_REQUESTS_KEPT = 1_000


class ScriptedModel:
    """A `Model` that answers from a scenario.

    `pace` multiplies every time of the scenario (0: as fast as it can, still giving way between pieces).
    `requests` holds the newest requests, for tests and for a look at what the model reads.
    """

    def __init__(
        self,
        scenario: Scenario,
        *,
        pace: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.scenario = scenario
        self.requests: deque[ModelRequest] = deque(maxlen=_REQUESTS_KEPT)
        self._pace = pace
        self._clock = clock
        self._sleep = sleep
        self._labels = scenario.labels
        self._place = 0
        self._played = 0
        """How often the turn at the place was delivered already (`repeat`)."""
        self._count = 0
        """Delivered turns; makes call ids unique."""
        self._last_id = ""
        self._captured: dict[str, str] = {}

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Delta | Reply, None]:
        """Play the turn that fits the request (see `protocol.Model`)."""
        self.requests.append(request)
        self._find_place(request.messages)
        place, captured = self._choose(RequestView(request.messages, request.tools, request.model))
        turn = self.scenario.turns[place]
        known = {**self._captured, **captured}
        reasoning, text = filled(turn.reasoning, known), filled(turn.text, known)
        pace = turn.pace or self.scenario.pace
        if pace.pause:
            await self._sleep(pace.pause * self._pace)
        due = self._clock()
        for delta in _deltas(reasoning, text, pace.chars):
            yield delta
            # By a schedule and not by naps, so that a thousand pieces a second are a thousand.
            due += pace.interval * self._pace
            await self._sleep(max(0.0, due - self._clock()))
        self._captured = known
        self._advance(place)
        if turn.fault is not None:
            raise _model_fault(turn.fault, self._pace)
        calls = self._calls(place, known)
        yield Reply(
            text=text,
            reasoning=reasoning,
            calls=calls,
            finish_reason=turn.finish_reason or ("tool_calls" if calls else "stop"),
            model=request.model,
            prompt_tokens=turn.prompt_tokens,
            completion_tokens=turn.completion_tokens,
            cached_tokens=turn.cached_tokens,
            cost=turn.cost,
        )

    async def start(self) -> None:
        """Nothing needs to be started."""

    async def context_tokens(
        self, model: str, api_base: str | None = None, api_key_variable: str | None = None
    ) -> int | None:
        """The scenario's own budget, if it has one."""
        return self.scenario.context_tokens

    async def close(self) -> None:
        """Nothing is held."""

    # --- the place in the script ----------------------------------------------------------------------------

    def _choose(self, request: RequestView) -> tuple[int, dict[str, str]]:
        """The turn for a request, and what its condition captured."""
        turns = self.scenario.turns
        for place, turn in enumerate(turns):
            if turn.anywhere and (captured := turn.match(request)) is not None:
                return place, captured
        for place in range(self._place, len(turns)):
            turn = turns[place]
            if not turn.anywhere and (captured := turn.match(request)) is not None:
                return place, captured
        raise ModelFault(
            Fault(
                kind=FaultKind.BAD_REQUEST,
                message=f"The scenario {self.scenario.name!r} has no turn for this request.",
                advice="Start it again, or choose a real model with /model NAME.",
            )
        )

    def _advance(self, place: int) -> None:
        turn = self.scenario.turns[place]
        self._count += 1
        if turn.anywhere:
            if turn.next:
                self._go_to(self._labels[turn.next])
            return
        played = self._played + 1 if place == self._place else 1
        if played < turn.repeat:
            self._place, self._played = place, played
        else:
            self._go_to(self._labels[turn.next] if turn.next else place + 1)

    def _go_to(self, place: int) -> None:
        self._place, self._played = place, 0

    def _find_place(self, messages: list[dict[str, Any]]) -> None:
        """After a resume, fork or rewind: go on after the turn that made the history's last calls."""
        last = next((ids[0] for ids in map(_call_ids, reversed(messages)) if ids), "")
        if last == self._last_id:
            return
        self._last_id = last
        if not any(message.get("role") == "assistant" for message in messages):
            self._go_to(0)
            return
        names = {_name(turn, place): place for place, turn in enumerate(self.scenario.turns)}
        for ids in map(_call_ids, reversed(messages)):
            found = _CALL_ID.fullmatch(ids[0]) if ids else None
            place = names.get(found["turn"]) if found is not None else None
            if found is None or place is None:
                continue
            self._count = max(self._count, int(found["count"]))
            if not self.scenario.turns[place].anywhere:
                self._go_to(place)
                self._advance(place)
                return

    # --- what a turn says -----------------------------------------------------------------------------------

    def _calls(self, place: int, known: Mapping[str, str]) -> tuple[ToolCall, ...]:
        turn = self.scenario.turns[place]
        calls = tuple(
            ToolCall(
                id=f"{_name(turn, place)}-{self._count}.{index}",
                name=call.tool,
                arguments=filled(call.raw, known)
                if call.raw is not None
                else json.dumps(_filled_in(call.arguments, known), ensure_ascii=False),
            )
            for index, call in enumerate(turn.calls)
        )
        if calls:
            self._last_id = calls[0].id
        return calls


def _call_ids(message: Mapping[str, Any]) -> list[str]:
    return [str(call.get("id", "")) for call in message.get("tool_calls") or ()]


def _name(turn: Turn, place: int) -> str:
    return turn.label or f"turn{place}"


def _deltas(reasoning: str, text: str, chars: tuple[int, int]) -> Iterator[Delta]:
    yield from (Delta(reasoning=piece) for piece in _pieces(reasoning, chars))
    yield from (Delta(text=piece) for piece in _pieces(text, chars))


def _pieces(text: str, chars: tuple[int, int]) -> Iterator[str]:
    """The text in pieces of changing width, the same every time."""
    low, high = chars
    at = step = 0
    while at < len(text):
        width = low + step * 7 % (high - low + 1)
        yield text[at : at + width]
        at += width
        step += 1


def _filled_in(value: Any, known: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return filled(value, known)
    if isinstance(value, Mapping):
        return {key: _filled_in(each, known) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_filled_in(each, known) for each in value]
    return value


def _model_fault(fault: ScriptedFault, pace: float) -> ModelFault:
    wait = fault.retry_after
    return ModelFault(
        Fault(
            kind=FaultKind(fault.kind),
            message=fault.message
            or f"The scripted model answered with a fault ({FaultKind(fault.kind).in_words}).",
            advice=fault.advice,
            status=fault.status,
            retry_after=None if wait is None else wait * pace,
            resets_at=None if fault.resets_in is None else time.time() + fault.resets_in,
        )
    )
