"""Attacks by sheer number: calls, iterations and events by the thousand; memory, handles and time must stay flat."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import time
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.adversarial.attack import attack
from tests.runtime.scripted import ScriptedOperator
from tests.tools.box import wait_until
from tui_agent.config.settings import Settings
from tui_agent.core.events import ToolCall
from tui_agent.models.protocol import ModelRequest, Reply
from tui_agent.session.opening import open_session
from tui_agent.session.session import Session


class Endless:
    """A model that calls the next of `commands` as long as there are any."""

    def __init__(self, calls: Any) -> None:
        self._calls = iter(calls)
        self.made = 0

    async def stream(self, request: ModelRequest) -> AsyncIterator[Reply]:
        group = next(self._calls, ())
        calls = []
        for name, arguments in group:
            self.made += 1
            calls.append(ToolCall(id=f"c{self.made}", name=name, arguments=json.dumps(arguments)))
        yield Reply(
            text="" if calls else "done", calls=tuple(calls), finish_reason="stop",
            prompt_tokens=100, completion_tokens=10, cost=None if self.made % 2 else 0.01,
        )  # fmt: skip

    async def start(self) -> None: ...

    async def context_tokens(self, model: str, api_base: str | None = None) -> int | None:
        return 20_000

    async def close(self) -> None: ...


async def opened(folder: Path, calls: Any, **settings: Any) -> Session:
    (folder / "workspace").mkdir(exist_ok=True)
    chosen = {"model": "x", "approve": "all", "max_iterations": 5_000, **settings}
    configured = Settings(workspace=folder / "workspace", state_dir=folder / "state", **chosen)
    return await open_session(configured, ScriptedOperator(), Endless(calls))


def resident() -> int:
    """Megabytes of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20


def handles() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def children() -> list[str]:
    found = []
    for task in Path("/proc/self/task").iterdir():
        found += (task / "children").read_text().split()
    return found


@attack(
    "2,000 iterations with commands, edits, searches and failures in one session",
    "Memory, handles and time an iteration stay flat; no child process is left",
    slow=True,
)
async def test_two_thousand_iterations(tmp_path: Path) -> None:
    seen: list[tuple[float, int, int]] = []

    def turns() -> Any:
        for number in range(2_000):
            if number % 200 == 199:
                gc.collect()
                seen.append((time.monotonic(), resident(), handles()))
            look = {"path": "a.txt", "limit": 1 + number}
            kinds = (
                ("write_file", {"path": "a.txt", "content": f"{number}\n" * 20}),
                ("read_file", {"path": "a.txt" if number % 8 else f"missing{number}.txt"}),
                ("list_dir", {}),
                ("read_file", look) if number % 16 else ("bash", {"command": f"echo {number}"}),
            )
            yield [kinds[number % 4]]

    session = await opened(tmp_path, turns())
    before = handles()
    await session.submit("go")
    await asyncio.wait_for(session.wait(), 560)
    assert session.state.run.iteration > 1_900
    await session.close()
    print([(round(at - seen[0][0], 1), megabytes, count) for at, megabytes, count in seen])
    times = [later[0] - sooner[0] for sooner, later in pairwise(seen)]
    assert max(times[-3:]) < 4 * max(1.0, min(times[:3])), times
    assert seen[-1][1] - seen[1][1] < 150, seen
    assert max(count for _, _, count in seen) <= before + 10, seen
    assert children() == [] or all(Path(f"/proc/{pid}").exists() for pid in children())


@attack(
    "1,000 calls in one reply, stopped after a moment",
    "It stops at once, every call has its one result",
    fell="20,000 calls cost quadratic time: stopped at 15 s, it ended at 117 s",
)
async def test_calls_by_the_thousand(tmp_path: Path) -> None:
    session = await opened(tmp_path, [[("list_dir", {"path": "."})] * 1_000])
    await session.submit("go")
    assert await wait_until(lambda: session.state.metrics.tool_calls)
    begun = time.monotonic()
    await asyncio.wait_for(session.stop("enough"), 60)
    await asyncio.wait_for(session.wait(), 60)
    assert time.monotonic() - begun < 90
    assert not session.state.history.open_calls()
    await session.close()


@attack(
    "2,000 calls in one reply, carried out to the end",
    "Linear time: less than a minute",
    fell="as above",
    slow=True,
)
async def test_calls_by_the_thousand_to_the_end(tmp_path: Path) -> None:
    times = []
    for count in (500, 2_000):
        folder = tmp_path / str(count)
        folder.mkdir()
        session = await opened(folder, [[("list_dir", {"path": "."})] * count])
        begun = time.monotonic()
        await session.submit("go")
        await asyncio.wait_for(session.wait(), 300)
        times.append(time.monotonic() - begun)
        await session.close()
    assert times[1] < 12 * max(times[0], 0.3), times


@attack(
    "A reply without a price among those with one, under `--max-cost`",
    "What is known stays the floor: the run ends at the limit",
    fell="one reply without a price switched the limit off",
)
async def test_reply_without_a_price(tmp_path: Path) -> None:
    calls = ([("read_file", {"path": "a.txt", "limit": number + 1})] for number in range(100))
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "a.txt").write_text("x\n")
    session = await opened(tmp_path, calls, max_cost=0.05)
    await session.submit("go")
    finished = await asyncio.wait_for(session.wait(), 60)
    await session.close()
    assert finished is not None
    assert finished.outcome == "partial"
    assert session.state.run.iteration < 20


@attack(
    "Stop while a run settles and a message waits in the queue",
    "The queued message starts no run",
    fell="it was lost: the next run started, and leaving waited for it",
)
async def test_stop_while_settling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settling, go_on = asyncio.Event(), asyncio.Event()

    async def slow(*_: object) -> None:
        settling.set()
        await go_on.wait()

    session = await opened(tmp_path, [])
    monkeypatch.setattr(session.checkpointer, "settle", slow)
    await session.submit("one")
    await asyncio.wait_for(settling.wait(), 30)
    await session.submit("two")
    stopping = asyncio.ensure_future(session.stop("leave"))
    await asyncio.sleep(0)
    go_on.set()
    await asyncio.wait_for(stopping, 30)
    await asyncio.wait_for(session.close(), 30)
    assert session.state.run.number == 1


@attack(
    "A checkpoint's store that fails with any error of the system",
    "A notice; the run goes on, and closing frees the lock",
    fell="the run ended as an internal error, and the lock stayed",
)
async def test_checkpoint_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import errno

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("tui_agent.store.shadow_git.make_private", refuse)
    session = await opened(tmp_path, [[("write_file", {"path": "a.txt", "content": "x"})]])
    await session.submit("go")
    finished = await asyncio.wait_for(session.wait(), 60)
    await session.close()
    assert finished is not None
    assert finished.outcome == "answered"
    assert (tmp_path / "workspace" / "a.txt").exists()
