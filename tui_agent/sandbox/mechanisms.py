"""How operating systems enforce the sandbox policy: bubblewrap and Landlock on Linux, sandbox-exec on macOS.

Each mechanism turns a command line into one that runs inside. Which one is used is decided in `choose`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tui_agent import processes
from tui_agent.sandbox.kernel_files import PROC, SYS, out_of_sight_in_proc, shown_of_sys
from tui_agent.sandbox.policy import TEMPORARY, SandboxPolicy
from tui_agent.sandbox.socket_filter import OWN, REFUSED, SHARED, looked_at

if TYPE_CHECKING:
    from tui_agent.sandbox.taken_back import TakenBack
    from tui_agent.sandbox.watch import Watch

Mechanism = Literal["bubblewrap", "landlock", "sandbox-exec"]
_PATIENCE = 5.0
"""Seconds for a program to say what it can do."""
_LANDLOCK = Path(__file__).with_name("landlock.py")
_TRACES = (
    "Read-only file system", "Operation not permitted", "Permission denied", "Network is unreachable",
    "Could not resolve host", "Temporary failure in name resolution", "Name or service not known",
    "Address family not supported", "Device or resource busy", "EROFS", "EACCES", "EPERM", "ENETUNREACH", "EAI_AGAIN",
    "No address associated with hostname", "Failed to establish a new connection", "unable to access 'http",
)  # fmt: skip
"""Words that programs print when the sandbox refuses."""


def reach(policy: SandboxPolicy) -> str:
    """Places that commands reach, in a few words."""
    if not policy.network:
        return "no network"
    return "network" if looked_at() else "network with services of this machine"


_READING = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_CONFIG_COUNT": "3",
    "GIT_CONFIG_KEY_0": "core.fsmonitor",
    "GIT_CONFIG_VALUE_0": "false",
    "GIT_CONFIG_KEY_1": "core.hooksPath",
    "GIT_CONFIG_VALUE_1": os.devnull,
    "GIT_CONFIG_KEY_2": "log.showSignature",
    "GIT_CONFIG_VALUE_2": "false",
    "RIPGREP_CONFIG_PATH": "",
}
"""For commands that only read: git refreshes no index and runs neither monitor nor hook, rg reads no settings."""


@dataclass(frozen=True)
class Sandbox:
    """Commands run in it; without a mechanism there is none. `why` says then why not."""

    mechanism: Mechanism | None = None
    policy: SandboxPolicy | None = None
    why: str = ""
    passed: tuple[str, ...] = ()
    """Variables that are named like secrets and that commands get all the same."""
    watch: Watch | None = None
    """Looks after the files that programs outside run later."""
    report: Callable[[Sequence[TakenBack]], None] = lambda _: None
    """Says what was taken back from commands."""

    @property
    def description(self) -> str:
        """The limits in force, in a few words; "off" if there are none."""
        if self.mechanism is None or self.policy is None:
            return "off"
        return f"{self.mechanism}, {self.limits}"

    @property
    def limits(self) -> str:
        """The network that commands in it have, in words; "" without one."""
        return reach(self.policy) if self.policy is not None else ""

    @property
    def mounts(self) -> bool:
        """True if it can protect existing files within a place that may be written."""
        return self.mechanism in {"bubblewrap", "sandbox-exec"}

    def protected(self, *, git_settings: bool = True) -> tuple[Path, ...]:
        """Existing files that commands may read and not write, in the places that they may write; of
        repositories their settings too, unless `git_settings` is False.
        """
        if self.policy is None:
            return ()
        gits, named = (self.watch.gits, self.watch.named) if self.watch is not None else ((), ())
        return self.policy.places.there(gits, named, git_settings=git_settings)

    @property
    def is_closed(self) -> bool:
        """True if commands in it reach no network."""
        return self.mechanism is not None and self.policy is not None and not self.policy.network

    def only_reading(self) -> Sandbox:
        """The same for a command that is to change nothing: neither the workspace nor, by a network, anything else."""
        if self.mechanism is None or self.policy is None:
            return self
        return replace(self, policy=replace(self.policy, read_only=True, network=False))

    def wrap(self, argv: Sequence[str], protected: tuple[Path, ...] | None = None) -> list[str]:
        """The command line that runs `argv` inside, with what is `protected` now."""
        if self.mechanism is None or self.policy is None:
            return list(argv)
        kept = self.protected() if protected is None else protected
        return [*_WRAPPERS[self.mechanism](self.policy, kept), *argv]

    @property
    def gate(self) -> tuple[str, ...]:
        """The gate for sockets that the supervisor of a command holds (`processes.supervised`)."""
        if self.policy is None or self.mechanism not in {"bubblewrap", "landlock"}:
            return ()
        if self.policy.network:
            return (f"--gate={SHARED}:{','.join(map(str, self.policy.loopback))}",)
        return (f"--gate={OWN if self.mechanism == 'bubblewrap' else REFUSED}",)

    def environment(self) -> dict[str, str]:
        """Variables that commands need inside."""
        if self.mechanism is None or self.policy is None:
            return {}
        unasked = _READING if self.policy.read_only else {}
        temporary = TEMPORARY[0] if self.mechanism == "bubblewrap" else os.fspath(self.policy.scratch)
        needed = {"TMPDIR": temporary, "GOCACHE": f"{temporary}/go-build", **unasked}
        if self.mechanism == "landlock" and self.policy.home is not None:
            needed["HOME"] = os.fspath(self.policy.private_home(linked=True))
        return needed

    def hint(self, output: str) -> str:
        """A line to add to the output of a failed command if the sandbox may be the cause; else ""."""
        if self.policy is None or self.mechanism is None or not any(trace in output for trace in _TRACES):
            return ""
        if self.policy.read_only:
            return (
                f"This command ran in a sandbox ({self.mechanism}) in which nothing can be changed and no network is "
                "reached. If that is why it failed, it will fail again unchanged; do without."
            )
        network = "" if self.policy.network else " and reaches no network"
        return (
            f"This command ran in a sandbox ({self.mechanism}): it can write only the workspace and its temporary "
            f"folder, reads no keys of the user{network}. If that is why it failed, it will fail again unchanged; do "
            "without, or say what the operator would have to allow (`network`, `loopback` or `writable` in [sandbox])."
        )


def _bubblewrap(policy: SandboxPolicy, protected: tuple[Path, ...]) -> list[str]:
    program = processes.own_program("bwrap", policy.workspace) or "/usr/bin/bwrap"
    argv = [program, "--unshare-all", "--unshare-user", "--cap-drop", "ALL"]
    argv += ["--disable-userns"] if _keeps_to_one_user_namespace(program) else []
    argv += [*(("--share-net",) if policy.network else ()), "--die-with-parent"]
    argv += ["--ro-bind", "/", "/", "--dev", "/dev", *_kernel_files(), "--tmpfs", "/run"]
    if policy.network:
        # Files by which the names of hosts are looked up.
        for place in ("/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager"):
            argv += ["--ro-bind-try", place, place]
    for place in TEMPORARY:
        argv += ["--bind", os.fspath(policy.scratch), place]
    argv += [*_homes(policy), *_mounts("--ro-bind", policy.shown)]
    for path in policy.hidden_outside:
        argv += _hidden(path)
    if policy.read_only:
        argv += _mounts("--ro-bind", (*policy.writable, policy.workspace))
    else:
        argv += _mounts("--bind", (*policy.writable, policy.workspace))
        # A mount cannot be renamed.
        argv += _mounts("--bind", policy.holding((*protected, *policy.hidden_within)))
    argv += _mounts("--ro-bind", protected)
    for path in (*policy.hidden_within, *policy.kernel_mounts()):
        argv += _hidden(path)
    for path in policy.homes:
        # What is written there would be lost without a word.
        argv += ["--remount-ro", os.fspath(path)] if path != policy.home else []
    return [*argv, "--chdir", os.fspath(policy.workspace), "--"]


def _kernel_files() -> list[str]:
    # bwrap itself protects what root "may write" in /proc, and asks by a way that says no for its settings.
    argv = ["--proc", PROC]
    for path in out_of_sight_in_proc():
        argv += _hidden(Path(path))
    argv += ["--remount-ro", PROC, "--tmpfs", SYS]
    return [*argv, *_mounts("--ro-bind", shown_of_sys()), "--remount-ro", SYS]


@lru_cache(maxsize=8)
def _keeps_to_one_user_namespace(program: str) -> bool:
    """True if it can refuse commands a user namespace of their own (from 0.8), in which they would mount
    groups of processes anew. Blocks once.
    """
    try:
        done = subprocess.run([program, "--help"], capture_output=True, timeout=_PATIENCE, check=False)
    except (OSError, subprocess.SubprocessError):
        return False
    return b"--disable-userns" in done.stdout + done.stderr


def _homes(policy: SandboxPolicy) -> list[str]:
    argv = [word for path in policy.homes for word in ("--tmpfs", os.fspath(path))]
    if policy.home is not None:
        argv += ["--bind", os.fspath(policy.private_home()), os.fspath(policy.home)]
    return argv


def _mounts(how: str, places: Sequence[Path | str]) -> list[str]:
    return [word for path in places for word in (how, os.fspath(path), os.fspath(path))]


def _hidden(path: Path) -> list[str]:
    if path.is_dir():
        return ["--tmpfs", os.fspath(path), "--remount-ro", os.fspath(path)]
    return ["--ro-bind", os.devnull, os.fspath(path)]


def _landlock(policy: SandboxPolicy, _: tuple[Path, ...]) -> list[str]:
    places = (policy.workspace, *policy.writable)
    rules = {
        "write": [os.fspath(path) for path in (policy.scratch, *([] if policy.read_only else places))],
        "read": [
            *(os.fspath(path) for path in (*policy.shown, *(places if policy.read_only else ()))),
            *shown_of_sys(),
        ],
        "hidden": [SYS, *map(os.fspath, (*policy.homes, *policy.hidden, *policy.kernel_mounts()))],
        "network": policy.network,
    }
    return [sys.executable, "-I", "-S", os.fspath(_LANDLOCK), json.dumps(rules)]


def _sandbox_exec(policy: SandboxPolicy, protected: tuple[Path, ...]) -> list[str]:
    def paths(kind: str, places: Sequence[Path]) -> str:
        return " ".join(f"({kind} {json.dumps(os.fspath(place), ensure_ascii=False)})" for place in places)

    inside = paths("subpath", (policy.workspace, policy.scratch, *policy.writable))
    # Of the rules that match, the last holds.
    lines = [
        "(version 1)",
        "(allow default)",
        "(deny file-write*)",
        '(allow file-write* (regex #"^/dev/(null|zero|tty|fd/|std(in|out|err)|ptmx|ttys)"))',
        *(f"(deny file-read* {paths('subpath', [path])})" for path in policy.hidden),
        # The state folder is hidden, and the temporary folder is in it.
        f"(allow file-read* {inside})",
        f"(allow file-write* {paths('subpath', [policy.scratch]) if policy.read_only else inside})",
        *(f"(deny file-read* file-write* {paths('subpath', [path])})" for path in policy.hidden_within),
        *(f"(deny file-write* {paths('subpath', [path])})" for path in protected),
        *(
            f"(deny file-write-unlink {paths('literal', [path])})"
            for path in policy.holding((*protected, *policy.hidden_within))
        ),
    ]
    lines.append("(deny process-info* (target others))")
    lines.append("(deny signal (target others))(allow signal (target same-sandbox))")
    if not policy.network:
        lines.append("(deny network*)")
    return ["/usr/bin/sandbox-exec", "-p", "\n".join(lines)]


_WRAPPERS: dict[Mechanism, Callable[[SandboxPolicy, tuple[Path, ...]], list[str]]] = {
    "bubblewrap": _bubblewrap,
    "landlock": _landlock,
    "sandbox-exec": _sandbox_exec,
}
