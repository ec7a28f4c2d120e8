"""The gate for sockets: which ones a sandboxed command makes, and what they connect to. The supervisor of commands
(`tools/supervisor.py`) loads it by its path; only the standard library is used.

A filter of the kernel (seccomp) goes with the command. It refuses kinds of sockets that lead out in other ways, and
hands each `connect` to the supervisor, which copies the address once, decides, and connects the command's own socket
itself. So neither the place of a service counts, nor when it began to listen, nor what the command changes while it is
looked at. Should the supervisor be gone, `connect` fails.

What may be connected to: Unix sockets that sandboxed commands of this program listen on, and where the network is
shared all addresses of others; of this machine's own those that commands listen on, and the ports that are named.
Where calls are not handed over (before Linux 5.6, in some containers), there are no Unix sockets at all, and a network
that is shared is not kept from this machine's services: `looked_at` tells.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import signal
import struct
import sys
from _thread import start_new_thread
from collections.abc import Iterator
from contextlib import suppress

REFUSED, OWN, SHARED = "refused", "own", "shared"
"""The network of a command: no sockets for one, a loopback of its own, or that of this machine."""

_LIBC = ctypes.CDLL(None, use_errno=True)
_UNIX, _INET, _INET6, _NETLINK = 1, 2, 10, 16
_STREAM, _DGRAM, _SEQPACKET = 1, 2, 5
_TCP, _MULTIPATH_TCP = 6, 262
_FASTOPEN = 0x20000000
"""A flag by which data is sent to an address that was never connected to."""

_PIDFD_GETFD, _OPENAT2, _IO_URING_SETUP = 438, 437, 425
_GENERIC = (198, 199, 203, 206, 211, 269, 217, 218, 219, 277)
_MACHINES = {
    "x86_64": (0xC000003E, 41, 53, 42, 44, 46, 307, 248, 249, 250, 317),
    "aarch64": (0xC00000B7, *_GENERIC),
    "riscv64": (0xC00000F3, *_GENERIC),
}
"""The name of a machine in the kernel, and its numbers of socket, socketpair, connect, sendto, sendmsg, sendmmsg,
add_key, request_key, keyctl and seccomp."""
_X32 = 0x40000000
_I386, _I386_SOCKETS = 0x40000003, ((102, 103), (286, 289), (337, 338), (345, 346), (359, 374), (425, 426))
"""Numbers from and below."""

_LOAD, _AND, _EQUAL, _AT_LEAST, _ANY_OF, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERRNO, _NOTIFY = 0x7FFF0000, 0x00050000, 0x7FC00000
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_NO_NEW_PRIVS = 38
_WITH_LISTENER, _UNDISTURBED = 8, 32
_RECEIVE, _ANSWER, _IS_VALID = 0xC0502100, 0xC0182101, 0x40082102

_SOCKET_LEVEL, _TYPE, _DOMAIN = 1, 3, 39
_LISTENING = 1 << 10
_LONGEST_ADDRESS = 128
_IN_ROOT = 0x10
_MAPPED = bytes(10) + b"\xff\xff"
_ANY4, _ANY6 = bytes(4), bytes(16)
_SERVICES_OF_CLOUDS = (b"\xa9\xfe", b"\xfd\x00\x0e\xc2", b"\x64\x64\x64\xc8", b"\xfe\x80")
"""Beginnings of addresses that lead no further than the next machine: there clouds hand out keys of this one."""
_DNS = 53


class _Impossible(Exception):
    """The kernel cannot hold the gate."""


def looked_at() -> bool:
    """Whether a connection can be looked at here before it is made."""
    if not sys.platform.startswith("linux"):
        return False
    _LIBC.syscall(_PIDFD_GETFD, -1, -1, 0)
    return ctypes.get_errno() == errno.EBADF


def _shut(network: str) -> int:
    """Take the filter on, for good. The handle on which calls are handed over, or -1 where the kernel hands none over.
    Raises `_Impossible`.
    """
    machine = os.uname().machine
    if machine not in _MACHINES:
        raise _Impossible(f"sockets cannot be kept in on {machine}")
    if _LIBC.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise _Impossible("privileges cannot be given up")
    if looked_at():
        for flags in (_WITH_LISTENER | _UNDISTURBED, _WITH_LISTENER):
            if (listener := _take_on(machine, network, flags)) >= 0:
                return listener
    if _take_on(machine, network, 0) != 0:
        raise _Impossible(f"sockets cannot be kept in ({os.strerror(ctypes.get_errno())})")
    return -1


def _take_on(machine: str, network: str, flags: int) -> int:
    code = _program(machine, network, handed_over=flags != 0)
    kept = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("<HxxxxxxQ", len(code) // 8, ctypes.addressof(kept))
    return int(_LIBC.syscall(_MACHINES[machine][-1], 1, flags, program))


def _program(machine: str, network: str, *, handed_over: bool) -> bytes:
    """The filter for a machine."""
    architecture, socket, pair, connect, sendto, sendmsg, sendmmsg, *keys, _ = _MACHINES[machine]
    intel = machine == "x86_64"
    inet = "no network" if network == REFUSED else "inet"
    # What is done, with which value, and what comes next if it is so. A name stands before its step.
    return _assembled(
        (_LOAD, _ARCHITECTURE),
        (_EQUAL, architecture, "ours"),
        *([(_EQUAL, _I386, "32 bits")] if intel else []),
        (_RETURN, _ERRNO | errno.EPERM),
        "ours",
        (_LOAD, _NUMBER),
        # System calls of another table are none of a usual program.
        *([(_AT_LEAST, _X32, "no")] if intel else []),
        *((_EQUAL, number, "no") for number in (_IO_URING_SETUP, *keys)),
        (_EQUAL, socket, "socket"),
        (_EQUAL, pair, "kind"),
        (_EQUAL, connect, "hand over" if handed_over else "yes"),
        (_EQUAL, sendmsg, "third"),
        (_EQUAL, sendto, "fourth"),
        (_EQUAL, sendmmsg, "fourth"),
        (_RETURN, _ALLOW),
        # A program of 32 bits has no sockets: it may pass all of them in memory, where a filter cannot look.
        "32 bits",
        (_LOAD, _NUMBER),
        *(
            step
            for first, beyond in reversed(_I386_SOCKETS)
            for step in ((_AT_LEAST, beyond, "yes"), (_AT_LEAST, first, "no"))
        ),
        (_RETURN, _ALLOW),
        "socket",
        (_LOAD, _ARGUMENTS),
        (_EQUAL, _NETLINK, "yes"),
        (_EQUAL, _INET, inet),
        (_EQUAL, _INET6, inet),
        (_EQUAL, _UNIX, "kind" if handed_over else "denied"),
        (_RETURN, _ERRNO | errno.EAFNOSUPPORT),
        # Not datagrams, each of which may have an address of its own.
        "kind",
        (_LOAD, _ARGUMENTS + 8),
        (_AND, 0xF),
        (_EQUAL, _STREAM, "yes"),
        (_EQUAL, _SEQPACKET, "yes"),
        (_RETURN, _ERRNO | errno.EACCES),
        "inet",
        (_LOAD, _ARGUMENTS + 8),
        (_AND, 0xF),
        (_EQUAL, _DGRAM, "yes"),
        (_EQUAL, _STREAM, "protocol"),
        (_RETURN, _ERRNO | errno.EPERM),
        "protocol",
        (_LOAD, _ARGUMENTS + 16),
        *((_EQUAL, protocol, "yes") for protocol in (0, _TCP, _MULTIPATH_TCP)),
        (_RETURN, _ERRNO | errno.EPROTONOSUPPORT),
        "third",
        (_LOAD, _ARGUMENTS + 16),
        (_ANY_OF, _FASTOPEN, "unsupported"),
        (_RETURN, _ALLOW),
        "fourth",
        (_LOAD, _ARGUMENTS + 24),
        (_ANY_OF, _FASTOPEN, "unsupported"),
        "yes",
        (_RETURN, _ALLOW),
        "no",
        (_RETURN, _ERRNO | errno.EPERM),
        "denied",
        (_RETURN, _ERRNO | errno.EACCES),
        "no network",
        (_RETURN, _ERRNO | errno.ENETUNREACH),
        "unsupported",
        (_RETURN, _ERRNO | errno.EOPNOTSUPP),
        "hand over",
        (_RETURN, _NOTIFY),
    )


def _assembled(*lines: str | tuple[int, int] | tuple[int, int, str]) -> bytes:
    places: dict[str, int] = {}
    steps: list[tuple[int, int] | tuple[int, int, str]] = []
    for line in lines:
        if isinstance(line, str):
            places[line] = len(steps)
        else:
            steps.append(line)
    return b"".join(
        struct.pack("<HBBI", step[0], places[step[2]] - number - 1 if len(step) == 3 else 0, 0, step[1])
        for number, step in enumerate(steps)
    )


def _handed(pid: int, number: int) -> int:
    """A handle of our own on what is open under `number` in a process. Raises `OSError`."""
    process = os.pidfd_open(pid)
    try:
        return _checked(_LIBC.syscall(_PIDFD_GETFD, process, number, 0))
    finally:
        os.close(process)


def _checked(result: int) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


class Gate:
    """The gate of one command: made before its process is, `shut` in there, and served by the supervisor.

    `text`: the network, and after a colon the ports of this machine that may be connected to where it is shared.
    """

    def __init__(self, text: str) -> None:
        self._network, _, named = text.partition(":")
        self._named = frozenset(int(port) for port in named.split(",") if port)
        self._told, self._tells = os.pipe()
        self._goes, self._go = os.pipe()
        self._listener = -1
        self._own: set[int] = set()
        """Listening sockets, by inode, that were found to be of commands."""

    def shut(self) -> str:
        """In the process of the command, once it is served. Why it cannot be; "" where it is shut."""
        os.close(self._told)
        os.close(self._go)
        try:
            listener = _shut(self._network)
        except _Impossible as why:
            return str(why)
        os.write(self._tells, b"%d" % listener)
        return "" if listener < 0 or os.read(self._goes, 1) else "sockets cannot be looked at"

    def serve(self, command: int) -> None:
        """Answer from now on, in threads of their own, what is handed over by a process and all below it."""
        os.close(self._tells)
        os.close(self._goes)
        told = os.read(self._told, 16)
        if told and int(told) >= 0:
            with suppress(OSError):  # the command is told by the end of its pipe
                self._listener = _handed(command, int(told))
                start_new_thread(self._serve, ())
                os.write(self._go, b".")
        os.close(self._told)
        os.close(self._go)

    def _serve(self) -> None:
        # A signal would interrupt a connect that only its command may interrupt. Other threads inherit it.
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        while True:
            call = bytearray(80)
            try:
                fcntl.ioctl(self._listener, _RECEIVE, call, True)
            except OSError as error:
                if error.errno in {errno.ENOENT, errno.EINTR}:
                    continue
                return
            ident, task, socket, place, length = struct.unpack_from("<QI20xQQQ", call)
            self._take(ident, task, socket & 0xFFFFFFFF, place, length & 0xFFFFFFFF)

    def _take(self, ident: int, task: int, number: int, place: int, length: int) -> None:
        """Copy what a call is about, and connect at once, or in a thread where it may take time."""
        socket = -1
        try:
            address = _memory(task, place, length)
            socket = _handed(_process_of(task), number)
            # The task may have ended and its number be another's.
            fcntl.ioctl(self._listener, _IS_VALID, struct.pack("<Q", ident))
            if not fcntl.fcntl(socket, fcntl.F_GETFL) & os.O_NONBLOCK:
                start_new_thread(self._answer, (ident, task, socket, address))
                return
        except (OSError, ValueError, LookupError, RuntimeError) as error:
            # What is no `OSError`: the task is no more, or no thread can be started.
            if socket >= 0:
                os.close(socket)
            self._say(ident, getattr(error, "errno", None) or errno.EAGAIN)
            return
        self._answer(ident, task, socket, address)

    def _answer(self, ident: int, task: int, socket: int, address: bytes) -> None:
        code = errno.EACCES
        try:
            self._connect(task, socket, address)
            code = 0
        except OSError as error:
            code = error.errno or code
        except (ValueError, LookupError, struct.error):
            pass  # the task is no more
        finally:
            os.close(socket)
            self._say(ident, code)

    def _say(self, ident: int, code: int) -> None:
        with suppress(OSError):  # the call was given up
            fcntl.ioctl(self._listener, _ANSWER, struct.pack("<QqiI", ident, 0, -code, 0))

    def _connect(self, task: int, socket: int, address: bytes) -> None:
        """Connect a command's socket where it may. Raises `OSError`."""
        family = int.from_bytes(address[:2], sys.byteorder)
        domain = _option(socket, _DOMAIN)
        if domain == _UNIX and family == _UNIX and len(address) > 2:
            self._connect_unix(task, socket, address)
            return
        if domain in {_INET, _INET6} and self._network == SHARED and _option(socket, _TYPE) == _STREAM:
            start, end = {_INET: (4, 8), _INET6: (8, 24)}.get(family, (0, 0))
            host = address[start:end].removeprefix(_MAPPED)
            # What has no such address the kernel refuses, or it takes the connection back.
            if len(address) >= end > 0 and not self._may(host, int.from_bytes(address[2:4], "big")):
                raise OSError(errno.EACCES, "")
        _checked(_LIBC.connect(socket, address, len(address)))

    def _may(self, host: bytes, port: int) -> bool:
        """Whether an address may be connected to, in a network that is shared."""
        if host in {_ANY4, _ANY6}:  # the kernel takes it for loopback
            host = b"\x7f\0\0\1" if host == _ANY4 else bytes(15) + b"\1"
        if port in self._named or not is_near(host) or (port == _DNS and host in _name_servers()):
            return True
        listening = list(_listeners(host, port))
        if not listening:
            raise OSError(errno.ECONNREFUSED, "")
        return self._all_own(listening)

    def _connect_unix(self, task: int, socket: int, address: bytes) -> None:
        if address[2] == 0:
            if self._network != OWN and not self._all_own(
                [inode for inode, name, _ in _unix_listeners() if name == address[2:]]
            ):
                raise OSError(errno.EACCES, "")
            _checked(_LIBC.connect(socket, address, len(address)))
            return
        pinned = _pinned(task, address[2:].partition(b"\0")[0])
        try:
            if not self._is_ours(task, pinned):
                raise OSError(errno.EACCES, "")
            # By its handle: what the path leads to may be another file by now.
            through = struct.pack("=H", _UNIX) + b"/proc/self/fd/%d\0" % pinned
            _checked(_LIBC.connect(socket, through, len(through)))
        finally:
            os.close(pinned)

    def _is_ours(self, task: int, pinned: int) -> bool:
        """Whether it is the socket of a command."""
        device, written = _mount_of(task, pinned)
        number = os.fstat(pinned).st_ino & 0xFFFFFFFF
        outside = [inode for inode, _, file in _unix_listeners() if file == (number, device)]
        # In a network of its own are the sockets of commands alone, and where it cannot write it made none.
        return (written and not outside) if self._network == OWN else self._all_own(outside)

    def _all_own(self, listening: list[int]) -> bool:
        """Whether commands hold all of these sockets, of which there is one."""
        if not self._own.issuperset(listening):
            self._own.update(_held(_commands()))
        return bool(listening) and self._own.issuperset(listening)


