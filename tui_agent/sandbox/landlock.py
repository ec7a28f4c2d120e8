"""Locks itself in by Landlock, then becomes the command. Started as a script of its own, never imported.

`python landlock.py RULES COMMAND...`; RULES is JSON. `write` lists paths that may be written, `hidden` those
that may not even be read, `read` paths within these that may be read all the same. `network` is true if there
is one; `version` is the newest of Landlock that is acted on (all, if left out). Exit code 125 if the kernel
cannot enforce the policy; nothing has run then. Only the standard library is used, which starts in
milliseconds.
"""

import ctypes
import json
import os
import struct
import sys

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_RULE_PATH_BENEATH = 1
_SET_NO_NEW_PRIVS, _DROP_CAPABILITY = 38, 24
_KEPT_CAPABILITIES = (0, 1, 3, 4)
"""Capabilities that root needs to work on the files of others: chown, dac_override, fowner, fsetid."""
_CAPABILITIES = 64

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_REMOVE_FILE, _MAKE_FILE = 1 << 5, 1 << 8
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
_READING = _EXECUTE | _READ_FILE | _READ_DIR
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_EVERYTHING = ((1 << 13) - 1, 1 << 13, 1 << 14, 0, 1 << 15, 0)
"""Rights over files by the version that brought them, from 1."""
_TCP = 3
_SCOPES = 3
"""Abstract sockets and signals."""

_NEWEST = 1_000
"""The version that is acted on at most: what the kernel has."""

_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442
_NEW_MOUNTS, _HERE, _RECURSIVE = 0x20000, -100, 0x8000
_PRIVATE = 0x4000 | 1 << 18
_CLONE_TREE, _EMPTY_SOURCE = 0x80001, 4
_READ_ONLY, _WITHOUT_DEVICES = 1, 4

_CANNOT = 125
_LIBC = ctypes.CDLL(None, use_errno=True)
_SHARED_MEMORY = "/dev/shm"
"""Semaphores are files that are made and taken away there."""
_DEVICES = (
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
)
"""Of all devices these alone: a terminal is somebody else's, and a disk holds every file."""


class _Impossible(Exception):
    pass


def main(rules: str, command: list[str]) -> None:
    """Lock in and become `command`."""
    try:
        table = json.loads(rules)
        if os.geteuid() == 0:
            _mount_the_rest_read_only([*table["write"], _SHARED_MEMORY])
        _lock(table["write"], table["read"], table["hidden"], table["network"], table.get("version", _NEWEST))
    except _Impossible as why:
        os.write(2, f"sandbox: {why}\n".encode())
        os._exit(_CANNOT)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
        os._exit(127)


def _mount_the_rest_read_only(writable: list[str]) -> None:
    """For root, when the kernel lets it: its own view of all mounts, in which modes and owners, which Landlock leaves
    alone, change in `writable` only, and no device is opened there.
    """
    if _LIBC.unshare(_NEW_MOUNTS) != 0 or _LIBC.mount(None, b"/", None, _PRIVATE, None) != 0:
        return
    places = [path for path in map(os.path.realpath, writable) if os.path.exists(path)]
    places = [path for path in places if not any(_inside(path, other) for other in places if other != path)]
    folder = os.getcwd()
    trees = [
        _checked(_LIBC.syscall(_OPEN_TREE, _HERE, os.fsencode(path), _CLONE_TREE | _RECURSIVE))
        for path in places
    ]
    _set_mounts(b"/", _READ_ONLY)
    for path, tree in zip(places, trees, strict=True):
        where = os.fsencode(path)
        _checked(_LIBC.syscall(_MOVE_MOUNT, tree, b"", _HERE, where, _EMPTY_SOURCE))
        os.close(tree)
        _set_mounts(where, _WITHOUT_DEVICES)
    os.chdir(folder)


def _set_mounts(path: bytes, attribute: int) -> None:
    attributes = struct.pack("<QQQQ", attribute, 0, 0, 0)
    _checked(_LIBC.syscall(_MOUNT_SETATTR, _HERE, path, _RECURSIVE, attributes, ctypes.c_size_t(32)))


def _checked(result: int) -> int:
    if result < 0:
        raise _Impossible(f"the rest cannot be mounted read-only ({os.strerror(ctypes.get_errno())})")
    return result


def _lock(write: list[str], read: list[str], hidden: list[str], network: bool, newest: int) -> None:
    version = min(_LIBC.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), 1), newest)
    if version < 3:
        raise _Impossible("the kernel has no Landlock, or one that is too old")
    rights = 0
    for number, added in enumerate(_EVERYTHING, 1):
        rights |= added if version >= number else 0
    scopes = _SCOPES if version >= 6 else 0
    tcp = 0 if network or version < 4 else _TCP
    attributes = struct.pack("<QQQ", rights, tcp, scopes)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    ruleset = _LIBC.syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(size), 0)
    if ruleset < 0:
        raise _Impossible(f"no rules can be made ({os.strerror(ctypes.get_errno())})")
    for paths, access in ((write, rights), (read, _READING)):
        for path in map(os.path.realpath, paths):
            _allow_around(ruleset, path, [one for one in hidden if _inside(one, path)], access, rights)
    for path in _DEVICES:
        _allow(ruleset, path, _READING | _WRITE_FILE | rights & (_TRUNCATE | _IOCTL_DEV), rights)
    _allow(ruleset, _SHARED_MEMORY, _READING | _WRITE_FILE | _TRUNCATE | _MAKE_FILE | _REMOVE_FILE, rights)
    _allow_around(ruleset, "/", [*hidden, "/dev"], _READING, rights)
    if os.geteuid() == 0:
        # With the others root would read the memory of processes outside.
        for capability in range(_CAPABILITIES):
            if capability not in _KEPT_CAPABILITIES:
                _LIBC.prctl(_DROP_CAPABILITY, capability, 0, 0, 0)
    if _LIBC.prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise _Impossible("privileges cannot be given up")
    if _LIBC.syscall(_RESTRICT_SELF, ruleset, 0) != 0:
        raise _Impossible(f"the rules cannot be taken on ({os.strerror(ctypes.get_errno())})")
    os.close(ruleset)


def _inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _allow_around(ruleset: int, folder: str, hidden: list[str], access: int, rights: int) -> None:
    """Allow all of `folder` but what is hidden. Rules only add, so each way to a hidden place is gone round."""
    if folder in hidden:
        return
    below = [path for path in hidden if _inside(path, folder)]
    if not below:
        _allow(ruleset, folder, access, rights)
        return
    _allow(ruleset, folder, _READ_DIR, rights)
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        path = os.path.join(folder, name)
        if not os.path.islink(path):
            _allow_around(ruleset, path, below, access, rights)


def _allow(ruleset: int, path: str, access: int, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        access &= rights
        if not os.path.isdir(path):
            access &= _OF_FILES
        rule = struct.pack("<Qi", access, place)
        if access and _LIBC.syscall(_ADD_RULE, ruleset, _RULE_PATH_BENEATH, rule, 0) != 0:
            raise _Impossible(f"no rule can be made for {path} ({os.strerror(ctypes.get_errno())})")
    finally:
        os.close(place)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
