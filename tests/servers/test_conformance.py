"""Every behaviour of a server, through the production loop: what the run must come to, and what it may send.

Each behaviour is a file in `conformance/`. Waits between tries are skipped once their length is known.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.kept_host import KeptHost
from tests.runtime.session_harness import assert_coherent
from tests.servers.conformance.behaviour import BehavingServer, Behaviour, Client, behaviours
from tests.servers.conformance.requests import Asked, meets
from tui_agent.config.settings import Settings
from tui_agent.core import events
from tui_agent.core.state import RunState
from tui_agent.headless import HeadlessOperator
from tui_agent.models.choose import ModelByName
from tui_agent.session.opening import open_session
from tui_agent.session.session import Session

pytestmark = pytest.mark.asyncio(loop_scope="session")

LONGEST = 60.0
"""Seconds that only a run that hangs needs."""

SILENCE = 20.0
"""Seconds for which a server may be silent, where a behaviour does not set it: none of the others is."""

ASKED_FOR_WINDOWS = frozenset({"models", "overflow"})
"""Families whose servers are asked how long a prompt may be; it takes longer than all else in a run."""

ABOVE_CLIENTS = frozenset({"arguments", "asks", "limits", "models", "overflow", "tongues"})
"""Families in which the clients' part is small: with the second client they are played by the slow tests, the others
by those that `.ci/run` runs once.
"""

LIKE_AGAIN = frozenset({408, 409, 424, 425, 429, 498, 499})
"""Statuses below 500 after which the same request may go out again."""

ALL = list(behaviours())


def _cases() -> Iterator[Any]:
    for behaviour in ALL:
        for client in behaviour.served_by:
            second = client == "litellm" and "openai" in behaviour.served_by
            mark = pytest.mark.slow if behaviour.family in ABOVE_CLIENTS else pytest.mark.process
            name = f"{behaviour.family}/{behaviour.name}-{client}"
            yield pytest.param(behaviour, client, id=name, marks=mark if second else ())


@dataclass
class Played:
    """A run against a server that behaves so, and what was seen of it."""

    behaviour: Behaviour
    server: BehavingServer
    events: list[events.Event]
    finished: events.RunFinished
    state: RunState

    def of(self, kind: type[events.Event]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    def _in_order(self, kind: type[events.ToolStarted | events.ToolResult]) -> list[Any]:
        """What calls of a kind came to, in the order of the calls: those of a reply may run side by side."""
        ordered: list[Any] = []
        batch: list[Any] = []
        for event in self.events:
            if isinstance(event, kind):
                batch.append(event)
            elif isinstance(event, events.ReplyFinished):
                ordered += sorted(batch, key=lambda each: each.index)
                batch = []
        return ordered + sorted(batch, key=lambda each: each.index)

    @property
    def results(self) -> list[str]:
        return [event.content for event in self._in_order(events.ToolResult)]

    @property
    def ran(self) -> list[str]:
        return [
            f"{event.tool} {json.dumps(event.input, ensure_ascii=False)}"
            for event in self._in_order(events.ToolStarted)
        ]

    @property
    def shown(self) -> str:
        """What the operator reads of how it went."""
        faults = [
            f"{each.fault.message} {each.fault.advice} {each.reason}" for each in self.of(events.ModelFaulted)
        ]
        notices = [notice.text for notice in self.of(events.Notice)]
        return "\n".join((self.finished.answer, self.finished.reason, *faults, *notices))


async def play(
    server: BehavingServer, behaviour: Behaviour, client: Client, host: KeptHost, folder: Path
) -> Played:
    """A run of the behaviour's task, as `agent-tui run` makes it."""
    workspace = folder / "workspace"
    workspace.mkdir(exist_ok=True)
    for name, text in behaviour.files.items():
        (workspace / name).write_text(text)
    settings = Settings(
        **{
            "model": "served",
            "approve": "all",
            "sandbox": "off",
            "mcp": False,
            "max_iterations": 12,
            "model_timeout": SILENCE,
            **behaviour.settings,
            "profiles": {"served": _profile(behaviour, client, server.url)},
            "workspace": workspace,
            "state_dir": folder / "state",
        }
    )
    operator = HeadlessOperator(approve_mode=settings.approve)
    session = await open_session(settings, operator, ModelByName(settings, host))
    happened: list[events.Event] = []
    session.subscribe(lambda event, _: happened.append(event))
    waiting = _instead_of_waiting(session)
    try:
        await session.submit(behaviour.task)
        finished = await asyncio.wait_for(session.wait(), LONGEST)
    finally:
        waiting.cancel()
        await session.close()
    assert finished is not None
    return Played(behaviour, server, happened, finished, session.state)


