"""One hook event to the daemon, and its answer back.

Every call of the agent waits for it, so it imports next to nothing: `os` alone is a sixth of what Python takes to
begin, and what is needed of it stands in `posix`, as that of `socket` in `_socket`. Whatever goes wrong, nothing is
answered, and the agent goes on as if nobody had been asked.
"""

import _socket
import posix
import sys
import time

PATIENCE = 10.0
"""Seconds for an answer."""
_START = 10.0
"""Seconds for a daemon to begin."""
_TRIES = 3
"""Times that an event is sent if a daemon dies before it has answered."""
LARGEST = 32 << 20
"""Bytes of an event; a longer one is not looked at."""
_PASSED = (b"AGENT_TUI_", b"XDG_", b"HOME=")
"""Beginnings of the variables that name the places of our files."""
_SECRET = (b"KEY", b"TOKEN", b"SECRET", b"PASS", b"PWD", b"CRED", b"PAT")
"""Parts of the names of variables whose values may stand in an event, and must not reach the disk."""
_KEPT = (b"PATH=", b"LANG=", b"LC_", b"TZ=", b"TMPDIR=", b"LD_LIBRARY_PATH=", *_PASSED)
"""Beginnings of the variables that a daemon has of its own; it has none that may be a key."""
_RUN = """
import importlib.util, sys
found = importlib.util.spec_from_file_location("tui_agent", {package!r} + "/tui_agent/__init__.py")
sys.modules["tui_agent"] = made = importlib.util.module_from_spec(found)
found.loader.exec_module(made)
sys.path.append({package!r})
from tui_agent.agents.daemon import main
main()
"""
"""The command of a daemon of this very copy, whatever else its interpreter would find first."""
_FOLDER = getattr(posix, "O_PATH", posix.O_RDONLY) | posix.O_DIRECTORY | posix.O_CLOEXEC
_STICKY = 0o1000
_CHANGEABLE = 0o022
"""By the group, or by all."""


def place() -> "tuple[int, str]":
    """A folder of this user's alone, as a descriptor, and the path of the daemon's socket in it, which leads through
    the descriptor: whatever is put in the folder's place meanwhile is not looked at.

    Raises `OSError` if there is no such folder.
    """
    home = posix.environ.get(b"HOME", b"").decode("utf-8", "surrogateescape")
    base = posix.environ.get(b"XDG_RUNTIME_DIR", b"").decode("utf-8", "surrogateescape")
    folders = [f"{base.rstrip('/')}/agent-tui"] if base.startswith("/") else []
    folders += [f"{home}/.cache/agent-tui-run"] if home.startswith("/") else []
    folders.append(f"/tmp/agent-tui-{posix.geteuid()}")
    for folder in folders:
        try:
            descriptor = private_folder(folder)
        except OSError:
            continue
        try:
            posix.stat(f"/proc/self/fd/{descriptor}/.")
            folder = f"/proc/self/fd/{descriptor}"
        except OSError:  # no Linux: who is at the other end is asked there too
            pass
        return descriptor, f"{folder}/{_name()}"
    raise PermissionError(folders[0])


def _name() -> str:
    """One for each version and copy of the program: new code has its own daemon."""
    state, mark = posix.stat(__file__), 0
    for byte in __file__.encode("utf-8", "surrogateescape"):
        mark = (mark * 257 + byte) % 0xFFFFFFFB
    return f"hooks-{state.st_mtime_ns:x}-{state.st_size:x}-{mark:x}"


def private_folder(path: str) -> int:
    """A descriptor of the folder, which is made if it is missing. Nobody else can change it, or put another
    one in its place: that holds for each folder above, too. Raises `OSError`.
    """
    for folder in (path.rpartition("/")[0], path):
        try:
            posix.mkdir(folder, 0o700)
        except OSError:
            pass
    descriptor = posix.open(path, _FOLDER | posix.O_NOFOLLOW)
    try:
        _require_private(descriptor)
    except BaseException:
        posix.close(descriptor)
        raise
    return descriptor


