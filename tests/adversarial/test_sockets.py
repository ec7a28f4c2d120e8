"""Attacks by sandboxed commands on what is behind sockets: services that act for whoever connects."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import sys
import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from textwrap import indent

import pytest

from tests.adversarial.attack import Attack, attacks
from tests.sandbox.boxes import MECHANISMS, folder_at_home, needed
from tests.sandbox.test_planted import Desk, desk_for
from tui_agent.sandbox.mechanisms import Mechanism

NOT_REACHED = "The service hears nothing"
LATE = "a socket that came to be after the command had begun, or was no file that is covered, was reached"
SHARED = "with a network, the loopback was the machine's"
UDP = "with a network, services that take UDP were reached"
BEGINNING = """
import ctypes, mmap, os, socket, struct, subprocess, sys, threading, time
unix, port = sys.argv[1], int(sys.argv[2])
open('begun', 'w').close()
while not os.path.exists(unix + '.datagrams'):
    time.sleep(0.005)
libc = ctypes.CDLL(None, use_errno=True)
def tried(address, family=socket.AF_UNIX, kind=socket.SOCK_STREAM, own=None):
    try:
        own = own or socket.socket(family, kind)
        own.connect(address)
        own.send(b'TAKEN')
    except OSError as error:
        print(error)
def own_service():
    own = socket.socket(socket.AF_UNIX); own.bind('own.sock'); own.listen(200)
    return own
def until(seconds=1.5):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield
def address_of(path):
    return struct.pack('=H', 1) + path.encode() + b'\\0'
def inet(port, host='127.0.0.1'):
    return struct.pack('=H', 2) + port.to_bytes(2, 'big') + socket.inet_aton(host) + bytes(8)
def place_of(data):
    return ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value
SENDMMSG = 307 if os.uname().machine == 'x86_64' else 269
def sends(address, own=None, family=2):
    own = own or socket.socket(family, socket.SOCK_DGRAM); handle = own.fileno()
    own.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    data = b'TAKEN'; piece = struct.pack('=QQ', place_of(data), 5)
    header = struct.pack('=QIxxxxQQQQi4x', place_of(address), len(address), place_of(piece), 1, 0, 0, 0) + bytes(8)
    for call in (lambda: libc.sendto(handle, data, 5, 0, address, len(address)),
                 lambda: libc.sendmsg(handle, header, 0), lambda: libc.syscall(SENDMMSG, handle, header, 1, 0),
                 lambda: libc.connect(handle, address, len(address)) or libc.send(handle, data, 5, 0)):
        print(call(), os.strerror(ctypes.get_errno()))
def six(host):
    return struct.pack('=H', 10) + port.to_bytes(2, 'big') + bytes(4) + socket.inet_pton(10, host) + bytes(4)