def _option(socket: int, option: int) -> int:
    value, size = ctypes.c_int(), ctypes.c_uint(4)
    _checked(_LIBC.getsockopt(socket, _SOCKET_LEVEL, option, ctypes.byref(value), ctypes.byref(size)))
    return value.value


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _process_of(task: int) -> int:
    return int(_read(f"/proc/{task}/status").partition(b"\nTgid:")[2].split(None, 1)[0])


def _memory(task: int, place: int, size: int) -> bytes:
    if size > _LONGEST_ADDRESS:
        raise OSError(errno.EINVAL, "")
    handle = os.open(f"/proc/{task}/mem", os.O_RDONLY)
    try:
        found = os.pread(handle, size, place)
    except (OSError, OverflowError):
        found = b""
    finally:
        os.close(handle)
    if len(found) < size:
        raise OSError(errno.EFAULT, "")
    return found


def _pinned(task: int, path: bytes) -> int:
    """The file that a path leads to as the task sees it: a handle that only names it. Raises `OSError`."""
    whole = os.path.join(os.fsencode(os.readlink(f"/proc/{task}/cwd")), path)
    root = os.open(f"/proc/{task}/root", os.O_PATH | os.O_CLOEXEC)
    try:
        how = struct.pack("<QQQ", os.O_PATH | os.O_CLOEXEC, 0, _IN_ROOT)
        return _checked(_LIBC.syscall(_OPENAT2, root, whole, how, ctypes.c_size_t(len(how))))
    finally:
        os.close(root)