def _require_private(folder: int) -> None:
    """Raises `PermissionError` unless it is this user's alone, and each folder above is this user's or root's and lets
    nobody else rename what is in it.
    """
    below, owners = posix.fstat(folder), (0, posix.geteuid())
    if below.st_uid != posix.geteuid() or below.st_mode & 0o077:
        raise PermissionError("it is not private")
    above = posix.open("..", _FOLDER, dir_fd=folder)
    try:
        while True:
            state = posix.fstat(above)
            if state.st_uid not in owners or (state.st_mode & _CHANGEABLE and not state.st_mode & _STICKY):
                raise PermissionError("..")
            if (state.st_dev, state.st_ino) == (below.st_dev, below.st_ino):
                return
            higher, below = posix.open("..", _FOLDER, dir_fd=above), state
            posix.close(above)
            above = higher
    finally:
        posix.close(above)


def require_same_user(connection: "_socket.socket") -> None:
    """Raises `PermissionError` if another user is at the other end of a socket."""
    if hasattr(_socket, "SO_PEERCRED"):  # Linux: the process, the user, the group
        said, start = connection.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12), 4
    elif hasattr(_socket, "LOCAL_PEERCRED"):  # macOS: a version, the user
        said, start = connection.getsockopt(0, _socket.LOCAL_PEERCRED, 76), 4
    else:
        return
    if int.from_bytes(said[start : start + 4], sys.byteorder) != posix.geteuid():
        raise PermissionError("another user answers")


def ask(event: bytes, arguments: list[str]) -> bytes:
    """The daemon's answer. Raises `OSError`."""
    variables = [
        name + b"=" + value
        for name, value in posix.environ.items()
        if (name + b"=").startswith(_PASSED) or any(part in name.upper() for part in _SECRET)
    ]
    words = [word.encode("utf-8", "surrogateescape") for word in [*arguments, "", "", ""][:3]]
    head = b"\0".join([*words, posix.getcwdb(), *variables])
    folder, path = place()
    for again in range(_TRIES):
        answer = _answer(folder, path, b"%d %d %d\n" % (again, len(head), len(event)) + head + event)
        if answer:
            return answer.rstrip(b"\n")
    return b""


def _answer(folder: int, path: str, request: bytes) -> bytes:
    """A line; b"" if the daemon died over it."""
    connection = _connected(folder, path)
    ends = time.monotonic() + PATIENCE
    answer = b""
    try:
        connection.settimeout(PATIENCE)
        connection.sendall(request)
        while piece := connection.recv(1 << 16):
            answer += piece
            connection.settimeout(max(0.01, ends - time.monotonic()))
    except ConnectionError:
        return b""
    return answer if answer.endswith(b"\n") else b""


def _connected(folder: int, path: str) -> "_socket.socket":
    ends = time.monotonic() + _START
    while True:
        connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        connection.settimeout(_START)
        try:
            connection.connect(path)
            require_same_user(connection)
            return connection
        except (FileNotFoundError, ConnectionRefusedError):
            connection.close()
            if time.monotonic() > ends:
                raise
        _start(folder, path)
        time.sleep(0.02)


def _start(folder: int, path: str) -> None:
    """Begin a daemon that is nobody's child; of many who find none, one begins it and hands it its lock. Of the
    variables it gets none that may be a key: those come with each event, and go with it.
    """
    import fcntl
    import os

    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    lock = os.open(f"{path.rpartition('/')[2]}.lock", flags, 0o600, dir_fd=folder)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return
    if os.fork() == 0:
        try:
            os.setsid()
            null = os.open(os.devnull, os.O_RDWR)
            for stream in range(3):
                os.dup2(null, stream)
            os.set_inheritable(lock, True)
            os.set_inheritable(folder, True)
            if os.fork() == 0:
                os.chdir("/")
                package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
                run = _RUN.format(package=package)
                words = [sys.executable, "-P", "-c", run, path, str(lock), str(folder)]
                os.execve(sys.executable, words, own_variables(posix.environ))
        finally:
            os._exit(0)
    os.close(lock)
    os.wait()


def own_variables(environment: "dict[bytes, bytes]") -> "dict[bytes, bytes]":
    """Those of the variables that a daemon has."""
    return {
        name: value
        for name, value in environment.items()
        if (name + b"=").startswith(_KEPT) and not any(part in name.replace(b"PATH", b"") for part in _SECRET)
    }


def main() -> None:
    """Answer the event on standard input."""
    try:
        event = sys.stdin.buffer.read(LARGEST + 1)
        if len(event) <= LARGEST:
            sys.stdout.buffer.write(ask(event, sys.argv[1:]))
            sys.stdout.flush()
    except Exception:
        pass  # the agent goes on whatever happens here
