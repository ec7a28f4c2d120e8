"""Seconds until the first request arrives, beside `import openai` in the same round: of `run`, of the console with a
task, and of a further tab; through the OpenAI client and, for comparison, through litellm.

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
from collections.abc import Callable, Sequence
from pathlib import Path

from terminal import Terminal

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.openai_server import OpenAIServer, text  # noqa: E402

PROGRAM = (sys.executable, "-P", "-m", "tui_agent")
CALLS = ("--model", "openai/local", "--api-base")


async def request_after(
    server: OpenAIServer, began: float, over: Callable[[], bool], read: Callable[[], object]
) -> float:
    """Seconds since `began` until the server has one request more; not a number where the program is over before."""
    before = len(server.requests)
    while len(server.requests) == before and not over():
        read()
        await asyncio.sleep(0.002)
    return time.perf_counter() - began if len(server.requests) > before else float("nan")


async def first_request(server: OpenAIServer, command: list[str], environment: dict[str, str]) -> float:
    """Seconds from the start of the command until the server had its first request."""
    began = time.perf_counter()
    process = await asyncio.create_subprocess_exec(
        *command,
        env=environment,
        cwd=environment["HOME"],
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    seconds = await request_after(server, began, lambda: process.returncode is not None, lambda: None)
    await process.wait()
    return seconds


async def console_and_tab(
    server: OpenAIServer, environment: dict[str, str], flags: Sequence[str]
) -> tuple[float, float]:
    """The same of the console with a task; and from Enter after `/new TASK` until the request of that tab."""
    own = [f"{name}={value}" for name, value in {**environment, "TERM": "xterm-256color"}.items()]
    with Terminal(["env", "-i", *own, *PROGRAM, "Say hello.", *CALLS, server.url, *flags]) as terminal:

        def over() -> bool:
            return terminal.poll() is not None

        def read() -> object:
            return terminal.read(0.0)

        console = await request_after(server, terminal.started, over, read)
        await asyncio.to_thread(terminal.wait_for, b"Hello.", 60.0)
        terminal.send(b"/new Say hello again.")
        await asyncio.to_thread(terminal.drain, 1.0)
        return console, await request_after(server, terminal.send(b"\r"), over, read)


def through_litellm(home: Path, url: str) -> None:
    """Write settings with a profile that forces litellm."""
    settings = home / "agent-tui" / "config.toml"
    settings.parent.mkdir()
    profile = f'model = "openai/local"\napi_base = "{url}"\nclient = "litellm"\n'
    settings.write_text(f"[profiles.through-litellm]\n{profile}")


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
        plain = {name: os.environ[name] for name in ("PATH", "LANG", "CI") if name in os.environ}
        places = {f"XDG_{name}_HOME": home for name in ("CONFIG", "STATE", "CACHE", "DATA")}
        plain |= {
            "HOME": home,
            "XDG_RUNTIME_DIR": home,
            "OPENAI_API_KEY": "none",
            "AZURE_API_KEY": "none",
            **places,
        }
        async with OpenAIServer(text("Hello.")) as server:
            run = [*PROGRAM, "run", "Say hello.", *CALLS, server.url]
            through_litellm(Path(home), server.url)
            trees = {"": str(ROOT), **{f", {Path(tree).name}": tree for tree in options.tree}}
            # A tree before there were two clients has no key that forces one.
            by_name = (", litellm by its name", ("--model", "azure/local"))
            forced = (", litellm", ("--profile", "through-litellm"))
            ways: list[tuple[str, tuple[str, ...]]] = [("", ()), by_name, forced]
            for _ in range(options.rounds):
                seconds.setdefault("import openai", []).append(await import_openai(plain))
                for name, tree in trees.items():
                    environment = plain | {"PYTHONPATH": tree}
                    if name:
                        environment["XDG_CONFIG_HOME"] = str(Path(home) / "no-settings")
                    for how, flags in ways if tree == str(ROOT) else ways[:2]:
                        taken = await first_request(server, [*run, *flags], environment)
                        seconds.setdefault(f"run{how}{name}", []).append(taken)
                        console, tab = await console_and_tab(server, environment, flags)
                        seconds.setdefault(f"console{how}{name}", []).append(console)
                        seconds.setdefault(f"a further tab{how}{name}", []).append(tab)
                for peer in options.peer:
                    words = shlex.split(peer.replace("{url}", server.url))
                    taken = await first_request(server, words, plain)
                    seconds.setdefault(Path(words[0]).name, []).append(taken)
    base = statistics.median(seconds["import openai"])
    sys.stdout.write(f"{'':44}{'median':>8}{'lowest':>8}{'ratio':>8}\n")
    for name, values in seconds.items():
        median = statistics.median(values)
        sys.stdout.write(f"{name:44}{median:8.2f}{min(values):8.2f}{median / base:8.2f}\n")


if __name__ == "__main__":
    asyncio.run(main())
