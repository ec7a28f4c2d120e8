"""The host as a process: it dies, hangs, prints and lies, and our side stays whole and leaves nothing behind."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from contextlib import aclosing, suppress
from pathlib import Path

import pytest

from tests.kept_host import environment
from tests.openai_server import OpenAIServer, text
from tui_agent.core.events import Fault, FaultKind
from tui_agent.models import heavy_import, host_start
from tui_agent.models.host_start import begin_early, host_command, host_environment
from tui_agent.models.hosted import HostedModel
from tui_agent.models.protocol import ModelFault, ModelRequest, Reply

ROOT = Path(__file__).resolve().parents[2]

LONGEST = 60.0
"""Seconds; what takes longer hangs."""


def request(api_base: str | None = None, words: str = "hello") -> ModelRequest:
    return ModelRequest(model="local-model", messages=[{"role": "user", "content": words}], api_base=api_base)


async def reply_of(model: HostedModel, asked: ModelRequest) -> Reply:
    async with asyncio.timeout(LONGEST):
        pieces = [piece async for piece in model.stream(asked)]
    assert isinstance(pieces[-1], Reply)
    return pieces[-1]


async def fault_of(model: HostedModel, asked: ModelRequest | None = None) -> Fault:
    with pytest.raises(ModelFault) as raised:
        await reply_of(model, asked or request())
    return raised.value.fault


def exists(pid: int) -> bool:
    """A process of this id is there, as a zombie too."""
    with suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False


def children() -> str:
    """Process ids of our own children."""
    found = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    return " ".join(path.read_text() for path in found).strip()


# --- a host of our own making: what no real one should do ------------------------------------------------------

PARTS = """
import json, os, sys, time
def say(kind, **fields):
    print(json.dumps({"type": kind, **fields}), flush=True)
def command():
    line = sys.stdin.readline()
    if not line: sys.exit(0)
    return json.loads(line)
