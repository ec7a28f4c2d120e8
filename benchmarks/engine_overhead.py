"""What the engine costs an iteration, with a history of 100 messages: `python benchmarks/engine_overhead.py`.

An iteration is measured from one `IterationStarted` to the next, in a real session with a real journal: messages
built, validator, window, reducers, seven detectors, note, journal lines. The model answers at once with one call of
a tool that does nothing. In the same run, a bare asyncio loop consumes the same stream, awaits the same tool, keeps
a list of messages and writes one JSON line: the ratio says what recovery adds to what any agent has to do.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import json
import pstats
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, NamedTuple

from tui_agent.config.settings import Settings
from tui_agent.core import events
from tui_agent.core.state import RunState
from tui_agent.core.tool_facts import Effect, Use
from tui_agent.headless import HeadlessOperator
from tui_agent.models.protocol import Delta, ModelRequest, Reply
from tui_agent.session.opening import open_session
from tui_agent.tools.registry import ToolRegistry, default_tools
from tui_agent.tools.tool import ToolContext, ToolOutput
from tui_agent.tools.workspace import Workspace

HISTORY = 100
"""Messages of the history when measuring begins: two an iteration."""
MEASURED = 20
"""Iterations measured in a session, so that the history stays near that size."""
LATE = 2_000
"""An iteration of a long session that may cost no more than an early one."""
BUDGET_MS = 0.5
RATIO = 20
"""The budget in bare loops, as it was on the machine that it was set on: what holds on slower and busier ones."""


class Nothing:
    """A tool that does nothing."""

    name = "nothing"
    description = "Does nothing."
    parameters = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    effect = Effect.READ
    uses = {"n": Use.SAYS}

    def preview(self, arguments: dict[str, Any], workspace: Workspace) -> str:
        return ""

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolOutput:
        return ToolOutput(f"{arguments['n']}: " + "a line of output that a tool might give\n" * 4)


class Instant:
    """A model that answers at once, each time with another call, and with an answer at the end."""

    def __init__(self, calls: int) -> None:
        self._calls = calls
        self._asked = 0

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Delta | Reply]:
        self._asked += 1
        said = "I look at the next part of it. " * 3
        yield Delta(text=said)
        if self._asked > self._calls:
            yield Reply(text=said, finish_reason="stop")
            return
        call = events.ToolCall(id=f"call-{self._asked}", name="nothing", arguments=f'{{"n": {self._asked}}}')
        yield Reply(
            text=said, calls=(call,), finish_reason="tool_calls", prompt_tokens=1, completion_tokens=1
        )

    async def context_tokens(self, model: str) -> int | None:
        return 200_000

    async def close(self) -> None:
        return None


class Spent(NamedTuple):
    """Milliseconds of one iteration: on the clock, and of the event loop's thread on a processor."""

    wall: float
    cpu: float


def now() -> Spent:
    """The time, for differences."""
    return Spent(time.perf_counter() * 1_000, time.thread_time() * 1_000)


class Clock:
    """Times between iterations from a given one on."""

    def __init__(self, first: int) -> None:
        self._first = first
        self._before: Spent | None = None
        self.times: list[Spent] = []

    def __call__(self, event: events.Event, state: RunState) -> None:
        if isinstance(event, events.IterationStarted):
            at = now()
            if self._before is not None:
                self.times.append(Spent(at.wall - self._before.wall, at.cpu - self._before.cpu))
            self._before = at if event.iteration >= self._first else None


async def engine(
    folder: Path, profile: cProfile.Profile | None = None, measured: int = MEASURED
) -> list[Spent]:
    """Times of `measured` iterations of one session."""
    warm = HISTORY // 2
    clock = Clock(warm)
    settings = Settings(model="instant", workspace=folder, state_dir=folder / "state", max_iterations=10_000)
    usual = default_tools()
    tools = ToolRegistry([*(tool for name in usual.names if (tool := usual.get(name))), Nothing()])
    session = await open_session(
        settings, HeadlessOperator(), Instant(warm + measured), tools=tools, environment={}, listener=clock
    )
    if profile is not None:
        profile.enable()
    await session.submit("Look at all of it.")
    await session.wait()
    if profile is not None:
        profile.disable()
    assert session.state.run.outcome is events.Outcome.ANSWERED, session.state.run.reason
    await session.close()
    return clock.times[:measured]


