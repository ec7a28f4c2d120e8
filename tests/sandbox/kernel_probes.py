"""What a sandboxed command reaches of the kernel: for `tests/adversarial/test_kernel.py`.

`python -m tests.sandbox.kernel_probes FOLDER MECHANISM PROBE [network] [VERSION]` runs one probe as whoever calls it,
and prints as JSON what it reached. A probe opens and asks; it writes nothing and changes nothing.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.sandbox.boxes import supervised
from tui_agent.sandbox.mechanisms import Mechanism, Sandbox
from tui_agent.sandbox.policy import SandboxPolicy

_HEAD = """
import ctypes, errno, json, os, stat, sys
libc = ctypes.CDLL(None, use_errno=True)
listed = [line for line in open("listed.txt", encoding="utf-8", errors="surrogateescape").read().split("\\0") if line]
found = {}
def say():
    print("REACHED " + json.dumps(found))
def seen():
    mine = {"self", "thread-self", str(os.getpid())}
    for top in ("/proc", "/sys", "/dev"):
        for folder, folders, files in os.walk(top):
            if folder == "/proc":
                folders[:] = [one for one in folders if one not in mine]
            for name in files:
                yield os.path.join(folder, name)
"""
PROBES = {
    "writing": """
usual = {"/dev/" + one for one in ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts/ptmx")}
tried = 0
for path in dict.fromkeys([*listed, *seen()]):
    if path in usual or path.startswith("/dev/shm/"):
        continue
    try:
        if stat.S_ISLNK(os.lstat(path).st_mode):
            continue
    except OSError:
        pass
    tried += 1
    for flags in (os.O_WRONLY, os.O_RDWR):
        try:
            os.close(os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC))
            found[path] = "opened"
        except OSError:
            pass
found["tried"] = tried
say()
""",
    "modes": """
for path in ("/proc/sysrq-trigger", "/proc/kmsg", "/proc/mtrr", "/proc/sys/kernel/core_pattern", "/sys/power/state",
             "/sys/kernel/mm/transparent_hugepage/enabled", "/sys/fs/cgroup/cgroup.procs", "/etc/passwd",
             *("/dev/" + one for one in ("null", "zero", "full", "random", "urandom", "tty"))):
    try:
        mode = os.lstat(path).st_mode
        os.chmod(path, stat.S_IMODE(mode))
        found[path] = "chmod"
    except OSError:
        pass
say()
""",
    "reading": """
for path in listed:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError:
        continue
    try:
        if os.read(handle, 1):
            found[path] = "read"
    except OSError as error:
        if error.errno != errno.EPERM:
            found[path] = "opened, " + str(error)
    os.close(handle)
say()
""",
    "mounting": """
def child(flags, work):
    pid = os.fork()
    if pid == 0:
        done = 0
        try:
            if libc.unshare(flags) == 0:
                done = 1 + work()
        finally:
            os._exit(done)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
kinds = ("proc", "sysfs", "cgroup2", "cgroup", "debugfs", "tracefs", "securityfs", "configfs", "bpf", "binfmt_misc",
         "mqueue", "devpts", "tmpfs")
os.makedirs("there", exist_ok=True)
for kind in kinds:
    def work():
        libc.mount(None, b"/", None, 0x4000 | 1 << 18, None)
        return libc.mount(kind.encode(), b"there", kind.encode(), 0, None) == 0
    for name, flags in (("own", 0x10000000 | 0x20000 | 0x2000000 | 0x8000000), ("pid", 0x10000000 | 0x20020000),
                        ("root", 0x20000)):
        if child(flags, work) == 2:
            found[kind] = name
say()
""",
    "calls": """
nothing = ctypes.c_void_p(0)
numbers = {"x86_64": dict(init_module=175, swapon=167, sethostname=170, reboot=169, iopl=172,
    acct=163, open_by_handle_at=304, fanotify_init=300, setns=308, bpf=321, perf_event_open=298, pivot_root=155,
    chroot=161, quotactl=179, kexec_load=246, add_key=248, request_key=249, keyctl=250, mknod=133, move_mount=429,
    fsopen=430, ptrace=101, pidfd_getfd=438, process_vm_readv=310, unshare=272)}
table = numbers.get(os.uname().machine)
if table is None:
    print("SKIPPED")
    sys.exit()
