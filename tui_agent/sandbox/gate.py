"""The gate for sockets: what the sockets of a sandboxed command connect and send to. The supervisor of commands
(`tools/supervisor.py`) loads it with the modules beside it; only the standard library is used.

A filter of the kernel (`socket_filter.py`) goes with the command. It refuses kinds of sockets that lead out in other
ways, and hands calls that may bring an address to the supervisor, which copies what they are about once, decides, and
connects or sends itself. So neither the place of a service counts, nor when it began to listen, nor what the command
changes while it is looked at. Should the supervisor be gone, such a call fails.

Addresses that may be reached: Unix sockets that sandboxed commands of this program listen on, and if the
network is shared all addresses of others; of this machine's own those that commands listen on, the name
servers, and the ports that are named. If calls are not handed over (before Linux 5.6, in some containers),
there are no Unix sockets at all, and a shared network is not kept from this machine's services: `looked_at`
tells.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import resource
import signal
import struct
import sys
from _thread import stack_size, start_new_thread
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from .caller import Caller, checked, handed
from .own_mounts import keep_devices
from .socket_filter import (
    DATAGRAM,
    ICMP,
    ICMP6,
    INET,
    INET6,
    LIBC,
    NETLINK,
    NUMBERS,
    OWN,
    SHARED,
    TCP,
    UDP,
    UNIX,
    Impossible,
    shut,
)
from .socket_holders import (
    ANY4,
    ANY6,
    LOOPBACK4,
    LOOPBACK6,
    MAPPED,
    commands,
    held,
    inet_listeners,
    is_near,
    name_servers,
    unix_listeners,
)
from .socket_message import AT_ONCE, INT, address_length, send

_RECEIVE, _ANSWER, _IS_VALID = 0xC0502100, 0xC0182101, 0x40082102
_SOCKET_LEVEL, _TYPE, _PROTOCOL, _DOMAIN = 1, 3, 38, 39
_CONTINUE = 1
_UNSPECIFIED = 0
_NETLINK_ADDRESS = 12
"""Bytes: the family, then from the fifth on the process and the groups; 0 is the kernel."""
_DNS = 53
_STACK = 1 << 18
"""Bytes for a thread."""


class _Itself(Exception):
    """The task makes the call itself: its handle cannot become another one meanwhile, and whoever reads may ask for its
    number.
    """


class Gate:
    """The gate of one command: made before its process is, `shut` in there, and served by the supervisor.

    `text`: the network, and after a colon the ports of this machine that may be connected to if it is shared.
    """

    def __init__(self, text: str) -> None:
        self._network, _, named = text.partition(":")
        self._named = frozenset(int(port) for port in named.split(",") if port)
        self._told, self._tells = os.pipe()
        self._goes, self._go = os.pipe()
        self._listener = -1
        self._own: set[int] = set()
        """Sockets, by inode, that were found to be of commands."""

    keep_devices = staticmethod(keep_devices)

    def shut(self) -> str:
        """Shut the gate in the process of the command, once it is served. Give the reason why it cannot be
        shut; "" if it is.
        """
        os.close(self._told)
        os.close(self._go)
        try:
            listener = shut(self._network)
        except Impossible as why:
            return str(why)
        os.write(self._tells, b"%d" % listener)
        return "" if listener < 0 or os.read(self._goes, 1) else "sockets cannot be looked at"

    def serve(self, command: int) -> None:
        """Answer from now on, in threads of their own, what is handed over by a process and all below it."""
        os.close(self._tells)
        os.close(self._goes)
        told = os.read(self._told, 16)
        if told and int(told) >= 0:
            with suppress(OSError, ValueError):  # the command is told by the end of its pipe
                process = os.pidfd_open(command)
                try:
                    self._listener = handed(process, int(told))
                finally:
                    os.close(process)
                # Many calls may wait at once, each with a thread and some handles.
                stack_size(_STACK)
                most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
                resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
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
            ident, task, number, *arguments = struct.unpack_from("<QI4xI12x6Q", call)
            caller = Caller()
            self._answer(ident, caller, partial(self._begin, caller, ident, task, number, arguments))

    def _answer(self, ident: int, caller: Caller, work: Callable[[], int | Callable[[], int]]) -> None:
        """Do what a call asks for, and say what came of it. Work that has to wait gives the rest of it, which is done
        in a thread of its own.
        """
        value = code = flags = 0
        try:
            done = work()
            if not isinstance(done, int):
                start_new_thread(self._answer, (ident, caller, done))
                return
            value = done
        except _Itself:
            flags = _CONTINUE
        except OSError as error:
            code = error.errno or errno.EACCES
        except Exception:  # noqa: BLE001 - whatever happens, a call is answered: there may be no memory, no thread
            code = errno.EAGAIN
        caller.close()
        with suppress(OSError):  # the call was given up
            fcntl.ioctl(self._listener, _ANSWER, struct.pack("<QqiI", ident, value, -code, flags))

    def _begin(
        self, caller: Caller, ident: int, task: int, number: int, arguments: list[int]
    ) -> int | Callable[[], int]:
        caller.open(task)
        socket = caller.handle(arguments[0] & INT)
        # The task may have ended and its number be another's; from here on it is held by handles.
        fcntl.ioctl(self._listener, _IS_VALID, struct.pack("<Q", ident))
        waits = not fcntl.fcntl(socket, fcntl.F_GETFL) & os.O_NONBLOCK
        if number == NUMBERS.connect:
            address = caller.read(arguments[1], address_length(arguments[2] & INT))
            connect = partial(self._connect, caller, socket, address)
            return connect if waits else connect()
        if _option(socket, _DOMAIN) == UNIX and caller.is_alone():
            raise _Itself
        sending = partial(send, caller, socket, number, arguments, partial(self._recipient, socket))
        if waits and _option(socket, _TYPE) != DATAGRAM:
            return sending  # which may send a part at once, and wait with another
        try:
            return sending(AT_ONCE if waits else 0)
        except BlockingIOError:
            if not waits:
                raise
            return sending

    def _connect(self, caller: Caller, socket: int, address: bytes) -> int:
        """Connect a command's socket if it may be. Raises `OSError`."""
        family, domain = _family(address), _option(socket, _DOMAIN)
        if domain == UNIX and family == UNIX and len(address) > 2:
            return self._connect_unix(caller, socket, address)
        if domain in {INET, INET6} and self._network == SHARED:
            address = self.destination(_option(socket, _PROTOCOL), family, address)
        elif domain == NETLINK and family != _UNSPECIFIED:
            _to_kernel(address)
        return checked(LIBC.connect(socket, address, len(address)))

    def _recipient(self, socket: int, address: bytes) -> bytes:
        """The address that a message is sent to in place of one. Raises `OSError`."""
        if not address:
            return b""
        domain = _option(socket, _DOMAIN)
        if domain == NETLINK:
            # Without an address: with one the kernel would ask for the rights of the sender alone, and that is not the
            # command.
            _to_kernel(address)
            return b""
        if domain not in {INET, INET6}:
            raise OSError(errno.EISCONN, "")
        if _option(socket, _TYPE) != DATAGRAM:
            return b""  # a stream has been connected
        family = _family(address)
        if family == _UNSPECIFIED:
            if domain == INET6:
                return b""
            family, address = INET, struct.pack("=H", INET) + address[2:]
        return self.destination(_option(socket, _PROTOCOL), family, address)

    def destination(self, protocol: int, family: int, address: bytes) -> bytes:
        """An address in a network that is shared, with this machine named as such. Raises `OSError` if it may
        not be reached.
        """
        start, end = {INET: (4, 8), INET6: (8, 24)}.get(family, (0, 0))
        if not len(address) >= end > 0 or protocol in {ICMP, ICMP6}:
            return address  # the kernel refuses it, or takes a connection back
        host = address[start:end]
        # The kernel takes none for its own.
        host = {ANY4: LOOPBACK4, ANY6: LOOPBACK6, MAPPED + ANY4: MAPPED + LOOPBACK4}.get(host, host)
        port = int.from_bytes(address[2:4], "big")
        if not self._may(UDP if protocol == UDP else TCP, host.removeprefix(MAPPED), port):
            raise OSError(errno.EACCES, "")
        return address[:start] + host + address[end:]

    def _may(self, protocol: int, host: bytes, port: int) -> bool:
        if port in self._named or not is_near(host) or (port == _DNS and host in name_servers()):
            return True
        listening = list(inet_listeners(protocol, host, port))
        if not listening:
            raise OSError(errno.ECONNREFUSED, "")
        return self._all_own(listening)

    def _connect_unix(self, caller: Caller, socket: int, address: bytes) -> int:
        if address[2] == 0:
            if self._network != OWN and not self._all_own(
                [inode for inode, name, _ in unix_listeners() if name == address[2:]]
            ):
                raise OSError(errno.EACCES, "")
            return checked(LIBC.connect(socket, address, len(address)))
        found = caller.named(address[2:].partition(b"\0")[0])
        if not self._is_ours(caller, found):
            raise OSError(errno.EACCES, "")
        # By its handle: what the path leads to may be another file by now.
        through = struct.pack("=H", UNIX) + b"/proc/self/fd/%d\0" % found
        return checked(LIBC.connect(socket, through, len(through)))

    def _is_ours(self, caller: Caller, found: int) -> bool:
        """True if it is the socket of a command."""
        device, written = caller.mount_of(found)
        number = os.fstat(found).st_ino & INT
        outside = [inode for inode, _, file in unix_listeners() if file == (number, device)]
        # A network of its own holds the sockets of commands alone, and in a place that it cannot write it
        # made none.
        return (written and not outside) if self._network == OWN else self._all_own(outside)

    def _all_own(self, listening: list[int]) -> bool:
        """True if there is such a socket, and commands hold all of them."""
        if not self._own.issuperset(listening):
            self._own = set(held(commands()))
        return bool(listening) and self._own.issuperset(listening)


def _to_kernel(address: bytes) -> None:
    """Refuse any other receiver of such messages: a process, or a group of them. Raises `OSError`."""
    if len(address) < _NETLINK_ADDRESS or any(address[4:_NETLINK_ADDRESS]):
        raise OSError(errno.EPERM, "")


def _option(socket: int, option: int) -> int:
    value, size = ctypes.c_int(), ctypes.c_uint(4)
    checked(LIBC.getsockopt(socket, _SOCKET_LEVEL, option, ctypes.byref(value), ctypes.byref(size)))
    return value.value


def _family(address: bytes) -> int:
    return int.from_bytes(address[:2], sys.byteorder)
