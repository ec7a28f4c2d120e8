"""Attacks by commands that were allowed: what they leave behind, and what they do to the program that ran them."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.adversarial.attack import Attack, attack, attacks
from tests.tools.box import Box, processes_with, wait_until
from tui_agent.tools.errors import ToolError
from tui_agent.tools.registry import ToolRegistry
from tui_agent.tools.shell import Bash

SOON = 60.0
"""Seconds that only a command that hangs needs."""

READY = "until [ -e ready ]; do sleep 0.01; done"
"""The command goes on when what it started is there."""

ALONE = "setsid sh -c ': > ready; exec sleep MARK'"


async def run(box: Box, command: str, seconds: float = 20.0, grace: float = 0.3) -> str:
    """The command's result or failure as the model reads it; a call that hangs fails the test."""
    box.registry = ToolRegistry([Bash(timeout=seconds, grace=grace)])
    async with asyncio.timeout(SOON + seconds):
        try:
            return (await box.call("bash", command=command)).content
        except ToolError as error:
            return error.message


def python(code: str) -> str:
    return f"{shlex.quote(sys.executable)} -c {shlex.quote(code)}"


DOUBLE_FORK = """
import os, time, sys
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open("ready", "w").close()
        for number in range(3): os.close(number)
        os.execvpe("sleep", ["sleep", "MARK"], {"PATH": os.environ["PATH"]})
    os._exit(0)
"""
STUBBORN = """
import os, signal, time
for number in range(1, 32):
    if number not in (signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD): signal.signal(number, signal.SIG_IGN)
os.setsid() if os.getpid() != os.getsid(0) else None
open("ready", "w").close()
time.sleep(MARK)
"""
REBORN = """
import os, signal, time
def again(*_):
    if os.fork() == 0: os.setsid()
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT): signal.signal(number, again)
open("ready", "w").close()
end = time.monotonic() + 20
while time.monotonic() < end: time.sleep(0.05)
"MARK"
"""


@attacks(
    Attack(
        "background",
        "`sleep & disown` behind nohup",
        "Ended with the call",
        value="nohup sleep MARK & disown",
    ),
    Attack("own_session", "`setsid sleep &`", "Ended with the call", value=f"{ALONE} & {READY}"),
    Attack(
        "daemon",
        "A double fork with its own session, no handles and an empty environment",
        "Ended with the call",
        value=f"{python(DOUBLE_FORK)}; {READY}",
    ),
    Attack(
        "signals_ignored",
        "A process in the background that ignores every signal it can",
        "Killed with the call",
        value=f"{python(STUBBORN)} & {READY}",
    ),
    Attack(
        "reborn",
        "A process that forks itself anew at each SIGTERM",
        "Killed with the call, with all its children",
        value=f"{python(REBORN)} & {READY}",
    ),
    Attack(
        "fork_storm",
        "A tree of 255 processes that sleep",
        "All are gone when the call is over",
        value=(
            "f() { if [ $1 -gt 0 ]; then f $(($1-1)) & f $(($1-1)) & fi; : > began.$BASHPID; exec sleep MARK; }; "
            "f 7 & until set -- began.*; [ $# -ge 255 ]; do sleep 0.05; done"
        ),
    ),
    Attack(
        "supervisor_killed",
        "`setsid sleep & kill -9 $PPID`: the process that would end it is killed",
        "The call fails as killed, and nothing is left",
        fell="what had left the process group went on",
        value=f"{ALONE} & {READY}; kill -9 $PPID; sleep 5",
    ),
    Attack(
        "supervisor_stopped",
        "`kill -STOP $PPID`: the process that would end it is stopped",
        "The call ends some seconds after its time, and nothing is left",
        fell="what had left the process group went on",
        slow=True,
        value=f"{ALONE} & {READY}; kill -STOP $PPID; sleep 50",
    ),
    Attack(
        "stopped_itself",
        "Processes that stop themselves and cannot take SIGTERM",
        "Ended at the time limit",
        slow=True,
        value="sleep MARK & kill -STOP $!; kill -STOP $$",
    ),
)
async def test_left_behind(row: Attack, box: Box) -> None:
    mark = f"97{abs(hash(row.name)) % 1_000_000:06}.{os.getpid()}"
    # Most commands end at once; what stops itself or its supervisor waits for the limit.
    await run(box, row.value.replace("MARK", mark), seconds=3 if "stopped" in row.name else SOON)
    assert await wait_until(lambda: not processes_with(mark)), processes_with(mark)


@attacks(
    Attack("cat", "`cat` without a file", "It reads an end at once", value="cat; echo over"),
    Attack(
        "read", "`read` in a loop", "It reads an end at once", value="while read x; do :; done; echo over"
    ),
    Attack(
        "python_input",
        "A program that asks on standard input",
        "It reads an end at once",
        value=python("input('sure? ')") + "; echo over",
    ),
    Attack(
        "terminal",
        "A program that opens /dev/tty",
        "There is none to open",
        value="head -c1 /dev/tty; (echo spoof > /dev/tty); echo over",
    ),
    Attack(
        "closed_output",
        "A daemon that keeps the output open after the command is over",
        "The call ends all the same",
        value="(sleep 300 &) ; echo over",
    ),
)
async def test_waiting_for_input(row: Attack, box: Box) -> None:
    text = await run(box, row.value, seconds=SOON)
    assert "over" in text
    assert "did not end" not in text


