"""Seconds until the first request arrives, beside `import openai` in the same round: cold, and from a host that stays.

Run `python benchmarks/first_request.py [ROUNDS] [--tree FOLDER …] [--peer "COMMAND {url}"]`. A peer is any command that
calls the server at `{url}` with OpenAI's protocol. Ratios are what counts: the rest depends on the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shlex
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.openai_server import OpenAIServer, text  # noqa: E402

RUN = ("-P", "-m", "tui_agent", "run", "Say hello.", "--model", "openai/local", "--api-base")


async def first_request(server: OpenAIServer, command: list[str], environment: dict[str, str]) -> float:
    """Seconds from the start of the command until the server had its first request."""
    before, began = len(server.requests), time.perf_counter()
    process = await asyncio.create_subprocess_exec(
        *command,
        env=environment,
        cwd=environment["HOME"],
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    while len(server.requests) == before and process.returncode is None:  # noqa: ASYNC110
        await asyncio.sleep(0.002)
    seconds = time.perf_counter() - began
    await process.wait()
    return seconds if len(server.requests) > before else float("nan")


async def import_openai(environment: dict[str, str]) -> float:
    """Seconds that `import openai` takes."""
    began = time.perf_counter()
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", "import openai", env=environment)
    await process.wait()
    return time.perf_counter() - began


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rounds", nargs="?", type=int, default=3)
    parser.add_argument(
        "--tree", action="append", default=[], help="another checkout to measure beside this one"
    )
    parser.add_argument("--peer", action="append", default=[], help="a command that calls {url}")
    options = parser.parse_args()
    seconds: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as home:
        plain = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        plain |= {"HOME": home, "XDG_RUNTIME_DIR": home, "OPENAI_API_KEY": "none"}
        async with OpenAIServer(text("Hello.")) as server:
            staying = plain | {"PYTHONPATH": str(ROOT), "AGENT_TUI_HOST_MINUTES": "5"}
            await first_request(server, [sys.executable, *RUN, server.url], staying)  # it comes to stay
            for _ in range(options.rounds):
                seconds.setdefault("import openai", []).append(await import_openai(plain))
                for tree in (str(ROOT), *options.tree):
                    own = plain | {"PYTHONPATH": tree}
                    command = [sys.executable, *RUN, server.url]
                    taken = await first_request(server, command, own)
                    seconds.setdefault(f"run in {Path(tree).name}", []).append(taken)
                taken = await first_request(server, [sys.executable, *RUN, server.url], staying)
                seconds.setdefault("run, with a host that stays", []).append(taken)
                for peer in options.peer:
                    words = shlex.split(peer.replace("{url}", server.url))
                    seconds.setdefault(words[0], []).append(await first_request(server, words, plain))
    base = statistics.median(seconds["import openai"])
    sys.stdout.write(f"{'':34}{'median':>8}{'lowest':>8}{'ratio':>8}\n")
    for name, values in seconds.items():
        median = statistics.median(values)
        sys.stdout.write(f"{name:34}{median:8.2f}{min(values):8.2f}{median / base:8.2f}\n")


if __name__ == "__main__":
    asyncio.run(main())
