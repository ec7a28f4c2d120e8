"""Which sockets a command makes and what they connect to, wherever a service is and whenever it began to listen."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

import tui_agent
from tests.sandbox.boxes import MECHANISMS, folder_at_home, needed
from tests.sandbox.test_planted import Desk, desk_for
from tui_agent.processes import supervised
from tui_agent.sandbox.socket_holders import is_near

PYTHON = f"'{Path(sys.executable).resolve()}' -I -S"
TRY = """
import socket, sys
def tried(address, family=socket.AF_UNIX, kind=socket.SOCK_STREAM):
    with socket.socket(family, kind) as own:
        try:
            own.connect(address)
            print('REACHED', own.recv(9))
        except OSError as error:
            print(error.strerror)
"""


@pytest.fixture(params=[one for one in MECHANISMS if one != "sandbox-exec"])
def desk(request: pytest.FixtureRequest) -> Iterator[Desk]:
    needed(request.param)
    with folder_at_home() as folder:
        yield desk_for(request.param, folder)


def with_network(desk: Desk, *loopback: int) -> Desk:
    assert desk.sandbox.walls is not None
    walls = replace(desk.sandbox.walls, network=True, loopback=loopback)
    return replace(desk, sandbox=replace(desk.sandbox, walls=walls))


@contextmanager
def served(service: socket.socket) -> Iterator[None]:
    """Something outside that greets whoever connects."""

    def greet() -> None:
        while True:
            try:
                connection, _ = service.accept()
            except OSError:
                return
            with connection:
                connection.send(b"hello")

    service.listen()
    thread = threading.Thread(target=greet)
    thread.start()
    try:
        yield
    finally:
        service.shutdown(socket.SHUT_RDWR)
        thread.join()


@contextmanager
def at(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with socket.socket(socket.AF_UNIX) as service:
        service.bind(str(path))
        with served(service):
            yield
    path.unlink()


@contextmanager
def on_loopback(family: socket.AddressFamily = socket.AF_INET, host: str = "127.0.0.1") -> Iterator[int]:
    with socket.socket(family) as service:
        service.bind((host, 0))
        with served(service):
            yield service.getsockname()[1]


def script(desk: Desk, code: str, name: str = "attempt.py") -> str:
    (desk.workspace / name).write_text(TRY + code)
    return f"{PYTHON} {name}"


@pytest.mark.parametrize("network", [False, True])
def test_a_service_that_listens_after_a_command_began_is_not_reached(desk: Desk, network: bool) -> None:
    """In the workspace, in a place that may be read, in one that is shown."""
    desk = with_network(desk) if network else desk
    places = [
        desk.workspace / "late.sock",
        desk.folder / "late.sock",
        Path("/opt") / f"late-{os.getpid()}.sock",
    ]
    if not os.access("/opt", os.W_OK):
        places.pop()
    code = "open('begun', 'w').close()\nsys.stdin = open('go')\nsys.stdin.read()\n"
    code += "".join(f"tried({str(place)!r})\n" for place in places) + "tried('late.sock')\n"
    os.mkfifo(desk.workspace / "go")

    async def run() -> str:
        running = asyncio.ensure_future(desk.started(script(desk, code)))
        while not (desk.workspace / "begun").exists() and not running.done():
            await asyncio.sleep(0)
        with ExitStack() as stack:
            for place in places:
                stack.enter_context(at(place))
            (desk.workspace / "go").write_text("")
            return (await running)[1]

    text = asyncio.run(run())
    assert "REACHED" not in text
    assert text.count("\n") == len(places) + 1, text


def test_commands_reach_what_they_listen_on_themselves(desk: Desk) -> None:
    code = (
        "own = socket.socket(socket.AF_UNIX); own.bind('own.sock'); own.listen()\n"
        "hidden = socket.socket(socket.AF_UNIX); hidden.bind(''); hidden.listen()\n"
        "for address in ('own.sock', sys.argv[1] + '/own.sock', hidden.getsockname()):\n"
        "    one = socket.socket(socket.AF_UNIX); one.connect(address); print('own')\n"
        "a, b = socket.socketpair(); a.send(b'x'); print(b.recv(1))\n"
    )
    for each in (desk, with_network(desk)):
        _, text = each.command(f"rm -f own.sock; {script(each, code)} $PWD")
        assert text == "own\nown\nown\nb'x'\n"


def test_a_command_reaches_what_another_one_listens_on(desk: Desk) -> None:
    """As a database in the background."""
    serving = (
        "own = socket.socket(socket.AF_UNIX); own.bind('own.sock'); own.listen()\n"
        "net = socket.create_server(('127.0.0.1', 0)) if sys.argv[1] == 'net' else own\n"
        "open('port.new', 'w').write(str(net.getsockname()[1]))\n"
        "import os; os.rename('port.new', 'port')\n"
        "own.accept()[0].send(b'hello')\n"
        "net is own or net.accept()[0].send(b'hello')\n"
        "open('done', 'w').close(); import time; time.sleep(60)\n"
    )

    async def both(desk: Desk, how: str) -> str:
        server = asyncio.ensure_future(desk.started(f"{script(desk, serving, 'server.py')} {how}"))
        while not (port := desk.workspace / "port").exists() and not server.done():
            await asyncio.sleep(0)
        code = "tried('own.sock')\n"
        code += f"tried(('127.0.0.1', {port.read_text()}), socket.AF_INET)\n" if how == "net" else ""
        _, text = await desk.started(script(desk, code))
        server.cancel()
        await asyncio.wait([server])
        for name in ("own.sock", "port", "done"):
            (desk.workspace / name).unlink(missing_ok=True)
        return text

    assert asyncio.run(both(desk, "alone")) == "REACHED b'hello'\n"
    assert asyncio.run(both(with_network(desk), "net")) == "REACHED b'hello'\n" * 2


def test_with_a_network_services_of_this_machine_are_reached_by_the_ports_that_are_named(desk: Desk) -> None:
    with on_loopback() as port, on_loopback() as other:
        code = (
            f"tried(('127.0.0.1', {port}), socket.AF_INET)\ntried(('127.0.0.1', {other}), socket.AF_INET)\n"
        )
        _, text = with_network(desk, port).command(script(desk, code))
    assert text == "REACHED b'hello'\nPermission denied\n"


def test_no_spelling_of_an_address_leads_to_this_machine(desk: Desk) -> None:
    addresses = ["127.0.0.1", "127.8.9.1", "0.0.0.0", "", "localhost"]
    six = ["::1", "::", "::ffff:127.0.0.1", "::ffff:0.0.0.0"]
    with ExitStack() as stack:
        port = stack.enter_context(on_loopback(host="0.0.0.0"))
        code = "".join(f"tried(({address!r}, {port}), socket.AF_INET)\n" for address in addresses)
        if socket.has_ipv6:
            port6 = stack.enter_context(on_loopback(socket.AF_INET6, "::"))
            code += "".join(f"tried(({address!r}, {port6}), socket.AF_INET6)\n" for address in six)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect(("192.0.2.1", 9))  # which sends nothing
            code += f"tried(({probe.getsockname()[0]!r}, {port}), socket.AF_INET)\n"
        _, text = with_network(desk).command(script(desk, code))
    assert "REACHED" not in text
    assert text.count("Permission denied") >= len(addresses) + 1, text


def test_a_port_that_nobody_listens_on_is_refused_as_ever(desk: Desk) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        code = f"tried(('127.0.0.1', {bound.getsockname()[1]}), socket.AF_INET)\n"
        _, text = with_network(desk).command(script(desk, code))
    assert text == "Connection refused\n"


@pytest.mark.parametrize(
    ("address", "near"),
    [
        ("127.0.0.1", True),
        ("127.255.0.9", True),
        ("::1", True),
        ("169.254.169.254", True),
        ("fe80::1", True),
        ("fd00:ec2::254", True),
        ("192.0.2.7", False),
        ("2001:db8::1", False),
    ],
)
def test_addresses_of_this_machine_and_of_its_cloud_are_told_from_others(address: str, near: bool) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    assert is_near(socket.inet_pton(family, address)) is near


def test_where_connections_cannot_be_looked_at_there_are_no_unix_sockets(desk: Desk) -> None:
    """A gate within a gate: the kernel hands calls over to one alone."""
    # The program itself may lie in a home folder, which is out of sight.
    package = Path(tui_agent.__file__).parent
    (desk.workspace / "copied/tools").mkdir(parents=True)
    shutil.copy(package / "tools/supervisor.py", desk.workspace / "copied/tools")
    shutil.copytree(package / "sandbox", desk.workspace / "copied/sandbox")
    inner = " ".join(supervised(0.0, 4, ("--gate=own",), leash=3))
    inner = inner.replace(str(package), str(desk.workspace / "copied"))
    code = (
        "socket.create_server(('127.0.0.1', 0)).close()\n" if desk.sandbox.mechanism == "bubblewrap" else ""
    )
    code += "a, b = socket.socketpair(); a.send(b'x'); print(b.recv(1))\nsocket.socket(socket.AF_UNIX)\n"
    _, text = desk.command(f"exec 3< <(sleep 60) 4> /dev/null; {inner} {script(desk, code)}")
    assert "b'x'" in text
    assert "PermissionError: [Errno 13] Permission denied\n" in text


def test_connections_that_do_not_wait_and_such_that_give_up_are_as_ever(desk: Desk) -> None:
    """A socket that does not block, one whose peer takes none any more, and a handle that is no socket."""
    code = (
        "import ctypes, os, threading\n"
        "own = socket.socket(socket.AF_UNIX); own.bind('own.sock'); own.listen(0)\n"
        "kept = []\n"
        "for _ in range(3):\n"
        "    one = socket.socket(socket.AF_UNIX); one.setblocking(False); kept.append(one)\n"
        "    try: one.connect('own.sock'); print('connected')\n"
        "    except BlockingIOError: print('full'); break\n"
        "one = socket.socket(socket.AF_UNIX)\n"
        "waits = threading.Thread(target=one.connect, args=('own.sock',)); waits.start()\n"
        "for _ in kept: own.accept()\n"
        "waits.join(); print('waited')\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "def fails(*call):\n"
        "    libc.connect(*call); print(os.strerror(ctypes.get_errno()))\n"
        "fails(1, b'x' * 16, 16); fails(99, b'x' * 16, 16)\n"
        "fails(one.fileno(), 8, 16); fails(one.fileno(), b'x' * 200, 200)\n"
    )
    _, text = desk.command(script(desk, code))
    assert text.splitlines() == [
        "connected",
        "full",
        "waited",
        "Socket operation on non-socket",
        "Bad file descriptor",
        "Bad address",
        "Invalid argument",
    ]