async def bare(folder: Path) -> list[Spent]:
    """The same stream, tool and one journal line an iteration, and nothing else."""
    warm = HISTORY // 2
    model, tool = Instant(warm + MEASURED), Nothing()
    times: list[Spent] = []
    context = ToolContext(Workspace(folder), folder, "", lambda _: None)
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Look at all of it."}]
    with (folder / "bare.jsonl").open("w") as journal:
        for iteration in range(warm + MEASURED):
            started = now()
            request = ModelRequest.model_construct(model="instant", messages=list(messages))
            async for piece in model.stream(request):
                if isinstance(piece, Reply):
                    call = piece.calls[0]
                    output = await tool.run(json.loads(call.arguments), context)
                    said = {"role": "assistant", "content": piece.text, "tool_calls": [call.model_dump()]}
                    result = {"role": "tool", "tool_call_id": call.id, "content": output.content}
                    messages += [said, result]
                    journal.write(json.dumps([said, result]) + "\n")
            journal.flush()
            if iteration >= warm:
                ended = now()
                times.append(Spent(ended.wall - started.wall, ended.cpu - started.cpu))
    return times


async def main() -> int:
    """Measure, print, and say by the exit code whether the budget is kept."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--sessions", type=int, default=30, help="sessions to measure (default 30)")
    parser.add_argument("--long", type=int, default=3, help=f"sessions of {LATE:,} iterations (default 3)")
    parser.add_argument("--profile", action="store_true", help="also show where the time goes")
    options = parser.parse_args()
    ours: list[Spent] = []
    theirs: list[Spent] = []
    profile = cProfile.Profile() if options.profile else None
    with tempfile.TemporaryDirectory() as temporary:
        for number in range(options.sessions + 2):
            folder = Path(temporary) / str(number)
            folder.mkdir()
            bare_times, engine_times = await bare(folder), await engine(folder)
            if number >= 2:  # the first two warm caches up
                theirs += bare_times
                ours += engine_times
        if profile is not None:
            folder = Path(temporary) / "profiled"
            folder.mkdir()
            await engine(folder, profile)
        early: list[Spent] = []
        late: list[Spent] = []
        for number in range(options.long):
            folder = Path(temporary) / f"long-{number}"
            folder.mkdir()
            session = await engine(folder, measured=LATE)
            early += session[: 5 * MEASURED]
            late += session[-5 * MEASURED :]
    median, base = (statistics.median(spent.wall for spent in times) for times in (ours, theirs))
    cpu, base_cpu = (statistics.median(spent.cpu for spent in times) for times in (ours, theirs))
    p95 = statistics.quantiles([spent.wall for spent in ours], n=20)[-1]
    print(f"engine     median {median:.3f} ms an iteration, p95 {p95:.3f} ms ({len(ours)} iterations)")
    print(
        f"bare loop  median {base:.3f} ms; ratio {median / base:.1f}, of processor time {cpu / base_cpu:.1f} "
        f"(about {RATIO} where the budget was set)"
    )
    print(f"overhead   median {median - base:.3f} ms on the clock, {cpu - base_cpu:.3f} ms of processor time")
    if late:
        growth = statistics.median(spent.cpu for spent in late) / statistics.median(
            spent.cpu for spent in early
        )
        print(f"iteration {LATE:,}: {growth:.2f} times the processor time of iteration {HISTORY // 2}")
    kept = median - base < BUDGET_MS
    print(f"budget {BUDGET_MS} ms: {'kept' if kept else 'MISSED'}")
    if profile is not None:
        pstats.Stats(profile, stream=sys.stdout).sort_stats("tottime").print_stats(35)
    return 0 if kept else 1


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main()))
