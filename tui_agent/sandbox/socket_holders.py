"""Who is behind an address: the sockets that processes of this machine listen on, and which of them are of commands.
Loaded with the gate (`gate.py`) by the supervisor; only the standard library is used.
"""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Iterator
from contextlib import suppress

from .socket_filter import INET, INET6, NETLINK, TCP, UNIX

MAPPED = bytes(10) + b"\xff\xff"
ANY4, ANY6 = bytes(4), bytes(16)
LOOPBACK4, LOOPBACK6 = b"\x7f\0\0\1", bytes(15) + b"\1"
_SERVICES_OF_CLOUDS = (b"\xa9\xfe", b"\xfd\x00\x0e\xc2", b"\x64\x64\x64\xc8", b"\xfe\x80")
"""Beginnings of addresses that lead no further than the next machine: there clouds hand out keys of this one."""

_ROUTES, _HOLDERS = 0, 4
"""Kinds of messages to the kernel (netlink)."""
_GET_ROUTE, _BY_FAMILY, _ALL = 26, 20, 0x300
_DONE, _ERROR = 3, 2
_TO_ONE = 1
_LISTENING, _ANY_STATE = 1 << 10, 0xFFFF
_AT_LEAST, _AT_MOST = 2, 3
"""Comparisons of a port, each with what to skip if it holds and if not."""


def read_file(path: str) -> bytes:
    """All of a file. Raises `OSError`."""
    with open(path, "rb") as file:
        return file.read()


def _answers(family: int, kind: int, flags: int, question: bytes) -> Iterator[bytes]:
    """The kernel's answer about this network. Raises `OSError`."""
    import socket

    with socket.socket(NETLINK, socket.SOCK_RAW, family) as link:
        link.send(struct.pack("=IHHII", 16 + len(question), kind, flags | 1, 1, 0) + question)
        while True:
            answers = link.recv(1 << 16)
            while answers:
                size, found = struct.unpack_from("=IH", answers)
                if found in {_DONE, _ERROR}:
                    (code,) = struct.unpack_from("=i", answers, 16)
                    if code != 0:
                        raise OSError(-code, "")
                    return
                yield answers[16:size]
                answers = answers[(size + 3) & ~3 :]


def unix_listeners() -> Iterator[tuple[int, bytes, tuple[int, int]]]:
    """The Unix sockets that are listened on in this network: inode, name, and the file's number and device."""
    question = struct.pack("=BBHIIIII", UNIX, 0, 0, _LISTENING, 0, 3, 0, 0)
    for message in _answers(_HOLDERS, _BY_FAMILY, _ALL, question):
        yield _one_listener(message)


def _one_listener(message: bytes) -> tuple[int, bytes, tuple[int, int]]:
    name, file = b"", (0, 0)
    (inode,) = struct.unpack_from("=I", message, 4)
    rest = message[16:]
    while len(rest) >= 4:
        size, kind = struct.unpack_from("=HH", rest)
        if kind == 0:
            name = rest[4:size]
        elif kind == 1:
            number, device = struct.unpack_from("=II", rest, 4)
            file = (number, device)
        rest = rest[max((size + 3) & ~3, 4) :]
    return inode, name, file


def is_near(host: bytes) -> bool:
    """True if a message to an address gets to this machine, or to the next one alone. Raises `OSError` if
    there is no way to it.
    """
    if host.startswith(_SERVICES_OF_CLOUDS):
        return True
    family = INET if len(host) == 4 else INET6
    wanted = struct.pack("=BBBBBBBBI", family, 8 * len(host), 0, 0, 0, 0, 0, 0, 0)
    wanted += struct.pack("=HH", 4 + len(host), 1) + host
    for answer in _answers(_ROUTES, _GET_ROUTE, 0, wanted):
        # To all (broadcast) and to many (multicast) is to this machine too.
        return answer[7] != _TO_ONE
    raise OSError(errno.ENETUNREACH, "")


def name_servers() -> set[bytes]:
    """Servers that look up names of hosts: those that are configured, or this machine itself."""
    import socket

    found = set()
    with suppress(OSError):
        for line in read_file("/etc/resolv.conf").decode("ascii", "replace").splitlines():
            if line.startswith("nameserver"):
                text = line.split()[1:2] or [""]
                host = text[0].partition("%")[0]
                with suppress(OSError):
                    found.add(socket.inet_pton(socket.AF_INET6 if ":" in host else socket.AF_INET, host))
    return found or {LOOPBACK4}


def inet_listeners(protocol: int, host: bytes, port: int) -> Iterator[int]:
    """The sockets, by inode, that may take a connection or a datagram to an address of this machine."""
    states = _LISTENING if protocol == TCP else _ANY_STATE
    for family, size in ((INET, 4), (INET6, 16)):
        # The kernel looks for the port: an answer in one piece leaves out nothing for what changes meanwhile.
        question = struct.pack("=BBBxI48x", family, protocol, 0, states)
        question += struct.pack("=HHBBHxxHBBHxxH", 20, 1, _AT_LEAST, 8, 20, port, _AT_MOST, 8, 12, port)
        for message in _answers(_HOLDERS, _BY_FAMILY, _ALL, question):
            (inode,) = struct.unpack_from("=I", message, 68)
            if message[8 : 8 + size].removeprefix(MAPPED) in {host, ANY4, ANY6}:
                yield inode


def commands() -> set[int]:
    """The processes of all commands that this program runs behind a gate."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        with suppress(OSError, ValueError, IndexError):
            if name.isdigit():
                # The name in brackets may hold anything, also brackets.
                parent = int(read_file(f"/proc/{name}/stat").rpartition(b")")[2].split()[1])
                children.setdefault(parent, []).append(int(name))
    mine = _words(os.getpid())
    found = {
        pid
        for above in children.get(os.getppid(), [])
        if _is_alike(_words(above), mine)
        for pid in children.get(above, [])
    }
    waiting = list(found)
    while waiting:
        below = children.get(waiting.pop(), [])
        found.update(below)
        waiting += below
    return found


def _words(pid: int) -> list[bytes]:
    with suppress(OSError):
        return read_file(f"/proc/{pid}/cmdline").split(b"\0")
    return []


def _is_alike(words: list[bytes], mine: list[bytes]) -> bool:
    """True if it is the command line of a supervisor with a gate: program, two options, script, grace,
    status, gate.
    """
    return words[:4] == mine[:4] and b"".join(words[6:7]).startswith(mine[6][: mine[6].index(b"=") + 1])


def held(processes: set[int]) -> Iterator[int]:
    """The sockets, by inode, that processes have open."""
    for pid in processes:
        folder = f"/proc/{pid}"
        with suppress(OSError):
            # If the first thread has ended, the others have them.
            for task in ("", *(f"/task/{each}" for each in os.listdir(f"{folder}/task"))):
                if names := os.listdir(f"{folder}{task}/fd"):
                    yield from _sockets(f"{folder}{task}/fd", names)
                    break


def _sockets(folder: str, names: list[str]) -> Iterator[int]:
    for name in names:
        with suppress(OSError):
            what = os.readlink(f"{folder}/{name}")
            if what.startswith("socket:["):
                yield int(what[8:-1])
