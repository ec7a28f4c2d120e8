"""The kernel's filter (seccomp) for the sockets of a command: which kinds it makes, and which calls are handed over to
the gate (`gate.py`) before they are made. Loaded with it by the supervisor; only the standard library is used.

A filter sees numbers alone: whether a call brings an address, not which one. So with a network that is shared every
`sendmsg` is handed over, and of `sendto` what brings an address.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys

REFUSED, OWN, SHARED = "refused", "own", "shared"
"""The network of a command: no sockets for one, a loopback of its own, or that of this machine."""

LIBC = ctypes.CDLL(None, use_errno=True)
UNIX, INET, INET6, NETLINK = 1, 2, 10, 16
STREAM, DATAGRAM, SEQUENCE = 1, 2, 5
ICMP, TCP, UDP, ICMP6, MULTIPATH_TCP = 1, 6, 17, 58, 262
PIDFD_GETFD = 438


class _Numbers:
    """A machine in the kernel, and its numbers of system calls."""

    def __init__(self, architecture: int, *numbers: int) -> None:
        self.architecture = architecture
        self.socket, self.socketpair, self.connect, self.sendto, self.sendmsg, self.sendmmsg, *rest = numbers
        self.setsockopt, self.clone, self.add_key, self.request_key, self.keyctl, self.seccomp = rest


_GENERIC = (198, 199, 203, 206, 211, 269, 208, 220, 217, 218, 219, 277)
MACHINES = {
    "x86_64": _Numbers(0xC000003E, 41, 53, 42, 44, 46, 307, 54, 56, 248, 249, 250, 317),
    "aarch64": _Numbers(0xC00000B7, *_GENERIC),
    "riscv64": _Numbers(0xC00000F3, *_GENERIC),
}
NUMBERS = MACHINES.get(os.uname().machine, _Numbers(*(-1,) * 13))
"""Those of this machine; -1 if commands cannot be kept in."""

_IO_URING_SETUP, _CLONE3 = 425, 435
_SHARED_HANDLES, _THREAD = 0x400, 0x10000
"""Flags of clone."""
_X32 = 0x40000000
_I386, _I386_SOCKETS = 0x40000003, ((102, 103), (286, 289), (337, 338), (345, 346), (359, 374), (425, 426))
"""Numbers from and below."""

_LOAD, _AND, _EQUAL, _AT_LEAST, _ANY_OF, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERRNO, _NOTIFY = 0x7FFF0000, 0x00050000, 0x7FC00000
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_NO_NEW_PRIVS = 38
_WITH_LISTENER, _UNDISTURBED = 8, 32
"""The second from Linux 5.19: no signal but one that kills ends a call that is being done."""
_FASTOPEN = 0x20000000
"""A flag by which data is sent to an address that was never connected to."""
_INET_LEVEL, _INET6_LEVEL = 0, 41
_IP_OPTIONS, _PACKET_OPTIONS, _ROUTING_HEADER = 4, 6, 57
"""By these packets go round by other addresses."""


class Impossible(Exception):
    """The kernel cannot hold the filter."""


def kept_in() -> bool:
    """True if there is a filter for a machine like this one."""
    return os.uname().machine in MACHINES


def looked_at() -> bool:
    """True if a call can be looked at here before it is made."""
    if not sys.platform.startswith("linux"):
        return False
    LIBC.syscall(PIDFD_GETFD, -1, -1, 0)
    return ctypes.get_errno() == errno.EBADF


def shut(network: str) -> int:
    """Take the filter on, for good. The handle on which calls are handed over, or -1 if the kernel hands none
    over. Raises `Impossible`.
    """
    if not kept_in():
        raise Impossible(f"sockets cannot be kept in on {os.uname().machine}")
    if LIBC.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise Impossible("privileges cannot be given up")
    if looked_at():
        for flags in (_WITH_LISTENER | _UNDISTURBED, _WITH_LISTENER):
            if (listener := _take_on(network, flags)) >= 0:
                return listener
    if _take_on(network, 0) != 0:
        raise Impossible(f"sockets cannot be kept in ({os.strerror(ctypes.get_errno())})")
    return -1


def _take_on(network: str, flags: int) -> int:
    code = _program(network, flags)
    kept = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("<HxxxxxxQ", len(code) // 8, ctypes.addressof(kept))
    return int(LIBC.syscall(NUMBERS.seccomp, 1, flags, program))


def _program(network: str, flags: int) -> bytes:
    """The filter for this machine."""
    handed_over = flags != 0
    intel = NUMBERS.architecture == MACHINES["x86_64"].architecture
    inet = "no network" if network == REFUSED else "inet"
    with_address = "hand over" if handed_over and network == SHARED else "yes"
    # A signal that disturbs such a call has it made again: then a part of a stream would be sent twice.
    with_header = with_address if flags & _UNDISTURBED else "yes"
    # What is done, with which value, and what comes next if it is so. A name stands before its step.
    return _assembled(
        (_LOAD, _ARCHITECTURE),
        (_EQUAL, NUMBERS.architecture, "ours"),
        *([(_EQUAL, _I386, "32 bits")] if intel else []),
        (_RETURN, _ERRNO | errno.EPERM),
        "ours",
        (_LOAD, _NUMBER),
        # System calls of another table are none of a usual program.
        *([(_AT_LEAST, _X32, "no")] if intel else []),
        *(
            (_EQUAL, number, "no")
            for number in (_IO_URING_SETUP, NUMBERS.add_key, NUMBERS.request_key, NUMBERS.keyctl)
        ),
        (_EQUAL, NUMBERS.socket, "socket"),
        (_EQUAL, NUMBERS.socketpair, "kind"),
        (_EQUAL, NUMBERS.connect, "hand over" if handed_over else "yes"),
        (_EQUAL, NUMBERS.sendto, "sendto"),
        (_EQUAL, NUMBERS.sendmsg, "sendmsg"),
        (_EQUAL, NUMBERS.sendmmsg, "sendmmsg"),
        (_EQUAL, NUMBERS.setsockopt, "option"),
        *([(_EQUAL, NUMBERS.clone, "clone"), (_EQUAL, _CLONE3, "unknown")] if with_header != "yes" else []),
        (_RETURN, _ALLOW),
        # A program of 32 bits has no sockets: it may pass all of them in memory, out of a filter's sight.
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
        (_EQUAL, NETLINK, "yes"),
        (_EQUAL, INET, inet),
        (_EQUAL, INET6, inet),
        (_EQUAL, UNIX, "kind" if handed_over else "denied"),
        (_RETURN, _ERRNO | errno.EAFNOSUPPORT),
        # Not datagrams, each of which may have an address of its own.
        "kind",
        (_LOAD, _ARGUMENTS + 8),
        (_AND, 0xF),
        (_EQUAL, STREAM, "yes"),
        (_EQUAL, SEQUENCE, "yes"),
        (_RETURN, _ERRNO | errno.EACCES),
        "inet",
        (_LOAD, _ARGUMENTS + 8),
        (_AND, 0xF),
        (_EQUAL, DATAGRAM, "protocol of datagrams"),
        (_EQUAL, STREAM, "protocol of streams"),
        (_RETURN, _ERRNO | errno.EPERM),
        "protocol of datagrams",
        (_LOAD, _ARGUMENTS + 16),
        *((_EQUAL, protocol, "yes") for protocol in (0, UDP, ICMP, ICMP6)),
        (_RETURN, _ERRNO | errno.EPROTONOSUPPORT),
        "protocol of streams",
        (_LOAD, _ARGUMENTS + 16),
        *((_EQUAL, protocol, "yes") for protocol in (0, TCP, MULTIPATH_TCP)),
        (_RETURN, _ERRNO | errno.EPROTONOSUPPORT),
        "sendto",
        (_LOAD, _ARGUMENTS + 24),
        (_ANY_OF, _FASTOPEN, "unsupported"),
        # Its address has 64 bits.
        *(step for half in (32, 36) for step in ((_LOAD, _ARGUMENTS + half), (_AT_LEAST, 1, with_address))),
        (_RETURN, _ALLOW),
        "sendmsg",
        (_LOAD, _ARGUMENTS + 16),
        (_ANY_OF, _FASTOPEN, "unsupported"),
        (_LOAD, _NUMBER),
        (_EQUAL, NUMBERS.sendmsg, with_header),
        "sendmmsg",
        (_LOAD, _ARGUMENTS + 24),
        (_ANY_OF, _FASTOPEN, "unsupported"),
        (_LOAD, _NUMBER),
        (_EQUAL, NUMBERS.sendmmsg, with_header),
        "option",
        (_LOAD, _ARGUMENTS + 16),
        (_EQUAL, _IP_OPTIONS, "of inet"),
        (_EQUAL, _PACKET_OPTIONS, "of inet6"),
        (_EQUAL, _ROUTING_HEADER, "of inet6"),
        (_RETURN, _ALLOW),
        "of inet",
        (_LOAD, _ARGUMENTS + 8),
        (_EQUAL, _INET_LEVEL, "no"),
        (_RETURN, _ALLOW),
        "of inet6",
        (_LOAD, _ARGUMENTS + 8),
        (_EQUAL, _INET6_LEVEL, "no"),
        (_RETURN, _ALLOW),
        # Handles are shared by threads alone. What clone3 is asked for stands in memory; programs then use clone.
        "clone",
        (_LOAD, _ARGUMENTS),
        (_ANY_OF, _THREAD, "yes"),
        (_ANY_OF, _SHARED_HANDLES, "no"),
        "yes",
        (_RETURN, _ALLOW),
        "no",
        (_RETURN, _ERRNO | errno.EPERM),
        "unknown",
        (_RETURN, _ERRNO | errno.ENOSYS),
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