"""
"""Without our imports, so that it is there at once."""

HOSTS = {
    "dies at once": (
        "sys.stderr.write('cannot load: disk on fire\\n'); sys.exit(3)",
        FaultKind.CONNECTION,
        "disk on fire",
    ),
    "dies in mid-stream": (
        "c = command(); say('piece', id=c['id'], text='Hel'); os._exit(9)",
        FaultKind.CONNECTION,
        "exit code 9",
    ),
    "is killed": ("c = command(); os.kill(os.getpid(), 9)", FaultKind.CONNECTION, "by signal 9"),
    "hangs": ("command(); time.sleep(600)", FaultKind.TIMEOUT, "no sign of life"),
    "hangs and ignores signals": (
        "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); command(); time.sleep(600)",
        FaultKind.TIMEOUT,
        "no sign of life",
    ),
    "says rubbish": (
        "command(); print('Traceback (most recent call last):', flush=True); time.sleep(600)",
        FaultKind.BAD_OUTPUT,
        "no report",
    ),
    "says something unknown": (
        'command(); print(\'{"type": "dance"}\', flush=True); time.sleep(600)',
        FaultKind.BAD_OUTPUT,
        "no report",
    ),
    "closes its mouth": ("command(); os.close(1); time.sleep(0.1)", FaultKind.CONNECTION, "ended"),
    "prints a key and dies": (
        "sys.stderr.write('bad key sk-abcdefghijklmnop0123\\n'); sys.exit(1)",
        FaultKind.CONNECTION,
        "bad key •••",
    ),
}


def pretended(program: str, *, hang_timeout: float = 60.0) -> HostedModel:
    return HostedModel(
        command=[sys.executable, "-S", "-E", "-c", PARTS + program],
        hang_timeout=hang_timeout,
        environment=environment(),
    )


@pytest.mark.parametrize(("program", "kind", "words"), HOSTS.values(), ids=HOSTS)
async def test_a_host_that_fails_is_a_typed_fault_and_leaves_no_process(
    program: str, kind: FaultKind, words: str, capfd: pytest.CaptureFixture[str]
) -> None:
    before = children()
    model = pretended(program, hang_timeout=0.5 if kind is FaultKind.TIMEOUT else 60.0)
    await model.start()
    fault = await fault_of(model)
    assert fault.kind is kind
    assert words in fault.message
    assert fault.advice
    # The next try starts another one.
    assert (await fault_of(model)).kind is kind
    await model.close()
    assert model.pid is None
    assert children() == before
    assert capfd.readouterr() == ("", "")


async def test_a_host_that_cannot_be_started_is_a_fault_that_is_not_retried() -> None:
    fault = await fault_of(HostedModel(command=["/no/such/interpreter"]))
    assert fault.kind is FaultKind.BAD_REQUEST
    assert "/no/such/interpreter" in fault.message
    assert "/no/such/interpreter" in fault.advice


async def test_every_call_that_waits_gets_the_fault_of_a_dead_host() -> None:
    model = pretended("command(); command(); command(); sys.exit(4)")
    faults = await asyncio.gather(*(fault_of(model) for _ in range(3)))
    assert [fault.kind for fault in faults] == [FaultKind.CONNECTION] * 3
    await model.close()


async def test_a_host_that_lives_but_waits_long_is_left_alone() -> None:
    # It lives for longer than the time-out.
    program = (
        "command()\nfor _ in range(25): time.sleep(0.1); say('alive')\n"
        "say('done', id=1, reply={'text': 'late'}); command()"
    )
    model = pretended(program, hang_timeout=2.0)
    assert (await reply_of(model, request())).text == "late"
    await model.close()


async def test_a_host_that_talks_while_it_is_talked_to_does_not_lock_up() -> None:
    # It says a megabyte before it reads the request, which is larger than the pipe as well.
    program = (
        "say('piece', id=1, text='x' * 1_000_000)\nc = command()\n"
        "say('done', id=c['id'], reply={'text': str(len(c['request']['messages'][0]['content']))})"
    )
    model = pretended(program)
    assert (await asyncio.wait_for(reply_of(model, request(words="y" * 5_000_000)), 60)).text == "5000000"
    await model.close()


async def test_what_is_said_about_a_forgotten_call_is_dropped() -> None:
    program = (
        "c = command(); say('piece', id=c['id'], text='a')\n"
        "x = command(); say('piece', id=c['id'], text='b'); n = command()\n"
        "say('done', id=n['id'], reply={'text': x['type']})"
    )
    model = pretended(program)
    async with aclosing(model.stream(request())) as stream:
        await anext(stream)
    assert (await reply_of(model, request())).text == "cancel"
    await model.close()


async def test_a_noisy_host_is_kept_off_the_screen_and_bounded(capfd: pytest.CaptureFixture[str]) -> None:
    program = (
        "c = command()\nfor n in range(20_000): sys.stderr.write(f'warning {n} ' + 'x' * 100 + '\\n')\n"
        "say('done', id=c['id'], reply={'text': 'ok'}); command()"
    )
    model = pretended(program)
    assert (await reply_of(model, request())).text == "ok"
    await model.close()
    assert capfd.readouterr() == ("", "")


async def test_a_close_that_is_cancelled_ends_the_host_at_once() -> None:
    model = pretended("sys.stdin.read(); time.sleep(600)")
    await model.start()
    pid = model.pid
    assert pid is not None
    closing = asyncio.create_task(model.close())
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert not exists(pid)


async def test_a_model_that_is_closed_while_its_host_starts_leaves_no_process() -> None:
    model, before = pretended("command()"), children()
    starting = asyncio.create_task(model.start())
    await asyncio.sleep(0)
    await model.close()
    with pytest.raises(ModelFault, match="closed"):
        await starting
    assert model.pid is None
    assert children() == before


async def test_a_closed_model_starts_nothing_again() -> None:
    model = pretended("command()")
    await model.close()
    await model.close()
    fault = await fault_of(model)
    assert "closed" in fault.message
    assert await model.context_tokens("any") is None
    assert model.pid is None


# --- a host that begins before it is needed -------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [None, "", ["openai/x"], "scripted:demo"],
)
async def test_no_host_begins_early_where_it_is_not_known_that_there_will_be_one(model: object) -> None:
    assert begin_early(model, None) is None


async def test_a_host_that_has_begun_is_the_model_s_first() -> None:
    begun = begin_early("openai/x", None)
    assert begun is not None
    model = HostedModel(begun=begun)
    await model.start()
    pid = model.pid
    assert pid == (await begun).process.pid
    await model.close()
    assert pid is not None
    assert not exists(pid)


@pytest.mark.parametrize("later", [True, False], ids=["which runs", "which is being started"])
async def test_a_host_that_has_begun_and_is_not_needed_ends_with_its_model(later: bool) -> None:
    before = children()
    begun = begin_early("openai/x", None)
    assert begun is not None
    model = HostedModel(begun=begun)
    if later:
        assert exists((await begun).process.pid)
    await model.close()
    assert children() == before


async def test_a_key_that_was_given_before_reaches_a_host_that_had_begun_and_its_call_loads_no_litellm(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    imported = tmp_path / "imported"
    python, *arguments = host_command("openai")
    shell = 'exec "$0" -X importtime "$@" 2> "$IMPORTED"'
    monkeypatch.setattr(host_start, "host_command", lambda _: ["/bin/sh", "-c", shell, python, *arguments])
    monkeypatch.setenv("IMPORTED", str(imported))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    begun = begin_early("openai/x", None)
    model = HostedModel(begun=begun)
    await model.use_key("OPENAI_API_KEY", "sk-given")
    async with OpenAIServer(text("Hello.")) as server:
        assert (await reply_of(model, request(server.url))).text == "Hello."
        await model.close()
        assert server.requests[-1].headers["authorization"] == "Bearer sk-given"
    modules = imported.read_text()
    assert "openai.types" in modules
    assert "litellm" not in modules


BEGUN = """
import os, sys
def look(event, arguments):
    if event == "subprocess.Popen" and "tui_agent.models.host" in arguments[1]:
        print("pydantic" in sys.modules, flush=True)
        os._exit(0)