def _profile(behaviour: Behaviour, client: Client, url: str) -> dict[str, Any]:
    profile: dict[str, Any] = {"model": behaviour.called, "api_base": url, "client": client}
    if behaviour.family not in ASKED_FOR_WINDOWS:
        profile["context_tokens"] = 200_000
    return profile


_used: set[str] = set()
"""Addresses of servers so far: what is learnt of one is kept by its address."""


async def _served_anew(behaviour: Behaviour, servers: AsyncExitStack) -> BehavingServer:
    """The behaviour's server, at an address that none of these tests had before."""
    while True:
        server = await servers.enter_async_context(BehavingServer(behaviour))
        if server.url not in _used:
            _used.add(server.url)
            return server


def _instead_of_waiting(session: Session) -> asyncio.Task[None]:
    """Skip the wait before each retry as soon as it has begun."""
    faulted = asyncio.Event()
    session.subscribe(
        lambda event, _: faulted.set() if isinstance(event, events.ModelFaulted) and event.delay else None
    )

    async def skip() -> None:
        while True:
            await faulted.wait()
            faulted.clear()
            await asyncio.sleep(0)  # it begins right after its event
            session.skip_wait()

    return asyncio.get_running_loop().create_task(skip())


@pytest.mark.parametrize(("behaviour", "client"), _cases())
async def test_a_run_copes_with_whatever_a_server_does(
    host: KeptHost, tmp_path: Path, behaviour: Behaviour, client: Client
) -> None:
    async with AsyncExitStack() as servers:
        server = await _served_anew(behaviour, servers)
        played = await play(server, behaviour, client, host, tmp_path)
        wrong = [*_wrong(played), *_never(played)]
        if not wrong and behaviour.run.again is not None:
            server.begin_again()
            played = await play(server, behaviour, client, host, tmp_path)
            wrong = list(_not_learnt(played, behaviour.run.again))
    assert not wrong, "\n".join((behaviour.does, *wrong, "", *_story(played)))


REPORT = re.compile(r"[\w.-]+/[\w.-]+#\d+")
"""A public report: project#number."""


async def test_each_behaviour_says_where_it_was_seen() -> None:
    told = {"no report", "recorded"}
    assert len(ALL) >= 150
    for behaviour in ALL:
        unclear = [each for each in behaviour.source if each not in told and not REPORT.fullmatch(each)]
        assert not unclear, behaviour.name


