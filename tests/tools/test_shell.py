"""Commands: what they return, what they may not know, how they end, and that nothing outlives them."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.tools.box import Box, processes_with, wait_until
from tui_agent.secret_names import named_like_a_secret
from tui_agent.tools import supervisor
from tui_agent.tools.environment import command_environment
from tui_agent.tools.errors import ToolError
from tui_agent.tools.shell import Bash
from tui_agent.tools.tool import ToolOutput

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")
_numbers = iter(range(1_000_000))


def marker() -> str:
    """A number of seconds for `sleep` by which a process of this test can be told."""
    return f"{70_000 + os.getpid() % 10_000}.{next(_numbers):06}"


async def run(box: Box, command: str, *, tool: Bash | None = None, **arguments: Any) -> ToolOutput:
    return await (tool or Bash()).run({"command": command, **arguments}, box.context)


async def failed(box: Box, command: str, *, tool: Bash | None = None, **arguments: Any) -> ToolError:
    with pytest.raises(ToolError) as caught:
        await run(box, command, tool=tool, **arguments)
    return caught.value


@pytest.mark.parametrize(
    ("command", "content"),
    [
        ("echo hello", "hello"),
        ("echo out; echo err >&2; echo again", "out\nerr\nagain"),
        ("true", "(no output)"),
        ("basename $PWD", "workspace"),
        ("cat; echo end", "end"),
        ("printf 'a\\r\\nb\\xff\\0c'", "a\nb\ufffd\ufffdc"),
        ("echo $TERM $PAGER $GIT_PAGER $NO_COLOR", "dumb cat cat 1"),
        ("test -t 0 || test -t 1 || echo no terminal", "no terminal"),
        ("x=1; (exit 3) || echo $x", "1"),
        ("printf 'no newline'", "no newline"),
        ("ls /proc/self/fd | wc -l", "4"),
        ("grep needle /dev/null", "exit code 1: grep found nothing"),
        ("echo before; grep needle /dev/null", "exit code 1: grep found nothing\nbefore"),
        ("echo a >a; echo b >b; diff a b", "exit code 1: diff found differences\n1c1\n< a\n---\n> b"),
        ("test -e nowhere", "exit code 1: the condition of test does not hold"),
    ],
)
async def test_a_command_returns_its_output(box: Box, command: str, content: str) -> None:
    assert (await run(box, command)).content == content


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("echo before; exit 3", ["exit code 3", "before"]),
        ("false", ["exit code 1", "(no output)"]),
        ("no-such-command-here", ["exit code 127", "not found"]),
        ("kill -9 $$", ["exit code 137 (SIGKILL: it was killed, "]),
        ("kill -TERM $$", ["exit code 143 (SIGTERM)"]),
        ("if", ["exit code 2", "syntax error"]),
        ("exit 255", ["exit code 255"]),
        ("grep needle nowhere", ["exit code 2", "No such file"]),
        ("grep needle /dev/null || exit 1", ["exit code 1"]),
    ],
)
async def test_a_command_that_fails_says_its_exit_code_and_what_it_wrote(
    box: Box, command: str, words: list[str]
) -> None:
    error = await failed(box, command)
    for word in words:
        assert word in error.message
    assert not error.unknown_effect
    assert not error.transient


async def test_the_same_failure_reads_the_same_each_time(box: Box) -> None:
    command = "for i in $(seq 20000); do echo line $i; done; exit 4"
    first, second = await failed(box, command), await failed(box, command)
    assert first.message == second.message
    assert first.output_file == second.output_file


@pytest.mark.parametrize(
    ("command", "word"),
    [("echo a\0b", "NUL"), ("echo " + "x" * 130_000, "write_file"), ("echo \ud800", "surrogate")],
)
async def test_a_command_that_cannot_be_passed_on_is_refused(box: Box, command: str, word: str) -> None:
    assert word in (await failed(box, command)).message


async def test_a_workspace_that_is_gone_is_said(box: Box) -> None:
    context = replace(box.context)
    box.root.rmdir()
    with pytest.raises(ToolError, match="Could not start a command"):
        await Bash().run({"command": "true"}, context)


# --- secrets -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        *((name, True) for name in (
            "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GITHUB_TOKEN", "TOKEN", "AWS_SECRET_ACCESS_KEY", "MY_SECRET_THING",
            "DB_PASSWORD", "PASSWORD_FILE", "openai_api_key", "AWS_SESSION_TOKEN", "HF_TOKEN", "SOME_APIKEY",
            "GOOGLE_APPLICATION_CREDENTIALS", "DEPLOY_KEY", "SSH_PRIVATE_KEY", "AWS_ACCESS_KEY_ID",
        )),
        *((name, False) for name in (
            "PATH", "HOME", "LANG", "TOKENIZERS_PARALLELISM", "KEYBOARD", "MONKEY", "SSH_AUTH_SOCK", "PWD",
            "XAUTHORITY", "AUTHOR", "KEYMAP", "VIRTUAL_ENV",
        )),
    ],
)  # fmt: skip
def test_a_variable_named_like_a_secret_is_told(name: str, secret: bool) -> None:
    assert named_like_a_secret(name) is secret
    assert (name in command_environment({name: "value"})) is not secret


async def test_commands_do_not_see_provider_keys(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-hidden-value")
    monkeypatch.setenv("PLAIN_SETTING", "plain-value")
    content = (await run(box, "env; cat /proc/$$/environ | tr '\\0' '\\n'")).content
    assert "sk-hidden-value" not in content
    assert "plain-value" in content


@linux
async def test_commands_cannot_read_keys_from_their_supervisor(
    box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-hidden-value")
    assert "sk-hidden-value" not in (await run(box, "tr '\\0' '\\n' < /proc/$PPID/environ")).content


# --- output --------------------------------------------------------------------------------------------------


async def test_a_long_output_is_cut_in_the_middle_and_kept_whole(box: Box) -> None:
    output = await run(box, "seq 100000")
    kept = Path(output.output_file)
    assert kept.parent == box.output_dir
    assert kept.read_text() == "".join(f"{number}\n" for number in range(1, 100_001))
    assert output.content.startswith("1\n2\n3\n")
    assert output.content.endswith("\n99999\n100000")
    assert "of 588,895 characters left out here" in output.content
    assert output.output_file in output.content
    assert len(output.content) < 31_000
    assert [path.name for path in box.output_dir.iterdir()] == [kept.name]
    assert (await box.call("read_file", path=output.output_file, offset=50_000, limit=1)).content.startswith(
        " 50000\t50000"
    )


async def test_a_short_output_leaves_no_file(box: Box) -> None:
    assert (await run(box, "echo short")).output_file == ""
    assert not box.output_dir.exists()


async def test_an_output_without_end_stays_bounded_in_memory_and_on_disk(
    box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tracemalloc

    from tui_agent.tools import shell
    from tui_agent.tools.output import Capture

    monkeypatch.setattr(
        shell, "Capture", lambda folder, name, limit, mask: Capture(folder, name, limit, 1_000_000, mask)
    )
    tracemalloc.start()
    output = await run(box, "head -c 100000000 /dev/zero | tr '\\0' x")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3_000_000
    assert Path(output.output_file).stat().st_size == 1_000_000
    assert "only the first 1,000,000 of 100,000,000 bytes were kept" in output.content
    assert sum(map(len, box.progress)) < 1_500_000


async def test_an_output_folder_that_cannot_be_written_costs_the_file_not_the_output(box: Box) -> None:
    box.output_dir.parent.mkdir(parents=True)
    box.output_dir.write_text("a file is in the way")
    output = await run(box, "seq 100000")
    assert output.output_file == ""
    assert "could not be kept" in output.content
    assert output.content.startswith("1\n2\n")


async def test_output_is_shown_while_the_command_still_runs(box: Box) -> None:
    gate = box.root / "gate"
    os.mkfifo(gate)
    task = asyncio.ensure_future(run(box, "echo begun; cat gate; echo done"))
    assert await wait_until(lambda: "".join(box.progress) == "begun\n")
    assert not task.done()
    await asyncio.to_thread(gate.write_text, "let go\n")
    assert (await task).content == "begun\nlet go\ndone"
    assert "".join(box.progress) == "begun\nlet go\ndone\n"


async def test_output_is_shown_in_the_context_of_the_call(box: Box) -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="none")
    seen: set[str] = set()
    variable.set("the caller's")
    context = replace(box.context, progress=lambda _: seen.add(variable.get()))
    await Bash().run({"command": "echo start; sleep 0.3; echo end"}, context)
    assert seen == {"the caller's"}


async def test_a_character_that_comes_in_two_pieces_is_shown_whole(box: Box) -> None:
    gate = box.root / "gate"
    os.mkfifo(gate)
    task = asyncio.ensure_future(run(box, "printf 'a\\xe2'; cat gate >/dev/null; printf '\\x82\\xac'"))
    assert await wait_until(lambda: "".join(box.progress) == "a")
    await asyncio.to_thread(gate.write_text, "go")
    assert (await task).content == "a€"
    assert "".join(box.progress) == "a€"


async def test_much_output_comes_in_few_pieces(box: Box) -> None:
    await run(box, "seq 300000")
    assert len(box.progress) < 100


# --- ends ----------------------------------------------------------------------------------------------------

LEAVERS = {
    "in the background": "sleep {0} & echo started",
    "in its own session": "setsid sleep {0} & echo started",
    "with nohup": "nohup sleep {0} >/dev/null 2>&1 & echo started",
    "as a daemon": "(setsid sh -c 'sleep {0} &' >/dev/null 2>&1 </dev/null &); echo started",
    "as a daemon without environment": "env -i setsid sh -c 'sleep {0} & sleep {0} &' & echo started",
    "deaf to SIGTERM": "(trap '' TERM HUP; exec sleep {0}) & echo started",
    "stopped": "sleep {0} & kill -STOP $!; echo started",
    "disowned": "sleep {0} & disown; echo started",
    "deep below": 'bash -c \'bash -c "bash -c \\"sleep {0} & sleep {0}\\" &" &\'; echo started',
}


@linux
@pytest.mark.parametrize("how", LEAVERS)
async def test_what_a_command_leaves_running_ends_with_it(box: Box, how: str) -> None:
    seconds = marker()
    tool = Bash(grace=0.2)
    output = await run(box, LEAVERS[how].format(seconds), tool=tool)
    assert "started" in output.content
    assert processes_with(f"sleep\0{seconds}") == []


@linux
@pytest.mark.parametrize("how", LEAVERS)
async def test_a_time_out_ends_everything_and_says_that_the_effect_is_unknown(
    box: Box, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = marker()
    tool = Bash(grace=0.2)
    limits: list[asyncio.Timeout] = []
    limited = asyncio.timeout

    def timeout(delay: float) -> asyncio.Timeout:
        limit = limited(delay)
        if delay == 600:
            limits.append(limit)
        return limit

    monkeypatch.setattr(asyncio, "timeout", timeout)
    call = asyncio.ensure_future(
        failed(box, f"{LEAVERS[how].format(seconds)}; sleep {seconds}", tool=tool, timeout=600)
    )
    assert await wait_until(lambda: any("started" in piece for piece in box.progress))
    limits[0].reschedule(0)  # its time is up
    error = await call
    assert error.unknown_effect
    assert "did not end within 600 s" in error.message
    assert "started" in error.message
    assert processes_with(f"sleep\0{seconds}") == []


@linux
@pytest.mark.parametrize("how", LEAVERS)
async def test_a_cancelled_command_ends_everything_before_the_cancellation_goes_on(
    box: Box, how: str
) -> None:
    seconds = marker()
    tool = Bash(grace=0.2)
    task = asyncio.ensure_future(run(box, f"{LEAVERS[how].format(seconds)}; sleep {seconds}", tool=tool))
    assert await wait_until(lambda: "started" in "".join(box.progress))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert processes_with(f"sleep\0{seconds}") == []
    assert processes_with(f"sleep {seconds}") == []
    assert not box.output_dir.exists()


@linux
async def test_being_cancelled_again_and_again_still_leaves_nothing(box: Box) -> None:
    seconds = marker()
    tool = Bash(grace=0.2)
    task = asyncio.ensure_future(
        run(box, f"trap '' TERM; echo started; sleep {seconds}; sleep {seconds}", tool=tool)
    )
    assert await wait_until(lambda: "started" in "".join(box.progress))
    while not task.done():
        task.cancel()
        await asyncio.sleep(0)
    assert task.cancelled()
    assert processes_with(f"sleep\0{seconds}") == []


@linux
async def test_a_command_cancelled_as_it_starts_leaves_nothing(box: Box) -> None:
    seconds = marker()
    for turns in range(12):
        task = asyncio.ensure_future(run(box, f"sleep {seconds}", tool=Bash(grace=0.2)))
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert await wait_until(lambda: processes_with(f"sleep {seconds}") == [])
    assert await wait_until(lambda: processes_with(f"sleep\0{seconds}") == [])


@linux
async def test_a_program_that_dies_leaves_no_command_behind(box: Box, tmp_path: Path) -> None:
    seconds = marker()
    script = tmp_path / "program.py"
    script.write_text(
        "import asyncio, pathlib, sys\n"
        "from tui_agent.tools.shell import Bash\n"
        "from tui_agent.tools.tool import ToolContext\n"
        "from tui_agent.tools.workspace import Workspace\n"
        "root = pathlib.Path(sys.argv[1])\n"
        "context = ToolContext(Workspace(root), root / 'out', 'c', lambda text: print(text, flush=True))\n"
        "command = f'setsid sleep {sys.argv[2]} & echo started; sleep {sys.argv[2]}'\n"
        "asyncio.run(Bash(grace=0.2).run({'command': command}, context))\n"
    )
    program = await asyncio.create_subprocess_exec(
        *(sys.executable, os.fspath(script), os.fspath(box.root), seconds),
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.fspath(Path(__file__).resolve().parents[2])},
    )
    assert program.stdout is not None
    try:
        assert await program.stdout.readline() == b"started\n"
        assert await wait_until(lambda: len(processes_with(f"sleep\0{seconds}")) == 2)
    finally:
        program.kill()
        await program.wait()
    assert await wait_until(lambda: processes_with(f"sleep\0{seconds}") == [])
    assert await wait_until(lambda: processes_with(seconds) == [])


@linux
async def test_a_command_that_kills_its_supervisor_is_an_unknown_effect(box: Box) -> None:
    seconds = marker()
    error = await failed(box, f"sleep {seconds} & echo begun; kill -9 $PPID; sleep {seconds}")
    assert error.unknown_effect
    assert "killed from outside" in error.message
    assert await wait_until(lambda: processes_with(f"sleep\0{seconds}") == [])


@linux
async def test_a_supervisor_that_is_killed_as_its_command_begins_leaves_nothing(box: Box) -> None:
    seconds = marker()
    for _ in range(8):
        leash, held = os.pipe()
        status, said = os.pipe()
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", supervisor.__file__, "2.0", str(said), "sleep", seconds],
            stdin=leash,
            pass_fds=[said],
        )
        os.close(said)
        assert os.read(status, 100).startswith(b"pid ")
        process.kill()
        process.wait()
        for descriptor in (leash, held, status):
            os.close(descriptor)
    assert await wait_until(lambda: processes_with(seconds) == [])


async def test_a_command_that_signals_its_group_harms_only_itself(box: Box) -> None:
    assert "exit code 143" in (await failed(box, "kill 0; sleep 5")).message


async def test_many_commands_at_once_do_not_wait_for_each_other(box: Box) -> None:
    commands = [f"echo up{number}; until test -e gate; do sleep 0.02; done" for number in range(12)]
    waiting = [asyncio.ensure_future(run(box, command, timeout=30)) for command in commands]
    together = await wait_until(lambda: all(f"up{number}\n" in box.progress for number in range(12)))
    box.put("gate")
    assert len(await asyncio.gather(*waiting)) == 12
    assert together


@linux
async def test_no_descriptor_is_left_open(box: Box) -> None:
    async def one(command: str) -> None:
        with contextlib.suppress(ToolError):
            await run(box, command, tool=Bash(grace=0.1), timeout=1)

    await one("true")
    before = len(list(Path("/proc/self/fd").iterdir()))
    for command in ("true", "exit 1", "seq 100000", "no-such", "sleep 1 & true"):
        await one(command)
    assert len(list(Path("/proc/self/fd").iterdir())) <= before