outside = int(open("outside.txt").read())
attribute = ctypes.create_string_buffer(128)
attribute[4] = 128
one = ctypes.c_ulong(1)
handle = ctypes.create_string_buffer(bytes((8, 0, 0, 0, 1, 0, 0, 0, 2)), 64)
os.dup2(os.open(".", os.O_RDONLY), 3)
long = ctypes.c_long
calls = {
    "init_module": (nothing, long(0), nothing), "swapon": (nothing, 0),
    "sethostname": (nothing, long(-1)), "reboot": (1, 2, 3, nothing), "iopl": (3,), "acct": (long(1),),
    "open_by_handle_at": (3, handle, 0), "fanotify_init": (4, 0), "pivot_root": (b".", b"."), "chroot": (b".",),
    "quotactl": (0x80000500, nothing, 0, nothing), "kexec_load": (one, long(20), nothing, long(0)),
    "add_key": (b"user", b"agent-tui-test", b"x", long(1), -4), "request_key": (b"user", b"agent-tui", nothing, -4),
    "keyctl": (0, -4, 0), "mknod": (b"node", 0o60666, long(0xfe00)), "fsopen": (b"cgroup2", 0),
    "perf_event_open": (attribute, -1, 0, -1, long(0)), "ptrace": (16, outside, nothing, nothing),
    "unshare": (0x20000,),
}
for name, arguments in calls.items():
    ctypes.set_errno(0)
    result = libc.syscall(long(table[name]), *arguments)
    code = ctypes.get_errno()
    if result >= 0 or code in (errno.EINVAL, errno.EFAULT, errno.EBADF, errno.ENOKEY, errno.ESTALE):
        found[name] = errno.errorcode.get(code, "done")
for path in (f"/proc/{outside}/mem", f"/proc/{outside}/environ", f"/proc/{outside}/maps", f"/proc/{outside}/root/etc",
             f"/proc/{outside}/ns/mnt", f"/proc/{outside}/fd/0", f"/proc/{outside}/cwd/."):
    try:
        os.stat(path)
        handle = os.open(path, os.O_RDONLY)
    except OSError:
        continue
    try:
        os.read(handle, 1)
        found[path] = "read"
    except IsADirectoryError:
        found[path] = "opened"
    except OSError:
        pass
say()
""",
}


def _listed(probe: str) -> list[str]:
    """Files as they are outside: those that cannot be listed inside are tried too."""
    found = []
    for top in ("/proc", "/sys", "/dev"):
        for folder, folders, files in os.walk(top):
            if folder == "/proc":
                # Of processes one that is not the command's.
                folders[:] = [one for one in folders if not one.isdecimal() or one == str(os.getpid())]
            found += [f"{folder}/{name}" for name in files]
    if probe == "reading":
        names = ("kcore", "kmsg")
        return [f"/proc/{name}" for name in names] + [
            "/dev/mem",
            "/dev/port",
            "/dev/kmsg",
            "/sys/kernel/notes",
        ]
    return found


def reached(
    folder: Path,
    mechanism: Mechanism,
    probe: str,
    *,
    network: bool = False,
    version: int | None = None,
    listed: list[str] | None = None,
    prepared: bool = False,
) -> dict[str, str]:
    """What a probe got hold of. `version`: of Landlock, at most; `listed`: the files that are tried."""
    workspace, scratch = folder / "workspace", folder / "scratch"
    if not prepared:
        workspace.mkdir(exist_ok=True)
        scratch.mkdir(exist_ok=True)
    policy = replace(SandboxPolicy.around(workspace, scratch), network=network)
    files = _listed(probe) if listed is None else listed
    (workspace / "listed.txt").write_bytes(os.fsencode("\0".join(files)))
    (workspace / "outside.txt").write_text(str(os.getpid()))
    (workspace / "probe.py").write_text(_HEAD + PROBES[probe])
    sandbox = _Aged(mechanism, policy, version=version)
    python = str(Path(sys.executable).resolve())
    done = supervised(
        sandbox,
        [python if os.access(python, os.X_OK) else str(shutil.which("python3")), "-I", "-S", "probe.py"],
        cwd=workspace,
        env={"PATH": os.environ["PATH"], **sandbox.environment()},
    )
    for line in done.stdout.splitlines():
        if line.startswith("REACHED "):
            found: dict[str, str] = json.loads(line.removeprefix("REACHED "))
            return found
    if "SKIPPED" in done.stdout:
        return {}
    raise AssertionError(done.stdout + done.stderr)


class _Aged(Sandbox):
    """A sandbox by an older version of Landlock."""

    def __init__(self, mechanism: Mechanism, policy: SandboxPolicy, *, version: int | None) -> None:
        super().__init__(mechanism, policy)
        object.__setattr__(self, "_version", version)

    def wrap(self, argv: Any, protected: tuple[Path, ...] | None = None) -> list[str]:
        """The command line, with the version in the rules."""
        line = super().wrap(argv, protected)
        version = getattr(self, "_version", None)
        if version is not None and self.mechanism == "landlock":
            at = next(index for index, word in enumerate(line) if word.startswith("{"))
            line[at] = json.dumps({**json.loads(line[at]), "version": version})
        return line


if __name__ == "__main__":
    _, place, mechanism_name, probe_name, *rest = sys.argv
    numbers = [int(one) for one in rest if one.isdecimal()]
    print(
        json.dumps(
            reached(
                Path(place),
                mechanism_name,
                probe_name,
                network="network" in rest,
                version=numbers[0] if numbers else None,
            )
        )
    )
