"""Runs one command and leaves nothing of it behind. Started by `shell` as a script of its own, never
imported.

`python supervisor.py GRACE STATUS_FD [--gate=NETWORK[:PORT,...]] [--leash=FD] COMMAND...`: standard input is a
leash, or FD is, and the command keeps the input; with a gate its sockets are kept in (`sandbox/gate.py`). When the
leash's other end closes, because the call was cancelled or the program died, all is ended. What a command leaves
running ends with it: on Linux every orphan becomes a child of this process (a "subreaper"), also one that made itself a
daemon with a clean environment, so that all can be found; elsewhere the command's process group is ended. Only the
standard library is used: it starts in a few milliseconds.

Written to STATUS_FD, a line each: `pid N` when the command has started, `exit N` when it ended (128 +
signal).
"""

import os
import select
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal

    from tui_agent.sandbox.gate import Gate
else:
    import _signal as signal  # without its enumerations, which take as long as the interpreter does to start

_SET_PDEATHSIG = 1
_SET_CHILD_SUBREAPER = 36
_GATE, _LEASH = "--gate=", "--leash="
_CANNOT = 125
_KILLING = 5.0
"""Seconds for which SIGKILL is repeated; only what hangs in the kernel outlives it."""


def main(grace: float, status: int, command: list[str]) -> None:
    """Run `command` until it ends or the leash is let go; then end all that is left."""
    held, gate = 0, None
    if command[0].startswith(_GATE):
        gate = _gate(command.pop(0).removeprefix(_GATE))
    if command[0].startswith(_LEASH):
        held = int(command.pop(0).removeprefix(_LEASH))
        os.set_inheritable(held, False)
    os.set_inheritable(status, False)
    wake, woken = os.pipe()
    os.set_blocking(woken, False)
    os.set_blocking(wake, False)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    linux = _prctl(_SET_CHILD_SUBREAPER, 1)
    parent = os.getpid()
    leader = os.fork()
    if leader == 0:
        _become(command, parent, talks=held != 0, gate=gate)
    if gate is not None:
        gate.serve(leader)
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (1, 2) if held == 0 else (0, 1, 2):
        os.dup2(null, stream)
    os.write(status, f"pid {leader}\n".encode())
    leash: list[int] = [held]
    ended = False
    while not ended:
        ready, _, _ = select.select([*leash, wake], [], [])
        _drain(wake)
        ended = _reap(leader, status) or held in ready
    _end(leader, grace, status, linux)


def _gate(text: str) -> "Gate":
    # A package by itself here: that of the program would take longer to load.
    sys.path.append(os.path.dirname(os.path.dirname(__file__)))
    made: Gate = __import__("sandbox.gate", fromlist=["Gate"]).Gate(text)
    return made


def _become(command: list[str], parent: int, *, talks: bool, gate: "Gate | None") -> None:
    """In the forked child: a session of its own, no input unless it `talks`, default signals; then the command."""
    try:
        os.setsid()
        _keep_niceness()
        if _prctl(_SET_PDEATHSIG, signal.SIGKILL) and os.getppid() != parent:
            os._exit(_CANNOT)  # it was killed before it could take this process along
        signal.set_wakeup_fd(-1)
        for name in ("SIGCHLD", "SIGTERM", "SIGINT", "SIGHUP", "SIGPIPE", "SIGXFSZ"):
            signal.signal(getattr(signal, name), signal.SIG_DFL)
        if gate is not None:
            gate.keep_devices()
        if not talks:
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        if gate is not None:
            why = gate.shut()
            if why:
                os.write(2, f"sandbox: {why}\n".encode())
                os._exit(_CANNOT)
        os.execvp(command[0], command)  # noqa: S606 - the call was approved; it runs here
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
    finally:
        os._exit(127)


def _keep_niceness() -> None:
    """See `processes`."""
    try:
        if (niceness := os.nice(0)) > 0:
            with open("/proc/self/autogroup", "w", encoding="ascii") as shares:
                shares.write(str(niceness))
    except OSError:
        pass


def _prctl(option: int, value: int) -> bool:
    if not sys.platform.startswith("linux"):
        return False
    import ctypes

    return bool(ctypes.CDLL(None).prctl(option, value, 0, 0, 0) == 0)


def _drain(wake: int) -> None:
    try:
        while os.read(wake, 512):
            pass
    except BlockingIOError:
        pass


def _reap(leader: int, status: int) -> bool:
    """Collect children that ended; True when the command is among them, or none is left."""
    ended = False
    while True:
        try:
            pid, how = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return True
        if pid == 0:
            return ended
        if pid == leader:
            code = os.waitstatus_to_exitcode(how)
            os.write(status, f"exit {code if code >= 0 else 128 - code}\n".encode())
            ended = True


def _end(leader: int, grace: float, status: int, linux: bool) -> None:
    """SIGTERM to all, `grace` seconds to leave, then SIGKILL until none is left."""
    for number, patience in ((signal.SIGTERM, grace), (signal.SIGKILL, _KILLING)):
        deadline = time.monotonic() + patience
        signalled = False
        while not _gone(leader, status, linux):
            if time.monotonic() >= deadline:
                break
            if not signalled or number == signal.SIGKILL:
                _signal(leader, number, linux)
                signalled = True
            select.select([], [], [], 0.01)


def _gone(leader: int, status: int, linux: bool) -> bool:
    _reap(leader, status)
    if linux:
        try:
            # An orphan becomes our child before its parent can be reaped, so "no child" is "no descendant".
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return True
        return False
    try:
        os.killpg(leader, 0)
    except (ProcessLookupError, PermissionError):
        return True
    return False


def _signal(leader: int, number: int, linux: bool) -> None:
    targets = _descendants() if linux else []
    try:
        if not targets:
            os.killpg(leader, number)
    except (ProcessLookupError, PermissionError):
        pass
    for pid in targets:
        try:
            os.kill(pid, number)
            if number == signal.SIGTERM:
                os.kill(pid, signal.SIGCONT)
        except (ProcessLookupError, PermissionError):
            continue


def _descendants() -> list[int]:
    """Every process below this one, from /proc, parents first."""
    children: dict[int, list[int]] = {}
    with os.scandir("/proc") as scan:
        pids = [int(entry.name) for entry in scan if entry.name.isdigit()]
    for pid in pids:
        try:
            stat = os.open(f"/proc/{pid}/stat", os.O_RDONLY)
        except OSError:
            continue
        try:
            # The name in brackets may hold anything, also brackets.
            parent = int(os.read(stat, 4096).rpartition(b")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            continue
        finally:
            os.close(stat)
        children.setdefault(parent, []).append(pid)
    found = list(children.get(os.getpid(), []))
    for pid in found:
        found.extend(children.get(pid, []))
    return found


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