"""
"""What each attack begins with: the path of a service's socket, which comes to be when the command has begun, and the
port of one on the loopback."""


def tries(
    name: str,
    tried: str,
    code: str,
    fell: str = "",
    *,
    network: bool = False,
    slow: bool = True,
    holds: str = NOT_REACHED,
) -> Attack:
    return Attack(name, tried, holds, fell, slow, value=(code, network))


RACES = "an address that is good when it is looked at, and another one when it is used"
ROWS = [
    tries("by_its_path", "A service that began to listen after the command", "tried(unix)", LATE, slow=False),
    tries(
        "by_a_relative_path",
        "The same, from the folder it is in",
        "os.chdir(os.path.dirname(unix)); tried('s')",
        LATE,
    ),
    tries("by_a_link", "A link to it in the workspace", "os.symlink(unix, 'l'); tried('l')", LATE),
    tries(
        "by_a_hard_link",
        "Another name for it in the workspace, by link and by renaming",
        "for way in (os.link, os.rename):\n"
        "    try: way(unix, 'h'); tried('h')\n"
        "    except OSError as error: print(error)",
        LATE,
    ),
    tries(
        "by_a_mount",
        "Its folder mounted into the workspace, in namespaces of one's own",
        "os.mkdir('m'); open('connect.py', 'w').write('import socket; s = socket.socket(1); s.connect(chr(109) + "
        "chr(47) + chr(115)); s.send(bytes(1))')\n"
        "print(subprocess.run(['unshare', '-Urm', 'sh', '-c', 'mount --bind $1 m; mount -o remount,rw,bind m; ls m;"
        "' + sys.executable + ' connect.py', 'sh', os.path.dirname(unix)], capture_output=True, text=True))",
        LATE,
    ),
    tries(
        "by_a_handle",
        "Through `/proc/self/fd` and a handle that only names it",
        "handle = os.open(unix, os.O_PATH); tried(f'/proc/self/fd/{handle}'); tried(f'/proc/{os.getpid()}/root{unix}')",
        LATE,
    ),
    tries(
        "in_sequence", "A socket of another kind (SOCK_SEQPACKET)", "tried(unix, kind=socket.SOCK_SEQPACKET)"
    ),
    tries(
        "datagram_of_a_pair",
        "A datagram with an address of its own, from one of a pair of sockets",
        "a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM); a.sendto(b'TAKEN', unix + '.datagrams')",
        "reached under both mechanisms: only sockets of their own making were refused",
        slow=False,
    ),
    tries(
        "datagram",
        "The same from a socket, connected and not, also a raw one",
        "for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW):\n"
        "    try: socket.socket(socket.AF_UNIX, kind).sendto(b'TAKEN', unix + '.datagrams')\n"
        "    except OSError as error: print(error)\n"
        "    tried(unix + '.datagrams', kind=kind)",
        LATE,
    ),
    tries(
        "address_swapped",
        f"{RACES}: in memory, by another thread",
        "own_service(); good, bad = address_of('own.sock'), address_of(unix)\n"
        "place = ctypes.create_string_buffer(128)\n"
        "def swap():\n"
        "    for _ in until():\n"
        "        place[:len(good)] = good; place[:len(bad)] = bad\n"
        "threading.Thread(target=swap).start()\n"
        "for _ in until():\n"
        "    one = socket.socket(socket.AF_UNIX); libc.connect(one.fileno(), place, len(bad))\n"
        "    try: one.send(b'TAKEN')\n"
        "    except OSError: pass\n"
        "    one.close()",
        slow=False,
    ),
    tries(
        "link_swapped",
        f"{RACES}: a link, in the workspace",
        "own_service()\n"
        "def swap():\n"
        "    for _ in until():\n"
        "        for target in ('own.sock', unix):\n"
        "            os.symlink(target, 'new'); os.rename('new', 'l')\n"
        "os.symlink('own.sock', 'l'); threading.Thread(target=swap).start()\n"
        "for _ in until():\n"
        "    one = socket.socket(socket.AF_UNIX)\n"
        "    try: one.connect('l'); one.send(b'TAKEN')\n"
        "    except OSError: pass\n"
        "    one.close()",
    ),
    tries(
        "handle_swapped",
        "A handle that is another socket when it is connected",
        "one = socket.socket(); two = socket.socket(socket.AF_UNIX); at = os.dup(one.fileno())\n"
        "def swap():\n"
        "    for _ in until():\n"
        "        os.dup2(two.fileno(), at); os.dup2(one.fileno(), at)\n"
        "threading.Thread(target=swap).start(); bad = address_of(unix)\n"
        "for _ in until():\n"
        "    libc.connect(at, bad, len(bad))\n"
        "try: two.send(b'TAKEN')\n"
        "except OSError as error: print(error)",
    ),
    tries(
        "flood",
        "300 connections that wait, and then one to the service",
        "own = socket.socket(socket.AF_UNIX); own.bind('own.sock'); own.listen(0)\n"
        "for _ in range(300):\n"
        "    one = socket.socket(socket.AF_UNIX)\n"
        "    threading.Thread(target=lambda one=one: one.connect('own.sock'), daemon=True).start()\n"
        "tried(unix); print('ended'); sys.stdout.flush(); os._exit(0)",
        LATE,
    ),
    tries(
        "ring",
        "A ring of calls that no filter sees (io_uring)",
        "print(libc.syscall(425, 8, ctypes.create_string_buffer(120)), os.strerror(ctypes.get_errno()))\n"
        "assert ctypes.get_errno() == 1; tried(unix)",
        "it could be made under bubblewrap",
    ),
    tries(
        "calls_of_32_bits",
        "The calls of a program of 32 bits, which another table numbers",
        "code = mmap.mmap(-1, 4096, prot=7)\n"
        "if os.uname().machine == 'x86_64':\n"
        "    code.write(bytes.fromhex('53 b86701 0000 bb01000000 b901000000 31d2 cd80 5b c3'))\n"
        "    call = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))\n"
        "    got = call(); print(got); assert got < 0\n"
        "tried(unix)",
        "under bubblewrap they were let through",
    ),
    tries(
        "other_families",
        "Sockets of other families: of virtual machines, of packets, of the kernel's ciphers",
        "for family in (40, 17, 38, 9, 31, 43, 44):\n"
        "    try: socket.socket(family, socket.SOCK_STREAM); raise SystemExit('made')\n"
        "    except OSError as error: print(error)",
        "under bubblewrap those of virtual machines could be made",
    ),
    tries(
        "keys_of_the_kernel",
        "Keys that the kernel keeps for the user's sessions",
        "for number in {'x86_64': (248, 249, 250)}.get(os.uname().machine, (217, 218, 219)):\n"
        "    libc.syscall(number, 0, -3, 0, 0, 0); assert ctypes.get_errno() == 1",
        "they could be asked for",
        holds="The kernel refuses",
    ),
    tries(
        "loopback",
        "With a network: a port of this machine's loopback",
        "tried(('127.0.0.1', port), socket.AF_INET)",
        SHARED,
        network=True,
        slow=False,
    ),
    tries(
        "loopback_by_other_names",
        "The same by other spellings of the address, also by the machine's own",
        "for host in ('127.1.2.3', '0.0.0.0', '', 'localhost', sys.argv[3]): tried((host, port), socket.AF_INET)\n"
        "for host in ('127.0.0.1', '0.0.0.0', sys.argv[3]): tried(('::ffff:' + host, port), socket.AF_INET6)",
        SHARED,
        network=True,
    ),
    tries(
        "loopback_swapped",
        f"The same by {RACES}",
        "own = socket.create_server(('127.0.0.1', 0), backlog=500)\n"
        "good, bad = inet(own.getsockname()[1]), inet(port)\n"
        "place = ctypes.create_string_buffer(128)\n"
        "def swap():\n"
        "    for _ in until():\n"
        "        place[:16] = good; place[:16] = bad\n"
        "threading.Thread(target=swap).start()\n"
        "for _ in until():\n"
        "    one = socket.socket(); one.setblocking(False); libc.connect(one.fileno(), place, 16)\n"
        "    try: one.send(b'TAKEN')\n"
        "    except OSError: pass\n"
        "    one.close()",
        SHARED,
        network=True,
    ),
    tries(
        "loopback_without_connecting",
        "The same by data that is sent to an address (TCP Fast Open), on a new socket and on one that was connected",
        "own = socket.create_server(('127.0.0.1', 0)); used = socket.create_connection(own.getsockname())\n"
        "libc.connect(used.fileno(), bytes(16), 16)\n"
        "for one in (socket.socket(), used):\n"
        "    to = ('127.0.0.1', port)\n"
        "    for send in (lambda: one.sendto(b'TAKEN', 0x20000000, to), lambda: one.sendto(b'TAKEN', to),\n"
        "                 lambda: one.sendmsg([b'TAKEN'], [], 0x20000000, to)):\n"
        "        try: send()\n"
        "        except OSError as error: print(error)",
        SHARED,
        network=True,
        slow=False,
    ),
    tries(
        "loopback_beside_ones_own",
        "The same port on another address, where the command listens itself",
        "own = socket.socket(); own.setsockopt(1, 2, 1); own.setsockopt(1, 15, 1)\n"
        "for host in ('127.0.0.2', '0.0.0.0'):\n"
        "    try: own.bind((host, port)); own.listen(); break\n"
        "    except OSError as error: print(error)\n"
        "tried(('127.0.0.1', port), socket.AF_INET)",
        SHARED,
        network=True,
    ),
    tries(
        "loopback_by_other_protocols",
        "The same by other protocols that carry streams",
        "for kind, protocol in ((1, 132), (5, 132), (1, 33), (6, 33), (1, 262)):\n"
        "    try: one = socket.socket(socket.AF_INET, kind, protocol)\n"
        "    except OSError as error: print(error); continue\n"
        "    tried(('127.0.0.1', port), own=one)",
        SHARED,
        network=True,
    ),
    tries(
        "datagrams_over_loopback",
        "With a network: a service of this machine that takes UDP, by sendto, sendmsg, sendmmsg, and connected",
        "sends(inet(port)); one = socket.socket(type=socket.SOCK_DGRAM); one.connect(('192.0.2.9', 9))\n"
        "sends(inet(port), one)",
        UDP,
        network=True,
        slow=False,
    ),
    tries(
        "datagrams_by_other_names",
        "The same by other spellings, by the machine's own address, to all, to many, and from a socket that is bound",
        "hosts = ['127.1.2.3', '0.0.0.0', sys.argv[3], '255.255.255.255', '224.0.0.1']\n"
        "for host in hosts:\n"
        "    sends(inet(port, host))\n"
        "    if socket.has_ipv6: sends(six('::ffff:' + host), family=10)\n"
        "one = socket.socket(type=socket.SOCK_DGRAM); one.bind((sys.argv[3], 0)); sends(inet(port, '0.0.0.0'), one)\n"
        "for host in ('::1', '::', 'ff02::1') if socket.has_ipv6 else (): sends(six(host), family=10)",
        UDP,
        network=True,
    ),
    tries(
        "datagrams_of_no_family",
        "The same with an address of no family, which the kernel takes for IPv4, and with others that do not fit",
        "sends(bytes(2) + inet(port)[2:]); sends(inet(port)[:8]); sends(inet(port), family=10)\n"
        "sends(bytes(2) + inet(port)[2:] + bytes(12), family=10)",
        UDP,
        network=True,
    ),
    tries(
        "datagrams_swapped",
        f"The same by {RACES}: in the header, and in the address itself",
        "own = socket.socket(type=socket.SOCK_DGRAM); own.bind(('127.0.0.1', 0)); own.setblocking(False)\n"
        "good, bad = inet(own.getsockname()[1]), inet(port)\n"
        "data = b'TAKEN'; piece = struct.pack('=QQ', place_of(data), 5); place = ctypes.create_string_buffer(16)\n"
        "names = [struct.pack('=Q', place_of(one)) for one in (good, bad)]\n"
        "rest = struct.pack('=IxxxxQQQQi4x', 16, place_of(piece), 1, 0, 0, 0)\n"
        "header = ctypes.create_string_buffer(names[0] + rest)\n"
        "def swap():\n"
        "    for _ in until():\n"
        "        place[:16] = good; header[:8] = names[1]; place[:16] = bad; header[:8] = names[0]\n"
        "threading.Thread(target=swap).start(); one = socket.socket(type=socket.SOCK_DGRAM)\n"
        "for _ in until():\n"
        "    libc.sendto(one.fileno(), data, 5, 0, place, 16); libc.sendmsg(one.fileno(), header, 0)\n"
        "    try: own.recv(9)\n"
        "    except OSError: pass",
        UDP,
        network=True,
    ),
    tries(
        "datagrams_by_another_handle",
        "The same through a handle that is a stream when it is looked at, and by processes that get or share it",
        "for flags in (0x411, 0x511):\n"
        "    made = libc.syscall(56 if SENDMMSG == 307 else 220, flags, 0, 0, 0, 0)\n"
        "    if made == 0: os._exit(0)\n"
        "    assert made == -1 and ctypes.get_errno() == 1\n"
        "assert libc.syscall(435, bytes(64), 64) == -1 and ctypes.get_errno() == 38\n"
        "a, b = socket.socketpair(); one = socket.socket(type=socket.SOCK_DGRAM); at = os.dup(a.fileno())\n"
        "if os.fork() == 0: sends(inet(port), socket.socket(fileno=socket.recv_fds(b, 9, 1)[1][0])); os._exit(0)\n"
        "socket.send_fds(a, [b'x'], [one.fileno()]); os.wait(); address, data = inet(port), b'TAKEN'\n"
        "piece = struct.pack('=QQ', place_of(data), 5); b.setblocking(False)\n"
        "header = struct.pack('=QIxxxxQQQQi4x', place_of(address), 16, place_of(piece), 1, 0, 0, 0)\n"
        "def swap():\n"
        "    for _ in until():\n"
        "        os.dup2(one.fileno(), at); os.dup2(a.fileno(), at)\n"
        "threading.Thread(target=swap).start()\n"
        "for _ in until():\n"
        "    libc.sendmsg(at, header, 0)\n"
        "    try: b.recv(9)\n"
        "    except OSError: pass",
        UDP,
        network=True,
    ),
    tries(
        "datagrams_by_a_route",
        "The same through options that send a packet by way of another address",
        "route = bytes([131, 7, 4]) + socket.inet_aton('127.0.0.1') + bytes(1)\n"
        "for level, option in ((41, 57), (41, 6), (0, 4))[0 if socket.has_ipv6 else 2 :]:\n"
        "    one = socket.socket(10 if level == 41 else 2, socket.SOCK_DGRAM)\n"
        "    try: one.setsockopt(level, option, route); raise SystemExit('set')\n"
        "    except OSError as error: assert error.errno == 1\n"
        "try: one.sendmsg([b'TAKEN'], [(0, 7, route)], 0, ('192.0.2.9', port)); raise SystemExit('sent')\n"
        "except OSError as error: print(error)",
        "such options could be set",
        network=True,
    ),
    tries(
        "rights_of_the_supervisor",
        "With a network, as root: a change of network devices, asked of the kernel by messages that are handed over",
        "asked = struct.pack('=IHHIIBBHiII', 32, 19, 5, 1, 0, 0, 0, 0, 1, 0, 0)\n"
        "kernel = struct.pack('=HHII', 16, 0, 0, 0); piece = struct.pack('=QQ', place_of(asked), 32)\n"
        "header = struct.pack('=QIxxxxQQQQi4x', place_of(kernel), 12, place_of(piece), 1, 0, 0, 0)\n"
        "one = socket.socket(16, socket.SOCK_RAW, 0); handle = one.fileno()\n"
        "for call in (lambda: libc.sendto(handle, asked, 32, 0, kernel, 12), lambda: libc.sendmsg(handle, header, 0),\n"
        "             lambda: libc.connect(handle, kernel, 12) or libc.send(handle, asked, 32, 0)):\n"
        "    print(call()); error = struct.unpack_from('=i', one.recv(999), 16)[0]; print(error); assert error == -1\n"
        "try: one.connect((os.getppid(), 0)); raise SystemExit('connected')\n"
        "except PermissionError: pass",
        "the kernel took the supervisor, which sends, for the one who asks",
        network=True,
        slow=False,
        holds="The kernel refuses what the command may not do",
    ),
    tries(
        "by_its_path_with_a_network",
        "A service's Unix socket, with a network",
        "tried(unix)",
        LATE,
        network=True,
    ),
]


class Heard:
    """Takes what comes on any of its sockets."""

    def __init__(self) -> None:
        self.words: list[bytes] = []
        self._threads: list[threading.Thread] = []
        self._sockets: list[socket.socket] = []

    def listens(self, made: socket.socket, address: object) -> socket.socket:
        made.bind(address)
        datagrams = made.type == socket.SOCK_DGRAM
        if not datagrams:
            made.listen()
        self._sockets.append(made)
        self._threads.append(threading.Thread(target=self._hear, args=(made, datagrams)))
        self._threads[-1].start()
        return made

    def _hear(self, made: socket.socket, datagrams: bool) -> None:
        while True:
            try:
                if datagrams:
                    word = made.recv(9)
                else:
                    connection, _ = made.accept()
                    with connection:
                        connection.settimeout(1)
                        word = connection.recv(9) or b"(connected)"
            except TimeoutError:
                word = b"(connected)"
            except OSError:
                return
            if word == b"":
                return
            self.words.append(word)

    def end(self) -> None:
        for one in self._sockets:
            with suppress(OSError):  # a datagram's has no connection, and wakes up all the same
                one.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for one in self._sockets:
            one.close()


async def attacked(desk: Desk, script: str, path: Path, heard: Heard) -> str:
    """What it printed, with services by a path and by a port, and the machine's own address."""
    try:
        port = heard.listens(socket.socket(), ("", 0)).getsockname()[1]
        heard.listens(socket.socket(type=socket.SOCK_DGRAM), ("", port))
        if socket.has_ipv6:
            six = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
            six.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            heard.listens(six, ("::", port))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect(("192.0.2.1", 9))  # which sends nothing
            own = probe.getsockname()[0]
        running = asyncio.ensure_future(desk.started(f"{script} {path} {port} {own}"))
        while not (desk.workspace / "begun").exists() and not running.done():
            await asyncio.sleep(0)
        heard.listens(socket.socket(socket.AF_UNIX), str(path))
        heard.listens(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM), f"{path}.datagrams")
        return (await running)[1]
    finally:
        heard.end()


