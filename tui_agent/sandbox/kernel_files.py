"""Things that the kernel shows as files: its settings, its devices, its groups of processes. Many of them ask
for the user's number and no right, and root in a sandbox has the number of root outside.

Nothing of it may be written by a command, and what only root reads is out of its sight. Linux alone has such files.
"""

from __future__ import annotations

import os
import re
import stat
from contextlib import suppress
from pathlib import Path

PROC, SYS = "/proc", "/sys"
READ_OF_SYS = (
    "/sys/devices/system/cpu", "/sys/devices/system/node", "/sys/fs/cgroup", "/sys/kernel/mm/transparent_hugepage",
    "/sys/kernel/mm/hugepages",
)  # fmt: skip
"""Processors, memory and the limits of a container, by which programs size themselves. Nothing else is shown of it."""
_TOLD_TO_EVERYONE = frozenset({"acpi", "asound", "key-users", "keys", "latency_stats", "sched_debug", "scsi"})
"""Of /proc, what everyone reads and no command needs: devices, names of keys."""
_KERNEL = frozenset({
    "proc", "sysfs", "devtmpfs", "devpts", "cgroup", "cgroup2", "debugfs", "tracefs", "securityfs", "configfs",
    "pstore", "bpf", "efivarfs", "binfmt_misc", "fusectl", "nfsd", "rpc_pipefs", "resctrl", "selinuxfs", "smackfs",
    "mqueue",
})  # fmt: skip
"""Kinds of file systems in which a file is a part of the kernel, wherever they are mounted."""
_OWN = (PROC, SYS, "/dev", "/run")
"""Folders that a mechanism looks after as a whole."""
_ESCAPED = re.compile(r"\\([0-7]{3})")


def out_of_sight_in_proc() -> tuple[str, ...]:
    """Entries of /proc, apart from processes, that only root reads or that nobody needs."""
    found = []
    with suppress(OSError), os.scandir(PROC) as entries:
        for entry in entries:
            if entry.name.isdecimal() or entry.is_symlink():
                continue
            with suppress(OSError):
                mode = entry.stat(follow_symlinks=False).st_mode
                if not mode & stat.S_IROTH or entry.name in _TOLD_TO_EVERYONE:
                    found.append(entry.path)
    return tuple(sorted(found))


def shown_of_sys() -> tuple[str, ...]:
    """Those that exist."""
    return tuple(path for path in READ_OF_SYS if os.access(path, os.F_OK))


def mounted_elsewhere() -> tuple[Path, ...]:
    """Mounts of such a file system outside of its usual place, as for a `chroot`."""
    try:
        lines = Path("/proc/self/mountinfo").read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return ()
    found = set()
    for line in lines:
        before, _, after = line.partition(" - ")
        place = _ESCAPED.sub(lambda code: chr(int(code[1], 8)), before.split(" ")[4])
        if after.split(" ", 1)[0] in _KERNEL and not f"{place}/".startswith(tuple(f"{one}/" for one in _OWN)):
            found.add(Path(place))
    return tuple(path for path in sorted(found) if not any(above in found for above in path.parents))
