"""A server that is away or restarts is waited for a minute in all; the wait can be skipped; then somebody is asked."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.kept_host import KeptHost
from tests.runtime.scripted import ScriptedOperator
from tests.servers import ModelServer, Said
from tests.servers.chat import LlamaCpp
from tui_agent.config.settings import Settings
from tui_agent.core import events
from tui_agent.core.names import Phase
from tui_agent.models.choose import ModelByName
from tui_agent.runtime.operator import EscalationReply
from tui_agent.session.opening import open_session
from tui_agent.session.session import Session

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.fixture
def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def session_for(
    host: KeptHost, folder: Path, port: int, operator: ScriptedOperator | None = None, **recovery: Any
) -> Session:
    (folder / "workspace").mkdir()
    settings = Settings(
        model=LlamaCpp.model,
        api_base=f"http://127.0.0.1:{port}/v1",
        approve="all",
        sandbox="off",
        workspace=folder / "workspace",
        state_dir=folder / "state",
        recovery=recovery,
    )
    operator = operator or ScriptedOperator(present=False)
    return await open_session(settings, operator, ModelByName(settings, host))


def instead_of_waiting(session: Session, waited: Callable[[float], Awaitable[None]]) -> None:
    """Skip each wait before a retry, once `waited` has taken its seconds."""
    tasks: list[asyncio.Task[None]] = []

    async def skip(delay: float) -> None:
        await waited(delay)
        await asyncio.sleep(0)  # the wait begins right after its event
        session.skip_wait()

    def heard(event: events.Event, _: object) -> None:
        if isinstance(event, events.ModelFaulted) and event.delay:
            tasks.append(asyncio.get_running_loop().create_task(skip(event.delay)))

    session.subscribe(heard)


@pytest.mark.parametrize("loading", [False, True], ids=["refuses at first", "refuses, then loads its model"])
async def test_a_server_that_restarts_costs_no_iteration_and_no_run(
    host: KeptHost, tmp_path: Path, port: int, loading: bool
) -> None:
    waits: list[float] = []
    busy = Said(fault="overloaded")
    async with AsyncExitStack() as servers:

        async def comes_back(delay: float) -> None:
            before = sum(waits)
            waits.append(delay)
            if before < 12 <= sum(waits):
                script = [Said(calls=(("list_dir", {}),)), Said("There again.")]
                script = [busy, *script] if loading else script
                await servers.enter_async_context(ModelServer(LlamaCpp(), *script).on(port))

        session = await session_for(host, tmp_path, port)
        instead_of_waiting(session, comes_back)
        await session.submit("Hello.")
        finished = await asyncio.wait_for(session.wait(), 60)
        await session.close()
    assert finished is not None
    assert (finished.outcome, finished.answer) == (events.Outcome.ANSWERED, "There again.")
    assert session.state.run.iteration == 2
    assert session.state.windows[LlamaCpp.model] is not None, "asked again when it was there"


async def test_a_server_that_stays_away_is_waited_for_a_minute_and_then_the_operator_is_asked(
    host: KeptHost, tmp_path: Path, port: int
) -> None:
    waits: list[float] = []

    async def noted(delay: float) -> None:
        waits.append(delay)

    operator = ScriptedOperator()
    operator.answers.append(EscalationReply("partial"))
    session = await session_for(host, tmp_path, port, operator)
    instead_of_waiting(session, noted)
    await session.submit("Hello.")
    finished = await asyncio.wait_for(session.wait(), 60)
    await session.close()
    assert finished is not None
    assert finished.rule == "operator.partial", "as it was answered"
    assert 60 <= sum(waits) <= 180
    (asked,) = operator.raised
    assert asked.rule == "model.ask"
    assert "connection" in asked.question


async def test_the_operator_skips_the_wait(host: KeptHost, tmp_path: Path, port: int) -> None:
    session = await session_for(host, tmp_path, port, backoff_base=600.0, backoff_cap=600.0)
    assert not session.skip_wait(), "nothing waits yet"
    waits = asyncio.Event()
    happened: list[events.Event] = []

    def heard(event: events.Event, _: object) -> None:
        happened.append(event)
        if session.state.phase is Phase.BACKOFF:
            waits.set()

    session.subscribe(heard)
    await session.submit("Hello.")
    await asyncio.wait_for(waits.wait(), 60)
    async with ModelServer(LlamaCpp(), Said("There.")).on(port):
        # The wait begins right after its event.
        await asyncio.sleep(0)
        assert session.skip_wait()
        finished = await asyncio.wait_for(session.wait(), 60)
    await session.close()
    assert finished is not None
    assert finished.answer == "There."
    assert [type(event) for event in happened].count(events.WaitSkipped) == 1