sys.addaudithook(look)
from tui_agent.cli import main
main(["run", "hello", "--model", "openai/x"])
"""


def test_run_begins_the_host_before_it_imports_what_reads_the_settings(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", BEGUN],
        env=host_environment({**environment(), "HOME": str(tmp_path)}),
        capture_output=True,
        text=True,
        timeout=LONGEST,
        check=False,
    )
    assert done.stdout == "False\n", done.stderr


# --- the real host --------------------------------------------------------------------------------------------


async def test_closing_while_litellm_still_loads_is_quick_and_complete() -> None:
    model = HostedModel(environment=environment())
    await model.start()
    pid = model.pid
    assert pid is not None
    await asyncio.wait_for(model.close(), 15)
    assert not exists(pid)


PARENT = """
import asyncio, sys
from tui_agent.models.hosted import HostedModel
async def main():
    model = HostedModel()
    await model.start()
    print(model.pid, flush=True)
    await asyncio.sleep(600)
asyncio.run(main())
"""


async def test_the_host_ends_when_its_parent_is_killed() -> None:
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PARENT, stdout=asyncio.subprocess.PIPE, env=host_environment(environment())
    )
    assert parent.stdout is not None
    pid = int(await asyncio.wait_for(parent.stdout.readline(), 60))
    assert exists(pid)
    parent.kill()
    await parent.wait()
    await asyncio.wait_for(gone_or_zombie(pid), 20)


async def gone_or_zombie(pid: int) -> None:
    """An orphan is buried by whoever adopts it, which is not ours to wait for."""
    status = Path(f"/proc/{pid}/status")
    while exists(pid) and not (status.exists() and "State:\tZ" in status.read_text()):
        await asyncio.sleep(0.02)


def test_the_host_s_command_keeps_the_working_folder_off_the_path() -> None:
    assert "-P" in host_command()
    assert host_environment({"PYTHONPATH": "/else"})["PYTHONPATH"] == f"{ROOT}{os.pathsep}/else"


def test_the_host_imports_no_events_no_policy_and_no_settings() -> None:
    words = "import sys, tui_agent.models.host; print(*sorted(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", words],
        env=host_environment(environment()),
        capture_output=True,
        text=True,
        timeout=LONGEST,
        check=True,
    )
    modules = set(done.stdout.split())
    assert "tui_agent.models.host" in modules
    for heavy in ("core.events", "core.recovery.policy", "config.sections", "config.settings"):
        assert f"tui_agent.{heavy}" not in modules


@pytest.mark.skipif(sys.platform != "linux", reason="counts the faults of one thread")
def test_calls_at_the_border_of_a_block_of_frames_map_no_memory() -> None:
    import resource

    def faults() -> int:
        return resource.getrusage(resource.RUSAGE_THREAD).ru_minflt

    def leaf() -> None:
        pass

    def calls_from(depth: int) -> None:
        if depth:
            calls_from(depth - 1)
        else:
            for _ in range(1_000):
                leaf()

    def most_faults() -> int:
        most = 0
        for depth in range(300):
            before = faults()
            calls_from(depth)
            most = max(most, faults() - before)
        return most

    assert heavy_import._with_room(most_faults) < 500


# --- what litellm needs, in a process where it can be spoilt ------------------------------------------------------

WITHOUT_FLAG = """
import asyncio, sys
from tests.openai_server import OpenAIServer, text
from tui_agent.models import litellm_setup, routes
from tui_agent.models.kept_habits import HabitBook
from tui_agent.models.litellm_client import LitellmClient
from tui_agent.models.protocol import ModelRequest, Reply
TOOL = {"type": "function", "function": {"name": "bash", "parameters": {"type": "object", "properties": {}}}}