def _mount_of(task: int, pinned: int) -> tuple[int, bool]:
    """The device of the mount that a file was reached by, as the kernel numbers it, and whether it can be written."""
    number = _read(f"/proc/self/fdinfo/{pinned}").partition(b"mnt_id:")[2].split(None, 1)[0]
    for line in _read(f"/proc/{task}/mountinfo").splitlines():
        fields = line.split()
        if fields[0] == number:
            major, minor = map(int, fields[2].split(b":"))
            return major << 20 | minor, b"ro" not in fields[5].split(b",")
    raise OSError(errno.EACCES, "")


def _listeners_of(*request: bytes) -> Iterator[bytes]:
    """What the kernel tells of the sockets of a kind that are listened on in this network."""
    import socket

    question = b"".join(request)
    with socket.socket(_NETLINK, socket.SOCK_RAW, 4) as link:
        link.send(struct.pack("=IHHII", 16 + len(question), 20, 0x301, 1, 0) + question)
        while True:
            answers = link.recv(1 << 16)
            while answers:
                size, kind = struct.unpack_from("=IH", answers)
                if kind == 3:
                    return
                if kind != 20:
                    raise OSError(errno.EACCES, "")
                yield answers[16:size]
                answers = answers[(size + 3) & ~3 :]


def _unix_listeners() -> Iterator[tuple[int, bytes, tuple[int, int]]]:
    """The Unix sockets that are listened on in this network: inode, name, and the file's number and device."""
    for message in _listeners_of(struct.pack("=BBHIIIII", _UNIX, 0, 0, _LISTENING, 0, 3, 0, 0)):
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
    """Whether an address is this machine's, or leads no further than the next one."""
    import socket

    if host.startswith(_SERVICES_OF_CLOUDS) or host == bytes(15) + b"\1" or host[0] == 127:
        return True
    family, text = (_INET, socket.AF_INET) if len(host) == 4 else (_INET6, socket.AF_INET6)
    shown = socket.inet_ntop(text, host)
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((shown, 9))
        except OSError:  # there is no way to it
            return False
        # To itself a machine goes by that very address.
        return bool(socket.inet_pton(text, probe.getsockname()[0]) == host)


