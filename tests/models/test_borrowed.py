"""A model host that a prepared process forks: only its caller's environment is in it, only its caller's it is."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pydantic import BaseModel

from tests.cli.conftest import CommandLine
from tests.console.terminal import Terminal
from tests.kept_host import environment
from tests.models.test_host_process import exists, reply_of, request
from tests.openai_server import OpenAIServer, text
from tui_agent.models import borrowed
from tui_agent.models.borrowed import SOCKET, code_in_use
from tui_agent.models.host_start import host_environment
from tui_agent.models.hosted import HostedModel
from tui_agent.models.prepared import Prepared, is_ours
from tui_agent.processes import without_secrets

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="hosts are borrowed on Linux alone")

ROOT = Path(__file__).resolve().parents[2]
LENDER = """
import os, socket, sys
from pathlib import Path
from tui_agent.models.prepared import Lender, Prepared
class Library:
    '''Says what its process knows.'''
    provider_list = ()
    @property
    def model_cost(self):
        return {os.environ.get("SOME_API_KEY", "nothing"): {}, "nothing": {}}
    def get_llm_provider(self, model):
        raise ValueError
prepared = Prepared(Library(), sys.argv[2], {"READ": "before"})
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen()
print("listening", flush=True)
Lender(listener, Path(sys.argv[1]), prepared, float(sys.argv[3])).serve()
"""


@contextmanager
def lender(folder: Path, *, stay: float = 600.0, code: str = "") -> Iterator[subprocess.Popen[str]]:
    """A prepared process whose litellm is pretended: the import of the real one takes seconds."""
    path = folder / "agent-tui" / SOCKET
    path.parent.mkdir(mode=0o700)
    command = [sys.executable, "-c", LENDER, str(path), code or code_in_use(), str(stay)]
    own = host_environment({**without_secrets(environment()), "READ": "before"})
    with subprocess.Popen(command, env=own, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "r"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    return folder


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def caller(**variables: str) -> HostedModel:
    return HostedModel(stay=60.0, environment={**environment(), "READ": "before", **variables})


async def known_to(model: HostedModel, name: str) -> bool:
    found = await model.look_up(name)
    assert found is not None
    return name in found.nearest


async def test_each_host_has_the_keys_of_its_caller_and_what_forks_it_has_none(runtime: Path) -> None:
    with lender(runtime) as process:
        one, other = caller(SOME_API_KEY="sk-one-0123456789"), caller(SOME_API_KEY="sk-two-0123456789")
        await asyncio.gather(one.start(), other.start())
        pids = [model.pid for model in (one, other)]
        assert [parent(pid) for pid in pids if pid] == [process.pid] * 2
        assert await known_to(one, "sk-one-0123456789")
        assert not await known_to(one, "sk-two-0123456789")
        assert await known_to(other, "sk-two-0123456789")
        await asyncio.gather(one.close(), other.close())
        assert not any(exists(pid) for pid in pids if pid)
        third = caller()
        await third.start()
        assert not await known_to(third, "sk-one-0123456789")
        await third.close()
        assert process.poll() is None


@pytest.mark.parametrize(
    ("minutes", "at_terminal", "variables", "seconds"),
    [
        (None, True, {}, 300.0),
        (None, False, {}, 0.0),
        (None, True, {"CI": "true"}, 0.0),
        (None, True, {"HOME": "/nowhere"}, 0.0),
        (0.0, True, {}, 0.0),
        (2.0, False, {"CI": "true"}, 120.0),
    ],
    ids=["a person", "a script", "in CI", "no home", "switched off", "wanted"],
)
def test_a_host_stays_for_people_at_a_terminal_and_where_it_is_wanted(
    minutes: float | None,
    at_terminal: bool,
    variables: dict[str, str],
    seconds: float,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.delenv("CI", raising=False)
    for name, value in {"HOME": str(tmp_path), **variables}.items():
        monkeypatch.setenv(name, value)
    assert borrowed.stay(minutes, at_terminal=at_terminal) == seconds


REFUSES = """
provider_list, model_cost = (), {}
async def acompletion(**_):
    error = Exception("no such key")
    error.status_code = 401
    raise error