@pytest.mark.parametrize("mechanism", [one for one in MECHANISMS if one != "sandbox-exec"])
@attacks(*ROWS)
def test_sockets(mechanism: Mechanism, row: Attack) -> None:
    needed(mechanism)
    release = tuple(map(int, re.findall(r"\d+", os.uname().release)[:2]))
    if row.name.startswith("datagrams_") and release < (5, 19):
        pytest.skip("messages with a header are not looked at before Linux 5.19")
    code, network = row.value
    # In the workspace, which a command may write, and beside it; the quick ones in one place each.
    for inside in (True, False) if row.slow else (row.name < "c",):
        with folder_at_home() as folder:
            desk = desk_for(mechanism, folder)
            where = (desk.workspace if inside else folder) / "services"
            where.mkdir()
            assert desk.sandbox.policy is not None
            policy = replace(desk.sandbox.policy, network=network, shown=(*desk.sandbox.policy.shown, where))
            desk = replace(desk, sandbox=replace(desk.sandbox, policy=policy))
            body = (
                f"try:\n{indent(code, '    ')}\nexcept OSError as error:\n    print(error)\nprint('ended')\n"
            )
            (desk.workspace / "attack.py").write_text(BEGINNING + body)
            heard = Heard()
            script = f"'{Path(sys.executable).resolve()}' -I attack.py"
            text = asyncio.run(attacked(desk, script, where / "s", heard))
            assert heard.words == [], text
            assert text.endswith("ended\n"), text
