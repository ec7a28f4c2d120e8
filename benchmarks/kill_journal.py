"""Kills a working session at random moments and opens it again, a few hundred times.

Each worker is a real session (loop, tools, journal, checkpoints) on a scripted model that reads and writes files
without end; it is killed with SIGKILL at a random moment, also while it is still opening. After every other kill the
end of the journal that nobody was promised (what came after the last barrier) is cut at a random byte as well, as a
failing power supply would. Then it is checked that

- the journal opens, and at most its torn last line is lost;
- nothing that the worker was told is on the disk is missing, and nothing written before was altered;
- after its repair the history is coherent (every call has its one result) and nothing is left open;
- the next worker goes on with the same session and finishes further iterations.

Run by hand: `python benchmarks/kill_journal.py [--kills 200] [--seed 1]`. Exits with 1 where a check fails.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import select
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tui_agent.config.settings import Settings
from tui_agent.core import events
from tui_agent.core.fold import apply, fold
from tui_agent.core.state import RunState
from tui_agent.headless import HeadlessOperator
from tui_agent.models.protocol import Delta, ModelRequest, Reply
from tui_agent.runtime.recorder import RecordingFailed
from tui_agent.session.opening import open_session
from tui_agent.session.session import Session
from tui_agent.store.errors import JournalError
from tui_agent.store.journal import JOURNAL_NAME, read_journal
from tui_agent.store.repair import repair_events

KILLS_A_SESSION = 8
"""So that sessions are killed, resumed and killed again."""


class RestlessModel:
    """Replies at once: a few deltas, then one to three calls of file tools, some of them wrong, or an answer."""

    def __init__(self, seed: int) -> None:
        self._choose = random.Random(seed)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Delta | Reply, None]:
        choose = self._choose
        for _ in range(choose.randint(1, 4)):
            yield Delta(text="thinking about it ")
            await asyncio.sleep(0)
        if choose.random() < 0.1:
            yield Reply(
                text="That is done.", finish_reason="stop", prompt_tokens=10, completion_tokens=5, cost=0.0
            )
            return
        calls = tuple(self._call() for _ in range(choose.choice((1, 1, 2, 3))))
        yield Reply(text="thinking", calls=calls, finish_reason="tool_calls", prompt_tokens=10, cost=0.0)

    def _call(self) -> events.ToolCall:
        choose = self._choose
        path = f"file{choose.randint(1, 4)}.txt"
        # Long lines take the kernel longest to write, so that some kills fall into the middle of one.
        content = "line of text\n" * choose.choice((1, 10, 2_000, 60_000))
        name, arguments = choose.choice(
            (
                ("write_file", {"path": path, "content": content}),
                ("read_file", {"path": path}),
                ("list_dir", {}),
                ("edit_file", {"path": path, "old": "line of text", "new": "other", "replace_all": True}),
            )
        )
        return events.ToolCall(id=f"c{choose.getrandbits(48):x}", name=name, arguments=json.dumps(arguments))

    async def context_tokens(self, model: str) -> int | None:
        return None

    async def close(self) -> None:
        """Nothing is held."""


async def work(state_dir: Path, workspace: Path, resume: Path | None, seed: int, tell: int) -> None:
    """One worker: opens the session and works until it is killed. Tells what is known to be on the disk."""
    settings = Settings(model="bench", workspace=workspace, approve=events.Approval.ALL, state_dir=state_dir)
    session = await open_session(settings, HeadlessOperator(), RestlessModel(seed), resume, environment={})
    os.write(tell, f"open {session.folder}\n".encode())
    acknowledging = asyncio.create_task(acknowledge(session, tell))
    try:
        session.go_on()
        while True:
            await session.wait()
            await session.submit("Go on with the work")
    finally:
        acknowledging.cancel()


async def acknowledge(session: Session, tell: int) -> None:
    """Say again and again which event is certainly on the disk."""
    while True:
        seq = session.state.seq
        with suppress(RecordingFailed):
            await session._recorder.barrier()
            os.write(tell, f"kept {seq}\n".encode())
        await asyncio.sleep(0.001)


class Campaign:
    """All kills of one seed, and what they met."""

    def __init__(self, root: Path, seed: int) -> None:
        self.root = root
        self.choose = random.Random(seed)
        self.found: Counter[str] = Counter()
        self.session: Path | None = None
        self.before = b""
        self.iterations = 0

    def kill_once(self, number: int) -> None:
        """Start a worker, kill it, check what it left."""
        if number % KILLS_A_SESSION == 0:
            self.session, self.before, self.iterations = None, b"", 0
        told = self._worker(number)
        kept = max((int(line[5:]) for line in told if line.startswith("kept ")), default=0)
        opened = next((line[5:] for line in told if line.startswith("open ")), "")
        if opened:
            self.session = Path(opened)
        else:
            self.found["killed while opening"] += 1
        if self.session is not None:
            self._check(kept)

    def _worker(self, number: int) -> list[str]:
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            workspace = self.root / "workspace"
            workspace.mkdir(exist_ok=True)
            try:
                asyncio.run(work(self.root / "state", workspace, self.session, number, writing))
            except BaseException as fault:  # the parent must hear of it, whatever it is
                os.write(writing, f"broken {fault!r}\n".encode())
            os._exit(1)
        os.close(writing)
        # Most kills fall into the work, some into the opening.
        ready = b"" if self.choose.random() < 0.15 else self._until(reading, b"open ")
        time.sleep(self.choose.uniform(0.0, 0.5))
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        told = ready
        while piece := os.read(reading, 65536):
            told += piece
        os.close(reading)
        lines = told.decode("utf-8", "replace").split("\n")[:-1]
        broken = [line for line in lines if line.startswith("broken ")]
        if broken:
            raise AssertionError(f"the worker broke: {broken[0]}")
        return lines

    def _until(self, reading: int, wanted: bytes) -> bytes:
        told = b""
        while wanted not in told:
            if not select.select([reading], [], [], 30.0)[0]:
                raise AssertionError("the worker did not open its session within 30 s")
            piece = os.read(reading, 65536)
            if not piece:
                break
            told += piece
        return told

    def _cut(self, path: Path, kept: int) -> bytes:
        """The journal, in every other case without a part of what was not promised to be kept."""
        raw = path.read_bytes()
        promised = len(b"".join(raw.splitlines(keepends=True)[: max(kept, 1)]))
        promised = max(promised, len(self.before))
        if self.choose.random() < 0.5 and promised < len(raw):
            raw = raw[: self.choose.randint(promised, len(raw))]
            path.write_bytes(raw)
            self.found["cut at a random byte"] += 1
        return raw

    def _check(self, kept: int) -> None:
        assert self.session is not None
        raw = self._cut(self.session / JOURNAL_NAME, kept)
        try:
            contents = read_journal(self.session)
        except JournalError as error:
            # Killed between making the file and its first line: there is nothing to lose.
            if kept or self.before or "holds no session" not in str(error):
                raise
            self.session = None
            self.found["killed before the first event"] += 1
            return
        if not raw.startswith(self.before):
            raise AssertionError("what was written before was altered")
        if len(contents.events) < kept:
            raise AssertionError(f"{kept} events were on the disk, {len(contents.events)} are read")
        self.before = raw[: contents.end.size]
        self.found["kills"] += 1
        self.found["torn last lines"] += bool(contents.dropped_bytes)
        self._check_repair(fold(contents.events))

    def _check_repair(self, state: RunState) -> None:
        self.found["in the middle of an iteration"] += state.iteration_open
        if state.history.reply is not None:
            missing = len(state.history.reply.calls) - len(state.history.results)
            self.found["calls without a result"] += missing
        for event in repair_events(state):
            state = apply(state, event.stamped(state.seq + 1, state.at))
        if repair_events(state) or state.iteration_open or state.conversation.calls or state.escalation:
            raise AssertionError("something is left open after the repair")
        done = 0
        for group in state.history.groups:
            calls = [call["id"] for message in group.messages for call in message.get("tool_calls", ())]
            results = [message["tool_call_id"] for message in group.messages if message["role"] == "tool"]
            if calls != results:
                raise AssertionError(f"calls {calls} have results {results}")
            done += bool(calls)
        self.found["went on after a kill"] += bool(self.iterations) and done > self.iterations
        self.iterations = done


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="agent-tui-kills-") as folder:
        campaign = Campaign(Path(folder), chosen.seed)
        start = time.perf_counter()
        for number in range(chosen.kills):
            try:
                campaign.kill_once(number)
            except (AssertionError, JournalError) as fault:
                print(f"kill {number} (seed {chosen.seed}): {fault}")
                return 1
        print(
            f"{chosen.kills} workers killed in {time.perf_counter() - start:.0f} s, every session opened again"
        )
        for what, count in sorted(campaign.found.items()):
            print(f"  {what}: {count}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
