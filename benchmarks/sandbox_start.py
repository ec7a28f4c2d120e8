"""What the sandbox costs: the start of a command in each mechanism, and connections and messages within it.

`true` is run by the production path (supervisor, gate, sandbox policy). 200 connections are made to a server of the
command itself, over a Unix socket and, where there is a loopback, over TCP. Of 1,200 bytes each, 2,000 datagrams are
sent to an address elsewhere, to one of the command's own, and without an address, and 2,000 messages (`sendmsg`)
through a pair of sockets. With `--other TREE` both trees are measured in turn and the ratio is given.

    python benchmarks/sandbox_start.py [--runs 20] [--rounds 5] [--other ../older-tree]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
KINDS = (
    ("none", True),
    *((each, network) for each in ("bubblewrap", "landlock") for network in (False, True)),
)
PROGRAM = str(Path(sys.executable).resolve())
CONNECTIONS, MESSAGES = 200, 2_000
CONNECT = f"""
import socket, sys, threading, time
def measured(server):
    server.listen(50)
    def take():
        while True: server.accept()[0].close()
    threading.Thread(target=take, daemon=True).start()
    begun = time.perf_counter()
    for _ in range({CONNECTIONS}):
        with socket.socket(server.family) as one: one.connect(server.getsockname())
    return (time.perf_counter() - begun) / {CONNECTIONS} * 1000
unix = socket.socket(socket.AF_UNIX); unix.bind('')
print('unix', measured(unix))
try:
    net = socket.socket(); net.bind(('127.0.0.1', 0)); print('tcp', measured(net))
except OSError: pass
def sent(name, send):
    begun = time.perf_counter()
    for _ in range({MESSAGES}): send()
    print(name, (time.perf_counter() - begun) / {MESSAGES} * 1000)
data, there = bytes(1200), ('192.0.2.9', 9)
try:
    one, own = (socket.socket(type=socket.SOCK_DGRAM) for _ in range(2))
    own.bind(('127.0.0.1', 0)); at = own.getsockname(); one.sendto(data, there)
    sent('datagram', lambda: one.sendto(data, there)); sent('datagram-own', lambda: one.sendto(data, at))
    one.connect(there); sent('datagram-connected', lambda: one.send(data))
except OSError: pass
a, b = socket.socketpair(); a.setblocking(False)
def pass_on():
    a.sendmsg([data]); b.recv(1200)
sent('message', pass_on)
"""
WHAT = ("start", "unix", "tcp", "datagram", "datagram-own", "datagram-connected", "message")


def sample(mechanism: str, network: bool, runs: int) -> dict[str, float]:
    """Medians in milliseconds, from the tree that comes first on the path."""
    import asyncio
    import time

    from tui_agent.sandbox.mechanisms import Sandbox
    from tui_agent.sandbox.policy import SandboxPolicy
    from tui_agent.tools.running import run_command

    class Output:
        text = ""

        def feed(self, data: bytes) -> None:
            self.text += data.decode()

    async def run(folder: Path) -> dict[str, float]:
        workspace, scratch = folder / "workspace", folder / "scratch"
        sandbox = Sandbox()
        if mechanism != "none":
            sandbox = Sandbox(mechanism, SandboxPolicy.around(workspace, scratch, network=network))
        (workspace / "connect.py").write_text(CONNECT)

        async def command(*argv: str) -> str:
            output = Output()
            await run_command(list(argv), workspace, 60, 0.5, output, lambda _: None, sandbox=sandbox)
            return output.text

        times = []
        for _ in range(runs):
            begun = time.perf_counter()
            await command("true")
            times.append((time.perf_counter() - begun) * 1000)
        text = await command(PROGRAM, "-I", "connect.py")
        words = text.split() if text.startswith("unix") else []
        found = {name: float(value) for name, value in zip(words[::2], words[1::2], strict=False)}
        return {"start": statistics.median(times), **found}

    with tempfile.TemporaryDirectory(dir=Path("~").expanduser(), prefix=".sandbox-start-") as name:
        for below in ("workspace", "scratch"):
            (Path(name) / below).mkdir()
        return asyncio.run(run(Path(name)))


def measured(tree: Path, mechanism: str, network: bool, runs: int) -> dict[str, float]:
    """The same in a process of its own, from the code of a tree."""
    argv = [sys.executable, __file__, "--sample", mechanism, str(int(network)), "--runs", str(runs)]
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--other", type=Path)
    parser.add_argument("--sample", nargs=2, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.sample:
        print(json.dumps(sample(chosen.sample[0], chosen.sample[1] == "1", chosen.runs)))
        return
    trees = [HERE] if chosen.other is None else [HERE, chosen.other.resolve()]
    for mechanism, network in KINDS:
        rounds = [
            [measured(tree, mechanism, network, chosen.runs) for tree in trees] for _ in range(chosen.rounds)
        ]
        for what in WHAT:
            kept = [[one.get(what) for one in row] for row in rounds]
            values = [
                statistics.median(filter(None, one)) if any(one) else 0 for one in zip(*kept, strict=True)
            ]
            said = " against ".join(f"{value:.4f} ms" if value else "refused" for value in values)
            ratio = f", ratio {values[0] / values[1]:.2f}" if len(values) == 2 and all(values) else ""
            print(f"{mechanism}, {'network' if network else 'no network'}, {what}: {said}{ratio}")


if __name__ == "__main__":
    main()