"""
"""A litellm that is there at once and answers nothing."""


@pytest.mark.parametrize("ci", ["", "true"])
def test_a_run_at_a_terminal_leaves_a_host_that_doctor_shows_and_a_run_in_ci_none(
    runtime: Path, tmp_path: Path, ci: str
) -> None:
    cli = CommandLine(tmp_path, tmp_path)
    (tmp_path / "lib" / "litellm").mkdir(parents=True)
    (tmp_path / "lib" / "litellm" / "__init__.py").write_text(REFUSES)
    variables = {"CI": ci, "PYTHONPATH": f"{ROOT}:{tmp_path / 'lib'}", "OPENAI_API_KEY": "sk-0123456789"}
    arguments = ["-P", "-m", "tui_agent", "run", "x", "--model", "openai/x", "--workspace", str(tmp_path)]
    terminal = Terminal(arguments, cli.environ(**variables))
    try:
        assert terminal.code() == 6, terminal.picture
        pid = borrowed.staying()
        said = cli("doctor", XDG_RUNTIME_DIR=str(runtime)).out
        assert bool(pid) is not bool(ci)
        assert (f"kill {pid}" in said) is bool(pid)
        if pid:
            assert b"tui_agent.models.prepared" in Path(f"/proc/{pid}/cmdline").read_bytes()
            assert b"sk-0123456789" not in Path(f"/proc/{pid}/environ").read_bytes()
            os.kill(pid, signal.SIGTERM)
    finally:
        terminal.close()


async def test_what_forks_hosts_ends_by_itself_and_takes_its_socket_away(runtime: Path) -> None:
    with lender(runtime, stay=0.05) as process:
        await asyncio.to_thread(process.wait, 60)
        assert not (runtime / "agent-tui" / SOCKET).exists()


@pytest.mark.parametrize(("variables", "code"), [({"READ": "after"}, ""), ({}, "older")])
async def test_one_of_another_environment_or_older_code_lends_nothing_and_goes(
    runtime: Path, variables: dict[str, str], code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(borrowed, "PREPARED", ["/bin/false"])
    with lender(runtime, code=code) as process:
        model = caller(**variables)
        await model.start()
        assert model.pid
        assert parent(model.pid) == os.getpid()
        await asyncio.to_thread(process.wait, 60)
        await model.close()


async def test_a_host_that_hangs_or_is_left_behind_ends_with_its_caller(runtime: Path) -> None:
    program = (
        "import asyncio, os, sys\nfrom tui_agent.models.hosted import HostedModel\n"
        "async def main():\n model = HostedModel(stay=60.0, environment=dict(os.environ)); await model.start()\n"
        " print(model.pid, flush=True); await asyncio.sleep(600)\nasyncio.run(main())"
    )
    own = host_environment({**environment(), "READ": "before", "XDG_RUNTIME_DIR": str(runtime)})
    with (
        lender(runtime),
        subprocess.Popen([sys.executable, "-c", program], env=own, stdout=subprocess.PIPE, text=True) as left,
    ):
        assert left.stdout is not None
        pid = int(left.stdout.readline())
        os.kill(pid, signal.SIGSTOP)
        left.kill()
        async with asyncio.timeout(60):
            while exists(pid):
                await asyncio.sleep(0.01)


ASKS = """
import json, os, socket, sys
pipes = [os.pipe() for _ in range(3)]
asked = socket.socket(socket.AF_UNIX); asked.connect(sys.argv[1])
text = json.dumps({"code": sys.argv[2], "environment": {"READ": "before"}, "folder": "/"}) + "\\n"
socket.send_fds(asked, [text.encode()], [pipes[0][0], pipes[1][1], pipes[2][1]])
print(asked.recv(100).decode())
"""
OTHER_USER = "import json, os, socket, sys; os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
NEW_PRIVILEGES = "import ctypes; ctypes.CDLL(None).prctl(38, 1, 0, 0, 0)\n"


@pytest.mark.parametrize(
    ("before", "wrapper", "lent"),
    [
        ("", (), True),
        (NEW_PRIVILEGES, (), False),
        pytest.param(
            "",
            ("bwrap", "--dev-bind", "/", "/", "--unshare-pid", "--proc", "/proc"),
            False,
            marks=pytest.mark.skipif(shutil.which("bwrap") is None, reason="no bubblewrap here"),
        ),
    ],
    ids=["ours", "without new privileges", "in another namespace"],
)
def test_only_a_process_behind_no_more_walls_is_lent_a_host(
    runtime: Path, before: str, wrapper: tuple[str, ...], lent: bool
) -> None:
    path = runtime / "agent-tui" / SOCKET
    with lender(runtime):
        command = [*wrapper, sys.executable, "-c", before + ASKS, str(path), code_in_use()]
        answer = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert answer.stdout.strip().isdigit() is lent, answer


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_another_user_who_reaches_the_socket_is_lent_nothing() -> None:
    with tempfile.TemporaryDirectory() as folder, lender(Path(folder)):
        path = Path(folder, "agent-tui", SOCKET)
        for place in (path, path.parent, path.parent.parent):
            place.chmod(0o777)
        command = [sys.executable, "-c", OTHER_USER + ASKS, str(path), code_in_use()]
        answer = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert not answer.stdout.strip().isdigit(), answer
    assert "PermissionError" not in answer.stderr, "it did reach the socket"


def test_the_kernel_says_who_connects(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert is_ours(ours)
        other = os.getuid() + 1
        monkeypatch.setattr(os, "getuid", lambda: other)
        assert not is_ours(ours)


async def test_a_folder_that_others_can_enter_is_not_used(runtime: Path) -> None:
    (runtime / "agent-tui").mkdir()
    (runtime / "agent-tui").chmod(0o777)
    model = caller()
    await model.start()
    assert model.pid
    assert parent(model.pid) == os.getpid()
    await model.close()


async def test_calls_go_out_through_the_real_library_and_the_next_host_has_what_they_imported(
    runtime: Path,
) -> None:
    async with OpenAIServer(text("Hello.")) as server:
        first = caller()
        assert (await reply_of(first, request(server.url))).text == "Hello."
        assert first.pid
        prepared = parent(first.pid)
        assert prepared != os.getpid()
        await first.close()
        second = caller()
        assert (await reply_of(second, request(server.url))).text == "Hello."
        assert second.pid
        assert parent(second.pid) == prepared
        await second.close()
        os.kill(prepared, signal.SIGTERM)


def test_what_a_fork_had_to_build_for_its_calls_is_built_for_the_next() -> None:
    class Late(BaseModel, defer_build=True):
        number: int

    name = f"{__name__}:{Late.__qualname__}"
    prepared = Prepared(None, "")
    prepared.look()
    assert name in prepared.unbuilt
    assert name not in prepared.built_since()
    prepared.learn([name, "no.such:Class"])
    assert Late.__pydantic_complete__
    assert name not in prepared.unbuilt

    class Later(Late, defer_build=True):
        pass

    prepared.look()
    Later(number=1)
    assert prepared.built_since() == [f"{__name__}:{Later.__qualname__}"]
