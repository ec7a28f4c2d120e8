"""How much of each prompt begins like an earlier one, so that a provider's cache can serve it: over 50 iterations,
with no limit on the window, with the window cut, and with summaries (`compact_at`).

The prompts are those that reached an OpenAI-compatible server on loopback through the whole program: litellm in its
process, real tools, a failing call every seventh iteration (whose note goes last). Compared are the bytes of tools and
messages, in the order in which providers read them.

    python benchmarks/prompt_prefix.py [--iterations 50] [--window 16000]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.openai_server import Answer, OpenAIServer, Recorded, calls, text
from tui_agent.config.settings import Settings
from tui_agent.core import events
from tui_agent.core.request.compaction import OPENING
from tui_agent.headless import HeadlessOperator
from tui_agent.models.hosted import HostedModel
from tui_agent.session.opening import open_session

CACHED_PRICE = 0.1
"""What a cached token costs of a fresh one, with the large providers."""


class Provider(OpenAIServer):
    """Calls a tool in each of so many iterations, writes a summary when it is asked for one, then answers."""

    def __init__(self, iterations: int) -> None:
        super().__init__()
        self._left = iterations

    def respond(self, request: Recorded) -> Answer:
        """See `OpenAIServer`."""
        if request.method == "GET":
            return super().respond(request)
        self.requests.append(request)
        if str(request.body["messages"][-1]["content"]).startswith(OPENING):
            return text("Goal: count on.\nDone: " + "a range was printed. " * 60)
        self._left -= 1
        if self._left < 0:
            return text("Counted.")
        command = "exit 3" if self._left % 7 == 0 else f"seq {self._left} {self._left + 700}"
        return calls([("bash", json.dumps({"command": command}))], say="Next.")


class Measured(NamedTuple):
    """`shared` and `sent` in bytes over all requests but the first; `breaks`: prompts of which less than half was
    shared with an earlier one."""

    requests: int
    summaries: int
    cuts: int
    sent: int
    shared: int
    breaks: int


async def measure(host: HostedModel, iterations: int, **options: Any) -> Measured:
    """One run with these settings."""
    with tempfile.TemporaryDirectory() as folder:
        async with Provider(iterations) as provider:
            workspace = Path(folder) / "workspace"
            workspace.mkdir()
            settings = Settings(
                model="openai/measured",
                api_base=provider.url,
                approve="all",
                max_iterations=iterations + 10,
                workspace=workspace,
                state_dir=Path(folder) / "state",
                **options,
            )
            session = await open_session(settings, HeadlessOperator("continue"), host)
            heard: list[type[events.Event]] = []
            session.subscribe(lambda event, _: heard.append(type(event)))
            await session.submit("Count on, and do not stop.")
            finished = await session.wait()
            assert finished is not None
            assert finished.answer == "Counted.", finished
            prompts = [prompt_of(request.body) for request in provider.requests]
    shared = [
        max(same_beginning(prompt, earlier) for earlier in prompts[:at])
        for at, prompt in enumerate(prompts)
        if at
    ]
    sent = [len(prompt) for prompt in prompts[1:]]
    breaks = sum(same < size / 2 for same, size in zip(shared, sent, strict=True))
    summaries, cuts = heard.count(events.Compacted), heard.count(events.WindowCut)
    return Measured(len(prompts), summaries, cuts, sum(sent), sum(shared), breaks)


def prompt_of(body: dict[str, Any]) -> bytes:
    """Tools, then messages."""
    return b"".join(json.dumps(part).encode() for part in (*body.get("tools", ()), *body["messages"]))


def same_beginning(one: bytes, other: bytes) -> int:
    """How many bytes both begin with."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one.startswith(other[:middle]):
            low = middle
        else:
            high = middle - 1
    return low


class KeptHost(HostedModel):
    """One process for all runs."""

    async def close(self) -> None:
        """The next run needs it."""


async def main() -> None:
    """Print a row a setting."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--iterations", type=int, default=50)
    parser.add_argument("--window", type=int, default=16_000, metavar="TOKENS")
    chosen = parser.parse_args()
    rows = {
        "no limit": {},
        "window cut": {"context_tokens": chosen.window, "compact_at": 0.0},
        "summaries": {"context_tokens": chosen.window},
    }
    host = KeptHost()
    print(f"{chosen.iterations} iterations, a window of {chosen.window:,} tokens where there is one")
    print(
        "| | requests | summaries | cuts | KB sent | begins like an earlier one | under half | cost of the prompts |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    dearest = 0.0
    for name, options in rows.items():
        row = await measure(host, chosen.iterations, **options)
        cost = row.sent - row.shared * (1 - CACHED_PRICE)
        dearest = dearest or cost
        print(
            f"| {name} | {row.requests} | {row.summaries} | {row.cuts} | {row.sent / 1_000:,.0f} "
            f"| {row.shared / row.sent:.1%} | {row.breaks} | {cost / dearest:.2f} |"
        )
    await HostedModel.close(host)


if __name__ == "__main__":
    asyncio.run(main())
