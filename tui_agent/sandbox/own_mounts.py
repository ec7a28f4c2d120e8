"""A view of the devices in which root cannot change their modes and owners: they would change for everyone. Loaded by
the supervisor of commands; only the standard library is used.
"""

from __future__ import annotations

import ctypes
import os
import struct

_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442
_NEW_MOUNTS, _PRIVATE = 0x20000, 0x4000 | 1 << 18
_HERE, _CLONE_TREE, _FROM_HANDLE, _OF_HANDLE, _READ_ONLY = -100, 0x80001, 4, 0x1000, 1


def keep_devices() -> None:
    """For this process and all below it, if it is root's and the kernel lets it. They are written as ever."""
    libc = ctypes.CDLL(None, use_errno=True)
    if (
        os.geteuid() != 0
        or libc.unshare(_NEW_MOUNTS) != 0
        or libc.mount(None, b"/", None, _PRIVATE, None) != 0
    ):
        return
    read_only = struct.pack("<QQQQ", _READ_ONLY, 0, 0, 0)
    for name in _DEVICES:
        path = f"/dev/{name}".encode()
        tree = libc.syscall(_OPEN_TREE, _HERE, path, _CLONE_TREE)
        if tree >= 0:
            libc.syscall(_MOUNT_SETATTR, tree, b"", _OF_HANDLE, read_only, ctypes.c_size_t(len(read_only)))
            libc.syscall(_MOVE_MOUNT, tree, b"", _HERE, path, _FROM_HANDLE)
            os.close(tree)