sent = []

class Refusing:
    '''A later release: the flag is refused, as an unknown argument would be.'''
    def __init__(self, litellm): self._litellm = litellm
    def __getattr__(self, name): return getattr(self._litellm, name)
    async def acompletion(self, **arguments):
        sent.append(arguments.get("_skip_mcp_handler"))
        if "_skip_mcp_handler" in arguments:
            raise TypeError("unexpected keyword argument '_skip_mcp_handler'")
        return await self._litellm.acompletion(**arguments)

async def main():
    litellm = litellm_setup.load()
    client = LitellmClient(Refusing(litellm), HabitBook())
    async with OpenAIServer(text("works")) as server:
        messages = [{"role": "user", "content": "x"}]
        request = ModelRequest(model="m", messages=messages, tools=[TOOL], api_base=server.url)
        for _ in range(2):
            last = None
            async for piece in client.stream(request, routes.route("m", server.url, None, "litellm")):
                last = piece
            print(last.text, len(server.requests))
    assert sent[0] is True, "with `mcp` installed, litellm's own handler would take the tools over"
    usage = {"prompt_tokens": 1_000_000, "completion_tokens": 0}
    for model, base in (("gpt-4o", None), ("gpt-4o", "http://box/v1"), ("openai/nobody-s", None)):
        print(routes.price(routes.route(model, base), usage))
asyncio.run(main())
"""


@pytest.mark.process
def test_calls_with_tools_work_without_the_private_flag_and_only_known_prices_are_reported() -> None:
    """litellm 1.106.2 wants the `mcp` package for every call with tools unless the flag is given."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_FLAG],
        cwd=ROOT,
        env=host_environment(environment()),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stderr == ""
    works, prices = done.stdout.split()[:4], done.stdout.split()[4:]
    assert works == ["works", "1", "works", "2"]
    assert float(prices[0]) > 0, "a known model at its provider"
    assert prices[1:] == ["None", "None"], "another server under the same name, an unknown model"
