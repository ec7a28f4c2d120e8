"""Child processes end with their group, whatever they do with their pipes and whoever is cancelled."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tools.box import wait_until
from tui_agent import processes

ENDLESS = [sys.executable, "-c", "import os\nwhile True: os.write(1, b'x' * 65536)"]
DEAF = [
    sys.executable, "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)",
]  # fmt: skip


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


GIVES_WAY = """
import asyncio, sys
from pathlib import Path
from tests.tools.box import Box
from tui_agent import processes

async def show(folder):
    wait = "import sys; sys.stdin.read(); print(open('/proc/self/autogroup').read())"
    child = await processes.start([sys.executable, "-c", wait])
    print((await child.output(b"now"))[0].decode())
    print((await Box(folder, folder).call("bash", command="cat /proc/self/autogroup")).content)

processes.lower_priority(7)
asyncio.run(show(Path(sys.argv[1])))
"""


@pytest.mark.process
@pytest.mark.skipif(
    not Path("/proc/self/autogroup").exists(), reason="the processor is not shared by sessions"
)
def test_what_a_process_of_low_priority_starts_has_no_more_of_the_processor(tmp_path: Path) -> None:
    command = [sys.executable, "-c", GIVES_WAY, str(tmp_path)]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert re.findall(r"/autogroup-\d+ nice (-?\d+)", shown) == [str(min(19, os.nice(0) + 7))] * 2


@pytest.mark.parametrize("argv", [ENDLESS, DEAF], ids=["writes without end", "ignores SIGTERM"])
@pytest.mark.parametrize("grace", [0.0, 0.2])
async def test_a_process_that_does_not_end_is_ended(argv: list[str], grace: float) -> None:
    child = await processes.start(argv)
    assert child.process.stdout is not None
    await child.process.stdout.read(1)
    # Nobody reads on: the pipe is full and its reader paused.
    async with asyncio.timeout(60):
        await child.end(grace)
    assert child.code is not None
    assert child.code < 0
    assert gone(child.process.pid)


async def test_ending_goes_on_when_cancelled() -> None:
    child = await processes.start(ENDLESS)
    ending = asyncio.create_task(child.end(0.2))
    await asyncio.sleep(0)
    ending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await ending
    assert gone(child.process.pid)


def test_a_loop_that_is_given_up_while_a_process_ends_leaves_neither_it_nor_its_pipes() -> None:
    started: list[processes.Child] = []
    ending: list[asyncio.Task[None]] = []

    async def give_up() -> None:
        child = await processes.start(DEAF)
        assert child.process.stdout is not None
        await child.process.stdout.read(1)
        started.append(child)
        ending.append(asyncio.create_task(child.end(60.0)))
        await asyncio.sleep(0)

    asyncio.run(give_up())
    assert ending[0].cancelled()
    assert gone(started[0].process.pid)
    assert started[0]._transport.is_closing()


async def test_what_a_process_leaves_in_its_group_ends_with_it(tmp_path: Path) -> None:
    child = await processes.start(["/bin/sh", "-c", "sleep 600 & echo $!"], cwd=tmp_path)
    assert child.process.stdout is not None
    left = int(await child.process.stdout.readline())
    await child.end()
    assert await wait_until(lambda: gone(left) or "Z" in Path(f"/proc/{left}/stat").read_text())


async def test_only_the_beginning_of_an_output_is_kept() -> None:
    child = await processes.start(
        ["/bin/sh", "-c", "yes | head -c 5000000; yes no | head -c 5000000 >&2; exit 3"]
    )
    out, errors = await child.output(limit=10)
    await child.end()
    assert (out, errors, child.code) == (b"y\ny\ny\ny\ny\n", b"no\nno\nno\nn", 3)


async def test_input_that_is_not_read_is_no_error() -> None:
    child = await processes.start(["/bin/sh", "-c", "exec <&-; echo done"])
    async with asyncio.timeout(60):
        out, _ = await child.output(b"x" * 5_000_000)
    await child.end()
    assert out == b"done\n"


def test_secrets_are_left_out_of_an_environment() -> None:
    assert processes.without_secrets({"OPENAI_API_KEY": "x", "PATH": "/bin"}) == {"PATH": "/bin"}


def test_a_program_that_a_wheel_put_beside_the_interpreter_is_found_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside, on_path, workspace = tmp_path / "venv", tmp_path / "path", tmp_path / "workspace"
    for folder in (beside, on_path, workspace / "venv"):
        folder.mkdir(parents=True)
        (folder / "rg").touch(mode=0o755)
    monkeypatch.setattr(sys, "executable", str(beside / "python"))
    monkeypatch.setenv("PATH", str(tmp_path / "none"))
    assert processes.own_program("rg", workspace) == str(beside / "rg")
    monkeypatch.setenv("PATH", str(on_path))
    assert processes.own_program("rg", workspace) == str(on_path / "rg")
    monkeypatch.setattr(sys, "executable", str(workspace / "venv" / "python"))
    monkeypatch.setenv("PATH", "")
    assert processes.own_program("rg", workspace) is None
