"""Attacks by sandboxed commands on what the kernel shows as files or does for root: being the same user must not be
enough.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.adversarial.attack import Attack, attack, attacks
from tests.adversarial.test_ways import as_nobody, folder_of_nobody
from tests.sandbox.boxes import folder_at_home, needed
from tests.sandbox.kernel_probes import PROBES, reached
from tests.sandbox.test_planted import desk_for
from tui_agent.sandbox.mechanisms import Mechanism

NOT_A_FILE = "Nothing is opened, and files that cannot be listed are not opened by their names"
TRIED = {
    "writing": (
        "Every file of /proc, /sys and /dev is opened for writing",
        NOT_A_FILE,
        "under bubblewrap root opened 213 settings of the kernel, one of which names a program that it runs as root",
    ),
    "modes": (
        "The mode of a file of the kernel, of /etc/passwd and of a device is changed",
        "Refused: a file system that is read-only for commands",
        "root changed them: all under Landlock, those of devices and of /proc under bubblewrap",
    ),
    "reading": (
        "Memory of the machine, its messages and notes of the kernel are read",
        "Not opened, or empty",
        "root read the notes of the kernel",
    ),
    "mounting": (
        "In a user namespace of its own a command mounts /proc, /sys, groups of processes and eleven more file systems",
        "None is mounted: it gets no such namespace",
        "under bubblewrap groups of processes were mounted, which root may write",
    ),
    "calls": (
        "22 calls for which root needs a right (modules, swap, keys, namespaces, tracing); a process outside",
        "All are refused",
        "",
    ),
}
HELD_BY_LANDLOCK = frozenset({"writing", "mounting"})
VERSIONS = (3, 4, 5, 6, 7)
"""Of Landlock."""


def rows(user: str) -> Iterator[Attack]:
    for probe in PROBES:
        tried, holds, fell = TRIED[probe]
        for mechanism in ("bubblewrap", "landlock"):
            for network in (False, True):
                for version in VERSIONS if mechanism == "landlock" and not network else (None,):
                    by = f"{mechanism}{version or ''}{'_with_a_network' if network else ''}{user}"
                    quick = not network and not user and version in {None, 3, 7}
                    said = f" of version {version}" if version else ""
                    yield Attack(
                        f"{probe}_under_{by}",
                        f"Under {mechanism}{said}{' with a network' if network else ''}"
                        f"{', as an ordinary user' if user else ''}: {tried[0].lower()}{tried[1:]}",
                        holds,
                        "" if user or (mechanism == "landlock" and probe in HELD_BY_LANDLOCK) else fell,
                        slow=not quick,
                        value=(probe, mechanism, network, version),
                    )


def assert_nothing(probe: str, found: dict[str, Any]) -> None:
    if probe == "writing":
        assert found.pop("tried") > 1_000
    assert found == {}


def newest() -> int:
    return int(ctypes.CDLL(None).syscall(444, None, ctypes.c_size_t(0), 1))


@pytest.mark.process
@attacks(*rows(""))
def test_as_whoever_runs_it(row: Attack) -> None:
    probe, mechanism, network, version = row.value
    needed(mechanism)
    if version is not None and newest() < version:
        pytest.skip(f"this kernel has version {newest()} of Landlock")
    with folder_at_home() as folder:
        assert_nothing(probe, reached(folder, mechanism, probe, network=network, version=version))


@attacks(*rows("_by_an_ordinary_user"))
def test_as_an_ordinary_user(row: Attack) -> None:
    probe, mechanism, network, version = row.value
    needed(mechanism)
    if version is not None and newest() < version:
        pytest.skip(f"this kernel has version {newest()} of Landlock")
    with folder_of_nobody() as folder:
        words = [*(["network"] if network else []), *([str(version)] if version else [])]
        found = as_nobody(folder, "tests.sandbox.kernel_probes", str(folder), mechanism, probe, *words)
        assert_nothing(probe, found)


@contextmanager
def mounted(kind: str, place: Path) -> Iterator[None]:
    """A file system of the kernel in an unusual place."""
    place.mkdir(parents=True)
    if os.geteuid() != 0 or not shutil.which("mount"):
        pytest.skip("only root mounts")
    if subprocess.run(["mount", "-t", kind, kind, place], capture_output=True, check=False).returncode:
        pytest.skip(f"{kind} cannot be mounted here")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", place], check=True)


@attacks(
    *(
        Attack(
            f"{kind}_in_the_workspace_under_{mechanism}",
            f"{kind} is mounted in the workspace, as for a `chroot`, and written there",
            "It is out of sight in the sandbox",
            ""
            if (kind, mechanism) == ("devtmpfs", "bubblewrap")
            else "root wrote the kernel's settings through it",
            slow=kind != "proc",
            value=(kind, mechanism),
        )
        for kind in ("proc", "sysfs", "cgroup2", "devtmpfs")
        for mechanism in ("bubblewrap", "landlock")
    )
)
def test_kernel_files_in_the_workspace(row: Attack) -> None:
    kind, mechanism = row.value
    needed(mechanism)
    with folder_at_home() as folder:
        place = folder / "workspace" / "root" / "there"
        (folder / "scratch").mkdir()
        with mounted(kind, place):
            found = [
                str(place / name)
                for name in (
                    *("sys/kernel/core_pattern", "sysrq-trigger", "power/state"),
                    *("cgroup.procs", "cgroup.subtree_control", "vda", "sda", "kmsg", "mem"),
                )
                if (place / name).exists()
            ]
            assert found
            assert_nothing("", reached(folder, mechanism, "reading", listed=found, prepared=True))
            assert reached(folder, mechanism, "writing", listed=found, prepared=True).keys() == {"tried"}


@pytest.fixture(params=("bubblewrap", "landlock"))
def mechanism(request: pytest.FixtureRequest) -> Mechanism:
    needed(request.param)
    chosen: Mechanism = request.param
    return chosen


@attack(
    "The node of a disk lies in the workspace",
    "It is not opened",
    fell="under Landlock root read the disk by it",
)
def test_a_disk_in_the_workspace(mechanism: Mechanism) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root makes nodes")
    with folder_at_home() as folder:
        desk = desk_for(mechanism, folder)
        disk = folder.stat().st_dev
        os.mknod(desk.workspace / "disk", stat.S_IFBLK | 0o666, disk)
        os.mknod(desk.workspace / "memory", stat.S_IFCHR | 0o666, os.makedev(1, 1))
        os.mknod(desk.workspace / "zeros", stat.S_IFCHR | 0o666, os.makedev(1, 5))
        _, text = desk.command(
            "for d in disk memory zeros; do head -c 1 $d >/dev/null && echo OPENED $d; done"
        )
        assert "OPENED" not in text


@attack(
    "The mode of the input, of which this program has the handle, is changed",
    "Refused: the handle is on a read-only view of the device",
    fell="root changed the mode of /dev/null for everyone by it",
)
def test_mode_of_the_input(mechanism: Mechanism) -> None:
    with folder_at_home() as folder:
        desk = desk_for(mechanism, folder)
        code = "import os; os.fchmod(0, 0o666); print('CHAN' 'GED')"
        ended, text = desk.command(f'test -c /dev/stdin && cat && python3 -I -S -c "{code}"')
        assert "CHANGED" not in text
        assert "rror" in text
        assert ended.code == 1


@attack(
    "Modes, owners, times and names of files outside, and the like of the workspace",
    "Outside nothing changes; in the workspace all of it works",
    fell="under Landlock root changed modes, owners and times anywhere",
)
def test_modes_outside(mechanism: Mechanism) -> None:
    if os.geteuid() != 0:
        pytest.skip("Landlock alone does not keep an ordinary user from their own files")
    with folder_at_home() as folder:
        desk = desk_for(mechanism, folder)
        mine = folder / "mine"
        mine.write_text("mine")
        before = mine.stat()
        _, text = desk.command(
            f"chmod 777 {mine} && echo CHANGED; chown 1:1 {mine} && echo CHANGED; touch {mine} && echo CHANGED;"
            f"ln {mine} here && echo CHANGED; mv {mine} {mine}2 && echo CHANGED;"
            "echo x > own && chmod 755 own && chown 0:0 own && touch -d 2001-01-01 own && mv own owned && echo WORKS;"
            "mkdir -p a/b && cd a && echo y > b/c && rm -r b && echo x > /dev/shm/agent-tui-test && "
            "rm /dev/shm/agent-tui-test && f=$(mktemp) && echo x > $f && echo WORKS"
        )
        # Under bubblewrap the home folder is another, and empty.
        assert "CHANGED" not in text or mechanism == "bubblewrap"
        assert text.count("WORKS") == 2, text
        assert mine.stat() == before
        assert stat.S_IMODE((desk.workspace / "owned").stat().st_mode) == 0o755


@attack(
    "What programs size themselves by, the processors and the limits of a container, is asked for",
    "It is answered as outside: a wall that stops ordinary work would be switched off",
)
def test_what_programs_ask_for(mechanism: Mechanism) -> None:
    with folder_at_home() as folder:
        desk = desk_for(mechanism, folder)
        _, text = desk.command(
            "nproc; cat /sys/devices/system/cpu/online; cat /proc/sys/kernel/ostype; head -c 7 /proc/meminfo; echo;"
            "cat /proc/self/comm; echo x > /dev/null; head -c 4 /dev/urandom | wc -c; test -r /proc/mounts && echo read"
        )
        online = Path("/sys/devices/system/cpu/online").read_text().strip()
        mine = str(len(os.sched_getaffinity(0)))
        assert text.split() == [mine, online, "Linux", "MemTota", "cat", "4", "read"]