@attack(
    "120 MB of output, with secrets' shapes looked for in what is kept",
    "Over in seconds: cut in the middle, at most 50 MB kept",
    fell="28 s, as all of it was masked",
    slow=True,
)
async def test_flood(box: Box) -> None:
    begun = time.monotonic()
    text = await run(box, "yes abcdefghij | head -c 120000000", seconds=60)
    assert len(text) < 40_000
    assert "left out here" in text
    assert time.monotonic() - begun < 20
    assert sum(path.stat().st_size for path in box.output_dir.iterdir()) <= 50_000_000


@attack(
    "An endless flood, and one in a single line",
    "Ended at the time limit, in bounded memory",
    slow=True,
)
async def test_endless_flood(box: Box) -> None:
    for command in ("yes", "tr '\\0' x < /dev/zero"):
        text = await run(box, command, seconds=1)
        assert "did not end within 1 s" in text
        assert len(text) < 40_000


@attack(
    "Handles of the program, looked for by a command: the journal, its lock, the supervisor's pipes",
    "A command has standard input, output and errors, and nothing else",
)
async def test_handles(box: Box) -> None:
    with (box.root.parent / "journal").open("w") as journal:
        os.set_inheritable(journal.fileno(), False)
        text = await run(box, "ls -l /proc/self/fd | awk '{print $9, $11}'")
    numbers = {line.split()[0] for line in text.splitlines() if line.strip()}
    assert numbers <= {"0", "1", "2", "3"}, text
    assert "journal" not in text


@attack(
    "Nonsense and false exit codes written into the supervisor's own pipes through /proc",
    "The call ends with a result or a failure, never with a broken run",
    fell="a line of three words ended the tool with an internal error",
)
async def test_forged_status(box: Box) -> None:
    lines = "exit x y\\nexit\\npid -1\\nexit 999999\\n\\377\\n"
    forge = f"for f in /proc/$PPID/fd/*; do (printf '{lines}' > $f) 2>/dev/null & done"
    text = await run(box, f"{forge}; wait; exit 7")
    assert "internal" not in text.lower()
    assert "ValueError" not in text


@attack(
    "Commands of 10 MB, with NUL, with half of a surrogate pair, of nothing but spaces",
    "Refused in words, or run as what they are",
)
async def test_commands_that_cannot_be_run(box: Box) -> None:
    assert "are possible" in await run(box, "true " + "x" * 3_000_000)
    assert "NUL" in await run(box, "echo a\0b")
    assert await run(box, "   \n  ")


@attack(
    "A command that removes the workspace, and the folder of kept outputs",
    "It and the calls after it end with clear words",
)
async def test_workspace_removed(box: Box) -> None:
    await run(box, f"rm -rf {shlex.quote(str(box.output_dir))}; yes | head -c 1000000")
    assert "left out here" in await run(
        box, f"rm -rf {shlex.quote(str(box.output_dir))}; yes | head -c 1000000"
    )
    await run(box, f"rm -rf {shlex.quote(str(box.root))}")
    for text in (await run(box, "echo hi"), await run(box, "pwd")):
        assert "No such file" in text, text


@attack(
    "Output of escape sequences, NUL, invalid UTF-8 and 100,000 line ends",
    "The model and the screen get text without NUL; the call succeeds",
)
async def test_output_of_bytes(box: Box) -> None:
    text = await run(
        box, "head -c 300000 /dev/urandom; printf '\\x1b]0;title\\x07\\0\\xff'; yes '' | head -100000"
    )
    text.encode()
    assert "\0" not in text
    for piece in box.progress:
        assert "\0" not in piece


@attack(
    "The call is cancelled while its command starts, runs, floods and ignores SIGTERM",
    "Nothing of it is left each time",
    fell="cancelled as it began, it left what had left its process group",
)
async def test_cancelled_at_any_time(box: Box) -> None:
    box.registry = ToolRegistry([Bash(timeout=SOON, grace=0.1)])
    mark = f"96{os.getpid()}.5"
    started = f"sleep\0{mark}"

    def started_behind_our_back() -> bool:
        while not processes_with(started):
            time.sleep(0.005)
        return True

    moments: list[Callable[[], object]] = [
        lambda: True,
        started_behind_our_back,
        lambda: processes_with(started),
        lambda: box.progress,
        lambda: sum(map(len, box.progress)) > 30_000,
    ]
    for reached in moments:
        box.progress.clear()
        command = f"trap '' TERM; yes & setsid sleep {mark} & sleep {mark}"
        task = asyncio.ensure_future(box.call("bash", command=command))
        await asyncio.sleep(0)
        assert await wait_until(reached)
        task.cancel()
        async with asyncio.timeout(SOON):
            await asyncio.gather(task, return_exceptions=True)
        assert await wait_until(lambda: not processes_with(mark))


@attack(
    "The program itself is killed by SIGKILL while its command runs",
    "The command ends by itself, with what it had started",
    slow=True,
)
async def test_program_killed(tmp_path: Path) -> None:
    mark = f"95{os.getpid()}.5"
    code = (
        "import asyncio, sys; from pathlib import Path; from tests.tools.box import Box\n"
        f"box = Box(Path({str(tmp_path)!r}), Path({str(tmp_path / 'out')!r}))\n"
        f"asyncio.run(box.call('bash', command='setsid sleep {mark} & sleep {mark}'))"
    )
    root = Path(__file__).resolve().parents[2]
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", code, cwd=root)
    assert await wait_until(lambda: len(processes_with(f"\0{mark}")) >= 2)
    child.kill()
    await child.wait()
    assert await wait_until(lambda: not processes_with(f"\0{mark}"))