def _name_servers() -> set[bytes]:
    import socket

    found = set()
    with suppress(OSError):
        for line in _read("/etc/resolv.conf").decode("ascii", "replace").splitlines():
            if line.startswith("nameserver"):
                text = line.split()[1:2] or [""]
                with suppress(OSError):
                    found.add(
                        socket.inet_pton(socket.AF_INET6 if ":" in text[0] else socket.AF_INET, text[0])
                    )
    return found


def _listeners(host: bytes, port: int) -> Iterator[int]:
    """The sockets, by inode, that may take a connection to an address of this machine."""
    for family, size in ((_INET, 4), (_INET6, 16)):
        for message in _listeners_of(struct.pack("=BBBxI", family, _TCP, 0, _LISTENING), bytes(48)):
            (at,) = struct.unpack_from("!H", message, 4)
            (inode,) = struct.unpack_from("=I", message, 68)
            local = message[8 : 8 + size].removeprefix(_MAPPED)
            if at == port and local in {host, _ANY4, _ANY6}:
                yield inode


def _commands() -> set[int]:
    """The processes of all commands that this program runs behind a gate."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        with suppress(OSError, ValueError, IndexError):
            if name.isdigit():
                # The name in brackets may hold anything, also brackets.
                parent = int(_read(f"/proc/{name}/stat").rpartition(b")")[2].split()[1])
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
        return _read(f"/proc/{pid}/cmdline").split(b"\0")
    return []


def _is_alike(words: list[bytes], mine: list[bytes]) -> bool:
    """Whether it is the command line of a supervisor with a gate: program, two options, script, grace, status, gate."""
    return words[:4] == mine[:4] and b"".join(words[6:7]).startswith(mine[6][: mine[6].index(b"=") + 1])


def _held(processes: set[int]) -> Iterator[int]:
    """The sockets, by inode, that processes have open."""
    for pid in processes:
        with suppress(OSError):
            for name in os.listdir(f"/proc/{pid}/fd"):
                with suppress(OSError):
                    what = os.readlink(f"/proc/{pid}/fd/{name}")
                    if what.startswith("socket:["):
                        yield int(what[8:-1])