def _wrong(played: Played) -> Iterator[str]:
    """In which ways the run came to something else than expected."""
    want, finished, shown = played.behaviour.run, played.finished, played.shown
    outcome = finished.outcome.value
    right = (outcome, "any") if outcome == "answered" else (outcome, "any", "not answered")
    if want.outcome not in right:
        yield f"it ended as {outcome}, not {want.outcome}: {finished.reason}"
    if want.answer is not None and finished.answer.strip() != want.answer:
        yield f"its answer is {finished.answer!r}, not {want.answer!r}"
    yield from (f"its answer lacks {text!r}" for text in want.answer_has if text not in finished.answer)
    yield from (f"its answer holds {text!r}" for text in want.answer_lacks if text in finished.answer)
    if len(played.server.requests) > want.requests:
        yield f"it took {len(played.server.requests)} requests, not {want.requests}"
    yield from _unlike(want.results, played.results, "result")
    if want.ran is not None and played.ran != want.ran:
        yield f"these calls ran: {played.ran}, not {want.ran}"
    kinds = [event.fault.kind.value for event in played.of(events.ModelFaulted)]
    if want.faults is not None and kinds != want.faults:
        yield f"faults: {kinds}, not {want.faults}"
    yield from _waits(played)
    yield from (f"nobody reads {text!r}" for text in want.words if text not in shown)
    if want.words_any and not any(text in shown for text in want.words_any):
        yield f"nobody reads any of {want.words_any}"
    yield from (f"somebody reads {text!r}" for text in want.words_lack if text in shown)
    notices = [notice.text for notice in played.of(events.Notice)]
    yield from (
        f"no notice of {text!r}" for text in want.notices if not any(text in each for each in notices)
    )
    if want.last and not meets(want.last, Asked(played.server.requests[-1])):
        yield f"the last request is not as {want.last}"
    if want.window is not None:
        learnt = [event.tokens for event in played.of(events.ModelWindowLearned)]
        if any(tokens is not None and (tokens > want.window or not want.window) for tokens in learnt):
            yield f"windows learnt: {learnt}, not {want.window}"


def _unlike(want: list[str] | None, got: list[str], what: str) -> Iterator[str]:
    if want is None:
        return
    if len(want) != len(got):
        yield f"{len(got)} {what}s, not {len(want)}: {[each[:80] for each in got]}"
    for part, whole in zip(want, got, strict=False):
        if part not in whole:
            yield f"a {what} lacks {part!r}: {whole[:200]!r}"


def _waits(played: Played) -> Iterator[str]:
    want = played.behaviour.run.waits
    waits = [event.delay for event in played.of(events.ModelFaulted)]
    if want is None:
        return
    if len(want) != len(waits):
        yield f"waits: {waits}, not {len(want)} of them"
    for (least, most), wait in zip(want, waits, strict=False):
        if not least <= wait <= most:
            yield f"a wait of {wait:g} s, not between {least:g} and {most:g}"


def _never(played: Played) -> Iterator[str]:
    """What must not happen, whatever the server does."""
    if played.finished.outcome is events.Outcome.ERROR:
        yield f"an internal error: {played.finished.reason}"
    refused: list[dict[str, Any]] = []
    for request, answer in zip(played.server.requests, played.server.answered, strict=True):
        if request.body in refused:
            yield "a request that was refused went out again, unchanged"
        if 400 <= answer.status < 500 and answer.status not in LIKE_AGAIN:
            refused.append(request.body)
        if played.behaviour.make == "openai":
            with suppress(KeyError):
                assert_coherent([each for each in request.body["messages"] if each["role"] != "system"])


def _not_learnt(played: Played, most: int) -> Iterator[str]:
    """What a second run did as if nothing were known of the server."""
    if played.finished.outcome is not events.Outcome.ANSWERED:
        yield f"the second run ended as {played.finished.outcome.value}"
    if len(played.server.requests) > most:
        yield f"the second run took {len(played.server.requests)} requests, not {most}"
    refused = sum(answer.status >= 400 for answer in played.server.answered)
    if refused:
        yield f"{refused} requests of the second run were refused"


def _story(played: Played) -> Iterator[str]:
    """How it went, for whoever has to find out why."""
    for number, (request, answer) in enumerate(
        zip(played.server.requests, played.server.answered, strict=True), 1
    ):
        yield f"request {number}: {sorted(request.body)}, got {answer.status}"
        for message in (request.body.get("messages") or [])[-3:]:
            yield "    " + json.dumps(message, ensure_ascii=False)[:300]
    for event in played.events:
        if isinstance(event, events.ModelFaulted):
            yield f"fault: {event.fault.kind.value}: {event.fault.message[:300]} -> {event.action}"
        elif isinstance(event, events.Notice):
            yield f"notice: {event.text}"
    yield f"ended: {played.finished.outcome.value}: {played.finished.answer[:400]!r}"
