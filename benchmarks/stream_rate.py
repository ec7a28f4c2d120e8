"""Tokens a second from a server through the model host into the journal of `run`, and processor time of each.

Run `python benchmarks/stream_rate.py [--tokens 20000] [--rounds 3] [--tree FOLDER …]`. The server sends as fast as it
is read. With another checkout to measure in turn, ratios are what counts: the rest depends on the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.openai_server import OpenAIServer, text  # noqa: E402

SIZE = 4
"""Characters of a token."""


class Streamed(NamedTuple):
    """A reply that was streamed: seconds from the request to its event, and those of a processor of the whole run."""

    wall: float
    cpu: float


async def asked(server: OpenAIServer) -> float:
    """The time at which the server has its request."""
    while not server.requests:  # noqa: ASYNC110  # it tells nobody
        await asyncio.sleep(0.001)
    return time.perf_counter()


async def streamed(server: OpenAIServer, tokens: int, environment: dict[str, str]) -> Streamed:
    """Run a task whose answer has so many tokens."""
    server.answer_with(text("word" * tokens, size=SIZE))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "tui_agent", "run", "Say it.", "--output", "jsonl"),
        *("--model", "openai/local", "--api-base", server.url),
        env=environment,
        cwd=environment["HOME"],
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        limit=1 << 30,
    )
    assert process.stdout is not None
    began = asyncio.create_task(asked(server))
    finished = float("nan")
    async for line in process.stdout:
        if b'"reply_finished"' in line:
            finished = time.perf_counter()
    await process.wait()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Streamed(
        finished - await began, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    )


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tree", action="append", default=[], help="another checkout to measure in turn")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        places = {f"XDG_{name}_HOME": home for name in ("CONFIG", "STATE", "CACHE", "DATA")}
        plain = {"PATH": os.environ["PATH"], "HOME": home, "CI": "true", "OPENAI_API_KEY": "none", **places}
        rates: dict[str, list[float]] = {}
        costs: dict[str, list[float]] = {}
        async with OpenAIServer(text("Hello.")) as server:
            for _ in range(options.rounds):
                for tree in (str(ROOT), *options.tree):
                    environment = plain | {"PYTHONPATH": tree}
                    short = await streamed(server, 10, environment)
                    long = await streamed(server, options.tokens, environment)
                    rates.setdefault(tree, []).append(options.tokens / long.wall)
                    costs.setdefault(tree, []).append((long.cpu - short.cpu) / options.tokens * 1e6)
    mine, spent = statistics.median(rates[str(ROOT)]), statistics.median(costs[str(ROOT)])
    sys.stdout.write(f"{'':20}{'tokens/s':>10}{'µs each':>10}{'ratio':>8}{'of the processor':>20}\n")
    for tree, each in rates.items():
        rate, cost = statistics.median(each), statistics.median(costs[tree])
        name = Path(tree).name
        sys.stdout.write(f"{name:20}{rate:10,.0f}{cost:10.0f}{mine / rate:8.2f}{spent / cost:20.2f}\n")


if __name__ == "__main__":
    asyncio.run(main())
