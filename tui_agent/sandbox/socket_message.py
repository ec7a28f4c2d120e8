"""Messages that a command sends by a call that was handed over: copied once out of its memory, then sent.
Loaded with the gate (`gate.py`) by the supervisor; only the standard library is used.
"""

from __future__ import annotations

import ctypes
import errno
import struct
from collections.abc import Callable

from .caller import Caller, checked
from .socket_filter import LIBC, NUMBERS

INT = 0xFFFFFFFF
AT_ONCE = 0x40
"""A flag: to fail rather than to wait."""
_NO_SIGNAL, _NOT_COPIED = 0x4000, 0x4000000
_LONGEST_ADDRESS = 128
_MOST_PIECES, _MOST_MESSAGES, _MOST_HANDLES, _MOST_CONTROL = 1024, 1024, 253, 4096
_MOST_BYTES = 1 << 20
"""Of one message: more than any datagram has. Of a stream a program sends the rest after it."""
_HEADER, _IN_A_ROW = 56, 64
"""Bytes of a message's header, alone and in a row of several, each with the count of its bytes that were
sent.
"""
_HANDLES, _IDENTITY = (1, 1), (1, 2)
_HARMLESS = {(0, 1), (0, 2), (0, 8), (41, 50), (41, 52), (41, 62), (41, 67), (17, 103)}
"""Control data that may go with a message, by level and type: of a packet the service, life time, interface
and size of parts.
"""


def send(
    caller: Caller,
    socket: int,
    number: int,
    arguments: list[int],
    allowed: Callable[[bytes], bytes],
    at_once: int = 0,
) -> int:
    """Do a sendto, sendmsg or sendmmsg. What the call gives. Raises `OSError`.

    `allowed`: the address to use in place of one; raises `OSError` if it may not be reached. `at_once`:
    `AT_ONCE` or 0.
    """
    flags = arguments[2 if number == NUMBERS.sendmsg else 3] & INT | at_once
    if number == NUMBERS.sendto:
        _, place, size, _, name, length = arguments
        to = allowed(caller.read(name, address_length(length & INT)))
        return _sent(caller, socket, to, caller.read(place, min(size, _MOST_BYTES)), b"", flags)
    if number == NUMBERS.sendmsg:
        return _message(caller, socket, arguments[1], allowed, flags)
    messages = min(arguments[2] & INT, _MOST_MESSAGES)
    for done in range(messages):
        place = arguments[1] + _IN_A_ROW * done
        try:
            size = _message(caller, socket, place, allowed, flags)
            caller.write(place + _HEADER, struct.pack("<I", size))
        except OSError:
            if done == 0:
                raise
            return done
    return messages


def address_length(size: int) -> int:
    """The length of an address. Raises `OSError` if none is so long."""
    if size > _LONGEST_ADDRESS:
        raise OSError(errno.EINVAL, "")
    return size


def _message(caller: Caller, socket: int, place: int, allowed: Callable[[bytes], bytes], flags: int) -> int:
    """Send what a header tells of."""
    name, length, pieces, count, control, size = struct.unpack("<QI4xQQQQ", caller.read(place, 48))
    if length > INT >> 1:
        raise OSError(errno.EINVAL, "")
    if count > _MOST_PIECES:
        raise OSError(errno.EMSGSIZE, "")
    if size > _MOST_CONTROL:
        raise OSError(errno.ENOBUFS, "")
    to = allowed(caller.read(name, min(length, _LONGEST_ADDRESS))) if name else b""
    data = bytearray()
    for start, piece in struct.iter_unpack("<QQ", caller.read(pieces, 16 * count)):
        data += caller.read(start, min(piece, _MOST_BYTES - len(data)))
    beside = _beside(caller, caller.read(control, size)) if control else b""
    return _sent(caller, socket, to, bytes(data), beside, flags)


def _beside(caller: Caller, control: bytes) -> bytes:
    """Control data of a message, with handles of our own in place of the task's."""
    kept = b""
    while len(control) >= 16:
        size, level, kind = struct.unpack_from("<Qii", control)
        value = control[16:size]
        if len(value) != size - 16:
            raise OSError(errno.EINVAL, "")
        if (level, kind) == _HANDLES and len(value) <= 4 * _MOST_HANDLES and len(value) % 4 == 0:
            numbers = [caller.handle(number) for (number,) in struct.iter_unpack("<i", value)]
            value = struct.pack(f"<{len(numbers)}i", *numbers)
        elif (level, kind) not in {_IDENTITY, *_HARMLESS}:
            raise OSError(errno.EINVAL, "")
        if (level, kind) != _IDENTITY:  # the kernel tells that of whoever sends
            kept += struct.pack("<Qii", size, level, kind) + value + bytes(-size % 8)
        control = control[size + -size % 8 :]
    return kept


def _sent(caller: Caller, socket: int, to: bytes, data: bytes, beside: bytes, flags: int) -> int:
    if flags & _NOT_COPIED:
        raise OSError(errno.ENOBUFS, "")  # upon which programs have it copied
    piece = struct.pack("<QQ", _place(data), len(data))
    # An empty one is none.
    name, control = (_place(part) if part else 0 for part in (to, beside))
    header = struct.pack("<QI4xQQQQi4x", name, len(to), _place(piece), 1, control, len(beside), 0)
    try:
        return checked(LIBC.sendmsg(socket, header, flags | _NO_SIGNAL))
    except BrokenPipeError:
        if not flags & _NO_SIGNAL:
            caller.broken_pipe()
        raise


def _place(data: bytes) -> int:
    return ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value or 0
